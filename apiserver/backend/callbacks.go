package backend

/*
#include <stdint.h>
#include <xce/client.h>
*/
import "C"

import (
	"runtime/cgo"
)

// goBackendPush runs on libxce's own thread and must not block: the hub never does.
//
//export goBackendPush
func goBackendPush(handle C.uintptr_t, event *C.xce_event_t) {
	if converted, ok := goEvent(event); ok {
		cgo.Handle(handle).Value().(*Client).hub.Publish(converted)
	}
}

// goBackendLog takes libxce's log lines, on any thread.
//
//export goBackendLog
func goBackendLog(level C.int, line *C.char) {
	log := clibLog.Load()
	if log == nil {
		return
	}
	log = log.Named("libxce")
	switch level {
	case C.XCE_LOG_DEBUG:
		log.Debug(C.GoString(line))
	case C.XCE_LOG_INFO:
		log.Info(C.GoString(line))
	case C.XCE_LOG_WARN:
		log.Warn(C.GoString(line))
	default:
		log.Error(C.GoString(line))
	}
}

// callHook calls the rejoin hook as the library does; for tests, which cannot use cgo.
func callHook(c *Client) int { return int(goBackendRejoin(C.uintptr_t(c.handle))) }
