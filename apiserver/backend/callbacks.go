package backend

/*
#include <stdint.h>
#include <xce/client.h>
*/
import "C"

import (
	"runtime/cgo"
	"sync"
	"time"

	"go.uber.org/zap"
)

// throttle lets through logBurst lines at once and one more every logEvery: a long outage must not fill the disk with attempts.
type throttle struct {
	mu      sync.Mutex
	tokens  float64
	last    time.Time
	dropped int
}

const (
	logBurst = 30
	logEvery = 5 * time.Second
)

// pass says whether a line may be logged at now, and how many were dropped before it.
func (t *throttle) pass(now time.Time) (ok bool, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last.IsZero() {
		t.tokens = logBurst
	}
	t.tokens = min(logBurst, t.tokens+now.Sub(t.last).Seconds()/logEvery.Seconds())
	t.last = now
	if t.tokens < 1 {
		t.dropped++
		return false, 0
	}
	t.tokens--
	dropped, t.dropped = t.dropped, 0
	return true, dropped
}

var clibThrottle throttle

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
	ok, dropped := clibThrottle.pass(time.Now())
	if !ok {
		return
	}
	log = log.Named("libxce")
	if dropped > 0 {
		log = log.With(zap.Int("lines_dropped", dropped))
	}
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
