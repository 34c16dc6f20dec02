package api

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"xce.example/apiserver/model"
)

func TestAnETagHoldsUntilTheContentChanges(t *testing.T) {
	s := newServer(t)
	s.fake.jobs = []model.JobDetail{{Job: model.Job{ID: 1, State: "PENDING", ModifyIndex: 3}}}
	for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/1", "/api/v1/jobs?sort=name", "/api/v1/hosts", "/api/v1/queues"} {
		w := s.do("GET", path, "")
		require.Equal(t, 200, w.Code, path)
		tag := w.Header().Get("ETag")
		require.NotEmpty(t, tag, path)
		for _, header := range []string{tag, `"other", ` + tag, "*"} {
			w = s.do("GET", path, "", "If-None-Match", header)
			require.Equal(t, 304, w.Code, path)
			require.Empty(t, w.Body.String())
			require.Equal(t, tag, w.Header().Get("ETag"))
		}
		require.Equal(t, 200, s.do("GET", path, "", "If-None-Match", `"other"`).Code)
	}
	tag := s.do("GET", "/api/v1/jobs", "").Header().Get("ETag")
	s.fake.jobs[0].State = "RUNNING"
	require.Equal(t, 200, s.do("GET", "/api/v1/jobs", "", "If-None-Match", tag).Code)
}

// later sends a request that is expected to wait, and gives its answer when it comes.
func (s *server) later(path string, headers ...string) chan *httptest.ResponseRecorder {
	out := make(chan *httptest.ResponseRecorder, 1)
	go func() { out <- s.do("GET", path, "", headers...) }()
	return out
}

func (s *server) waits(answer chan *httptest.ResponseRecorder, watchers int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.hub.Subscribers() == watchers }, 5*time.Second, time.Millisecond)
	select {
	case w := <-answer:
		s.t.Fatalf("it did not wait: %d %s", w.Code, w.Body.String())
	case <-time.After(30 * time.Millisecond): // longer than events are gathered for
	}
}

func (s *server) comes(answer chan *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	s.t.Helper()
	select {
	case w := <-answer:
		return w
	case <-time.After(10 * time.Second):
		s.t.Fatal("no answer came")
		return nil
	}
}

func (s *server) change(state string, revision uint64) {
	s.fake.mu.Lock()
	s.fake.jobs[0].State, s.fake.jobs[0].ModifyIndex = state, revision
	job := s.fake.jobs[0].Job
	s.fake.mu.Unlock()
	s.hub.Publish(model.Event{Kind: "job", Revision: revision, Job: &job})
}

func TestALongPollEndsWithAChangeOfWhatItIsAbout(t *testing.T) {
	for _, path := range []string{"/api/v1/jobs/1?", "/api/v1/jobs?id=1&", "/api/v1/jobs?user=ann&", "/api/v1/jobs?array_id=1&", "/api/v1/arrays/1?"} {
		s := newServer(t)
		first := uint64(1)
		index := uint32(0)
		s.fake.jobs = []model.JobDetail{{Job: model.Job{ID: 1, ArrayID: &first, ArrayIndex: &index, User: "ann", State: "PENDING"}}}
		s.hub.Publish(model.Event{Kind: "gap", Revision: 5}) // joined
		at := s.do("GET", path, "").Header().Get("X-XCE-Index")
		require.Contains(t, []string{"5", "9"}, at)
		answer := s.later(path + "wait=60s&index=" + at)
		s.waits(answer, 1)
		other := uint64(7)
		s.hub.Publish(model.Event{Kind: "job", Revision: 20, Job: &model.Job{ID: 2, User: "bob", ArrayID: &other}})
		s.hub.Publish(model.Event{Kind: "host", Revision: 21, Host: &model.Host{Name: "h"}})
		s.waits(answer, 1)
		s.change("RUNNING", 22)
		w := s.comes(answer)
		require.Equal(t, 200, w.Code)
		require.Contains(t, w.Body.String(), "RUNNING", path)
		require.Eventually(t, func() bool { return s.hub.Subscribers() == 0 }, 5*time.Second, time.Millisecond)
	}
}

func TestALongPollDoesNotMissWhatCameBeforeIt(t *testing.T) {
	s := newServer(t)
	s.fake.jobs = []model.JobDetail{{Job: model.Job{ID: 1, State: "PENDING"}}}
	s.hub.Publish(model.Event{Kind: "gap", Revision: 5})
	s.change("RUNNING", 10)
	require.Contains(t, s.comes(s.later("/api/v1/jobs/1?index=9&wait=60s")).Body.String(), "RUNNING")
	require.Equal(t, 200, s.comes(s.later("/api/v1/jobs/1?index=2&wait=60s")).Code, "older than what is remembered: look now")
	require.Equal(t, 200, s.comes(s.later("/api/v1/jobs/1?wait=60s")).Code, "no index: now")
	require.Equal(t, 404, s.comes(s.later("/api/v1/jobs/77?index=10&wait=60s")).Code)
}

func TestALongPollWithAnETagSleepsOverWhatChangesNothing(t *testing.T) {
	s := newServer(t)
	s.fake.jobs = []model.JobDetail{{Job: model.Job{ID: 1, State: "PENDING", ModifyIndex: 3}}}
	s.hub.Publish(model.Event{Kind: "gap", Revision: 5})
	tag := s.do("GET", "/api/v1/jobs", "").Header().Get("ETag")
	answer := s.later("/api/v1/jobs?index=9&wait=60s", "If-None-Match", tag)
	s.waits(answer, 1)
	s.hub.Publish(model.Event{Kind: "job", Revision: 20, Job: &model.Job{ID: 99}}) // on another page
	s.waits(answer, 1)
	s.change("RUNNING", 21)
	require.Equal(t, 200, s.comes(answer).Code)
	require.Equal(t, 200, s.comes(s.later("/api/v1/jobs?index=50&wait=60s", "If-None-Match", tag)).Code, "it has changed already")
}

func TestALongPollEndsInTimeAndAtShutdown(t *testing.T) {
	s := newServer(t)
	s.fake.jobs = []model.JobDetail{{Job: model.Job{ID: 1, State: "PENDING"}}}
	s.hub.Publish(model.Event{Kind: "gap", Revision: 5})
	w := s.do("GET", "/api/v1/jobs/1?index=9&wait=0.05", "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, 304, s.do("GET", "/api/v1/jobs/1?index=9&wait=50ms", "", "If-None-Match", w.Header().Get("ETag")).Code)
	answer := s.later("/api/v1/jobs/1?index=9&wait=5m")
	s.waits(answer, 1)
	s.Shutdown()
	require.Equal(t, 200, s.comes(answer).Code)
}

// ---- sorted pages -------------------------------------------------------------------------------

func (s *server) walk(path string) (ids []uint64) {
	token := ""
	for range 100 {
		w := s.do("GET", path+token, "")
		require.Equal(s.t, 200, w.Code, w.Body.String())
		var list struct {
			Jobs []struct{ ID uint64 }
			Next *string `json:"next_page_token"`
		}
		require.NoError(s.t, json.Unmarshal(w.Body.Bytes(), &list))
		for _, job := range list.Jobs {
			ids = append(ids, job.ID)
		}
		if list.Next == nil {
			return ids
		}
		token = "&page_token=" + url.QueryEscape(*list.Next)
	}
	s.t.Fatal("pages without end")
	return nil
}

func TestSortedPagesHoldEveryJobOnce(t *testing.T) {
	s := newServer(t)
	started := "2026-01-01T00:00:01.000Z"
	for id := uint64(1); id <= 7; id++ {
		job := model.Job{ID: id, Name: string(rune('g' - id%3)), Priority: int32(id % 2), State: model.JobStates[id%4], CPUs: 1, Nodes: 1}
		if id > 4 {
			job.StartTime = &started
		}
		s.fake.jobs = append(s.fake.jobs, model.JobDetail{Job: job})
	}
	require.Equal(t, []uint64{2, 5, 1, 4, 7, 3, 6}, s.walk("/api/v1/jobs?sort=name&limit=2"))
	require.Equal(t, []uint64{6, 3, 7, 4, 1, 5, 2}, s.walk("/api/v1/jobs?sort=name&order=desc&limit=3"))
	require.Equal(t, []uint64{2, 4, 6, 1, 3, 5, 7}, s.walk("/api/v1/jobs?sort=priority&limit=4"))
	require.Equal(t, []uint64{5, 6, 7, 1, 2, 3, 4}, s.walk("/api/v1/jobs?sort=start_time&limit=2"), "without one: last")
	require.Equal(t, []uint64{7, 6, 5, 4, 3, 2, 1}, s.walk("/api/v1/jobs?sort=start_time&order=desc&limit=2"))
}

// Tokens name a place, not a server's memory: another server goes on where the first was, and jobs that end meanwhile move nothing.
func TestAPageTokenOutlivesItsServer(t *testing.T) {
	jobs := func(ids ...uint64) (list []model.JobDetail) {
		for _, id := range ids {
			list = append(list, model.JobDetail{Job: model.Job{ID: id, Name: fmt.Sprint("n", id)}})
		}
		return list
	}
	s := newServer(t)
	s.fake.jobs = jobs(1, 2, 3, 4, 5)
	var list struct {
		Next string `json:"next_page_token"`
	}
	require.NoError(t, json.Unmarshal(s.do("GET", "/api/v1/jobs?sort=name&limit=2", "").Body.Bytes(), &list))
	other := newServer(t)
	other.fake.jobs = jobs(3, 4, 5, 6) // 1 and the token's own are gone, 6 is new
	require.Equal(t, []uint64{3, 4, 5, 6}, other.walk("/api/v1/jobs?sort=name&page_token="+url.QueryEscape(list.Next)))
	other.problem(other.do("GET", "/api/v1/jobs?sort=user&page_token="+list.Next, ""), 400)
	other.problem(other.do("GET", "/api/v1/jobs?sort=name&order=desc&page_token="+list.Next, ""), 400)
}

func TestAnyNumberIsSorted(t *testing.T) {
	const n = 30000
	s := newServer(t)
	var expected []uint64
	for id := uint64(1); id <= n; id++ {
		s.fake.jobs = append(s.fake.jobs, model.JobDetail{Job: model.Job{ID: id, Priority: int32(id * 7919 % 1009)}})
		expected = append(expected, id)
	}
	slices.SortStableFunc(expected, func(a, b uint64) int { return int(a*7919%1009) - int(b*7919%1009) })
	require.Equal(t, expected, s.walk("/api/v1/jobs?sort=priority&limit=1000"))
	slices.Reverse(expected)
	require.Equal(t, expected, s.walk("/api/v1/jobs?sort=priority&order=desc&limit=999"))
}

func TestSortingThatTakesTooLongIsRefusedWithWhatToDo(t *testing.T) {
	s := newServer(t)
	s.fake.jobs = make([]model.JobDetail, 5)
	s.fake.next = 7 // there is always another page
	s.scanWithin = 0
	require.Contains(t, s.problem(s.do("GET", "/api/v1/jobs?sort=name", ""), 400).Detail, "filter by")
}
