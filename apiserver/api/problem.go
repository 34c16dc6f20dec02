package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

// Problem is an error as RFC 9457 writes it, with what a program needs to decide what to do next.
type Problem struct {
	Type      string              `json:"type" example:"about:blank"`
	Title     string              `json:"title" example:"Service Unavailable"`
	Status    int                 `json:"status" example:"503"`
	Detail    string              `json:"detail" doc:"what is wrong and what to do, in words"`
	Code      string              `json:"code" example:"E_XCE_NOT_READY" doc:"stable name of the error"`
	RequestID string              `json:"request_id" doc:"also in the X-Request-Id header and in the log"`
	Retryable bool                `json:"retryable" doc:"the same request may be sent again: it cannot be done twice"`
	JobID     uint64              `json:"job_id,omitempty" doc:"the job that the error is about"`
	Errors    []*huma.ErrorDetail `json:"errors,omitempty" doc:"what is wrong where in the request"`

	retryAfter time.Duration
}

func (p *Problem) Error() string               { return p.Detail }
func (p *Problem) GetStatus() int              { return p.Status }
func (p *Problem) ContentType(string) string   { return "application/problem+json" }
func (p *Problem) setRetryAfter(h http.Header) { h.Set("Retry-After", retryAfterText(p.retryAfter)) }
func retryAfterText(after time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(after.Seconds()))))
}
func newProblem(status int, code, detail, requestID string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code, RequestID: requestID}
}

// GetHeaders adds Retry-After where waiting helps.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		p.setRetryAfter(h)
	}
	return h
}

// write sends the problem without huma.
func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client has gone: nobody to tell
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client has gone: nobody to tell
}

// httpStatus of each status of libxce, and whether trying again later may help.
var httpStatus = map[int]struct {
	status int
	again  bool
}{
	model.StatusRedirect:       {http.StatusServiceUnavailable, true},
	model.StatusNoMaster:       {http.StatusServiceUnavailable, true},
	model.StatusStandby:        {http.StatusServiceUnavailable, true},
	model.StatusNotReady:       {http.StatusServiceUnavailable, true},
	model.StatusOutcomeUnknown: {http.StatusGatewayTimeout, true},
	model.StatusDupJob:         {http.StatusConflict, false},
	model.StatusAuth:           {http.StatusUnauthorized, false},
	model.StatusPerm:           {http.StatusForbidden, false},
	model.StatusInvalid:        {http.StatusBadRequest, false},
	model.StatusNoEnt:          {http.StatusNotFound, false},
	model.StatusStale:          {http.StatusConflict, true},
	model.StatusBusy:           {http.StatusTooManyRequests, true},
	model.StatusForked:         {http.StatusInternalServerError, false},
	int(syscall.EINVAL):        {http.StatusBadRequest, false},
	int(syscall.E2BIG):         {http.StatusRequestEntityTooLarge, false},
	int(syscall.EMSGSIZE):      {http.StatusRequestEntityTooLarge, false},
	int(syscall.ECANCELED):     {http.StatusServiceUnavailable, true},
	int(syscall.ETIMEDOUT):     {http.StatusServiceUnavailable, true},
	int(syscall.ECONNREFUSED):  {http.StatusServiceUnavailable, true},
	int(syscall.ECONNRESET):    {http.StatusServiceUnavailable, true},
	int(syscall.EPIPE):         {http.StatusServiceUnavailable, true},
	int(syscall.ENOTCONN):      {http.StatusServiceUnavailable, true},
	int(syscall.EHOSTUNREACH):  {http.StatusServiceUnavailable, true},
	int(syscall.ENETUNREACH):   {http.StatusServiceUnavailable, true},
}

// problemOf says in HTTP what a backend call failed with. repeatable: the request may be sent again even if it was applied, because it is a
// read, changes nothing when done twice, or carries an idempotency key.
func problemOf(ctx context.Context, err error, repeatable bool) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var e *model.Error
	if !errors.As(err, &e) {
		return newProblem(http.StatusInternalServerError, "INTERNAL", err.Error(), requestID(ctx))
	}
	as, known := httpStatus[e.Status]
	if !known {
		as.status = http.StatusBadGateway
	}
	if e.KeyReused {
		as.status = http.StatusUnprocessableEntity
		e = &model.Error{Code: e.Code, Message: reusedKey}
	}
	p = newProblem(as.status, e.Code, e.Message, requestID(ctx))
	p.JobID = e.JobID
	p.Retryable = as.again && (repeatable || e.Outcome == model.NotApplied && e.Status != model.StatusOutcomeUnknown)
	if as.again && as.status != http.StatusConflict {
		p.retryAfter = max(e.RetryAfter, time.Second)
	}
	return p
}

// problemOfHuma makes huma's own errors ours: what it calls unprocessable is a request that cannot be understood, 400.
func problemOfHuma(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
	id := ""
	if ctx != nil {
		id = requestID(ctx.Context())
	}
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	p := newProblem(status, codeOfStatus(status), message, id)
	var words []string
	for _, err := range errs {
		var detailer huma.ErrorDetailer
		var e *model.Error
		switch {
		case err == nil:
		case errors.As(err, &detailer):
			detail := *detailer.ErrorDetail()
			detail.Message = strings.TrimPrefix(detail.Message, "E_XCE_INVALID: ") // of our own UnmarshalJSON
			if len(p.Errors) < 20 {
				p.Errors = append(p.Errors, &huma.ErrorDetail{Message: detail.Message, Location: detail.Location}) // not the value: it may be a secret
			}
			words = append(words, strings.TrimPrefix(detail.Location+": ", ": ")+detail.Message)
		case errors.As(err, &e):
			words = append(words, e.Message)
		default:
			words = append(words, err.Error())
		}
	}
	if status == http.StatusUnsupportedMediaType || status == http.StatusRequestEntityTooLarge {
		words = nil
	}
	if text, known := whatToDo[status]; known {
		p.Detail = text
	} else if message == "request body is required" {
		p.Detail += ": send a JSON object, with Content-Type: application/json"
	}
	if len(words) > 0 {
		p.Detail += ": " + strings.Join(words[:min(len(words), 5)], "; ")
	}
	return p
}

// whatToDo replaces words of huma that say only what is wrong.
var whatToDo = map[int]string{
	http.StatusUnsupportedMediaType:  "the body must be JSON: send it with Content-Type: application/json",
	http.StatusRequestEntityTooLarge: "the body is larger than this operation takes: send a shorter one (a script is at most 1 MiB; put data into files)",
	http.StatusRequestTimeout:        "the body did not arrive in time: send the request again",
}

func codeOfStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "E_XCE_INVALID"
	case http.StatusNotFound:
		return "E_XCE_NOENT"
	case http.StatusRequestEntityTooLarge:
		return "TOO_LARGE"
	case http.StatusMethodNotAllowed:
		return "METHOD_NOT_ALLOWED"
	case http.StatusUnsupportedMediaType:
		return "UNSUPPORTED_MEDIA_TYPE"
	case http.StatusRequestTimeout:
		return "REQUEST_TIMEOUT"
	case http.StatusForbidden:
		return "E_XCE_PERM"
	case http.StatusUnauthorized:
		return "E_XCE_AUTH"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "HTTP_" + strconv.Itoa(status)
}

// notFound answers what no route matches: 405 when another method would, else 404.
func notFound(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	id := requestID(r.Context())
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Replace(strings.Join(append(allowed, http.MethodOptions), ", "), "GET", "GET, HEAD", 1))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		newProblem(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "here only "+strings.Join(allowed, " and ")+" can be done", id).write(w)
		return
	}
	newProblem(http.StatusNotFound, "E_XCE_NOENT", "there is nothing at "+r.URL.Path+"; the interface is described at /openapi.json", id).write(w)
}
