package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap"

	"xce.example/apiserver/model"
)

// contentPolicy lets the dashboard load its own files and ask this server; nothing inline, nothing from elsewhere.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type requestIDKey struct{}

// requestID of the request that ctx belongs to.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// middleware wraps every request: an id, safe headers, no requests from other sites' pages, one log line, and a panic ends only its request.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !isToken(id, 128) {
			id = newID()
		}
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		start := time.Now()
		recorder := &recorder{ResponseWriter: w}
		h := w.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", contentPolicy)
		defer func() {
			if cause := recover(); cause != nil {
				s.log.Error("a handler panicked", zap.Any("cause", cause), zap.String("request_id", id), zap.ByteString("stack", debug.Stack()))
				if recorder.status == 0 {
					newProblem(http.StatusInternalServerError, "INTERNAL", "an internal error; the log has more under this request_id", id).write(recorder)
				}
			}
			s.access(r, recorder, id, time.Since(start))
		}()
		s.metrics.inFlight.Inc()
		defer s.metrics.inFlight.Dec()
		problem := s.strangers(r, id)
		if problem == nil {
			r, problem = s.authenticate(r)
		}
		if problem == nil {
			var leave func()
			if leave, problem = s.enter(r); problem == nil {
				defer leave()
			}
		}
		if problem != nil {
			problem.write(recorder)
			return
		}
		limit := s.options.AnswerWithin
		if r.URL.Query().Has("wait") {
			limit += maxWait
		}
		// A client that does not read its answer must not keep its place. Streams set their own.
		_ = http.NewResponseController(recorder).SetWriteDeadline(time.Now().Add(limit)) //nolint:errcheck // not every writer has one
		r.Body = http.MaxBytesReader(recorder, r.Body, s.options.BodyBytes+1)            // the operations' own limits answer first
		next.ServeHTTP(recorder, r)
	})
}

// strangers refuses what a page of another site makes a browser send: a foreign Host is a rebound DNS name, a foreign Origin a forged request.
// Without tokens there is nothing that would tell them apart; browsers never add tokens by themselves.
func (s *Server) strangers(r *http.Request, id string) *Problem {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); !s.options.AnyHost && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return newProblem(http.StatusMisdirectedRequest, "MISDIRECTED",
			"this server answers only to localhost and loopback addresses, not to the name in the Host header", id)
	}
	site := r.Header.Get("Sec-Fetch-Site")
	origin := r.Header.Get("Origin")
	foreign := site != "" && site != "same-origin" && site != "none"
	if !foreign && origin != "" {
		from, err := url.Parse(origin)
		foreign = err != nil || from.Host != r.Host
	}
	if foreign && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return newProblem(http.StatusForbidden, "E_XCE_PERM", "requests that change something are not taken from other sites' pages", id)
	}
	return nil
}

func (s *Server) access(r *http.Request, w *recorder, id string, took time.Duration) {
	s.metrics.answered(r.Pattern, w.status, took, r.URL.Path == eventsPath || r.URL.Query().Has("wait"))
	write := s.log.Info
	if r.URL.Path == "/livez" || r.URL.Path == "/readyz" {
		write = s.log.Debug
	}
	write("request", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.Int("status", w.status), zap.Int64("bytes", w.bytes),
		zap.Float64("ms", float64(took.Microseconds())/1000), zap.String("remote", r.RemoteAddr), zap.String("user", userOf(r)), zap.String("request_id", id))
}

func userOf(r *http.Request) string {
	if person := model.PersonOf(r.Context()); person != nil {
		return person.User
	}
	return ""
}

// recorder remembers what was answered. Unwrap lets http.ResponseController flush.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(data)
	w.bytes += int64(n)
	return n, err
}

// isToken says whether text is 1 to limit visible ASCII characters.
func isToken(text string, limit int) bool {
	if text == "" || len(text) > limit {
		return false
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

func newID() string {
	var random [12]byte
	_, _ = rand.Read(random[:]) // cannot fail on Linux
	return hex.EncodeToString(random[:])
}
