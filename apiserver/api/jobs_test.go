package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"xce.example/apiserver/model"
)

func TestListPassesFiltersAndPages(t *testing.T) {
	s := newServer(t)
	s.fake.jobs = []model.JobDetail{{Job: model.Job{ID: 7, Name: "n", State: "RUNNING", Hosts: []string{"h1"}}}}
	s.fake.next = 7
	w := s.do("GET", "/api/v1/jobs?state=PENDING,running&user=u&queue=q&name=n&limit=5&order=desc", "")
	require.Equal(t, 200, w.Code, w.Body.String())
	require.Equal(t, model.JobFilter{States: 1<<0 | 1<<3, User: "u", Queue: "q", Name: "n", Limit: 5, Descending: true}, s.fake.filters[0])
	var list struct {
		Jobs  []map[string]any
		Total int
		Next  string `json:"next_page_token"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list))
	require.Equal(t, "RUNNING", list.Jobs[0]["state"])
	require.Contains(t, list.Jobs[0], "exit_code")
	require.Nil(t, list.Jobs[0]["exit_code"])
	require.NotContains(t, list.Jobs[0], "script")
	require.NotContains(t, w.Body.String(), "$schema")

	s.fake.next = 0
	w = s.do("GET", "/api/v1/jobs?order=desc&page_token="+list.Next, "")
	require.Equal(t, uint64(7), s.fake.filters[1].AfterID)
	require.Equal(t, uint32(100), s.fake.filters[1].Limit)
	require.Contains(t, w.Body.String(), `"next_page_token":null`)
}

func TestHistoryAndTheTimesOfEnds(t *testing.T) {
	s := newServer(t)
	require.Equal(t, 200, s.do("GET", "/api/v1/jobs?ended_since=2026-01-31T08:00:00Z&ended_until=2026-02-01T08:00:00%2B01:00&state=ended", "").Code)
	require.Equal(t, model.JobFilter{States: 0x3e0, Limit: 100, SinceMs: 1769846400000, UntilMs: 1769929200000}, s.fake.filters[0])
	require.Equal(t, 200, s.do("GET", "/api/v1/history?user=u&ended_since=24h&sort=end_time&order=desc", "").Code)
	require.True(t, s.fake.filters[1].History)
	require.InDelta(t, time.Now().Add(-24*time.Hour).UnixMilli(), s.fake.filters[1].SinceMs, 60000)
	for _, bad := range []string{"yesterday", "-3h", "2026-01-31"} {
		s.problem(s.do("GET", "/api/v1/history?ended_since="+bad, ""), 400)
	}
}

func TestAnEmptyListIsAList(t *testing.T) {
	s := newServer(t)
	require.Contains(t, s.do("GET", "/api/v1/jobs", "").Body.String(), `"jobs":[]`)
	require.Contains(t, s.do("GET", "/api/v1/hosts", "").Body.String(), `"hosts":[]`)
}

func TestListRefuses(t *testing.T) {
	s := newServer(t)
	for _, query := range []string{"state=ODD", "limit=0", "limit=99999", "limit=x", "order=up", "page_token=asc-", "page_token=desc-5", "page_token=5", "user=a%00b", "stat=RUNNING", "state=RUNNING&state=PENDING", "sort=colour", "wait=10h", "wait=x", "sort=name&page_token=asc-5"} {
		s.problem(s.do("GET", "/api/v1/jobs?"+query, ""), 400)
	}
	require.Empty(t, s.fake.filters)
}

func TestGetAndKill(t *testing.T) {
	s := newServer(t)
	s.fake.jobs = []model.JobDetail{{Job: model.Job{ID: 3}, Args: []string{"sleep", "1"}}}
	require.Contains(t, s.do("GET", "/api/v1/jobs/3", "").Body.String(), `"args":["sleep","1"]`)
	s.problem(s.do("GET", "/api/v1/jobs/4", ""), 404)
	for _, id := range []string{"0", "-1", "x", "99999999999999999999999"} {
		s.problem(s.do("GET", "/api/v1/jobs/"+id, ""), 400)
	}
	w := s.do("DELETE", "/api/v1/jobs/3?signal=9&array=true", "")
	require.Equal(t, 202, w.Code)
	require.JSONEq(t, `{"id": 3, "action": "kill"}`, w.Body.String())
	require.Equal(t, 202, s.do("POST", "/api/v1/jobs/3/suspend", "").Code)
	require.Equal(t, []string{"[3,0,9,true]", "[3,1,0,false]"}, s.fake.controls)
	s.problem(s.do("POST", "/api/v1/jobs/3/explode", ""), 400)
}

func TestOutputIsPlainText(t *testing.T) {
	s := newServer(t)
	s.fake.chunk = model.LogChunk{Data: []byte("<script>alert(1)</script>\n"), Offset: 10, EOF: true}
	w := s.do("GET", "/api/v1/jobs/3/output?stream=stderr&offset=10", "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	require.Equal(t, "<script>alert(1)</script>\n", w.Body.String())
	require.Equal(t, "36", w.Header().Get("X-Next-Offset"))
	require.Equal(t, "true", w.Header().Get("X-End-Of-Output"))
}

func TestSubmitACommand(t *testing.T) {
	s := newServer(t)
	w := s.do("POST", "/api/v1/jobs", `{"command": ["/bin/sleep", "10"], "env": {"B": "2", "A": "1"}, "cpus": 2, "memory_mb": 64, "time_limit_s": 60, "queue": "q",
		"gres": {"gpu": 1}, "hold": true, "requeue": true, "priority": -5, "work_dir": "/tmp", "dependencies": [{"kind": "afterok", "job_id": 1}]}`)
	require.Equal(t, 201, w.Code, w.Body.String())
	require.Equal(t, "/api/v1/jobs/1", w.Header().Get("Location"))
	require.JSONEq(t, `{"id": 1, "array_id": null, "count": 1, "existing": false}`, w.Body.String())
	spec := s.fake.specs[0]
	require.Equal(t, []any{"me", uint32(1000), uint32(100)}, []any{spec.User, spec.UID, spec.GID})
	require.Equal(t, "sleep", spec.Name)
	require.Equal(t, []string{"/bin/sleep", "10"}, spec.Args)
	require.Equal(t, []string{"A=1", "B=2"}, spec.Env)
	require.Empty(t, spec.SubmitKey)
	require.Equal(t, int32(-5), spec.Priority)
	require.Equal(t, []model.Dependency{{Kind: "afterok", JobID: 1}}, spec.Dependencies)
}

func TestSubmitAScriptAndArrays(t *testing.T) {
	s := newServer(t)
	for body, want := range map[string][]uint32{
		`{"script": "#!/bin/sh\necho", "args": ["x"], "array": "0-2%2"}`: {0, 1, 2},
		`{"command": ["true"], "array": [5, 1, 5]}`:                      {1, 5},
	} {
		w := s.do("POST", "/api/v1/jobs", body)
		require.Equal(t, 201, w.Code, w.Body.String())
		spec := s.fake.specs[len(s.fake.specs)-1]
		require.Equal(t, want, spec.Array)
		require.Contains(t, w.Body.String(), `"array_id":`+string(rune('0'+len(s.fake.specs))))
	}
}

func TestSubmitACommandInsideAJob(t *testing.T) {
	s := newServer(t)
	w := s.do("POST", "/api/v1/jobs", `{"command": ["hostname"], "step_of": 17, "step_hosts": ["n1", "n2"]}`)
	require.Equal(t, 201, w.Code, w.Body.String())
	require.Equal(t, uint64(17), s.fake.specs[0].StepOf)
	require.Equal(t, []string{"n1", "n2"}, s.fake.specs[0].StepHosts)
}

func TestSubmitRefuses(t *testing.T) {
	s := newServer(t)
	for body, says := range map[string]string{
		``:                         "required",
		`{`:                        "JSON",
		`[]`:                       "object",
		`null`:                     "object",
		`{"command": ["x"]} extra`: "invalid character",
		`{}`:                       "nothing to run",
		`{"comand": ["x"]}`:        "unexpected property",
		`{"command": "x"}`:         "array",
		`{"command": [""]}`:        "empty",
		`{"command": ["x"], "script": "#!/bin/sh"}`:                       "not both",
		`{"command": ["x"], "args": ["y"]}`:                               "args are a script's",
		`{"script": "echo"}`:                                              "#!",
		`{"script": "#!` + strings.Repeat("x", 1<<20) + `"}`:              "at most 1048576",
		`{"command": ["x"], "array": "9-1"}`:                              "neither an index nor a range",
		`{"command": ["x"], "array": "0-200000"}`:                         "more than 100000",
		`{"command": ["x"], "array": []}`:                                 "no indices",
		`{"command": ["x"], "array": [-1]}`:                               "array",
		`{"command": ["x"], "cpus": -1}`:                                  "cpus",
		`{"command": ["x"], "cpus": 1.5}`:                                 "cpus",
		`{"command": ["x"], "cpus": 99999999999}`:                         "cpus",
		`{"command": ["x"], "env": ["A"]}`:                                "KEY=VALUE",
		`{"command": ["x"], "env": {"": "v"}}`:                            "KEY=VALUE",
		`{"command": ["x\u0000y"]}`:                                       "zero byte",
		`{"command": ["x"], "user": "no-such-user-here"}`:                 "not known",
		`{"command": ["x"], "step_hosts": ["n1"]}`:                        "step_of",
		`{"command": ["x"], "work_dir": "tmp"}`:                           "absolute",
		`{"command": ["x"], "dependencies": [{"kind": "afterok"}]}`:       "job_id",
		`{"command": ["x"], "dependencies": [{"kind": "x", "job_id":1}]}`: "kind",
	} {
		p := s.problem(s.do("POST", "/api/v1/jobs", body), 400)
		require.Contains(t, p.Detail, says, body[:min(len(body), 80)])
		require.False(t, p.Retryable)
	}
	s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["`+strings.Repeat("x", 5<<20)+`"]}`), 413)
	s.problem(s.do("POST", "/api/v1/jobs", `command=x`, "Content-Type", "application/x-www-form-urlencoded"), 415)
	s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["x"]}`, "Idempotency-Key", "a b"), 400)
	require.Empty(t, s.fake.specs)
}

func TestAMissingQueueIsAnErrorOfTheBody(t *testing.T) {
	s := newServer(t)
	s.fake.err = &model.Error{Status: model.StatusNoEnt, Code: "E_XCE_NOENT", Message: "there is no queue 'x'"}
	require.Equal(t, "E_XCE_NOENT", s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["x"], "queue": "x"}`), 400).Code)
}

func TestIdempotencyKeys(t *testing.T) {
	s := newServer(t)
	key := []string{"Idempotency-Key", "k-1"}
	w := s.do("POST", "/api/v1/jobs", `{"command": ["sleep", "1"], "env": {"A": "1"}}`, key...)
	require.Equal(t, 201, w.Code)
	require.Equal(t, "rest:k-1", s.fake.specs[0].SubmitKey)

	w = s.do("POST", "/api/v1/jobs", ` {"env": ["A=1"], "command": ["sleep", "1"], "cpus": 1}`, key...) // the same request, written otherwise
	require.Equal(t, 200, w.Code, w.Body.String())
	require.Equal(t, "/api/v1/jobs/1", w.Header().Get("Location"))
	require.JSONEq(t, `{"id": 1, "array_id": null, "count": 1, "existing": true}`, w.Body.String())

	p := s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["sleep", "2"], "env": {"A": "1"}}`, key...), 422)
	require.Equal(t, "E_XCE_DUP_JOB", p.Code)
	require.Equal(t, uint64(1), p.JobID)
	require.False(t, p.Retryable)

	require.Equal(t, 201, s.do("POST", "/api/v1/jobs", `{"command": ["sleep", "1"]}`, "Idempotency-Key", "k-2").Code)
	require.Len(t, s.fake.jobs, 2)
}
