package backend

// #include <stdint.h>
import "C"

import (
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Rejoiner remembers whether the apiserver has to join the cluster (again) and does it (A2.4, A2.5). "Needs" ends only when a join
// succeeded that began after the newest flag; it has no time to live and does not look at Health.
// Safe for all goroutines.
type Rejoiner struct {
	join       func() (revision uint64, err error) // xcecli_join
	generation func() uint64                       // xcecli_generation
	last       func() uint64                       // the newest revision that was pushed; 0: none; may be nil
	joined     func(revision, from uint64)         // told of every success, and after which revision pushes may be missing; may be nil
	health     *Health
	log        *zap.Logger

	wanted    atomic.Uint64 // rises with every flag
	done      atomic.Uint64 // the value of wanted that the last successful join satisfied
	joinedGen atomic.Uint64 // generation of the connection that joined; 0: none
	mu        sync.Mutex    // one join at a time
	lastWarn  time.Time     // under mu
	failures  int           // under mu
	from      uint64        // under mu: pushes may be missing after this revision
	resuming  bool          // under mu: a join is due, and from is that of its need
	resumed   time.Time     // under mu: when from was used
}

// For so long after a join what came last may be new while older pushes are still coming.
const replayTime = 2 * time.Second

// Flag says that a new join is needed. No I/O, no lock, no call into libxce: the library calls it while it repairs a connection.
func (r *Rejoiner) Flag() { r.wanted.Add(1) }

// Needed says whether a join is due.
func (r *Rejoiner) Needed() bool { return r.wanted.Load() != r.done.Load() }

// Observe flags a join when the connection is another one than that which joined: a fire-and-forget call may have reconnected without
// running the rejoin hook.
func (r *Rejoiner) Observe() {
	if generation := r.generation(); generation != 0 && generation != r.joinedGen.Load() && !r.Needed() {
		r.Flag()
	}
}

// Rejoin joins if that is due. It does nothing while another goroutine is at it. On failure the need stays and the next heartbeat or the
// next request tries again.
func (r *Rejoiner) Rejoin() error {
	if !r.Needed() || !r.mu.TryLock() {
		return nil
	}
	defer r.mu.Unlock()
	wanted, generation := r.wanted.Load(), r.generation()
	r.noteMissing()
	revision, err := r.join()
	if err != nil {
		r.failures++
		if time.Since(r.lastWarn) > 10*time.Second {
			r.lastWarn = time.Now()
			r.log.Warn("joining the cluster failed; trying again", zap.Error(err), zap.Int("failures", r.failures))
		}
		return err
	}
	// When the join itself had to reconnect, its hook has flagged again: one more join, harmless, settles which connection it was.
	if r.generation() == generation || generation == 0 {
		r.joinedGen.Store(r.generation())
	}
	r.done.Store(wanted)
	r.health.MarkHealthy()
	r.log.Info("joined the cluster", zap.Uint64("revision", revision), zap.Uint64("generation", r.joinedGen.Load()), zap.Int("failures", r.failures))
	r.failures, r.lastWarn = 0, time.Time{}
	if r.Needed() {
		return nil // another connection is to join yet, and will ask for what is missing
	}
	r.resuming, r.resumed = false, time.Now()
	if r.joined != nil {
		r.joined(revision, r.from)
	}
	return nil
}

// noteMissing remembers how far pushes had come before the join. Afterwards it would be too late: from the moment that the controllers take a
// join, also one whose answer is lost, new pushes come and hide that there are older ones. Runs under mu.
func (r *Rejoiner) noteMissing() {
	if r.resuming || r.last == nil {
		return
	}
	r.resuming = true
	if last := r.last(); r.from == 0 || last < r.from || time.Since(r.resumed) > replayTime {
		r.from = last
	}
}

// goBackendRejoin is the library's rejoin hook. It runs while a connection is being repaired: it sets the flag and nothing else. Whoever made
// the call that reconnected joins after that call has returned.
//
//export goBackendRejoin
func goBackendRejoin(handle C.uintptr_t) C.int {
	cgo.Handle(handle).Value().(*Client).rejoin.Flag()
	return 0
}
