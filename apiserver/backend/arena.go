package backend

/*
#include <stdlib.h>
#include <xce/types.h>
*/
import "C"

import (
	"sort"
	"unsafe"
)

// arena holds C memory for the arguments of one call. Free it when the call has returned.
type arena struct{ blocks []unsafe.Pointer }

func (a *arena) free() {
	for _, block := range a.blocks {
		C.free(block)
	}
	a.blocks = nil
}

// array allocates n zeroed values of a C type.
func array[T any](a *arena, n int) []T {
	var one T
	block := C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof(one)))
	a.blocks = append(a.blocks, block)
	return unsafe.Slice((*T)(block), n)
}

// text copies a string; NULL, "not given", for the empty one. A zero byte would cut it: callers refuse those.
func (a *arena) text(s string) *C.char {
	if s == "" {
		return nil
	}
	copied := C.CString(s)
	a.blocks = append(a.blocks, unsafe.Pointer(copied))
	return copied
}

// texts copies a list of strings, empty ones included.
func (a *arena) texts(list []string) (**C.char, C.size_t) {
	if len(list) == 0 {
		return nil, 0
	}
	out := array[*C.char](a, len(list))
	for i, s := range list {
		out[i] = C.CString(s)
		a.blocks = append(a.blocks, unsafe.Pointer(out[i]))
	}
	return &out[0], C.size_t(len(list))
}

// ids copies job ids.
func (a *arena) ids(list []uint64) *C.uint64_t {
	out := array[C.uint64_t](a, len(list))
	for i, id := range list {
		out[i] = C.uint64_t(id)
	}
	return &out[0]
}

// gres copies generic resources, sorted by name so that the same request is always the same bytes.
func (a *arena) gres(amounts map[string]uint32) (*C.xce_gres_t, C.size_t) {
	if len(amounts) == 0 {
		return nil, 0
	}
	names := make([]string, 0, len(amounts))
	for name := range amounts {
		names = append(names, name)
	}
	sort.Strings(names)
	out := array[C.xce_gres_t](a, len(names))
	for i, name := range names {
		out[i].name, out[i].count = a.text(name), C.uint32_t(amounts[name])
	}
	return &out[0], C.size_t(len(out))
}
