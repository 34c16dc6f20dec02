// Package api is the REST interface: JSON in the shapes of `xce --output json`, errors as problem+json, events as server-sent events.
// It knows the controllers only through Backend.
package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.uber.org/zap"

	"xce.example/apiserver/events"
	"xce.example/apiserver/model"
)

// Backend is what the handlers need of the controllers, asked on behalf of the context's person. Errors are *model.Error.
type Backend interface {
	ListJobs(ctx context.Context, filter model.JobFilter) (model.JobPage, error)
	GetJob(ctx context.Context, id uint64) (model.JobDetail, error)
	SubmitJob(ctx context.Context, spec model.JobSpec) (model.Submitted, error)
	ControlJob(ctx context.Context, id uint64, action model.Action, signal uint32, wholeArray bool) error
	ModifyJob(ctx context.Context, id uint64, change model.JobChange, wholeArray bool) error
	JobLog(ctx context.Context, id uint64, stderr bool, offset uint64, limit uint32) (model.LogChunk, error)
	ListHosts(ctx context.Context) ([]model.Host, error)
	ControlHost(ctx context.Context, action model.HostAction, host, reason string) error
	ListQueues(ctx context.Context) ([]model.Queue, error)
	ControlQueue(ctx context.Context, action model.QueueAction, queue model.Queue, mask uint32) error
	ListReservations(ctx context.Context) ([]model.Reservation, error)
	ListUsers(ctx context.Context) ([]model.UserUse, error)
	ClusterStatus(ctx context.Context) (model.Cluster, error)
	ControlMember(ctx context.Context, action model.MemberAction, id uint64, host string, port uint16) error
	Connection() model.Connection        // asks nobody, as do the next two
	Load() (running, waiting, slots int) // calls to the controllers
	LibraryStats() map[string]float64    // counters of libxce
}

const maxScans = 2 // listings that look at every matching row, at once

// Options of a Server. Zero limits: the defaults.
type Options struct {
	Verifier   Verifier      // nil: requests carry no tokens
	Anonymous  *model.Person // who asks when there is no verifier
	BodyBytes  int64
	Concurrent int
	Waiting    int
	Rate       float64 // requests a second of one caller; 0: any
	Burst      int
	// AnswerWithin is how long a request may take that does not wait for a change: longer than a call to the controllers.
	AnswerWithin time.Duration
	// AnyHost: requests may come under any name. Else only under loopback ones, because a page of another site could send them.
	AnyHost bool
}

// Server makes the HTTP handler.
type Server struct {
	backend    Backend
	hub        *events.Hub
	log        *zap.Logger
	version    string
	options    Options
	limiter    *limiter
	metrics    *metrics
	places     chan struct{} // one a request
	waiters    chan struct{} // one a stream of events, or a request that waits for a change
	scans      chan struct{}
	scanWithin time.Duration
	ended      chan struct{} // closed when the server goes down: streams end
	keepout    time.Duration // between comments that keep an idle stream open
	remembered remembered
	document   *huma.OpenAPI // of the interface, after Handler
}

// New makes a server of backend, whose pushes arrive in hub.
func New(backend Backend, hub *events.Hub, log *zap.Logger, version string, options Options) *Server {
	if options.BodyBytes == 0 {
		options.BodyBytes = 4 << 20
	}
	if options.Concurrent == 0 {
		options.Concurrent = 2048
	}
	if options.Waiting == 0 {
		options.Waiting = 512
	}
	if options.AnswerWithin == 0 {
		options.AnswerWithin = 90 * time.Second
	}
	s := &Server{backend: backend, hub: hub, log: log, version: version, options: options, limiter: newLimiter(options.Rate, options.Burst),
		places: make(chan struct{}, options.Concurrent), waiters: make(chan struct{}, options.Waiting), scans: make(chan struct{}, maxScans), scanWithin: scanWithin,
		ended: make(chan struct{}), keepout: 15 * time.Second}
	s.metrics = newMetrics(s)
	return s
}

// Shutdown ends the streams of events, which would otherwise keep an http.Server from going down, and makes /readyz say so. Call it once.
func (s *Server) Shutdown() { close(s.ended) }

func (s *Server) goingDown() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// operation describes an operation of the interface; the errors are those that every operation may answer with.
func operation(id, method, path, summary, tag string, need access, status int) huma.Operation {
	op := huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{tag}, DefaultStatus: status,
		Metadata: map[string]any{accessKey: need}, Responses: map[string]*huma.Response{},
		Errors: []int{400, 401, 403, 404, 405, 409, 413, 415, 421, 422, 429, 500, 502, 503, 504}}
	if need != anybody {
		op.Security = []map[string][]string{{"bearer": {}}}
	}
	return op
}

// readable adds what a read with Conditional parameters may answer with.
func readable(op huma.Operation) huma.Operation {
	op.Responses["304"] = &huma.Response{Description: "Not Modified: If-None-Match still holds"}
	return op
}

// Handler gives the whole interface; page serves the dashboard, everything that is not the interface's.
func (s *Server) Handler(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	config := huma.DefaultConfig("XCE", s.version)
	config.CreateHooks = nil // no "$schema" in answers
	config.DocsPath = ""     // its page would load scripts from elsewhere
	config.SchemasPath = ""
	config.Info.Description = "REST interface of an XCE cluster. Errors are problem+json with code, request_id and retryable. " +
		"docs/rest.md of the sources has examples."
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT",
		Description: "sub: the user, xce_role: viewer, user or admin, xce_uid and xce_gid where this server does not know the user"}}
	huma.NewErrorWithContext = problemOfHuma
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return problemOfHuma(nil, status, msg, errs...)
	}
	api := humago.New(mux, config)
	s.document = api.OpenAPI()
	api.UseMiddleware(s.guard)
	s.registerJobs(api)
	s.registerArrays(api)
	s.registerHosts(api)
	s.registerQueues(api)
	s.registerReservations(api)
	s.registerCluster(api)
	s.registerRaw(api, mux)
	if s.options.Verifier == nil {
		withoutTokens(s.document)
	}
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /assets/", page)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(mux, w, r) })
	return s.middleware(mux)
}

// withoutTokens makes the description true of a server that asks for none.
func withoutTokens(document *huma.OpenAPI) {
	for _, item := range document.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if op != nil {
				op.Security = nil
			}
		}
	}
}

func plainResponse(description, mediaType string, schema *huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: description, Content: map[string]*huma.MediaType{mediaType: {Schema: schema}}}}
}

// registerRaw has what huma does not serve: streams, health, metrics.
func (s *Server) registerRaw(api huma.API, mux *http.ServeMux) {
	stream := operation("stream-events", http.MethodGet, eventsPath, "Changes of jobs, hosts and queues, as server-sent events", "events", looks, 0)
	stream.Responses = plainResponse("event: job, job_removed, host, host_removed, queue, queue_removed, gap or shutdown; id: revision; data: Event",
		"text/event-stream", &huma.Schema{Type: huma.TypeString})
	stream.Responses["410"] = &huma.Response{Description: "what came after Last-Event-ID is no longer known: list anew and connect without it"}
	stream.Parameters = []*huma.Param{{Name: "Last-Event-ID", In: "header", Description: "id of the last event that was seen", Schema: &huma.Schema{Type: huma.TypeString}}}
	s.raw(api, mux, stream, s.serveEvents)

	object := &huma.Schema{Type: huma.TypeObject}
	live := operation("livez", http.MethodGet, "/livez", "The process serves", "health", anybody, 0)
	live.Responses = plainResponse("it does", "application/json", object)
	s.raw(api, mux, live, s.livez)
	ready := operation("readyz", http.MethodGet, "/readyz", "Requests would be answered now", "health", anybody, 0)
	ready.Responses = plainResponse("they would", "application/json", object)
	ready.Responses["503"] = &huma.Response{Description: "they would not; detail says why", Content: map[string]*huma.MediaType{"application/json": {Schema: object}}}
	s.raw(api, mux, ready, s.readyz)
	numbers := operation("metrics", http.MethodGet, "/metrics", "Figures for Prometheus", "health", looks, 0)
	numbers.Responses = plainResponse("text exposition format", "text/plain", &huma.Schema{Type: huma.TypeString})
	s.raw(api, mux, numbers, s.metrics.handler().ServeHTTP)
}

// livez says that the process serves; it never asks the controllers.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "version": s.version})
}

// readyz says whether requests would be answered now. Where tokens are asked for, others only learn yes or no.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	state := s.backend.Connection()
	if s.goingDown() {
		state.Ready, state.Detail = false, "the apiserver is going down"
	}
	status := http.StatusOK
	if !state.Ready {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	if model.PersonOf(r.Context()) == nil {
		writeJSON(w, status, map[string]any{"ready": state.Ready, "detail": state.Detail})
		return
	}
	writeJSON(w, status, state)
}
