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

// Backend is what the handlers need of the controllers. Errors are *model.Error.
type Backend interface {
	ListJobs(ctx context.Context, filter model.JobFilter) (model.JobPage, error)
	GetJob(ctx context.Context, id uint64) (model.JobDetail, error)
	SubmitJob(ctx context.Context, spec model.JobSpec) (model.Submitted, error)
	ControlJob(ctx context.Context, id uint64, action model.Action, signal uint32, wholeArray bool) error
	JobLog(ctx context.Context, id uint64, stderr bool, offset uint64, limit uint32) (model.LogChunk, error)
	ListHosts(ctx context.Context) ([]model.Host, error)
	ListQueues(ctx context.Context) ([]model.Queue, error)
	ClusterStatus(ctx context.Context) (model.Cluster, error)
	Connection() model.Connection // asks nobody
}

const (
	maxBodyBytes    = 4 << 20
	maxEventStreams = 256
)

// Server makes the HTTP handler.
type Server struct {
	backend Backend
	hub     *events.Hub
	log     *zap.Logger
	version string
	streams chan struct{} // a place a stream of events
	ended   chan struct{} // closed when the server goes down: streams end
	keepout time.Duration // between comments that keep an idle stream open
}

// New makes a server of backend, whose pushes arrive in hub.
func New(backend Backend, hub *events.Hub, log *zap.Logger, version string) *Server {
	return &Server{backend: backend, hub: hub, log: log, version: version, streams: make(chan struct{}, maxEventStreams),
		ended: make(chan struct{}), keepout: 15 * time.Second}
}

// Shutdown ends the streams of events, which would otherwise keep an http.Server from going down. Call it once.
func (s *Server) Shutdown() { close(s.ended) }

// Handler gives the whole interface; page serves the dashboard, everything that is not the interface's.
func (s *Server) Handler(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	config := huma.DefaultConfig("XCE", s.version)
	config.CreateHooks = nil // no "$schema" in answers
	config.DocsPath = ""     // its page would load scripts from elsewhere
	config.SchemasPath = ""
	config.Info.Description = "REST interface of an XCE cluster. Errors are problem+json with code, request_id and retryable."
	huma.NewErrorWithContext = problemOfHuma
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return problemOfHuma(nil, status, msg, errs...)
	}
	api := humago.New(mux, config)
	s.registerJobs(api)
	s.registerCluster(api)
	mux.HandleFunc("GET /api/v1/events", s.serveEvents)
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /assets/", page)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(mux, w, r) })
	return s.middleware(mux)
}

// livez says that the process serves; it never asks the controllers.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "version": s.version})
}

// readyz says whether requests would be answered now.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	state := s.backend.Connection()
	status := http.StatusOK
	if !state.Ready {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, state)
}
