package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const sleepJob = `{"command": ["sleep", "1"], "hold": true, "name": "%s"}`

// Nobody asks the apiserver anything while the primary dies and another client makes a job: the push arrives all the same, and nothing that
// happened meanwhile is missing from the stream (A2.4).
func TestIdleReconnectResumesPushes(t *testing.T) {
	c := newCluster(t)
	events := c.stream()
	c.xce("submit", "--hold", "--name", "before", "--", "sleep", "1")
	c.next(events, `"name":"before"`)
	kill(c.controllers[c.primary()])
	c.xce("submit", "--hold", "--name", "meanwhile", "--", "sleep", "1") // perhaps before the apiserver has joined again
	c.xce("submit", "--hold", "--name", "after", "--", "sleep", "1")
	var seen []string
	limit := time.After(20 * time.Second)
	for len(seen) == 0 || !strings.Contains(seen[len(seen)-1], `"name":"after"`) {
		select {
		case event := <-events:
			seen = append(seen, event)
		case <-limit:
			t.Fatalf("no push after the failover: %q", seen)
		}
	}
	all := strings.Join(seen, "\n")
	require.Contains(t, all, `"name":"meanwhile"`)
	require.NotContains(t, all, "gap ", "the new primary has what the stream missed")
}

// Somebody waits for a job's change while the primary dies; the change, made by another client, ends the wait.
func TestALongPollLivesThroughAFailover(t *testing.T) {
	c := newCluster(t)
	status, job, _ := c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, "held"), "")
	require.Equal(t, http.StatusCreated, status)
	path := fmt.Sprintf("/api/v1/jobs/%v", job["id"])
	_, _, header := c.do("GET", path, "", "")
	victim := c.primary()
	answered := make(chan map[string]any, 1)
	go func() {
		_, value, _ := c.do("GET", path+"?wait=60s&index="+header.Get("X-XCE-Index"), "", "")
		answered <- value
	}()
	c.eventually(10*time.Second, "it waits", func() bool { return c.metric("xce_apiserver_event_streams") == 1 })
	kill(c.controllers[victim])
	c.xce("release", fmt.Sprint(job["id"]))
	start := time.Now()
	select {
	case value := <-answered:
		require.Equal(t, "PENDING", value["state"], value)
	case <-time.After(30 * time.Second):
		t.Fatal("the wait did not end")
	}
	t.Logf("answered %v after the change", time.Since(start))
}

// A listing's page tokens go on after the primary and the apiserver have been replaced.
func TestPageTokensOutliveServers(t *testing.T) {
	c := newCluster(t)
	for i := range 9 {
		status, _, _ := c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, fmt.Sprint("n", i*7%9)), "")
		require.Equal(t, http.StatusCreated, status)
	}
	for _, sort := range []string{"id", "name"} {
		var names []string
		query := "/api/v1/jobs?limit=4&sort=" + sort
		for token := ""; ; {
			var list map[string]any
			c.eventually(20*time.Second, "a page", func() bool {
				var status int
				status, list, _ = c.do("GET", query+token, "", "")
				return status == http.StatusOK
			})
			for _, job := range list["jobs"].([]any) {
				names = append(names, job.(map[string]any)["name"].(string))
			}
			next, more := list["next_page_token"].(string)
			if !more {
				break
			}
			token = "&page_token=" + url.QueryEscape(next)
			victim := c.primary()
			kill(c.controllers[victim])
			kill(c.apiserver)
			c.startAPI()
			c.startController(victim)
			c.waitReady()
		}
		want := []string{"n0", "n7", "n5", "n3", "n1", "n8", "n6", "n4", "n2"}
		if sort == "name" {
			slices.Sort(want)
		}
		require.Equal(t, want, names)
	}
}

// With no controller left every request fails fast and says so; when they are back everything works without a restart (A4.1, A4.2).
func TestFailFastAndRecovery(t *testing.T) {
	c := newCluster(t)
	for _, controller := range c.controllers {
		kill(controller)
	}
	c.do("GET", "/api/v1/jobs", "", "") // whoever comes first finds out
	c.eventually(10*time.Second, "it is degraded", func() bool { return c.metric("xce_apiserver_backend_degraded") == 1 })
	for _, request := range [][3]string{{"GET", "/api/v1/jobs", ""}, {"POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, "x")}, {"DELETE", "/api/v1/jobs/1", ""}, {"GET", "/api/v1/hosts", ""}} {
		start := time.Now()
		status, problem, header := c.do(request[0], request[1], request[2], "")
		require.Less(t, time.Since(start), 100*time.Millisecond, request)
		require.Equal(t, http.StatusServiceUnavailable, status, request)
		require.Equal(t, "E_XCE_NOT_READY", problem["code"])
		require.Equal(t, true, problem["retryable"])
		require.NotEmpty(t, header.Get("Retry-After"))
	}
	status, _, _ := c.do("GET", "/livez", "", "")
	require.Equal(t, http.StatusOK, status)
	status, _, _ = c.do("GET", "/readyz", "", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	c.aThousandAtOnce()
	for i := range nodes {
		c.startController(i)
	}
	c.waitReady()
	status, _, _ = c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, "y"), "")
	require.Equal(t, http.StatusCreated, status)
}

// Writers that repeat what failed, each job under its own key, while primaries and the apiserver are killed: every job once.
func TestEveryKeyIsOneJob(t *testing.T) {
	c := newCluster(t)
	const writers, each = 8, 60
	var mu sync.Mutex
	ids := map[float64]string{}
	repeats := 0
	var all sync.WaitGroup
	for w := range writers {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range each {
				key := fmt.Sprintf("w%d-%d", w, i)
				for end := time.Now().Add(60 * time.Second); ; {
					status, value, _ := c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, key), key)
					if status == http.StatusCreated || status == http.StatusOK {
						mu.Lock()
						id, _ := value["id"].(float64)
						if other, taken := ids[id]; taken {
							t.Errorf("job %v was given to %s and %s", id, other, key)
						}
						ids[id] = key
						mu.Unlock()
						break
					}
					if status != 0 && status != http.StatusServiceUnavailable && status != http.StatusGatewayTimeout || time.Now().After(end) {
						t.Errorf("%s: status %d, %v", key, status, value)
						return
					}
					mu.Lock()
					repeats++
					mu.Unlock()
					time.Sleep(20 * time.Millisecond)
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	for range 2 {
		time.Sleep(200 * time.Millisecond) // work goes on meanwhile
		victim := c.primary()
		kill(c.controllers[victim])
		c.primary()
		c.startController(victim)
		kill(c.apiserver)
		c.startAPI()
	}
	all.Wait()
	c.waitReady()
	_, list, _ := c.do("GET", "/api/v1/jobs?limit=1", "", "")
	require.Equal(t, float64(writers*each), list["total"])
	require.Len(t, ids, writers*each)
	t.Logf("%d jobs, %d repeated requests", len(ids), repeats)
	for id, key := range ids { // and later: a key still names its job
		status, value, _ := c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, key), key)
		require.Equal(t, http.StatusOK, status, "%v", value)
		require.Equal(t, id, value["id"])
		break
	}
	status, _, _ := c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, "other"), "w0-0")
	require.Equal(t, http.StatusUnprocessableEntity, status)
}

// A control that is asked for again under its key, after the primary and the apiserver were replaced, gets the first answer and does nothing.
func TestAControlOfOneKeyIsDoneOnce(t *testing.T) {
	c := newCluster(t)
	_, job, _ := c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, "x"), "")
	path := fmt.Sprintf("/api/v1/jobs/%v", job["id"])
	status, problem, _ := c.do("POST", path+"/release", "", "key-1")
	require.Equal(t, http.StatusAccepted, status, problem)
	status, _, _ = c.do("POST", path+"/hold", "", "")
	require.Equal(t, http.StatusAccepted, status)
	victim := c.primary()
	kill(c.controllers[victim])
	kill(c.apiserver)
	c.startAPI()
	c.waitReady()
	status, problem, _ = c.do("POST", path+"/release", "", "key-1")
	require.Equal(t, http.StatusAccepted, status, problem)
	_, job, _ = c.do("GET", path, "", "")
	require.Equal(t, "HELD", job["state"], "the release was done before")
	status, problem, _ = c.do("POST", path+"/kill", "", "key-1")
	require.Equal(t, http.StatusUnprocessableEntity, status, problem)
	_, job, _ = c.do("GET", path, "", "")
	require.Equal(t, "HELD", job["state"])
}

// SIGTERM ends the apiserver at once and cleanly, also with a stream open.
func TestTermination(t *testing.T) {
	c := newCluster(t)
	events := c.stream()
	require.NoError(t, c.apiserver.Process.Signal(syscall.SIGTERM))
	start := time.Now()
	require.NoError(t, c.apiserver.Wait())
	require.Less(t, time.Since(start), 5*time.Second)
	c.next(events, "shutdown ")
	for range events {
	}
}

// aThousandAtOnce asks much while no controller is there: nothing piles up, neither threads nor goroutines.
func (c *cluster) aThousandAtOnce() {
	const many = 1000
	c.http.Transport = &http.Transport{MaxIdleConnsPerHost: many}
	defer func() { c.http.CloseIdleConnections(); c.http.Transport = nil }()
	before, goroutines := c.threads(), c.metric("go_goroutines")
	most := before
	var all sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	start := time.Now()
	for i := range many {
		all.Add(1)
		go func() {
			defer all.Done()
			method, path, body := "GET", "/api/v1/jobs", ""
			if i%4 == 0 {
				method, body = "POST", fmt.Sprintf(sleepJob, "x")
			}
			status, _, _ := c.do(method, path, body, "")
			mu.Lock()
			counts[status]++
			mu.Unlock()
		}()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(20 * time.Millisecond):
			most = max(most, c.threads())
		}
	}
	took := time.Since(start)
	c.t.Logf("%d requests in %v: %v; threads %d before, at most %d", many, took, counts, before, most)
	require.Equal(c.t, map[int]int{http.StatusServiceUnavailable: many}, counts)
	require.Less(c.t, took, 20*time.Second)
	require.LessOrEqual(c.t, most, 64+40, "as many calls to libxce as slots, and Go's own threads")
	c.http.CloseIdleConnections()
	c.eventually(20*time.Second, "goroutines are as few as before", func() bool { return c.metric("go_goroutines") <= goroutines+20 })
}

// threads of the apiserver.
func (c *cluster) threads() int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", c.apiserver.Process.Pid))
	require.NoError(c.t, err)
	return len(list)
}

// Without any controller the apiserver waits for one and says so, naming each; or it gives up when asked to (A1.6).
func TestNobodyThereAtTheStart(t *testing.T) {
	c := prepare(t)
	c.startAPI()
	log := func() string {
		text, err := os.ReadFile(c.dir + "/api.log")
		require.NoError(t, err)
		return string(text)
	}
	c.eventually(20*time.Second, "it says what it waits for", func() bool { return strings.Contains(log(), "waiting for a cluster") })
	for _, candidate := range strings.Split(c.masters, ",") {
		require.Contains(t, log(), candidate)
	}
	require.Contains(t, log(), "ECONNREFUSED")
	for i := range nodes {
		c.startController(i)
	}
	c.waitReady()
	command := exec.Command(program(t, "apiserver/xce_apiserver"), "--listen", "127.0.0.1:0", "--peers", "127.0.0.1:1", "--timeout-ms", "500", "--exit-if-unreachable")
	out, err := command.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, command.ProcessState.ExitCode(), string(out))
	require.Contains(t, string(out), "127.0.0.1:1")
}
