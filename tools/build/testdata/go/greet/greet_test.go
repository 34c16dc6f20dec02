package greet

import (
	"os"
	"testing"
)

func TestWord(t *testing.T) {
	native, embedded := Word(40)
	if native != "native 42" || embedded != "embedded" {
		t.Errorf("got %q, %q", native, embedded)
	}
}

func TestRunsInItsPackageFolder(t *testing.T) {
	if data, err := os.ReadFile("testdata/data.txt"); err != nil || string(data) != "data" {
		t.Errorf("got %q, %v", data, err)
	}
}
