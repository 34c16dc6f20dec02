package model

import (
	"slices"
	"testing"
)

// FuzzArray: array indices are refused, or few, ascending and each once.
// Longer: cd apiserver && go test -run='^$' -fuzz=FuzzArray ./model
func FuzzArray(f *testing.F) {
	for _, text := range []string{"0-9", "1,3,5", "0-99%4", "0-9:2", "9-0", "4294967295", "0-4294967295:4294967295", "", ",", "%1", "0-99999,0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		indices, _, err := ParseArray(text)
		if err != nil {
			return
		}
		if len(indices) < 1 || len(indices) > MaxArrayTasks || !slices.IsSorted(indices) || len(slices.Compact(slices.Clone(indices))) != len(indices) {
			t.Fatalf("%q gives %d indices", text, len(indices))
		}
	})
}
