package backend

import (
	"context"
	"time"
)

const (
	heartbeatEvery = 250 * time.Millisecond
	probeEvery     = 500 * time.Millisecond // a hello, which only a primary answers; after a failed one the next tick asks again
	// Without any answer for this long the controllers count as silent: longer than a failover takes, shorter than what a person notices.
	silenceLimit     = 900 * time.Millisecond
	degradedTTL      = 1500 * time.Millisecond // after a failed request or probe; failing probes renew it in time
	readyAnswerLimit = 4 * time.Second         // without an answer for this long we are not ready
)

// prober is the idle-time half of reconnecting: it keeps the connection alive, notices that it is another one, joins again and keeps Health
// true to what the controllers do, with or without requests. One goroutine runs it; it makes no others.
type prober struct {
	beat   func() error // xcecli_heartbeat
	hello  func() (joined bool, err error)
	rejoin *Rejoiner
	health *Health
	now    func() time.Time

	reached   bool        // some controller has answered
	unreached func(error) // told of each attempt before that; nil: nobody

	failingSince time.Time // of heartbeats; zero: they succeed
	nextProbe    time.Time
}

// run ticks until ctx ends.
func (p *prober) run(ctx context.Context) {
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.tick()
		}
	}
}

// tick is one round. The need to join is looked at every time, not only when the connection comes back, and whatever Health says: a failed
// join has to be tried again even when everything else looks well (A2.5).
func (p *prober) tick() {
	now := p.now()
	if err := p.beat(); err != nil {
		if p.failingSince.IsZero() {
			p.failingSince = now
		}
		if now.Sub(p.failingSince) >= silenceLimit {
			p.health.MarkDegraded(degradedTTL)
		}
	} else if !p.failingSince.IsZero() {
		p.failingSince = time.Time{}
		p.rejoin.Flag() // heartbeats reconnect without running the rejoin hook
	}
	p.rejoin.Observe()
	if p.rejoin.Needed() {
		p.count(p.rejoin.Rejoin())
		return
	}
	if now.Before(p.nextProbe) {
		return
	}
	joined, err := p.hello()
	p.count(err)
	if err == nil && !joined {
		p.rejoin.Flag()
	}
}

// count keeps Health: a controller that answers makes it healthy, silence makes it degraded.
func (p *prober) count(err error) {
	if err != nil {
		if !p.reached && p.unreached != nil {
			p.unreached(err)
		}
		p.nextProbe = time.Time{}
		p.health.MarkDegraded(degradedTTL)
		return
	}
	p.reached = true
	p.nextProbe = p.now().Add(probeEvery)
	p.health.MarkHealthy()
}
