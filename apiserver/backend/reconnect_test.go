package backend

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

var errDown = errors.New("nobody answers")

// cluster is a double of libxce for the rejoin logic.
type cluster struct {
	generation uint64
	failJoins  int // this many joins fail
	joins      int
	onJoin     func()
	beatErr    error
	helloErr   error
	joined     bool // what hello says
	beats      int
	hellos     int
	told       []uint64
	pushed     uint64   // the newest revision
	from       []uint64 // where pushes were resumed
	health     *Health
	rejoin     *Rejoiner
	clock      *clock
	prober     *prober
}

func newCluster() *cluster {
	c := &cluster{generation: 1, joined: true, clock: newClock()}
	c.health = &Health{now: c.clock.now}
	c.rejoin = &Rejoiner{
		join: func() (uint64, error) {
			c.joins++
			if c.onJoin != nil {
				c.onJoin()
			}
			if c.failJoins > 0 {
				c.failJoins--
				return 0, errDown
			}
			return 77, nil
		},
		generation: func() uint64 { return c.generation },
		last:       func() uint64 { return c.pushed },
		joined: func(revision, from uint64) {
			c.told = append(c.told, revision)
			c.from = append(c.from, from)
		},
		health: c.health,
		log:    zap.NewNop(),
	}
	c.prober = &prober{
		beat:   func() error { c.beats++; return c.beatErr },
		hello:  func() (bool, error) { c.hellos++; return c.joined, c.helloErr },
		rejoin: c.rejoin, health: c.health, now: c.clock.now,
	}
	return c
}

func (c *cluster) join(t *testing.T) {
	c.rejoin.Flag()
	require.NoError(t, c.rejoin.Rejoin())
	require.False(t, c.rejoin.Needed())
	c.joins = 0
}

func (c *cluster) tick() {
	c.clock.pass(heartbeatEvery)
	c.prober.tick()
}

func TestTheNeedStaysUntilAJoinSucceeds(t *testing.T) {
	c := newCluster()
	c.failJoins = 3
	c.rejoin.Flag()
	c.health.MarkDegraded(time.Hour)
	for i := range 3 {
		require.ErrorIs(t, c.rejoin.Rejoin(), errDown)
		require.Equal(t, i+1, c.joins)
		require.True(t, c.rejoin.Needed())
		require.True(t, c.health.IsDegraded())
	}
	require.NoError(t, c.rejoin.Rejoin())
	require.False(t, c.rejoin.Needed())
	require.False(t, c.health.IsDegraded())
	require.Equal(t, []uint64{77}, c.told)
	require.NoError(t, c.rejoin.Rejoin())
	require.Equal(t, 4, c.joins, "nothing more to do")
}

func TestAFlagDuringAJoinIsNotLost(t *testing.T) {
	c := newCluster()
	c.onJoin = func() { c.onJoin = nil; c.generation = 2; c.rejoin.Flag() } // the join itself had to reconnect
	c.rejoin.Flag()
	require.NoError(t, c.rejoin.Rejoin())
	require.True(t, c.rejoin.Needed())
	require.NoError(t, c.rejoin.Rejoin())
	require.False(t, c.rejoin.Needed())
	c.rejoin.Observe()
	require.False(t, c.rejoin.Needed())
}

func TestTheHookSetsAFlagAndDoesNothingElse(t *testing.T) {
	c := newCluster()
	c.join(t)
	c.rejoin.mu.Lock() // as if a join were under way on another thread
	defer c.rejoin.mu.Unlock()
	done := make(chan struct{})
	go func() { c.rejoin.Flag(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("the flag waited for a lock")
	}
	require.True(t, c.rejoin.Needed())
	require.Zero(t, c.joins)
	require.NoError(t, c.rejoin.Rejoin(), "someone else is at it")
	require.Zero(t, c.joins)
}

func TestAnIdleReconnectIsSeenByItsGeneration(t *testing.T) {
	c := newCluster()
	c.join(t)
	for range 8 {
		c.tick()
	}
	require.Zero(t, c.joins)
	c.generation = 2 // a heartbeat reconnected within one call: no tick ever failed
	c.tick()
	require.Equal(t, 1, c.joins)
	require.False(t, c.rejoin.Needed())
	c.tick()
	require.Equal(t, 1, c.joins)
}

func TestEveryTickTriesAgainWhateverHealthSays(t *testing.T) {
	c := newCluster()
	c.join(t)
	c.generation, c.failJoins = 2, 5
	for i := range 5 {
		c.health.MarkHealthy() // as if the time to live were over: that must not stop the retries
		c.tick()
		require.Equal(t, i+1, c.joins)
		require.True(t, c.rejoin.Needed())
	}
	c.tick()
	require.Equal(t, 6, c.joins)
	require.False(t, c.rejoin.Needed())
	require.False(t, c.health.IsDegraded())
}

func TestHeartbeatsThatComeBackFlagAJoin(t *testing.T) {
	c := newCluster()
	c.join(t)
	c.beatErr, c.helloErr = errDown, errDown
	for range 8 {
		c.tick()
	}
	require.Zero(t, c.joins)
	require.True(t, c.health.IsDegraded())
	c.beatErr, c.helloErr = nil, nil
	c.tick()
	require.Equal(t, 1, c.joins)
	require.False(t, c.health.IsDegraded())
}

func TestHelloTellsThatTheConnectionHasNotJoined(t *testing.T) {
	c := newCluster()
	c.join(t)
	c.joined = false
	for range 4 {
		c.tick()
	}
	require.Positive(t, c.joins)
}

func TestProbesAreSparseWhileWellAndFrequentWhileNot(t *testing.T) {
	c := newCluster()
	c.join(t)
	for range 20 { // 5 s
		c.tick()
	}
	require.Equal(t, 20, c.beats)
	require.Equal(t, 10, c.hellos)
	c.helloErr = errDown
	for range 10 {
		c.tick()
	}
	require.InDelta(t, 20, c.hellos, 1)
	require.True(t, c.health.IsDegraded())
	c.helloErr = nil
	c.tick()
	require.False(t, c.health.IsDegraded())
}

// New pushes come as soon as the controllers have taken a join, before anybody could ask how far the old ones had come.
func TestPushesResumeWhereTheyHadComeBeforeTheJoin(t *testing.T) {
	c := newCluster()
	c.join(t)
	require.Equal(t, []uint64{0}, c.from, "none yet: the streams get a gap")
	c.pushed = 40
	c.onJoin = func() { c.pushed = 50 }
	c.failJoins = 1 // the controllers have taken it; its answer is lost
	c.rejoin.Flag()
	require.Error(t, c.rejoin.Rejoin())
	require.NoError(t, c.rejoin.Rejoin())
	require.Equal(t, []uint64{0, 40}, c.from)
	c.pushed = 60
	c.rejoin.Flag() // again, before all that was missed has surely come
	require.NoError(t, c.rejoin.Rejoin())
	require.Equal(t, []uint64{0, 40, 40}, c.from)
	c.rejoin.resumed = time.Now().Add(-replayTime - time.Second)
	c.pushed = 70
	c.rejoin.Flag()
	require.NoError(t, c.rejoin.Rejoin())
	require.Equal(t, []uint64{0, 40, 40, 70}, c.from)
}

// A join that had to reconnect is followed by another one, which resumes.
func TestAJoinThatReconnectedLeavesResumingToTheNext(t *testing.T) {
	c := newCluster()
	c.pushed = 40
	c.onJoin = func() { c.generation++; c.pushed += 10; c.rejoin.Flag(); c.onJoin = nil }
	c.rejoin.Flag()
	require.NoError(t, c.rejoin.Rejoin())
	require.Empty(t, c.from)
	require.NoError(t, c.rejoin.Rejoin())
	require.Equal(t, []uint64{40}, c.from)
}
