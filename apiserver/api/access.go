package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/time/rate"

	"xce.example/apiserver/model"
)

// Verifier says whose a bearer token is. Its errors are for whoever sent it.
type Verifier interface {
	Verify(token string) (*model.Person, error)
}

// access is what an operation asks of a person; it is in the operation's metadata.
type access int

const (
	anybody     access = iota
	looks              // viewer
	changes            // user
	administers        // admin
)

const accessKey = "access"

func (a access) role() model.Role { return model.Role(a - looks) }

// authenticate gives the request its person, or says what is wrong with its token. Without a verifier everybody is the anonymous person.
func (s *Server) authenticate(r *http.Request) (*http.Request, *Problem) {
	header := r.Header.Get("Authorization")
	if s.options.Verifier == nil {
		if s.options.Anonymous == nil {
			return r, nil
		}
		return r.WithContext(model.WithPerson(r.Context(), s.options.Anonymous)), nil
	}
	if header == "" {
		return r, nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return r, unauthorized(r.Context(), "Authorization must be: Bearer TOKEN")
	}
	person, err := s.options.Verifier.Verify(strings.TrimSpace(token))
	if err != nil {
		return r, unauthorized(r.Context(), err.Error())
	}
	return r.WithContext(model.WithPerson(r.Context(), person)), nil
}

func unauthorized(ctx context.Context, detail string) *Problem {
	return newProblem(http.StatusUnauthorized, "E_XCE_AUTH", detail, requestID(ctx))
}

// refusal says why ctx's person may not ask for op, or nil.
func (s *Server) refusal(ctx context.Context, op *huma.Operation) *Problem {
	need, _ := op.Metadata[accessKey].(access)
	if need == anybody {
		return nil
	}
	person := model.PersonOf(ctx)
	if person == nil {
		return unauthorized(ctx, "this server asks for a token: send the header Authorization: Bearer TOKEN")
	}
	if person.Role >= need.role() {
		return nil
	}
	detail := fmt.Sprintf("this asks for the role %s; %s has the role %s", need.role(), person.User, person.Role)
	if s.options.Verifier == nil {
		detail = "this server has no --auth-key, and its cluster knows who asks: without tokens it only shows"
	}
	return newProblem(http.StatusForbidden, "E_XCE_PERM", detail, requestID(ctx))
}

// unknownKeys refuses query parameters that the operation does not have, and repeated ones: both are mistakes that would go unnoticed.
func unknownKeys(ctx context.Context, op *huma.Operation, query url.Values) *Problem {
	var known, wrong []string
	for _, parameter := range op.Parameters {
		if parameter.In == "query" {
			known = append(known, parameter.Name)
		}
	}
	for name, values := range query {
		switch {
		case !slices.Contains(known, name):
			wrong = append(wrong, fmt.Sprintf("there is no query parameter %q", name))
		case len(values) > 1:
			wrong = append(wrong, fmt.Sprintf("the query parameter %q is given %d times", name, len(values)))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	slices.Sort(known)
	here := "none is known here"
	if len(known) > 0 {
		here = "known here are " + strings.Join(known, ", ")
	}
	return newProblem(http.StatusBadRequest, "E_XCE_INVALID", strings.Join(wrong[:min(len(wrong), 5)], "; ")+"; "+here, requestID(ctx))
}

// guard is huma's middleware: before parameters and bodies are looked at.
func (s *Server) guard(ctx huma.Context, next func(huma.Context)) {
	p := s.refusal(ctx.Context(), ctx.Operation())
	if p == nil {
		u := ctx.URL()
		p = unknownKeys(ctx.Context(), ctx.Operation(), u.Query())
	}
	if p != nil {
		_, w := humago.Unwrap(ctx)
		p.write(w)
		return
	}
	next(ctx)
}

// raw registers a handler that huma does not run, with the same guard, and describes it all the same.
func (s *Server) raw(api huma.API, mux *http.ServeMux, op huma.Operation, handler http.HandlerFunc) {
	described := op
	problem := api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(Problem{}), true, "Problem")
	for _, status := range op.Errors {
		if code := strconv.Itoa(status); described.Responses[code] == nil {
			described.Responses[code] = &huma.Response{Description: http.StatusText(status),
				Content: map[string]*huma.MediaType{"application/problem+json": {Schema: problem}}}
		}
	}
	api.OpenAPI().AddOperation(&described)
	mux.HandleFunc(op.Method+" "+op.Path, func(w http.ResponseWriter, r *http.Request) {
		p := s.refusal(r.Context(), &described)
		if p == nil {
			p = unknownKeys(r.Context(), &described, r.URL.Query())
		}
		if p != nil {
			p.write(w)
			return
		}
		handler(w, r)
	})
}

// ---- limits -------------------------------------------------------------------------------------

const maxCallers = 8192

// limiter keeps how fast each caller asks.
type limiter struct {
	mu      sync.Mutex
	callers map[string]*caller
	rate    rate.Limit
	burst   int
}

type caller struct {
	tokens *rate.Limiter
	seen   time.Time
}

func newLimiter(perSecond float64, burst int) *limiter {
	if perSecond <= 0 {
		return nil
	}
	return &limiter{callers: map[string]*caller{}, rate: rate.Limit(perSecond), burst: burst}
}

// allow says whether a caller may ask now.
func (l *limiter) allow(name string, now time.Time) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.callers[name]
	if c == nil {
		if len(l.callers) >= maxCallers {
			l.forget(now)
		}
		c = &caller{tokens: rate.NewLimiter(l.rate, l.burst)}
		l.callers[name] = c
	}
	c.seen = now
	return c.tokens.AllowN(now, 1)
}

// forget drops who has not asked for a minute, or everybody when that is not enough.
func (l *limiter) forget(now time.Time) {
	for name, c := range l.callers {
		if now.Sub(c.seen) > time.Minute {
			delete(l.callers, name)
		}
	}
	if len(l.callers) >= maxCallers {
		clear(l.callers)
	}
}

func callerOf(r *http.Request) string {
	if person := model.PersonOf(r.Context()); person != nil && !person.Trusted {
		return "user " + person.User
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// enter takes a place for a request, or says why there is none. Requests that wait for changes have places of their own. The places of the
// health checks are free.
func (s *Server) enter(r *http.Request) (leave func(), p *Problem) {
	switch r.URL.Path {
	case "/livez", "/readyz", "/metrics":
		return func() {}, nil
	}
	busy := func(detail string) *Problem {
		p := newProblem(http.StatusTooManyRequests, "E_XCE_BUSY", detail, requestID(r.Context()))
		p.Retryable, p.retryAfter = true, time.Second
		return p
	}
	if !s.limiter.allow(callerOf(r), time.Now()) {
		s.metrics.refused.WithLabelValues("rate").Inc()
		return nil, busy(fmt.Sprintf("more than %v requests a second; wait and send it again", s.options.Rate))
	}
	places, what, name := s.places, "requests are under way", "concurrent"
	if r.URL.Path == eventsPath || r.URL.Query().Has("wait") {
		places, what, name = s.waiters, "streams and waiting requests are open", "waiting"
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		s.metrics.refused.WithLabelValues(name).Inc()
		return nil, busy(fmt.Sprintf("already %d %s", cap(places), what))
	}
}
