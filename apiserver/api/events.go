package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"xce.example/apiserver/model"
)

// serveEvents streams changes as server-sent events: `event` is the kind, `id` the revision, `data` a model.Event. A stream that comes
// back with Last-Event-ID gets what it missed, some of it twice (events show whole values, so that does no harm), or `gap`, which means: list anew.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		p := newProblem(http.StatusTooManyRequests, "E_XCE_BUSY", fmt.Sprintf("already %d streams of events are open", cap(s.streams)), requestID(r.Context()))
		p.Retryable, p.retryAfter = true, 10*time.Second
		p.write(w)
		return
	}
	var after uint64
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			newProblem(http.StatusBadRequest, "E_XCE_INVALID", "Last-Event-ID must be the id of an event, a number", requestID(r.Context())).write(w)
			return
		}
	}
	subscription := s.hub.Subscribe(after)
	defer subscription.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", noStore)
	out := http.NewResponseController(w)
	_, err := fmt.Fprint(w, "retry: 1000\n: stream of changes\n\n")
	tick := time.NewTicker(s.keepout)
	defer tick.Stop()
	for err == nil {
		// A client that reads nothing must not keep its place for ever.
		_ = out.SetWriteDeadline(time.Now().Add(30 * time.Second)) //nolint:errcheck // not every writer has one
		if err = out.Flush(); err != nil {
			return
		}
		select {
		case event, open := <-subscription.C:
			if !open {
				return
			}
			err = writeEvent(w, event)
		case <-tick.C:
			_, err = fmt.Fprint(w, ": still here\n\n")
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}

func writeEvent(w http.ResponseWriter, event model.Event) error {
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", event.Revision, event.Kind, data)
	return err
}
