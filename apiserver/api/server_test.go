package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"xce.example/apiserver/events"
	"xce.example/apiserver/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a recording backend: it keeps submissions as the controllers do and answers everything else from its fields.
type fake struct {
	mu         sync.Mutex
	err        error // of every call
	jobs       []model.JobDetail
	byKey      map[string]uint64
	specs      []model.JobSpec
	filters    []model.JobFilter
	controls   []string
	next       uint64 // NextAfterID of listings
	connection model.Connection
	panics     bool
	chunk      model.LogChunk
	hosts      []model.Host
	queues     []model.Queue
	persons    []*model.Person // who asked
	keys       []string        // of writes
}

func (f *fake) ListJobs(ctx context.Context, filter model.JobFilter) (model.JobPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("boom")
	}
	f.filters = append(f.filters, filter)
	f.persons = append(f.persons, model.PersonOf(ctx))
	page := model.JobPage{Revision: 9, NextAfterID: f.next, Total: uint64(len(f.jobs))}
	for _, job := range f.jobs {
		if filter.ArrayID == 0 || job.ArrayID != nil && *job.ArrayID == filter.ArrayID {
			page.Jobs = append(page.Jobs, job.Job)
		}
	}
	return page, f.err
}

func (f *fake) GetJob(_ context.Context, id uint64) (model.JobDetail, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return model.JobDetail{}, f.err
	}
	for _, job := range f.jobs {
		if job.ID == id {
			return job, nil
		}
	}
	return model.JobDetail{}, &model.Error{Status: model.StatusNoEnt, Code: "E_XCE_NOENT", Message: "no such job"}
}

func (f *fake) SubmitJob(_ context.Context, spec model.JobSpec) (model.Submitted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return model.Submitted{}, f.err
	}
	f.specs = append(f.specs, spec)
	if id := f.byKey[spec.SubmitKey]; id != 0 {
		same := reflect.DeepEqual(spec, f.specs[id-1])
		return model.Submitted{}, &model.Error{Status: model.StatusDupJob, Code: "E_XCE_DUP_JOB", Message: "dup", JobID: id, SameBody: same}
	}
	id := uint64(len(f.jobs) + 1)
	f.jobs = append(f.jobs, model.JobDetail{Job: model.Job{ID: id, Name: spec.Name, State: "PENDING"}, Args: spec.Args, Env: spec.Env, Script: spec.Script})
	if spec.SubmitKey != "" {
		if f.byKey == nil {
			f.byKey = map[string]uint64{}
		}
		f.byKey[spec.SubmitKey] = id
	}
	return model.Submitted{JobID: id, Count: max(1, uint32(len(spec.Array)))}, nil
}

func (f *fake) ControlJob(ctx context.Context, id uint64, action model.Action, signal uint32, wholeArray bool) error {
	f.keys = append(f.keys, model.OpKeyOf(ctx))
	text, _ := json.Marshal([]any{id, action, signal, wholeArray})
	f.controls = append(f.controls, string(text))
	return f.err
}

func (f *fake) JobLog(context.Context, uint64, bool, uint64, uint32) (model.LogChunk, error) {
	return f.chunk, f.err
}
func (f *fake) ModifyJob(_ context.Context, id uint64, change model.JobChange, wholeArray bool) error {
	text, _ := json.Marshal([]any{id, change, wholeArray})
	f.controls = append(f.controls, string(text))
	return f.err
}
func (f *fake) ListHosts(context.Context) ([]model.Host, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hosts, f.err
}
func (f *fake) ControlHost(_ context.Context, action model.HostAction, host, reason string) error {
	text, _ := json.Marshal([]any{"host", action, host, reason})
	f.controls = append(f.controls, string(text))
	return f.err
}
func (f *fake) ListQueues(context.Context) ([]model.Queue, error) {
	if f.queues != nil {
		return f.queues, f.err
	}
	return []model.Queue{{Name: "default", Default: true}}, f.err
}
func (f *fake) ControlQueue(_ context.Context, action model.QueueAction, queue model.Queue, mask uint32) error {
	text, _ := json.Marshal([]any{"queue", action, mask, queue})
	f.controls = append(f.controls, string(text))
	return f.err
}
func (f *fake) ListReservations(context.Context) ([]model.Reservation, error) {
	return []model.Reservation{{Name: "exam", Hosts: []string{"n1"}, Users: []string{"ann"}, Queues: []string{}}}, f.err
}
func (f *fake) ListUsers(context.Context) ([]model.UserUse, error) {
	return []model.UserUse{{Name: "ann"}}, f.err
}
func (f *fake) ControlMember(_ context.Context, action model.MemberAction, id uint64, host string, port uint16) error {
	text, _ := json.Marshal([]any{"member", action, id, host, port})
	f.controls = append(f.controls, string(text))
	return f.err
}
func (f *fake) Load() (running, waiting, slots int) { return 3, 2, 64 }
func (f *fake) LibraryStats() map[string]float64    { return map[string]float64{"reconnects": 7} }
func (f *fake) ClusterStatus(context.Context) (model.Cluster, error) {
	return model.Cluster{Term: 3}, f.err
}
func (f *fake) Connection() model.Connection { return f.connection }

type server struct {
	*Server
	t       *testing.T
	fake    *fake
	handler http.Handler
	logs    *observer.ObservedLogs
}

var me = &model.Person{User: "me", Role: model.Admin, UID: 1000, GID: 100, IDsKnown: true, Trusted: true}

func newServer(t *testing.T) *server { return newServerWith(t, Options{Anonymous: me}) }

func newServerWith(t *testing.T, options Options) *server {
	core, logs := observer.New(zap.DebugLevel)
	f := &fake{connection: model.Connection{Ready: true, Joined: true, Detail: "ok"}}
	s := New(f, &events.Hub{}, zap.New(core), "test", options)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) })
	return &server{Server: s, t: t, fake: f, handler: s.Handler(page), logs: logs}
}

func (s *server) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:9980"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// problem checks that w is a problem+json of that status and gives it.
func (s *server) problem(w *httptest.ResponseRecorder, status int) *Problem {
	s.t.Helper()
	require.Equal(s.t, status, w.Code, w.Body.String())
	require.Equal(s.t, "application/problem+json", w.Header().Get("Content-Type"))
	p := &Problem{}
	decoder := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	decoder.DisallowUnknownFields()
	require.NoError(s.t, decoder.Decode(p), w.Body.String())
	require.Equal(s.t, status, p.Status)
	require.Equal(s.t, http.StatusText(status), p.Title)
	require.NotEmpty(s.t, p.Type)
	require.NotEmpty(s.t, p.Detail)
	require.NotEmpty(s.t, p.Code)
	require.Equal(s.t, w.Header().Get("X-Request-Id"), p.RequestID)
	return p
}

func TestLivezNeverAsksAndReadyzTells(t *testing.T) {
	s := newServer(t)
	s.fake.err = model.NotReady("down", 0)
	s.fake.connection = model.Connection{Detail: "not joined"}
	require.Equal(t, 200, s.do("GET", "/livez", "").Code)
	w := s.do("GET", "/readyz", "")
	require.Equal(t, 503, w.Code)
	require.Contains(t, w.Body.String(), "not joined")
	s.fake.connection.Ready = true
	require.Equal(t, 200, s.do("GET", "/readyz", "").Code)
}

func TestEveryStatusOfLibxceHasAnHTTPStatus(t *testing.T) {
	for status, want := range map[int]int{
		model.StatusRedirect: 503, model.StatusNoMaster: 503, model.StatusStandby: 503, model.StatusNotReady: 503, model.StatusOutcomeUnknown: 504,
		model.StatusDupJob: 409, model.StatusAuth: 401, model.StatusPerm: 403, model.StatusInvalid: 400, model.StatusNoEnt: 404, model.StatusStale: 409,
		model.StatusBusy: 429, model.StatusForked: 500, 110: 503, 111: 503, 22: 400, 125: 503, 7777: 502,
	} {
		s := newServer(t)
		s.fake.err = &model.Error{Status: status, Code: "CODE", Message: "words"}
		p := s.problem(s.do("GET", "/api/v1/jobs/5", ""), want)
		require.Equal(t, "CODE", p.Code)
		require.Equal(t, "words", p.Detail)
	}
}

func TestDegradedIsA503WithRetryAfterOnEveryPath(t *testing.T) {
	s := newServer(t)
	s.fake.err = model.NotReady("the controllers do not answer", 2*time.Second)
	for _, request := range [][3]string{
		{"GET", "/api/v1/jobs", ""}, {"GET", "/api/v1/jobs/1", ""}, {"DELETE", "/api/v1/jobs/1", ""}, {"GET", "/api/v1/hosts", ""}, {"GET", "/api/v1/queues", ""},
		{"GET", "/api/v1/cluster", ""}, {"GET", "/api/v1/users", ""}, {"GET", "/api/v1/arrays/1", ""}, {"PATCH", "/api/v1/jobs/1", `{"priority": 1}`},
		{"GET", "/api/v1/jobs?sort=name", ""}, {"GET", "/api/v1/jobs?index=5&wait=60s", ""}, {"POST", "/api/v1/queues/q/stop", ""}, {"DELETE", "/api/v1/hosts/h", ""},
		{"POST", "/api/v1/cluster/transfer?to=1", ""}, {"POST", "/api/v1/jobs", `{"command": ["true"]}`}, {"POST", "/api/v1/jobs/1/hold", ""}, {"GET", "/api/v1/jobs/1/output", ""},
	} {
		start := time.Now()
		w := s.do(request[0], request[1], request[2])
		p := s.problem(w, 503)
		require.Less(t, time.Since(start), time.Second)
		require.Equal(t, "2", w.Header().Get("Retry-After"), request)
		require.Equal(t, "E_XCE_NOT_READY", p.Code)
		require.True(t, p.Retryable, request)
	}
}

func TestUnknownOutcomeIsRetryableOnlyWhenRepeatingIsSafe(t *testing.T) {
	s := newServer(t)
	s.fake.err = &model.Error{Status: model.StatusOutcomeUnknown, Code: "E_XCE_OUTCOME_UNKNOWN", Message: "?", Outcome: model.Maybe}
	require.False(t, s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["true"]}`), 504).Retryable)
	require.True(t, s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["true"]}`, "Idempotency-Key", "k"), 504).Retryable)
	require.True(t, s.problem(s.do("DELETE", "/api/v1/jobs/1", ""), 504).Retryable)
	require.False(t, s.problem(s.do("POST", "/api/v1/jobs/1/requeue", ""), 504).Retryable)
	require.True(t, s.problem(s.do("POST", "/api/v1/jobs/1/requeue", "", "Idempotency-Key", "k"), 504).Retryable)
	require.False(t, s.problem(s.do("DELETE", "/api/v1/queues/q", ""), 504).Retryable)
	require.True(t, s.problem(s.do("POST", "/api/v1/queues/q/stop", ""), 504).Retryable)
}

func TestPathsAndMethodsThatAreNot(t *testing.T) {
	s := newServer(t)
	s.problem(s.do("GET", "/api/v2", ""), 404)
	s.problem(s.do("GET", "/nothing", ""), 404)
	w := s.do("PUT", "/api/v1/jobs", "")
	require.Equal(t, "METHOD_NOT_ALLOWED", s.problem(w, 405).Code)
	require.Equal(t, "GET, HEAD, POST, OPTIONS", w.Header().Get("Allow"))
	require.Equal(t, "GET, HEAD, PATCH, DELETE, OPTIONS", s.do("PUT", "/api/v1/jobs/1", "").Header().Get("Allow"))
	w = s.do("OPTIONS", "/api/v1/jobs/1", "")
	require.Equal(t, 204, w.Code)
	require.Equal(t, "GET, HEAD, PATCH, DELETE, OPTIONS", w.Header().Get("Allow"))
	s.problem(s.do("OPTIONS", "/nothing", ""), 404)
	require.Equal(t, "page", s.do("GET", "/", "").Body.String())
}

func TestOtherSitesPagesCannotAct(t *testing.T) {
	s := newServer(t)
	s.problem(s.do("GET", "/api/v1/jobs", "", "Host", "evil.example"), 421)
	s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["true"]}`, "Origin", "http://evil.example"), 403)
	s.problem(s.do("DELETE", "/api/v1/jobs/1", "", "Sec-Fetch-Site", "cross-site"), 403)
	require.Empty(t, s.fake.specs)
	require.Empty(t, s.fake.controls)
	require.Equal(t, 202, s.do("DELETE", "/api/v1/jobs/1", "", "Origin", "http://127.0.0.1:9980", "Sec-Fetch-Site", "same-origin").Code)
	for _, host := range []string{"localhost", "localhost:1", "127.0.0.1", "[::1]:80", "[::1]"} {
		require.Equal(t, 200, s.do("GET", "/livez", "", "Host", host).Code, host)
	}
}

func TestRequestIDsGoThrough(t *testing.T) {
	s := newServer(t)
	require.Equal(t, "mine-1", s.do("GET", "/livez", "", "X-Request-Id", "mine-1").Header().Get("X-Request-Id"))
	for _, bad := range []string{"", "a b", "x\x01", strings.Repeat("x", 200), "ü"} {
		id := s.do("GET", "/livez", "", "X-Request-Id", bad).Header().Get("X-Request-Id")
		require.Len(t, id, 24)
	}
	s.do("GET", "/api/v1/hosts", "", "X-Request-Id", "logged")
	entry := s.logs.FilterField(zap.String("request_id", "logged")).All()
	require.Len(t, entry, 1)
	require.Equal(t, int64(200), entry[0].ContextMap()["status"])
}

func TestAPanicEndsOnlyItsRequest(t *testing.T) {
	s := newServer(t)
	s.fake.panics = true
	p := s.problem(s.do("GET", "/api/v1/jobs", ""), 500)
	require.NotContains(t, p.Detail, "boom")
	require.Equal(t, 1, s.logs.FilterMessage("a handler panicked").Len())
	s.fake.panics = false
	require.Equal(t, 200, s.do("GET", "/api/v1/jobs", "").Code)
}

func TestEventsStreamAndResume(t *testing.T) {
	s := newServer(t)
	s.keepout = 20 * time.Millisecond
	web := httptest.NewServer(s.handler)
	defer web.Close()
	s.hub.Publish(model.Event{Kind: "job", Revision: 4, Job: &model.Job{ID: 1, Name: "a\nb"}})
	open := func(after string) (*bufio.Scanner, func()) {
		r, err := http.NewRequest("GET", web.URL+"/api/v1/events", nil)
		require.NoError(t, err)
		if after != "" {
			r.Header.Set("Last-Event-ID", after)
		}
		answer, err := web.Client().Do(r)
		require.NoError(t, err)
		require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
		return bufio.NewScanner(answer.Body), func() { answer.Body.Close() }
	}
	until := func(lines *bufio.Scanner, prefix string) string {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return lines.Text()
			}
		}
		t.Fatalf("the stream ended before %q", prefix)
		return ""
	}
	lines, end := open("4")
	require.Equal(t, "id: 4", until(lines, "id:"))
	require.Equal(t, "event: job", until(lines, "event:"))
	require.Contains(t, until(lines, "data:"), `"name":"a\nb"`)
	s.hub.Publish(model.Event{Kind: "host_removed", Revision: 5, Name: "h"})
	require.Equal(t, "id: 5", until(lines, "id:"))
	until(lines, ": still here")
	end()
	require.Eventually(t, func() bool { return s.hub.Subscribers() == 0 }, 5*time.Second, time.Millisecond)

	gone := func(after string) {
		p := s.problem(s.do("GET", "/api/v1/events", "", "Last-Event-ID", after), 410)
		require.Equal(t, "E_XCE_STALE", p.Code)
		require.False(t, p.Retryable)
	}
	gone("3")
	gone("99")
	lines, end = open("")
	defer end()
	until(lines, ": stream")
	s.Shutdown()
	until(lines, "event: shutdown")
	until(lines, "retry: 1000")
	for lines.Scan() {
	}
	require.NoError(t, lines.Err(), "a stream ends cleanly at shutdown")
	s.problem(s.do("GET", "/api/v1/events", "", "Last-Event-ID", "x"), 400)
	require.Contains(t, s.do("GET", "/readyz", "").Body.String(), "going down")
}
