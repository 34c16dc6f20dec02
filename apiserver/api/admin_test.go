package api

import (
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"xce.example/apiserver/model"
)

func TestJobsAreModified(t *testing.T) {
	s := newServer(t)
	require.Equal(t, 202, s.do("PATCH", "/api/v1/jobs/3", `{"priority": -2, "queue": "q"}`).Code)
	require.Equal(t, 202, s.do("PATCH", "/api/v1/arrays/3", `{"time_limit_s": 0, "name": "n"}`).Code)
	require.Equal(t, []string{`[3,{"Priority":-2,"TimeLimitS":null,"Name":null,"Queue":"q"},false]`,
		`[3,{"Priority":null,"TimeLimitS":0,"Name":"n","Queue":null},true]`}, s.fake.controls)
	for _, body := range []string{`{}`, `{"cpus": 3}`, `{"name": ""}`, `{"name": "a\u0000"}`, `{"priority": "high"}`} {
		s.problem(s.do("PATCH", "/api/v1/jobs/3", body), 400)
	}
}

func TestArraysAreOneThing(t *testing.T) {
	s := newServer(t)
	first := uint64(5)
	for i, state := range []string{"COMPLETED", "RUNNING", "PENDING"} {
		index := uint32(i)
		s.fake.jobs = append(s.fake.jobs, model.JobDetail{Job: model.Job{ID: 5 + uint64(i), ArrayID: &first, ArrayIndex: &index, State: state, Name: "many"}})
	}
	w := s.do("GET", "/api/v1/arrays/5", "")
	require.Equal(t, 200, w.Code, w.Body.String())
	require.Contains(t, w.Body.String(), `"state":"RUNNING","tasks":3`)
	require.Contains(t, s.problem(s.do("GET", "/api/v1/arrays/99", ""), 404).Detail, "/api/v1/jobs/99")
	require.Equal(t, 202, s.do("DELETE", "/api/v1/arrays/5?signal=9", "").Code)
	require.Equal(t, 202, s.do("POST", "/api/v1/arrays/5/hold", "").Code)
	require.Equal(t, []string{"[5,0,9,true]", "[5,3,0,true]"}, s.fake.controls)
}

func TestHostsArePagedSortedAndControlled(t *testing.T) {
	s := newServer(t)
	for i, name := range []string{"h3", "h1", "h2", "h4"} {
		s.fake.hosts = append(s.fake.hosts, model.Host{Name: name, State: model.HostStates[i%2], RunningJobs: uint32(i / 2)})
	}
	names := func(path string) (list []string) {
		for range 10 {
			w := s.do("GET", path, "")
			require.Equal(t, 200, w.Code, w.Body.String())
			for _, m := range regexp.MustCompile(`"name":"(h\d)"`).FindAllStringSubmatch(w.Body.String(), -1) {
				list = append(list, m[1])
			}
			next := regexp.MustCompile(`"next_page_token":"([^"]+)"`).FindStringSubmatch(w.Body.String())
			if next == nil {
				return list
			}
			path = regexp.MustCompile(`&page_token=.*`).ReplaceAllString(path, "") + "&page_token=" + url.QueryEscape(next[1])
		}
		t.Fatal("pages without end")
		return nil
	}
	require.Equal(t, []string{"h1", "h2", "h3", "h4"}, names("/api/v1/hosts?limit=3"))
	require.Equal(t, []string{"h4", "h3", "h2", "h1"}, names("/api/v1/hosts?limit=1&order=desc"))
	require.Equal(t, []string{"h1", "h3", "h2", "h4"}, names("/api/v1/hosts?limit=3&sort=running_jobs"))
	require.Equal(t, []string{"h2", "h3"}, names("/api/v1/hosts?state=up&limit=5"))
	s.problem(s.do("GET", "/api/v1/hosts?state=sleepy", ""), 400)
	s.problem(s.do("GET", "/api/v1/hosts?page_token=x", ""), 400)
	require.Equal(t, 200, s.do("GET", "/api/v1/hosts/h2", "").Code)
	s.problem(s.do("GET", "/api/v1/hosts/h9", ""), 404)
	require.Equal(t, 200, s.do("POST", "/api/v1/hosts/h2/drain?reason=disk%20swap", "").Code)
	require.Equal(t, 200, s.do("POST", "/api/v1/hosts/h2/resume", "").Code)
	require.Equal(t, 200, s.do("DELETE", "/api/v1/hosts/h2", "").Code)
	require.Equal(t, 200, s.do("DELETE", "/api/v1/hosts/h2?lost=true", "").Code)
	require.Equal(t, []string{`["host",0,"h2","disk swap"]`, `["host",1,"h2",""]`, `["host",2,"h2",""]`, `["host",3,"h2",""]`}, s.fake.controls)
	s.problem(s.do("POST", "/api/v1/hosts/h2/explode", ""), 400)
}

func TestQueuesAreMadeChangedAndRemoved(t *testing.T) {
	s := newServer(t)
	limit := uint32(60)
	s.fake.queues = []model.Queue{{Name: "default", Default: true}, {Name: "q", MaxTimeS: &limit, Priority: 3}}
	w := s.do("POST", "/api/v1/queues", `{"name": "night", "priority": 5, "max_running": 10}`)
	require.Equal(t, 201, w.Code, w.Body.String())
	require.Equal(t, "/api/v1/queues/night", w.Header().Get("Location"))
	require.Contains(t, s.fake.controls[0], `["queue",0,0,{"name":"night"`)
	require.Equal(t, 200, s.do("PATCH", "/api/v1/queues/q", `{"priority": 9}`).Code)
	require.Contains(t, s.fake.controls[1], `["queue",1,1,{"name":"q"`, "what is not given stays")
	require.Equal(t, 200, s.do("PATCH", "/api/v1/queues/q", `{"max_time_s": 0, "allowed_users": ["ann"], "allowed_groups": [], "preemptible": false}`).Code)
	require.Contains(t, s.fake.controls[2], `["queue",1,1220,{"name":"q"`)
	require.Contains(t, s.fake.controls[2], `"allowed_users":["ann"],"allowed_groups":[]`)
	for _, action := range []string{"open", "close", "start", "stop"} {
		require.Equal(t, 200, s.do("POST", "/api/v1/queues/q/"+action, "").Code)
	}
	require.Equal(t, 200, s.do("DELETE", "/api/v1/queues/q", "").Code)
	require.Len(t, s.fake.controls, 8)
	require.Equal(t, 200, s.do("GET", "/api/v1/queues/q", "").Code)
	s.problem(s.do("GET", "/api/v1/queues/none", ""), 404)
	s.problem(s.do("PATCH", "/api/v1/queues/q", `{"allowed_users": [""]}`), 400)
	s.problem(s.do("PATCH", "/api/v1/queues/q", `{}`), 400)
	s.problem(s.do("PATCH", "/api/v1/queues/default", `{"default": false}`), 400)
	s.problem(s.do("POST", "/api/v1/queues", `{"priority": 1}`), 400)
	require.Len(t, s.fake.controls, 8)
}

func TestControllersAreChanged(t *testing.T) {
	s := newServer(t)
	require.Equal(t, 200, s.do("POST", "/api/v1/cluster/transfer?to=2", "").Code)
	require.Equal(t, 200, s.do("POST", "/api/v1/cluster/transfer", "").Code)
	require.Equal(t, 200, s.do("POST", "/api/v1/cluster/members", `{"id": 4, "host": "d", "port": 9990}`).Code)
	require.Equal(t, 200, s.do("DELETE", "/api/v1/cluster/members/4", "").Code)
	require.Equal(t, 200, s.do("POST", "/api/v1/cluster/members/2/replace", "").Code)
	require.Equal(t, 200, s.do("POST", "/api/v1/cluster/members/2/replace?host=e&port=9991", "").Code)
	require.Equal(t, []string{`["member",3,2,"",0]`, `["member",3,0,"",0]`, `["member",0,4,"d",9990]`, `["member",1,4,"",0]`, `["member",2,2,"",0]`,
		`["member",2,2,"e",9991]`}, s.fake.controls)
	s.problem(s.do("POST", "/api/v1/cluster/members/2/replace?host=e", ""), 400)
	s.problem(s.do("POST", "/api/v1/cluster/members", `{"id": 4}`), 400)
	require.Contains(t, s.do("GET", "/api/v1/users", "").Body.String(), `"name":"ann"`)
}

func TestChangesOfControllersHaveKeysToo(t *testing.T) {
	s := newServer(t)
	key := []string{"Idempotency-Key", "k"}
	for range 2 {
		require.Equal(t, 200, s.do("POST", "/api/v1/cluster/transfer", "", key...).Code)
	}
	require.Len(t, s.fake.controls, 1, "the second one gets the first answer")
	for _, request := range [][3]string{{"POST", "/api/v1/cluster/transfer?to=2", ""}, {"DELETE", "/api/v1/cluster/members/2", ""},
		{"POST", "/api/v1/cluster/members", `{"id": 4, "host": "d", "port": 9990}`}, {"POST", "/api/v1/cluster/members/2/replace", ""}} {
		require.Contains(t, s.problem(s.do(request[0], request[1], request[2], key...), 422).Detail, "another request", request)
		s.problem(s.do(request[0], request[1], request[2], "Idempotency-Key", "a b"), 400)
	}
	require.Len(t, s.fake.controls, 1)
	s.fake.err = model.NotReady("words", 0)
	s.problem(s.do("DELETE", "/api/v1/cluster/members/2", "", "Idempotency-Key", "k-2"), 503)
	s.fake.err = nil
	require.Equal(t, 200, s.do("DELETE", "/api/v1/cluster/members/2", "", "Idempotency-Key", "k-2").Code, "what failed may be tried again")
}

func TestWritesCarryTheirKey(t *testing.T) {
	s := newServer(t)
	require.Equal(t, 202, s.do("POST", "/api/v1/jobs/1/requeue", "", "Idempotency-Key", "k-1").Code)
	require.Equal(t, 202, s.do("DELETE", "/api/v1/jobs/1", "").Code)
	require.Equal(t, 202, s.do("POST", "/api/v1/arrays/1/kill", "", "Idempotency-Key", "k-2").Code)
	require.Equal(t, []string{"rest:me:k-1", "", "rest:me:k-2"}, s.fake.keys)
	for _, request := range [][3]string{{"DELETE", "/api/v1/jobs/1", ""}, {"PATCH", "/api/v1/jobs/1", `{"priority": 1}`}, {"POST", "/api/v1/queues", `{"name": "q"}`},
		{"DELETE", "/api/v1/queues/q", ""}, {"POST", "/api/v1/hosts/h/drain", ""}, {"DELETE", "/api/v1/hosts/h", ""}} {
		s.problem(s.do(request[0], request[1], request[2], "Idempotency-Key", "a b"), 400)
		s.fake.err = &model.Error{Status: model.StatusInvalid, Code: "E_XCE_INVALID", Message: "words", KeyReused: true}
		require.Contains(t, s.problem(s.do(request[0], request[1], request[2], "Idempotency-Key", "k"), 422).Detail, "another request", request)
		s.fake.err = nil
	}
}
