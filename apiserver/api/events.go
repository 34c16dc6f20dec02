package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"xce.example/apiserver/model"
)

const eventsPath = "/api/v1/events"

// serveEvents streams changes as server-sent events: `event` is the kind, `id` the revision, `data` a model.Event. A stream that comes
// back with Last-Event-ID gets what it missed, some of it twice (events show whole values, so that does no harm), or 410, which means: come without it, then list
// anew. A stream that reads too slowly gets `gap`, which means the same. `shutdown` says that this server goes down.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	var after uint64
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 64); err != nil || after == 0 {
			newProblem(http.StatusBadRequest, "E_XCE_INVALID", "Last-Event-ID must be the id of an event, a number", requestID(r.Context())).write(w)
			return
		}
	}
	subscription := s.hub.Subscribe(after)
	if subscription == nil {
		newProblem(http.StatusGone, "E_XCE_STALE", fmt.Sprintf("what came after event %d is no longer known: connect without Last-Event-ID, then list what you need anew",
			after), requestID(r.Context())).write(w)
		return
	}
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
			_, _ = fmt.Fprint(w, "event: shutdown\nretry: 1000\ndata: {\"kind\":\"shutdown\",\"detail\":\"this server goes down; connect again with Last-Event-ID\"}\n\n")
			_ = out.Flush() // the client has gone: nobody to tell
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
