package backend

import (
	"context"
	"time"
)

const (
	heartbeatEvery   = 250 * time.Millisecond
	probeEvery       = time.Second             // a hello that a primary has to answer
	degradedTTL      = 1500 * time.Millisecond // after a failed request
	silentTTL        = 3 * time.Second         // after failed probes; each further one renews it
	silentAfter      = 2                       // failed probes in a row
	heartbeatGrace   = time.Second             // heartbeats may fail for this long: a failover
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

	failingSince time.Time // of heartbeats; zero: they succeed
	lastProbe    time.Time
	failedProbes int
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
		if now.Sub(p.failingSince) >= heartbeatGrace {
			p.health.MarkDegraded(silentTTL)
		}
	} else if !p.failingSince.IsZero() {
		p.failingSince = time.Time{}
		p.rejoin.Flag() // heartbeats reconnect without running the rejoin hook
	}
	p.rejoin.Observe()
	if p.rejoin.Needed() {
		p.count(p.rejoin.Rejoin())
		p.lastProbe = p.now()
		return
	}
	if now.Sub(p.lastProbe) < probeEvery {
		return
	}
	joined, err := p.hello()
	p.lastProbe = p.now()
	p.count(err)
	if err == nil && !joined {
		p.rejoin.Flag()
	}
}

// count keeps Health: a controller that answers makes it healthy, several silences in a row make it degraded.
func (p *prober) count(err error) {
	if err == nil {
		p.failedProbes = 0
		p.health.MarkHealthy()
		return
	}
	p.failedProbes++
	if p.failedProbes >= silentAfter {
		p.health.MarkDegraded(silentTTL)
	}
}
