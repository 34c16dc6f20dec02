package backend

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"xce.example/apiserver/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errNotReady = &model.Error{Status: model.StatusNotReady, Code: "E_XCE_NOT_READY"}

func newTestCaller(t *testing.T, slots int) (*cluster, *caller) {
	c := newCluster()
	c.health.now = nil
	c.join(t)
	calls := newCaller(c.health, c.rejoin, slots, 10*time.Second)
	calls.started.Store(true)
	calls.answered()
	return c, calls
}

func isNotReady(t *testing.T, err error) {
	t.Helper()
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, model.StatusNotReady, e.Status)
}

func TestWhileDegradedNothingIsCalled(t *testing.T) {
	c, calls := newTestCaller(t, 4)
	called := 0
	_, err := call(context.Background(), calls, false, func(time.Duration) (int, error) { called++; return 0, errNotReady })
	isNotReady(t, err)
	require.True(t, c.health.IsDegraded())
	start := time.Now()
	_, err = call(context.Background(), calls, true, func(time.Duration) (int, error) { called++; return 0, nil })
	isNotReady(t, err)
	require.Less(t, time.Since(start), 500*time.Millisecond)
	require.Equal(t, 1, called)
}

func TestAnAnswerMakesItHealthy(t *testing.T) {
	for name, answer := range map[string]error{"success": nil, "refusal": &model.Error{Status: model.StatusNoEnt}} {
		c, calls := newTestCaller(t, 4)
		c.health.until.Store(1) // long over: half open
		_, err := call(context.Background(), calls, false, func(time.Duration) (int, error) { return 5, answer })
		require.Equal(t, answer, err, name)
		require.Zero(t, c.health.until.Load(), name)
		require.False(t, c.health.probing.Load(), name)
	}
}

func TestWhatDegrades(t *testing.T) {
	for status, degrades := range map[int]bool{
		model.StatusNotReady: true, model.StatusNoMaster: true, int(syscall.ECONNREFUSED): true, int(syscall.ETIMEDOUT): true,
		model.StatusInvalid: false, model.StatusBusy: false, model.StatusDupJob: false, model.StatusOutcomeUnknown: false, int(syscall.EINVAL): false,
		int(syscall.ECANCELED): false,
	} {
		c, calls := newTestCaller(t, 4)
		_, err := call(context.Background(), calls, true, func(time.Duration) (int, error) { return 0, &model.Error{Status: status} })
		require.Error(t, err)
		require.Equal(t, degrades, c.health.IsDegraded(), status)
	}
}

func TestTheCallerJoinsAgainAfterTheCallThatReconnected(t *testing.T) {
	c, calls := newTestCaller(t, 4)
	c.failJoins = 2
	reconnecting := func(time.Duration) (int, error) {
		if c.generation == 1 {
			c.generation = 2
			c.rejoin.Flag() // the hook
			require.Zero(t, c.joins, "not from inside the call")
		}
		return 1, nil
	}
	for i := range 3 {
		_, err := call(context.Background(), calls, true, reconnecting)
		require.NoError(t, err)
		require.Equal(t, i+1, c.joins)
		require.Equal(t, i < 2, c.rejoin.Needed())
	}
	_, err := call(context.Background(), calls, true, reconnecting)
	require.NoError(t, err)
	require.Equal(t, 3, c.joins)
}

func TestNeverMoreCallsThanSlots(t *testing.T) {
	_, calls := newTestCaller(t, 3)
	calls.slotWait = 10 * time.Second
	var running, most atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := call(context.Background(), calls, false, func(time.Duration) (int, error) {
				n := running.Add(1)
				for old := most.Load(); old < n && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(time.Millisecond)
				running.Add(-1)
				return 0, nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	require.Equal(t, int32(3), most.Load())
}

func TestAThousandRequestsOfASilentBackendFailTogether(t *testing.T) {
	c, calls := newTestCaller(t, 64)
	release := make(chan struct{})
	var inC atomic.Int32
	var all sync.WaitGroup
	start := time.Now()
	for range 1000 {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := call(context.Background(), calls, false, func(time.Duration) (int, error) {
				inC.Add(1)
				<-release
				return 0, errNotReady
			})
			var e *model.Error
			if !errors.As(err, &e) || e.Status != model.StatusNotReady {
				t.Error(err)
			}
		}()
	}
	all.Wait() // although every call still hangs
	require.Less(t, time.Since(start), 5*time.Second)
	require.LessOrEqual(t, inC.Load(), int32(64))
	require.True(t, c.health.IsDegraded())
	close(release)
	calls.running.Wait()
}

func TestAWaitingRequestGivesUp(t *testing.T) {
	_, calls := newTestCaller(t, 1)
	calls.slotWait = 20 * time.Millisecond
	release, inside := make(chan struct{}), make(chan struct{})
	go call(context.Background(), calls, true, func(time.Duration) (int, error) { close(inside); <-release; return 0, nil }) //nolint:errcheck
	<-inside
	_, err := call(context.Background(), calls, false, func(time.Duration) (int, error) { t.Error("no slot"); return 0, nil })
	isNotReady(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	calls.slotWait = time.Minute
	_, err = call(ctx, calls, false, func(time.Duration) (int, error) { t.Error("no slot"); return 0, nil })
	isNotReady(t, err)
	close(release)
	calls.running.Wait()
}

func TestNothingBeginsBeforeTheLibraryHasStarted(t *testing.T) {
	c, calls := newTestCaller(t, 1)
	calls.started.Store(false)
	_, err := call(context.Background(), calls, true, func(time.Duration) (int, error) { t.Error("too early"); return 0, nil })
	isNotReady(t, err)
	require.False(t, c.health.IsDegraded())
}

func TestNothingBeginsAfterRefuse(t *testing.T) {
	_, calls := newTestCaller(t, 1)
	calls.refuse()
	for range 3 {
		_, err := call(context.Background(), calls, false, func(time.Duration) (int, error) { t.Error("refused"); return 0, nil })
		isNotReady(t, err)
	}
}

func TestLogLinesOfAnOutageAreFew(t *testing.T) {
	var lines throttle
	now, passed := time.Unix(1000, 0), 0
	for range 6000 { // ten minutes, ten a second
		if ok, _ := lines.pass(now); ok {
			passed++
		}
		now = now.Add(100 * time.Millisecond)
	}
	require.InDelta(t, logBurst+600/5, passed, 2)
	now = now.Add(time.Hour)
	ok, dropped := lines.pass(now)
	require.True(t, ok)
	require.Positive(t, dropped)
}
