package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"xce.example/apiserver/model"
)

// tokens is a verifier that knows a few.
type tokens map[string]*model.Person

func (t tokens) Verify(token string) (*model.Person, error) {
	if person := t[token]; person != nil {
		return person, nil
	}
	return nil, errors.New("the token is not signed by a key that this server trusts")
}

func withTokens(t *testing.T) *server {
	return newServerWith(t, Options{Verifier: tokens{
		"v": {User: "vic", Role: model.Viewer},
		"u": {User: "ann", Role: model.User, UID: 1000, GID: 100, IDsKnown: true},
		"x": {User: "xen", Role: model.User},
		"a": {User: "adm", Role: model.Admin, UID: 5, GID: 5, IDsKnown: true},
	}, AnyHost: true})
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

func TestRolesMayDoOnlyWhatTheyAreFor(t *testing.T) {
	s := withTokens(t)
	submit := `{"command": ["true"]}`
	for _, c := range []struct {
		method, path, body string
		none, v, u, a      int // status for nobody, viewer, user, admin
	}{
		{"GET", "/api/v1/jobs", "", 401, 200, 200, 200},
		{"GET", "/api/v1/cluster", "", 401, 200, 200, 200},
		{"GET", "/metrics", "", 401, 200, 200, 200},
		{"POST", "/api/v1/jobs", submit, 401, 403, 201, 201},
		{"DELETE", "/api/v1/jobs/1", "", 401, 403, 202, 202},
		{"PATCH", "/api/v1/jobs/1", `{"priority": 1}`, 401, 403, 202, 202},
		{"POST", "/api/v1/arrays/1/hold", "", 401, 403, 202, 202},
		{"POST", "/api/v1/hosts/h/drain", "", 401, 403, 403, 200},
		{"DELETE", "/api/v1/hosts/h", "", 401, 403, 403, 200},
		{"POST", "/api/v1/queues", `{"name": "q"}`, 401, 403, 403, 201},
		{"POST", "/api/v1/queues/default/stop", "", 401, 403, 403, 200},
		{"POST", "/api/v1/cluster/transfer", "", 401, 403, 403, 200},
		{"GET", "/livez", "", 200, 200, 200, 200},
		{"GET", "/", "", 200, 200, 200, 200},
		{"GET", "/openapi.json", "", 200, 200, 200, 200},
	} {
		require.Equal(t, c.none, s.do(c.method, c.path, c.body).Code, c.path)
		for token, want := range map[string]int{"v": c.v, "u": c.u, "a": c.a} {
			require.Equal(t, want, s.do(c.method, c.path, c.body, bearer(token)...).Code, "%s %s as %s", c.method, c.path, token)
		}
	}
	w := s.do("GET", "/api/v1/jobs", "")
	require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
	require.Equal(t, "E_XCE_AUTH", s.problem(w, 401).Code)
	for _, header := range []string{"Basic dTpw", "Bearer", "Bearer wrong", "u"} {
		s.problem(s.do("GET", "/api/v1/jobs", "", "Authorization", header), 401)
	}
	require.NotContains(t, s.do("GET", "/readyz", "").Body.String(), "peers", "strangers learn little")
	require.Equal(t, 200, s.do("GET", "/api/v1/jobs", "", append(bearer("u"), "Host", "xce.example")...).Code)
}

func TestTheBackendIsAskedForThePerson(t *testing.T) {
	s := withTokens(t)
	s.do("GET", "/api/v1/jobs", "", bearer("v")...)
	require.Equal(t, "vic", s.fake.persons[0].User)
	require.Contains(t, s.do("GET", "/api/v1/whoami", "", bearer("u")...).Body.String(), `"user":"ann","role":"user","authenticated":true`)
	entries := s.logs.FilterMessage("request").All()
	require.Equal(t, "ann", entries[len(entries)-1].ContextMap()["user"])
	for _, entry := range entries {
		require.NotContains(t, fmt.Sprint(entry.ContextMap()), "Bearer")
	}
}

func TestWhoseJobASubmissionMakes(t *testing.T) {
	s := withTokens(t)
	post := func(token, user string) int {
		return s.do("POST", "/api/v1/jobs", `{"command": ["true"], "user": "`+user+`"}`, bearer(token)...).Code
	}
	require.Equal(t, 201, post("u", "ann"))
	require.Equal(t, 201, post("u", ""))
	require.Equal(t, "ann", s.fake.specs[1].User)
	require.Equal(t, uint32(1000), s.fake.specs[1].UID)
	require.Equal(t, 403, post("u", "root"))
	require.Equal(t, 403, post("x", ""), "without numbers nobody's job is made")
	require.Equal(t, 201, post("a", "root"))
	require.Equal(t, []any{"root", uint32(0)}, []any{s.fake.specs[2].User, s.fake.specs[2].UID})
	require.Equal(t, 400, post("a", "no-such-user-here"))
	require.Len(t, s.fake.specs, 3)
}

func TestWithoutTokensOnAClusterThatKnowsWhoAsksOneOnlyLooks(t *testing.T) {
	s := newServerWith(t, Options{Anonymous: &model.Person{User: "nobody", Role: model.Viewer}})
	require.Equal(t, 200, s.do("GET", "/api/v1/jobs", "").Code)
	p := s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["true"]}`), 403)
	require.Contains(t, p.Detail, "--auth-key")
}

func TestUnknownAndRepeatedQueryKeysAreNamed(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/api/v1/jobs?stat=RUNNING", "/api/v1/jobs/1?stat=1", "/api/v1/hosts?stat=1", "/api/v1/cluster?stat=1", "/api/v1/events?stat=1", "/livez?stat=1"} {
		p := s.problem(s.do("GET", path, ""), 400)
		require.Contains(t, p.Detail, `"stat"`, path)
	}
	require.Contains(t, s.problem(s.do("GET", "/api/v1/jobs?stat=1", ""), 400).Detail, "page_token", "what is known is listed")
	s.problem(s.do("POST", "/api/v1/jobs?dry_run=1", `{"command": ["true"]}`), 400)
	require.Empty(t, s.fake.specs)
	require.Contains(t, s.problem(s.do("GET", "/api/v1/jobs?user=a&user=b", ""), 400).Detail, "2 times")
}

func TestHowFastOneMayAsk(t *testing.T) {
	s := newServerWith(t, Options{Anonymous: me, Rate: 0.001, Burst: 3})
	for range 3 {
		require.Equal(t, 200, s.do("GET", "/api/v1/jobs", "").Code)
	}
	w := s.do("GET", "/api/v1/jobs", "")
	p := s.problem(w, 429)
	require.True(t, p.Retryable)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Equal(t, 200, s.do("GET", "/livez", "").Code, "health checks are free")
	require.Contains(t, s.do("GET", "/metrics", "").Body.String(), `xce_apiserver_requests_refused_total{limit="rate"} 1`)

	l, now := newLimiter(1, 1), time.Now()
	require.True(t, l.allow("a", now))
	require.False(t, l.allow("a", now))
	require.True(t, l.allow("b", now), "each caller for itself")
	for i := range 2 * maxCallers {
		l.allow(fmt.Sprint(i), now)
	}
	require.LessOrEqual(t, len(l.callers), maxCallers, "strangers do not fill the memory")
}

func TestHowManyMayAskAtOnce(t *testing.T) {
	s := newServerWith(t, Options{Anonymous: me, Concurrent: 2, Waiting: 1})
	s.places <- struct{}{}
	require.Equal(t, 200, s.do("GET", "/api/v1/jobs", "").Code)
	s.places <- struct{}{}
	s.problem(s.do("GET", "/api/v1/jobs", ""), 429)
	require.Equal(t, 200, s.do("GET", "/api/v1/jobs?wait=1s", "").Code, "who waits has places of their own")
	s.waiters <- struct{}{}
	s.problem(s.do("GET", "/api/v1/events", ""), 429)
	require.Equal(t, 200, s.do("GET", "/readyz", "").Code)
	<-s.places
	require.Equal(t, 200, s.do("GET", "/api/v1/jobs", "").Code)
}

func TestBodiesHaveALimit(t *testing.T) {
	s := newServerWith(t, Options{Anonymous: me, BodyBytes: 2000})
	s.problem(s.do("POST", "/api/v1/jobs", `{"command": ["`+strings.Repeat("x", 3000)+`"]}`), 413)
	require.Equal(t, 201, s.do("POST", "/api/v1/jobs", `{"command": ["`+strings.Repeat("x", 1000)+`"]}`).Code)
}

func TestMetricsTellWhatWasAsked(t *testing.T) {
	s := newServer(t)
	s.do("GET", "/api/v1/jobs/4", "")
	s.do("GET", "/api/v1/jobs", "")
	s.do("GET", "/nothing", "")
	text := s.do("GET", "/metrics", "").Body.String()
	for _, line := range []string{
		`xce_apiserver_requests_total{code="404",route="GET /api/v1/jobs/{id}"} 1`, `xce_apiserver_requests_total{code="200",route="GET /api/v1/jobs"} 1`,
		`xce_apiserver_request_seconds_count{route="GET /api/v1/jobs"} 1`, `xce_apiserver_backend_ready 1`, `xce_apiserver_backend_calls 3`,
		`xce_apiserver_backend_calls_limit 64`, `xce_apiserver_libxce{counter="reconnects"} 7`, `xce_apiserver_event_streams 0`, `go_goroutines`, `process_open_fds`,
	} {
		require.Contains(t, text, line)
	}
	require.Equal(t, http.StatusOK, s.do("GET", "/metrics", "").Code)
}
