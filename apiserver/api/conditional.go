package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"xce.example/apiserver/events"
	"xce.example/apiserver/model"
)

const (
	maxWait  = 5 * time.Minute
	coalesce = 20 * time.Millisecond // events that come together are one reason to look again
)

// Conditional are the parameters of reads that can wait for a change.
type Conditional struct {
	IfNoneMatch string `header:"If-None-Match" doc:"ETag of an earlier answer; when it still holds: 304 without a body"`
	Index       uint64 `query:"index" doc:"X-XCE-Index of an earlier answer: with wait, answer when something changed after it"`
	Wait        string `query:"wait" maxLength:"16" doc:"how long to wait for a change, such as 30s; at most 5m" example:"30s"`
}

// answer to a read. Index is a revision that Body reflects at least.
type answer[T any] struct {
	Status       int
	ETag         string `header:"ETag" doc:"of the content; If-None-Match takes it"`
	Index        string `header:"X-XCE-Index" doc:"for index: revision that this answer reflects"`
	CacheControl string `header:"Cache-Control"`
	Body         T
}

// reading is what a read gave: the body, and what of it tells one content from another (a revision alone does not).
type reading[T any] struct {
	body    T
	content any
	index   uint64
}

func etag(content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err) // structs of strings and numbers
	}
	sum := sha256.Sum256(text)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}

func matches(header, tag string) bool {
	for _, one := range strings.Split(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || one != "" && strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

func (in *Conditional) duration() (time.Duration, error) {
	if in.Wait == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(in.Wait)
	if seconds, other := strconv.ParseFloat(in.Wait, 64); other == nil {
		wait, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || wait < 0 || wait > maxWait {
		return 0, model.Invalid("wait=%s: write a time such as 30s, at most 5m", in.Wait)
	}
	return wait, nil
}

// poll answers a read: at once, or with ?wait= when what `read` gives has changed. That is: at once when If-None-Match no longer holds or
// index is 0; else when an event after index that is `about` it has come (and If-None-Match, if given, no longer holds), or the time is over.
func poll[T any](ctx context.Context, s *Server, in *Conditional, about func(*model.Event) bool, read func() (reading[T], error)) (*answer[T], error) {
	wait, err := in.duration()
	if err != nil {
		return nil, problemOf(ctx, err, true)
	}
	waits := wait > 0 && in.Index > 0
	var changes *events.Subscription
	if waits { // before the read, so that nothing falls in between
		changes = s.hub.Watch(in.Index)
		defer changes.Close()
	}
	got, tag, err := readTagged(ctx, read)
	if err != nil {
		return nil, err
	}
	if !waits || in.IfNoneMatch != "" && !matches(in.IfNoneMatch, tag) {
		return conclude(in, got, tag), nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case event, open := <-changes.C:
			if !open {
				return conclude(in, got, tag), nil
			}
			if event.Kind != "gap" && !about(&event) {
				continue
			}
			select {
			case <-time.After(coalesce):
			case <-ctx.Done():
			}
			if got, tag, err = readTagged(ctx, read); err != nil {
				return nil, err
			}
			if in.IfNoneMatch == "" || !matches(in.IfNoneMatch, tag) {
				return conclude(in, got, tag), nil
			}
		case <-timer.C:
			if got, tag, err = readTagged(ctx, read); err != nil {
				return nil, err
			}
			return conclude(in, got, tag), nil
		case <-s.ended:
			return conclude(in, got, tag), nil
		case <-ctx.Done():
			return conclude(in, got, tag), nil // nobody reads it
		}
	}
}

func readTagged[T any](ctx context.Context, read func() (reading[T], error)) (reading[T], string, error) {
	got, err := read()
	if err != nil {
		return got, "", problemOf(ctx, err, true)
	}
	return got, etag(got.content), nil
}

func conclude[T any](in *Conditional, got reading[T], tag string) *answer[T] {
	out := &answer[T]{Status: http.StatusOK, ETag: tag, Index: strconv.FormatUint(got.index, 10), CacheControl: "private, no-cache", Body: got.body}
	if in.IfNoneMatch != "" && matches(in.IfNoneMatch, tag) {
		out.Status = http.StatusNotModified
	}
	return out
}
