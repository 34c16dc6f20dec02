package backend

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Unix(1000, 0)} }
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestDegradedEndsByMarkHealthy(t *testing.T) {
	h := &Health{now: newClock().now}
	require.False(t, h.IsDegraded())
	h.MarkDegraded(time.Second)
	require.True(t, h.IsDegraded())
	h.MarkHealthy()
	require.False(t, h.IsDegraded())
}

func TestDegradedEndsByItself(t *testing.T) {
	c := newClock()
	h := &Health{now: c.now}
	h.MarkDegraded(time.Second)
	c.pass(time.Second - 1)
	require.True(t, h.IsDegraded())
	c.pass(1)
	require.False(t, h.IsDegraded())
}

func TestALaterEndStays(t *testing.T) {
	c := newClock()
	h := &Health{now: c.now}
	h.MarkDegraded(3 * time.Second)
	h.MarkDegraded(time.Second)
	c.pass(2 * time.Second)
	require.True(t, h.IsDegraded())
}

func TestHalfOpenLetsOneProbeInAtATime(t *testing.T) {
	c := newClock()
	h := &Health{now: c.now}
	h.MarkDegraded(time.Second)
	admitted, _ := h.Admit()
	require.False(t, admitted)
	c.pass(2 * time.Second)

	admitted, probe := h.Admit()
	require.True(t, admitted)
	require.True(t, probe)
	admitted, _ = h.Admit()
	require.False(t, admitted, "one at a time")

	h.MarkDegraded(time.Second) // the probe failed
	h.Done(probe)
	admitted, _ = h.Admit()
	require.False(t, admitted)
	c.pass(2 * time.Second)

	_, probe = h.Admit()
	h.MarkHealthy() // this one succeeded
	h.Done(probe)
	for range 10 {
		admitted, probe = h.Admit()
		require.True(t, admitted)
		require.False(t, probe)
		h.Done(probe)
	}
}

func TestMarkedIsClosedOnce(t *testing.T) {
	h := &Health{}
	marked := h.Marked()
	select {
	case <-marked:
		t.Fatal("nobody marked it")
	default:
	}
	h.MarkDegraded(time.Second)
	<-marked
	require.NotEqual(t, marked, h.Marked(), "the next one is another")
	h.MarkDegraded(time.Second)
}

func TestRetryAfterIsWholeSeconds(t *testing.T) {
	h := &Health{now: newClock().now}
	require.Equal(t, time.Second, h.RetryAfter())
	h.MarkDegraded(2600 * time.Millisecond)
	require.Equal(t, 3*time.Second, h.RetryAfter())
}

func TestHealthFromManyGoroutines(t *testing.T) {
	h := &Health{}
	var all sync.WaitGroup
	for i := range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 1000 {
				if i%2 == 0 {
					h.MarkDegraded(time.Microsecond)
				} else {
					h.MarkHealthy()
				}
				h.IsDegraded()
				if admitted, probe := h.Admit(); admitted {
					h.Done(probe)
				}
				h.Marked()
			}
		}()
	}
	all.Wait()
	h.MarkHealthy()
	admitted, probe := h.Admit()
	require.True(t, admitted)
	require.False(t, probe)
	require.False(t, h.probing.Load(), "every probe has ended")
}
