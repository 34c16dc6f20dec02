// Package e2e tests the apiserver before three real controllers that are killed.
package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const nodes = 3

// cluster is three controllers and an apiserver on loopback, in a folder of the test.
type cluster struct {
	t           *testing.T
	dir         string
	peers       string
	masters     string
	controllers [nodes]*exec.Cmd
	apiserver   *exec.Cmd
	listen      string
	url         string
	http        *http.Client
	pki         string   // folder of certificates; "": without TLS
	apiFlags    []string // of the apiserver, beside what every one gets
	token       string   // of requests
}

func program(t *testing.T, path string) string {
	full, err := filepath.Abs("../../" + path) // tests run in their package's folder
	require.NoError(t, err)
	if _, err := os.Stat(full); err != nil {
		t.Skip("run by bazel, which builds " + path)
	}
	return full
}

func newCluster(t *testing.T) *cluster {
	c := prepare(t)
	c.startAll()
	return c
}

// prepare makes a cluster of which nothing runs yet.
func prepare(t *testing.T) *cluster {
	c := &cluster{t: t, dir: t.TempDir(), listen: "127.0.0.1:0", http: &http.Client{Timeout: 90 * time.Second}}
	var listeners []net.Listener
	var peers, masters []string
	for i := range nodes {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners = append(listeners, listener)
		masters = append(masters, listener.Addr().String())
		peers = append(peers, fmt.Sprintf("%d=%s", i+1, listener.Addr()))
	}
	for _, listener := range listeners {
		require.NoError(t, listener.Close())
	}
	c.peers, c.masters = strings.Join(peers, ","), strings.Join(masters, ",")
	t.Cleanup(c.stop)
	return c
}

func (c *cluster) startAll() {
	for i := range nodes {
		c.startController(i)
	}
	c.startAPI()
	c.waitReady()
}

// run runs a program to its end and gives what it wrote.
func (c *cluster) run(path string, args ...string) string {
	c.t.Helper()
	out, err := exec.Command(program(c.t, path), args...).CombinedOutput()
	require.NoError(c.t, err, string(out))
	return strings.TrimSpace(string(out))
}

// tls gives the flags of a daemon's certificate; none without TLS.
func (c *cluster) tls(role, name string) []string {
	if c.pki == "" {
		return nil
	}
	stem := filepath.Join(c.pki, role+"-"+name)
	if _, err := os.Stat(stem + ".crt"); err != nil {
		c.run("cli/xce", "pki", "issue", c.pki, "--role", role, "--name", name)
	}
	return []string{"--tls-ca", filepath.Join(c.pki, "ca.crt"), "--tls-cert", stem + ".crt", "--tls-key", stem + ".key"}
}

// xce asks the controllers without the apiserver.
func (c *cluster) xce(args ...string) string {
	c.t.Helper()
	return c.run("cli/xce", append([]string{"--masters", c.masters}, args...)...)
}

func (c *cluster) start(name, path string, args ...string) *exec.Cmd {
	log, err := os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(c.t, err)
	defer log.Close()
	command := exec.Command(program(c.t, path), args...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(c.t, command.Start())
	return command
}

func (c *cluster) startController(i int) {
	args := []string{"--id", fmt.Sprint(i + 1), "--peers", c.peers, "--data-dir", filepath.Join(c.dir, fmt.Sprint("data", i+1))}
	c.controllers[i] = c.start(fmt.Sprint("c", i+1), "controller/xce_controller", append(args, c.tls("controller", fmt.Sprint(i+1))...)...)
}

func (c *cluster) startAPI() {
	portFile := filepath.Join(c.dir, "port")
	args := append([]string{"--listen", c.listen, "--peers", c.masters, "--port-file", portFile, "--name", "api"}, c.apiFlags...)
	c.apiserver = c.start("api", "apiserver/xce_apiserver", append(args, c.tls("apiserver", "api")...)...)
	if c.url != "" {
		return // again, on the same port
	}
	c.eventually(20*time.Second, "the apiserver listens", func() bool {
		port, err := os.ReadFile(portFile)
		c.listen = "127.0.0.1:" + strings.TrimSpace(string(port))
		c.url = "http://" + c.listen
		if slices.Contains(c.apiFlags, "--https-cert") {
			c.url = "https://" + c.listen
		}
		return err == nil
	})
}

func kill(command *exec.Cmd) {
	if command != nil && command.ProcessState == nil {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
}

func (c *cluster) stop() {
	kill(c.apiserver)
	for _, controller := range c.controllers {
		kill(controller)
	}
	if c.t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
		for _, path := range logs {
			text, _ := os.ReadFile(path)
			lines := strings.Split(string(text), "\n")
			c.t.Logf("== %s\n%s", filepath.Base(path), strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	}
}

func (c *cluster) eventually(limit time.Duration, what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if done() {
			return
		}
	}
	c.t.Fatalf("not within %v: %s", limit, what)
}

func (c *cluster) waitReady() {
	c.t.Helper()
	c.eventually(30*time.Second, "readyz is 200", func() bool {
		status, _, _ := c.do("GET", "/readyz", "", "")
		return status == http.StatusOK
	})
}

// do makes one request; status 0: no answer.
func (c *cluster) do(method, path, body, key string) (int, map[string]any, http.Header) {
	request, err := http.NewRequest(method, c.url+path, bytes.NewBufferString(body))
	if err != nil {
		return 0, nil, nil
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, nil, nil
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil, nil
	}
	var value map[string]any
	_ = json.Unmarshal(data, &value)
	return answer.StatusCode, value, answer.Header
}

// primary is the index of the controller that leads.
func (c *cluster) primary() int {
	leader := 0
	c.eventually(20*time.Second, "somebody leads", func() bool {
		_, status, _ := c.do("GET", "/api/v1/cluster", "", "")
		id, ok := status["leader_id"].(float64)
		leader = int(id)
		return ok && leader > 0
	})
	return leader - 1
}

// stream reads server-sent events and gives each as "kind data".
func (c *cluster) stream() <-chan string {
	request, err := http.NewRequest("GET", c.url+"/api/v1/events", nil) //nolint:noctx // ends with the apiserver
	require.NoError(c.t, err)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := (&http.Client{Transport: c.http.Transport}).Do(request)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, answer.StatusCode)
	events := make(chan string, 10000)
	go func() {
		defer close(events)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		kind := ""
		for lines.Scan() {
			if text, found := strings.CutPrefix(lines.Text(), "event: "); found {
				kind = text
			} else if text, found := strings.CutPrefix(lines.Text(), "data: "); found {
				events <- kind + " " + text
			}
		}
	}()
	return events
}

// next waits for an event that holds text.
func (c *cluster) next(events <-chan string, text string) {
	c.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case event, open := <-events:
			require.True(c.t, open, "the stream ended before %q", text)
			if strings.Contains(event, text) {
				return
			}
		case <-limit:
			c.t.Fatalf("no event with %q", text)
		}
	}
}

// metric gives a figure of /metrics that has no labels; -1: it is not there.
func (c *cluster) metric(name string) float64 {
	request, err := http.NewRequest("GET", c.url+"/metrics", nil)
	require.NoError(c.t, err)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	require.NoError(c.t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			require.NoError(c.t, err)
			return value
		}
	}
	return -1
}
