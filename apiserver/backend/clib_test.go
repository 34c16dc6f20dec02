package backend

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"xce.example/apiserver/events"
	"xce.example/apiserver/model"
)

// The same malformed lists that the C parser refuses for every daemon, in the same words: each names the entry.
func TestMalformedCandidateListsAreRefusedInTheParsersWords(t *testing.T) {
	for text, says := range map[string]string{
		"":                    "",
		"host":                "host",
		"host:":               "host:",
		":9990":               ":9990",
		"host:0":              "host:0",
		"host:65536":          "65536",
		"host:99x":            "99x",
		"a:b:c":               "brackets",
		"a:1,,b:2":            "",
		"a:1,":                "",
		"a:1,a:1":             "repeats",
		"n=a:1,n=b:2":         "n",
		"=a:1":                "=a:1",
		"[::1:9990":           "[::1:9990",
		"a:1,b:2,c:3,d:4,e:5": "4",
	} {
		err := CheckPeers(&Config{Peers: []string{text}})
		require.Error(t, err, "%q", text)
		require.Contains(t, err.Error(), says, "%q", text)
		if text != "" {
			require.NotEmpty(t, err.Error())
		}
	}
}

func TestCandidateListsOfAllForms(t *testing.T) {
	for text, want := range map[string][]string{
		"a:1":                 {"a:1"},
		"n1=a:1,n2=b:2,c:3":   {"a:1", "b:2", "c:3"},
		"[::1]:9990":          {"[::1]:9990"},
		"a:1,b:2,c:3,d:65535": {"a:1", "b:2", "c:3", "d:65535"},
	} {
		parsed, err := candidates(&Config{Peers: []string{text}})
		require.NoError(t, err, text)
		require.Equal(t, want, addresses(parsed), text)
		parsed, err = candidates(&Config{Peers: strings.Split(text, ",")})
		require.NoError(t, err, text)
		require.Equal(t, want, addresses(parsed), "as a YAML list")
	}
}

func TestOneAddressIsOneCandidateOfTheSamePath(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	for _, config := range []*Config{{Address: "127.0.0.1", Port: 9}, {Peers: []string{"127.0.0.1:9"}}} {
		config.Timeout, config.Slots = time.Second, 1
		client, err := RegisterToBackend(config, &events.Hub{}, zap.New(core))
		require.NoError(t, err)
		require.Equal(t, []string{"127.0.0.1:9"}, client.Connection().Peers)
		client.Close()
	}
	require.Len(t, logs.FilterMessage("controller candidate 1 of 1: 127.0.0.1:9").All(), 2, "both forms log the same")
}

func TestOneAddressIsCheckedToo(t *testing.T) {
	for _, config := range []Config{{Address: "", Port: 9990}, {Address: "a", Port: 0}, {Address: "a", Port: 65537}, {Address: "a", Port: -1}, {Address: strings.Repeat("a", 256), Port: 1}} {
		require.Error(t, CheckPeers(&config), "%+v", config)
	}
}

func closedPort(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func TestWithoutAClusterEverythingSaysSoFast(t *testing.T) {
	a, b := closedPort(t), closedPort(t)
	client, err := RegisterToBackend(&Config{Peers: []string{"127.0.0.1:" + a, "127.0.0.1:" + b}, Timeout: 400 * time.Millisecond, Slots: 4}, &events.Hub{}, zap.NewNop())
	require.NoError(t, err)
	defer client.Close()
	require.False(t, client.Connection().Ready)
	err = client.Start()
	require.ErrorContains(t, err, "127.0.0.1:"+a)
	require.ErrorContains(t, err, "127.0.0.1:"+b)
	require.ErrorContains(t, err, "ECONNREFUSED")
	state := client.Connection()
	require.False(t, state.Ready)
	require.False(t, state.Joined)
	require.Equal(t, int64(-1), state.LastAnswerMs)
	start := time.Now()
	_, err = client.ListJobs(context.Background(), model.JobFilter{})
	isNotReady(t, err)
	require.Less(t, time.Since(start), time.Second)
}

func TestCancelEndsWhatIsInFlight(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, says nothing
	require.NoError(t, err)
	defer silent.Close()
	client, err := RegisterToBackend(&Config{Peers: []string{silent.Addr().String()}, Timeout: 20 * time.Second, Slots: 4}, &events.Hub{}, zap.NewNop())
	require.NoError(t, err)
	started := make(chan error, 1)
	go func() { started <- client.Start() }()
	connection, err := silent.Accept()
	require.NoError(t, err)
	defer connection.Close()
	start := time.Now()
	client.Cancel()
	require.Error(t, <-started)
	client.Close()
	require.Less(t, time.Since(start), 3*time.Second)
	_, err = client.ListHosts(context.Background())
	isNotReady(t, err)
}

func TestTheHookReachesTheFlag(t *testing.T) {
	client, err := RegisterToBackend(&Config{Peers: []string{"127.0.0.1:9"}, Timeout: time.Second, Slots: 1}, &events.Hub{}, zap.NewNop())
	require.NoError(t, err)
	defer client.Close()
	before := client.rejoin.wanted.Load()
	require.Zero(t, callHook(client))
	require.Equal(t, before+1, client.rejoin.wanted.Load())
}
