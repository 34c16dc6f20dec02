package api

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"xce.example/apiserver/model"
)

// sampled is a server with something of everything in it.
func sampled(t *testing.T) *server {
	s := newServer(t)
	first, text, code := uint64(1), "2026-01-01T00:00:00.000Z", int32(3)
	index := uint32(0)
	s.fake.jobs = []model.JobDetail{{Job: model.Job{ID: 1, ArrayID: &first, ArrayIndex: &index, Name: "n", State: "FAILED", ExitCode: &code, SubmitTime: &text,
		StartTime: &text, EndTime: &text, Hosts: []string{"h"}, Gres: map[string]uint32{"gpu": 1}, Dependencies: []model.Dependency{{Kind: "afterok", JobID: 7}},
		Allocations: []model.Allocation{{Host: "h", CPUs: 1, Gres: map[string]uint32{}, GresIndices: map[string][]uint32{}}}}, Args: []string{"true"}, Env: []string{"A=1"}}}
	s.fake.hosts = []model.Host{{Name: "h", State: "UP", Gres: map[string]uint32{}, UsedGres: map[string]uint32{}}}
	s.fake.chunk = model.LogChunk{Data: []byte("out"), EOF: true}
	s.hub.Publish(model.Event{Kind: "gap", Revision: 5})
	return s
}

var sampleBodies = map[string]string{
	"submit-job": `{"command": ["true"], "array": "0-1"}`, "modify-job": `{"priority": 1}`, "modify-array": `{"priority": 1}`,
	"add-controller": `{"id": 4, "host": "d", "port": 9990}`, "create-queue": `{"name": "q"}`, "change-queue": `{"priority": 1}`,
}

// pathOf fills a path's parameters with what the sampled server has.
func pathOf(path string, op *huma.Operation) string {
	for _, p := range op.Parameters {
		if p.In != "path" {
			continue
		}
		value := "1"
		switch {
		case len(p.Schema.Enum) > 0:
			value = fmt.Sprint(p.Schema.Enum[0])
		case p.Name == "name" && strings.Contains(path, "queues"):
			value = "default"
		case p.Name == "name":
			value = "h"
		}
		path = strings.ReplaceAll(path, "{"+p.Name+"}", value)
	}
	return path
}

type described struct {
	method, path string
	op           *huma.Operation
}

func (s *server) operations() (list []described) {
	for path, item := range s.document.Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete} {
			if op != nil {
				list = append(list, described{method, path, op})
			}
		}
	}
	return list
}

// conforms checks an answer against the description of its operation.
func (s *server) conforms(d described, w *httptest.ResponseRecorder) {
	s.t.Helper()
	what := fmt.Sprintf("%s %s: %d %s", d.method, d.path, w.Code, w.Body.String())
	response := d.op.Responses[fmt.Sprint(w.Code)]
	require.NotNil(s.t, response, "a status that is not described: %s", what)
	for name := range response.Headers {
		require.NotEmpty(s.t, w.Header().Get(name), "%s of %s", name, what)
	}
	if w.Code == 304 {
		return
	}
	kind, _, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	require.NoError(s.t, err, what)
	media := response.Content[kind]
	if media == nil && strings.HasPrefix(kind, "text/") && d.op.OperationID == "get-job-output" {
		return // bytes
	}
	require.NotNil(s.t, media, "a media type that is not described: %s", what)
	if !strings.HasSuffix(kind, "json") {
		return
	}
	var value any
	require.NoError(s.t, json.Unmarshal(w.Body.Bytes(), &value), what)
	result := &huma.ValidateResult{}
	huma.Validate(s.document.Components.Schemas, media.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, value, result)
	require.Empty(s.t, result.Errors, what)
}

func TestEveryOperationAnswersAsItIsDescribed(t *testing.T) {
	operations := sampled(t).operations()
	require.Greater(t, len(operations), 28)
	ids := map[string]bool{}
	for _, d := range operations {
		require.NotEmpty(t, d.op.OperationID, d.path)
		require.False(t, ids[d.op.OperationID], d.op.OperationID)
		ids[d.op.OperationID] = true
		require.NotEmpty(t, d.op.Summary, d.path)
		require.NotEmpty(t, d.op.Tags, d.path)
		require.Contains(t, d.op.Metadata, accessKey, "%s: who may?", d.path)
		if d.op.OperationID == "stream-events" {
			continue // does not end; see TestEventsStreamAndResume
		}
		s := sampled(t)
		path, body := pathOf(d.path, d.op), sampleBodies[d.op.OperationID]
		w := s.do(d.method, path, body)
		require.Less(t, w.Code, 300, "%s %s %s", d.method, path, w.Body.String())
		s.conforms(d, w)
		// Each error the same way: what nobody knows, and what the controllers may say.
		s.conforms(d, s.do(d.method, path+"?no_such_key=1", body))
		if need := d.op.Metadata[accessKey].(access); need == anybody || d.op.OperationID == "metrics" || d.op.OperationID == "whoami" {
			continue
		}
		for status := range httpStatus {
			s := sampled(t)
			s.fake.err = &model.Error{Status: status, Code: "CODE", Message: "words"}
			w := s.do(d.method, path, body)
			require.GreaterOrEqual(t, w.Code, 400, "%s %s", d.method, path)
			s.conforms(d, w)
		}
	}
}

// What is served under /api is described: both are made by the same two functions, and this looks at the document as clients get it.
func TestTheDocumentIsServed(t *testing.T) {
	s := newServer(t)
	w := s.do("GET", "/openapi.json", "")
	require.Equal(t, 200, w.Code)
	var document struct {
		OpenAPI    string
		Paths      map[string]map[string]any
		Components struct{ SecuritySchemes map[string]any }
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &document))
	require.True(t, strings.HasPrefix(document.OpenAPI, "3.1"))
	require.Contains(t, document.Components.SecuritySchemes, "bearer")
	for _, d := range s.operations() {
		require.Contains(t, document.Paths[d.path], strings.ToLower(d.method))
	}
	for _, path := range []string{"/api/v1/jobs/{id}", "/api/v1/arrays/{id}", "/api/v1/hosts/{name}", "/api/v1/queues/{name}/{action}", "/api/v1/cluster/transfer",
		"/api/v1/events", "/livez", "/readyz", "/metrics"} {
		require.Contains(t, document.Paths, path)
	}
}
