// Package events hands the controllers' pushes to the server-sent event streams. Pure Go, safe for all goroutines.
package events

import (
	"sync"

	"xce.example/apiserver/model"
)

const (
	kept   = 1024 // events remembered for streams that resume
	behind = 512  // events that a slow stream may lag behind before it is told of a gap
)

// Hub keeps the newest events and gives each to every subscriber. The zero Hub is ready for use.
type Hub struct {
	mu          sync.Mutex
	ring        []model.Event // ascending
	whole       uint64        // the lowest revision from which on no event is missing in ring
	subscribers map[*Subscription]struct{}
	closed      bool
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
	if n := len(h.ring); n > 0 && event.Revision < h.ring[n-1].Revision {
		h.ring = nil
	}
	if len(h.ring) == 0 {
		h.whole = max(event.Revision, 1) - 1
	}
	h.ring = append(h.ring, event)
	if len(h.ring) > kept {
		h.whole = h.ring[kept/4-1].Revision + 1
		h.ring = append([]model.Event(nil), h.ring[kept/4:]...)
	}
	for s := range h.subscribers {
		s.offer(event)
	}
}

// Subscribe starts a stream of the events from now on; with after > 0 first those kept whose revision is not lower, because several share
// one. What is older than the memory of the hub becomes one gap event: whoever sees it lists everything anew.
func (h *Hub) Subscribe(after uint64) *Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan model.Event, behind+kept+1)
	s := &Subscription{C: c, c: c, hub: h}
	if h.closed {
		close(c)
		return s
	}
	if after > 0 {
		if after < h.whole || len(h.ring) == 0 || after > h.ring[len(h.ring)-1].Revision {
			c <- model.Event{Kind: "gap", Revision: after}
		}
		for _, event := range h.ring {
			if event.Revision >= after {
				c <- event
			}
		}
	}
	if h.subscribers == nil {
		h.subscribers = map[*Subscription]struct{}{}
	}
	h.subscribers[s] = struct{}{}
	return s
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
	}
}
