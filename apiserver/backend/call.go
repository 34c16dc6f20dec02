package backend

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"xce.example/apiserver/model"
)

// caller is the one way of requests to libxce: Health before, rejoin after, and never more than a fixed number of calls, because each
// blocks an operating system thread while the controllers are silent.
type caller struct {
	health     *Health
	rejoin     *Rejoiner
	slots      chan struct{}
	slotWait   time.Duration // a request waits for a slot for this long
	timeout    time.Duration // deadline of one call
	mu         sync.Mutex
	closed     bool // under mu
	running    sync.WaitGroup
	started    atomic.Bool  // the library takes calls
	waiting    atomic.Int64 // requests that wait for a slot
	lastAnswer atomic.Int64 // when a controller last answered, nanoseconds since the epoch
}

func newCaller(health *Health, rejoin *Rejoiner, slots int, timeout time.Duration) *caller {
	return &caller{health: health, rejoin: rejoin, slots: make(chan struct{}, slots), slotWait: min(timeout, 2*time.Second), timeout: timeout}
}

// The HTTP client has gone; nobody reads this.
var gaveUp = &model.Error{Status: int(syscall.ECANCELED), Code: "ECANCELED", Message: "the request was given up", Outcome: model.NotApplied}

type result[T any] struct {
	value T
	err   error
}

// call runs op, which makes one libxce call within the given deadline. A read is given up as soon as the backend is found degraded or
// its HTTP client has gone; op then ends in the background. A write is waited for: its outcome matters.
func call[T any](ctx context.Context, c *caller, write bool, op func(deadline time.Duration) (T, error)) (T, error) {
	var none T
	if !c.started.Load() {
		return none, model.NotReady("the apiserver has just started and is looking for the controllers", time.Second)
	}
	marked := c.health.Marked()
	admitted, probe := c.health.Admit()
	if !admitted {
		return none, model.NotReady("the controllers do not answer; the request was not passed on", c.health.RetryAfter())
	}
	if err := c.acquire(ctx, marked); err != nil {
		c.health.Done(probe)
		return none, err
	}
	if !c.begin() {
		<-c.slots
		c.health.Done(probe)
		return none, model.NotReady("the apiserver is shutting down", time.Second)
	}
	done := make(chan result[T], 1)
	go func() {
		defer c.running.Done()
		start := time.Now()
		value, err := op(c.timeout)
		<-c.slots
		c.judge(err, time.Since(start))
		c.health.Done(probe)
		if !unavailable(err) && c.rejoin.Needed() { // an unavailable cluster would refuse the join too; the next tick tries
			c.rejoin.Rejoin() //nolint:errcheck // logged there, and the need stays
		}
		done <- result[T]{value, err}
	}()
	if write {
		r := <-done
		return r.value, r.err
	}
	silence := time.NewTimer(silenceLimit)
	defer silence.Stop()
	for waiting := true; waiting; {
		select {
		case r := <-done:
			return r.value, r.err
		case <-silence.C: // nobody has had an answer since: do not wait for the deadline to find out
			if silent := time.Since(time.Unix(0, c.lastAnswer.Load())); silent < silenceLimit {
				silence.Reset(silenceLimit - silent)
			} else {
				c.health.MarkDegraded(degradedTTL)
			}
		case <-ctx.Done():
			return none, gaveUp
		case <-marked:
			waiting = false
		}
	}
	select { // its own failure may be what marked it
	case r := <-done:
		return r.value, r.err
	default:
		return none, model.NotReady("the controllers do not answer", c.health.RetryAfter())
	}
}

// acquire takes a slot, or says why not.
func (c *caller) acquire(ctx context.Context, marked <-chan struct{}) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	default:
	}
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	timer := time.NewTimer(c.slotWait)
	defer timer.Stop()
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return model.NotReady("too many requests wait for the controllers", time.Second)
	case <-marked:
		return model.NotReady("the controllers do not answer; the request was not passed on", c.health.RetryAfter())
	case <-ctx.Done():
		return model.NotReady("the request was given up before it was passed on", time.Second)
	}
}

// begin counts a call in, unless the backend is closed.
func (c *caller) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Add(1)
	}
	return !c.closed
}

// refuse lets no further call begin.
func (c *caller) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// judge tells Health what a call's outcome says about the controllers.
func (c *caller) judge(err error, took time.Duration) {
	switch {
	case err == nil:
		c.answered()
		c.health.MarkHealthy()
	case unavailable(err), outcomeUnknown(err) && took >= c.timeout*9/10:
		c.health.MarkDegraded(degradedTTL)
	default: // a refusal by a controller is an answer; one by the library itself says nothing
		var e *model.Error
		if errors.As(err, &e) && e.Status >= model.StatusRedirect && e.Status != model.StatusForked && !outcomeUnknown(err) {
			c.answered()
			c.health.MarkHealthy()
		}
	}
}

func (c *caller) answered() { c.lastAnswer.Store(time.Now().UnixNano()) }

// unavailable says whether err means that no primary could be asked.
func unavailable(err error) bool {
	var e *model.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case model.StatusRedirect, model.StatusNoMaster, model.StatusStandby, model.StatusNotReady,
		int(syscall.ETIMEDOUT), int(syscall.ECONNREFUSED), int(syscall.ECONNRESET), int(syscall.EPIPE), int(syscall.ENOTCONN),
		int(syscall.EHOSTUNREACH), int(syscall.ENETUNREACH):
		return true
	}
	return false
}

func outcomeUnknown(err error) bool {
	var e *model.Error
	return errors.As(err, &e) && e.Status == model.StatusOutcomeUnknown
}
