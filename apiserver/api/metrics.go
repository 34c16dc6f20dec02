package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics of one server, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	refused  *prometheus.CounterVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "xce_apiserver_requests_total", Help: "Requests answered."}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "xce_apiserver_request_seconds", Help: "Time to answer, without streams and waiting requests.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "xce_apiserver_requests_in_flight", Help: "Requests under way, streams included."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "xce_apiserver_requests_refused_total",
			Help: "Requests refused by a limit: rate, concurrent or waiting."}, []string{"limit"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.inFlight, m.refused, &state{server: s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) answered(route string, status int, took time.Duration, waiting bool) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if !waiting {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// state reads what others know at the time of a scrape.
type state struct{ server *Server }

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("xce_apiserver_"+name, help, labels, nil)
}

var (
	descReady    = gauge("backend_ready", "1: requests are passed on and answered.")
	descDegraded = gauge("backend_degraded", "1: the controllers do not answer, requests fail at once.")
	descJoined   = gauge("backend_joined", "1: joined to the cluster, pushes come.")
	descAnswer   = gauge("backend_last_answer_seconds", "Since a controller last answered; -1: never.")
	descCalls    = gauge("backend_calls", "Calls to the controllers under way.")
	descWaiting  = gauge("backend_calls_waiting", "Requests that wait for a place among the calls.")
	descSlots    = gauge("backend_calls_limit", "Calls to the controllers that may be under way.")
	descLibrary  = gauge("libxce", "Counters of libxce.", "counter")
	descStreams  = gauge("event_streams", "Streams and waiting requests that get events.")
	descEvents   = gauge("events_total", "Events that came from the controllers.")
	descGaps     = gauge("event_gaps_total", "Times that a stream was too slow and missed events.")
	descRevision = gauge("event_revision", "Revision of the newest event.")
)

func (c *state) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{descReady, descDegraded, descJoined, descAnswer, descCalls, descWaiting, descSlots, descLibrary,
		descStreams, descEvents, descGaps, descRevision} {
		out <- desc
	}
}

func (c *state) Collect(out chan<- prometheus.Metric) {
	put := func(desc *prometheus.Desc, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if desc == descEvents || desc == descGaps {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	truth := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	connection := c.server.backend.Connection()
	put(descReady, truth(connection.Ready))
	put(descDegraded, truth(connection.Degraded))
	put(descJoined, truth(connection.Joined))
	put(descAnswer, max(-1, float64(connection.LastAnswerMs)/1000))
	running, waiting, slots := c.server.backend.Load()
	put(descCalls, float64(running))
	put(descWaiting, float64(waiting))
	put(descSlots, float64(slots))
	for name, value := range c.server.backend.LibraryStats() {
		put(descLibrary, value, name)
	}
	counts := c.server.hub.Counts()
	put(descStreams, float64(counts.Subscribers))
	put(descEvents, float64(counts.Published))
	put(descGaps, float64(counts.Gaps))
	put(descRevision, float64(counts.Last))
}
