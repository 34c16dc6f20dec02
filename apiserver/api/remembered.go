package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"xce.example/apiserver/model"
)

const (
	rememberedFor = time.Hour // as the controllers remember keys
	rememberedMax = 10000
)

// remembered keeps the answers to changes of the controllers by their caller's key. The log remembers these changes, but no keys of
// theirs; they may be asked for twice all the same, so it does no harm that another apiserver knows nothing of this one's keys.
type remembered struct {
	mu    sync.Mutex
	known map[string]*memo
	order []string // keys, the oldest first
}

type memo struct {
	request string
	since   time.Time
	answer  any // nil: under way
}

const reusedKey = "this Idempotency-Key was used for another request; use a new key for a new request"

// once does a change once a key: the same request again gets the first answer, another one 422. What has failed may be tried again.
func once[T any](ctx context.Context, r *remembered, in *Once, request string, do func() (*T, error)) (*T, error) {
	named, err := in.context(ctx)
	key := model.OpKeyOf(named)
	if err != nil || key == "" {
		if err == nil {
			return do()
		}
		return nil, err
	}
	r.mu.Lock()
	r.forget(time.Now())
	if memo := r.known[key]; memo != nil {
		defer r.mu.Unlock()
		if memo.request != request {
			return nil, newProblem(http.StatusUnprocessableEntity, "E_XCE_INVALID", reusedKey, requestID(ctx))
		}
		if answer, done := memo.answer.(*T); done {
			return answer, nil
		}
		p := newProblem(http.StatusConflict, "E_XCE_BUSY", "the first request with this Idempotency-Key is still under way: send it again later", requestID(ctx))
		p.Retryable, p.retryAfter = true, time.Second
		return nil, p
	}
	mine := &memo{request: request, since: time.Now()}
	r.known[key] = mine
	r.order = append(r.order, key)
	r.mu.Unlock()
	answer, err := do()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		mine.answer = answer
	} else if r.known[key] == mine {
		delete(r.known, key) // its place in order goes with the oldest
	}
	return answer, err
}

// forget runs under the lock.
func (r *remembered) forget(now time.Time) {
	if r.known == nil {
		r.known = map[string]*memo{}
	}
	for len(r.order) > 0 {
		memo := r.known[r.order[0]]
		if memo != nil && now.Sub(memo.since) < rememberedFor && len(r.order) < rememberedMax {
			return
		}
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
}
