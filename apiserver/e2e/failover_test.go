package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const sleepJob = `{"command": ["sleep", "1"], "hold": true, "name": "%s"}`

// Nobody asks anything while the primary dies: the apiserver joins the new one all the same and its streams go on (A2.4).
func TestIdleReconnectResumesPushes(t *testing.T) {
	c := newCluster(t)
	events := c.stream()
	status, _, _ := c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, "before"), "")
	require.Equal(t, http.StatusCreated, status)
	c.next(events, `"name":"before"`)
	kill(c.controllers[c.primary()])
	c.next(events, "gap ") // joined again, without a request
	status, _, _ = c.do("POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, "after"), "")
	require.Equal(t, http.StatusCreated, status)
	c.next(events, `"name":"after"`)
}

// With no controller left every request fails fast and says so; when they are back everything works without a restart (A4.1, A4.2).
func TestFailFastAndRecovery(t *testing.T) {
	c := newCluster(t)
	for _, controller := range c.controllers {
		kill(controller)
	}
	c.do("GET", "/api/v1/jobs", "", "") // whoever comes first finds out
	for _, request := range [][3]string{{"GET", "/api/v1/jobs", ""}, {"POST", "/api/v1/jobs", fmt.Sprintf(sleepJob, "x")}, {"DELETE", "/api/v1/jobs/1", ""}, {"GET", "/api/v1/hosts", ""}} {
		start := time.Now()
		status, problem, header := c.do(request[0], request[1], request[2], "")
		require.Less(t, time.Since(start), time.Second, request)
		require.Equal(t, http.StatusServiceUnavailable, status, request)
		require.Equal(t, "E_XCE_NOT_READY", problem["code"])
		require.Equal(t, true, problem["retryable"])
		require.NotEmpty(t, header.Get("Retry-After"))
	}
	status, _, _ := c.do("GET", "/livez", "", "")
	require.Equal(t, http.StatusOK, status)
	status, _, _ = c.do("GET", "/readyz", "", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
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

// SIGTERM ends the apiserver at once and cleanly, also with a stream open.
func TestTermination(t *testing.T) {
	c := newCluster(t)
	events := c.stream()
	require.NoError(t, c.apiserver.Process.Signal(syscall.SIGTERM))
	start := time.Now()
	require.NoError(t, c.apiserver.Wait())
	require.Less(t, time.Since(start), 5*time.Second)
	for range events {
	}
}
