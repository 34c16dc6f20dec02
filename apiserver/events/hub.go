// Package events hands the controllers' pushes to the server-sent event streams. Pure Go, safe for all goroutines.
package events

import (
	"sync"

	"xce.example/apiserver/model"
)

const (
	kept   = 1024 // events remembered for streams that resume
	behind = 1024 // events that a slow stream may lag behind before it is told of a gap
	// A watch is over at the first event that matters, so it needs little room.
	watchBehind = 64
)

// Hub keeps the newest events and gives each to every subscriber. The zero Hub is ready for use.
type Hub struct {
	mu          sync.Mutex
	ring        []model.Event // ascending
	whole       uint64        // the lowest revision from which on no event is missing in ring
	subscribers map[*Subscription]struct{}
	published   uint64
	gaps        uint64
	closed      bool
}

// Counts of a hub since it began, for monitoring.
type Counts struct {
	Published   uint64 // events
	Gaps        uint64 // times that a stream was too slow and missed events
	Subscribers int
	Last        uint64 // newest revision
}

// Subscription is one stream. Read C until it is closed.
type Subscription struct {
	C   <-chan model.Event
	c   chan model.Event
	hub *Hub
	gap bool
}

// Publish gives an event to all subscribers. Never blocks: a subscriber that is too far behind misses events and gets a gap event
// as soon as it has room. A revision that goes back (a cluster restored) forgets what was kept.
func (h *Hub) Publish(event model.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.published++
	if n := len(h.ring); n > 0 && event.Revision < h.ring[n-1].Revision {
		h.ring = nil
	}
	if len(h.ring) == 0 || event.Kind == "gap" {
		h.whole = event.Revision
	}
	h.ring = append(h.ring, event)
	if len(h.ring) > kept {
		h.whole = max(h.whole, h.ring[kept/4-1].Revision+1)
		h.ring = append([]model.Event(nil), h.ring[kept/4:]...)
	}
	for s := range h.subscribers {
		s.offer(event)
	}
}

// Subscribe starts a stream of the events from now on; with after > 0 first those kept whose revision is not lower, because several share
// one. Nil: what came after that is no longer known. Whoever sees that lists everything anew.
func (h *Hub) Subscribe(after uint64) *Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after > 0 && !h.closed && (len(h.ring) == 0 || after < h.whole || after > h.ring[len(h.ring)-1].Revision) {
		return nil
	}
	return h.subscribe(behind, func(event *model.Event) bool { return after > 0 && event.Revision >= after })
}

// Watch starts a stream of the events after a revision that a read has given. When they are not all known the first is a gap.
func (h *Hub) Watch(index uint64) *Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.subscribe(watchBehind, func(event *model.Event) bool { return event.Revision > index })
	if !h.closed && (len(h.ring) == 0 || index+1 < h.whole) {
		s.offer(model.Event{Kind: "gap", Revision: index})
	}
	return s
}

// subscribe runs under the lock; the new stream begins with the kept events that `wanted` takes.
func (h *Hub) subscribe(room int, wanted func(event *model.Event) bool) *Subscription {
	var first []model.Event
	for i := range h.ring {
		if !h.closed && wanted(&h.ring[i]) {
			first = append(first, h.ring[i])
		}
	}
	c := make(chan model.Event, len(first)+room)
	s := &Subscription{C: c, c: c, hub: h}
	if h.closed {
		close(c)
		return s
	}
	for _, event := range first {
		c <- event
	}
	if h.subscribers == nil {
		h.subscribers = map[*Subscription]struct{}{}
	}
	h.subscribers[s] = struct{}{}
	return s
}

// Last gives the newest revision that was published; 0: none yet.
func (h *Hub) Last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ring) == 0 {
		return 0
	}
	return h.ring[len(h.ring)-1].Revision
}

// Counts for monitoring.
func (h *Hub) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := Counts{Published: h.published, Gaps: h.gaps, Subscribers: len(h.subscribers)}
	if len(h.ring) > 0 {
		counts.Last = h.ring[len(h.ring)-1].Revision
	}
	return counts
}

// Subscribers counts the streams.
func (h *Hub) Subscribers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscribers)
}

// Close ends all streams, for good.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.subscribers {
		close(s.c)
	}
	h.subscribers = nil
}

// Close ends this stream.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if _, found := s.hub.subscribers[s]; found {
		delete(s.hub.subscribers, s)
		close(s.c)
	}
}

// offer runs under the hub's lock.
func (s *Subscription) offer(event model.Event) {
	if s.gap { // it missed some: room for a gap first
		select {
		case s.c <- model.Event{Kind: "gap", Revision: event.Revision}:
			s.gap = false
		default:
			return
		}
	}
	select {
	case s.c <- event:
	default:
		s.gap = true
		s.hub.gaps++
	}
}
