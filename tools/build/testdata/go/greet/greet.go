// Package greet calls C++ through cgo and embeds a file.
package greet

// #include <stdlib.h>
// #include "tools/build/testdata/go/native/native.h"
import "C"

import (
	_ "embed"
	"unsafe"
)

//go:embed word.txt
var embedded string

// Word returns a word made in C++ and one that was embedded.
func Word(n int) (string, string) {
	word := C.native_word(C.int(n))
	defer C.free(unsafe.Pointer(word))
	return C.GoString(word), embedded
}
