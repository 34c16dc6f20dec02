package backend

import (
	"sync"
	"sync/atomic"
	"time"
)

// Health is the circuit breaker before the controllers (A4.1, A4.2): while it is degraded, requests fail at once. Its time to live is only
// about requests: whether the apiserver has to join again is another state with another end (see Rejoiner).
// Safe for all goroutines; the zero Health is healthy.
type Health struct {
	until   atomic.Int64 // degraded until this time in nanoseconds since the epoch; 0: healthy
	probing atomic.Bool  // after that time: one request is finding out
	now     func() time.Time

	mu     sync.Mutex
	marked chan struct{} // closed by the next MarkDegraded
}

func (h *Health) clock() int64 {
	if h.now != nil {
		return h.now().UnixNano()
	}
	return time.Now().UnixNano()
}

// IsDegraded says whether requests are to fail without asking the controllers.
func (h *Health) IsDegraded() bool { return h.clock() < h.until.Load() }

// MarkDegraded makes IsDegraded true for ttl from now. A later end that is set already stays.
func (h *Health) MarkDegraded(ttl time.Duration) {
	until := h.clock() + int64(ttl)
	for old := h.until.Load(); old < until && !h.until.CompareAndSwap(old, until); old = h.until.Load() {
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.marked != nil {
		close(h.marked)
		h.marked = nil
	}
}

// MarkHealthy ends the degraded state: a controller has answered.
func (h *Health) MarkHealthy() { h.until.Store(0) }

// Marked is closed by the next MarkDegraded.
func (h *Health) Marked() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.marked == nil {
		h.marked = make(chan struct{})
	}
	return h.marked
}

// Admit says whether a request may ask the controllers. Healthy: all may. Degraded: none. When the time is over but nobody has answered
// yet, one request at a time may, as a probe. The caller gives `probe` to Done when its request has ended.
func (h *Health) Admit() (admitted, probe bool) {
	until := h.until.Load()
	if until == 0 {
		return true, false
	}
	if h.clock() < until {
		return false, false
	}
	if h.probing.CompareAndSwap(false, true) {
		return true, true
	}
	return false, false
}

// Done ends an admitted request. Call it after MarkHealthy or MarkDegraded, if any.
func (h *Health) Done(probe bool) {
	if probe {
		h.probing.Store(false)
	}
}

// RetryAfter is what a refused request is told to wait: until the next probe, at least a second, because the header holds whole seconds.
func (h *Health) RetryAfter() time.Duration {
	return max(time.Second, time.Duration(h.until.Load()-h.clock())).Round(time.Second)
}
