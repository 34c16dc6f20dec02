package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"xce.example/apiserver/model"
)

// FuzzSubmitBody: whatever a body is, it is refused or makes a job that libxce can take.
// Longer: cd apiserver && go test -run='^$' -fuzz=FuzzSubmitBody ./api
func FuzzSubmitBody(f *testing.F) {
	for _, body := range []string{
		`{"command":["true"]}`,
		`{"script":"#!/bin/sh\necho","args":["a"],"env":{"A":"b"},"array":"0-9%2","gres":{"gpu":1}}`,
		`{"command":["x"],"env":["A=b"],"array":[3,1,1],"dependencies":[{"kind":"afterok","job_id":1}],"user":"root"}`,
		`{"command":["x"],"array":"0-4294967295"}`,
		`{"command":["x"],"array":[-1]}`,
		`{"command":[""]}`,
		`{"command":["a\u0000b"]}`,
		`{"cpus":-1}`, `[]`, `{"env":[1]}`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var body submitBody
		if json.Unmarshal(data, &body) != nil {
			return
		}
		spec, err := specOf(model.WithPerson(context.Background(), me), &body)
		if err != nil {
			return
		}
		if spec.CPUs < 1 || spec.Nodes < 1 || len(spec.Array) > model.MaxArrayTasks {
			t.Fatalf("no job: %+v", spec)
		}
		for _, text := range append(append([]string{spec.Name, spec.User}, spec.Args...), spec.Env...) {
			if strings.ContainsRune(text, 0) {
				t.Fatalf("a zero byte in %q", text)
			}
		}
	})
}
