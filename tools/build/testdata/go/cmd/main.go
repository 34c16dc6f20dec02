// Command cmd prints what package greet says, and a version that the build sets.
package main

import (
	"fmt"

	"xce.example/testdata/greet"
)

var version = "unset"

func main() {
	native, embedded := greet.Word(1)
	fmt.Println(native, embedded, version)
}
