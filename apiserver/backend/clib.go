// Package backend is the apiserver's bridge to the controllers, over libxce through cgo. The library rotates, retries and reconnects; this
// package gives it the candidate list once, joins again when a connection was repaired, and fails fast while nobody answers.
package backend

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xce/client.h>
#include <xce/cluster.h>

extern int goBackendRejoin(uintptr_t handle);
extern void goBackendPush(uintptr_t handle, xce_event_t* event);
extern void goBackendLog(int level, char* line);

// Shims from libxce's callback types to the exported Go functions.
static int xce_backend_rejoin_handler(xcecli_ctx_t ctx, void* arg) {
  (void)ctx;
  return goBackendRejoin((uintptr_t)arg);
}
static void xce_backend_push_handler(xcecli_ctx_t ctx, const xce_event_t* event, void* arg) {
  (void)ctx;
  goBackendPush((uintptr_t)arg, (xce_event_t*)event);
}
static void xce_backend_log_handler(xce_log_level_t level, const char* line, void* arg) {
  (void)arg;
  goBackendLog((int)level, (char*)line);
}
static int xce_backend_set_handlers(xcecli_ctx_t ctx, uintptr_t handle) {
  const int rc = xcecli_set_reconnect_handler(ctx, xce_backend_rejoin_handler, (void*)handle);
  return rc < 0 ? rc : xcecli_set_push_handler(ctx, xce_backend_push_handler, (void*)handle);
}
static void xce_backend_log_to_go(void) { xce_set_log_callback(xce_backend_log_handler, NULL); }
static void xce_backend_log_to_nobody(void) { xce_set_log_callback(NULL, NULL); }
// The preamble's types hold fixed arrays of char: these put strings into them, never longer than what fits.
static void xce_backend_one_candidate(xce_cluster_config_t* out, const char* host, uint16_t port) {
  memset(out, 0, sizeof *out);
  out->candidates_count = 1;
  strncpy(out->candidates[0].host, host, sizeof out->candidates[0].host - 1);
  out->candidates[0].port = port;
}
static void xce_backend_set_name(xce_client_config_t* out, const char* name) {
  strncpy(out->name, name, sizeof out->name - 1);
}
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/cgo"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"xce.example/apiserver/events"
	"xce.example/apiserver/model"
)

// Config of the connection to the controllers: the backend section of the apiserver's configuration.
type Config struct {
	Peers   []string // candidates as [name=]host:port; empty: the one at Address and Port
	Address string
	Port    int
	Name    string        // of this apiserver; "": its host's name
	Timeout time.Duration // of one call
	Slots   int           // calls at once
	TLSCA   string        // PEM files; all three or none
	TLSCert string
	TLSKey  string

	ExitIfUnreachable bool // the first attempt is the only one: what is logged then does not promise another
}

// Client is the connection to the controllers. Its methods may be called from any goroutine.
type Client struct {
	ctx    C.xcecli_ctx_t
	handle cgo.Handle
	caller *caller
	health *Health
	rejoin *Rejoiner
	hub    *events.Hub
	log    *zap.Logger
	peers  []string
	once   bool // Config.ExitIfUnreachable
	tries  int  // attempts that reached no controller, before one did
	stop   context.CancelFunc
	ended  chan struct{} // closed when the heartbeat goroutine has ended; nil before Start
}

const (
	joinDeadline  = 2 * time.Second
	helloDeadline = silenceLimit
)

// The process has one log callback, as libxce has.
var clibLog atomic.Pointer[zap.Logger]

// candidates runs the one candidate-list pipeline of all daemons: synthesize or parse, then validate. Its errors are the C parser's.
func candidates(config *Config) (*C.xce_cluster_config_t, error) {
	cluster := new(C.xce_cluster_config_t)
	var message [512]C.char
	if len(config.Peers) > 0 {
		text := C.CString(strings.Join(config.Peers, ","))
		defer C.free(unsafe.Pointer(text))
		if rc := C.xce_parse_peers(text, cluster, &message[0], C.size_t(len(message))); rc < 0 {
			return nil, errors.New(C.GoString(&message[0]))
		}
	} else {
		if config.Port < 0 || config.Port > 65535 {
			return nil, fmt.Errorf("%s:%d: the port must be within 1 and 65535", config.Address, config.Port)
		}
		if len(config.Address) >= C.XCE_MAXHOSTNAME_LEN {
			return nil, fmt.Errorf("%.40s...: a host name may have at most %d bytes", config.Address, C.XCE_MAXHOSTNAME_LEN-1)
		}
		host := C.CString(config.Address)
		defer C.free(unsafe.Pointer(host))
		C.xce_backend_one_candidate(cluster, host, C.uint16_t(config.Port))
	}
	if rc := C.xce_cluster_config_validate(cluster, &message[0], C.size_t(len(message))); rc < 0 {
		return nil, errors.New(C.GoString(&message[0]))
	}
	return cluster, nil
}

// addresses lists the candidates as host:port.
func addresses(cluster *C.xce_cluster_config_t) []string {
	var list []string
	for i := 0; i < int(cluster.candidates_count); i++ {
		candidate := &cluster.candidates[i]
		list = append(list, net.JoinHostPort(C.GoString(&candidate.host[0]), strconv.Itoa(int(candidate.port))))
	}
	return list
}

// CheckPeers says what is wrong with a candidate list, in the C parser's words, or nil.
func CheckPeers(config *Config) error {
	_, err := candidates(config)
	return err
}

// RegisterToBackend makes the connection's context from the whole candidate list, once, and registers the rejoin hook (A1.1-A1.5). No I/O yet:
// Start connects. Pushes go to hub.
func RegisterToBackend(config *Config, hub *events.Hub, log *zap.Logger) (*Client, error) {
	cluster, err := candidates(config)
	if err != nil {
		return nil, err
	}
	var c_config C.xce_client_config_t
	C.xce_client_config_init(&c_config)
	if rc := C.xce_cluster_config_to_client_config(cluster, &c_config); rc < 0 {
		return nil, fmt.Errorf("the candidate list is unusable: %s", statusText(int(-rc)))
	}
	c_config.role = C.HostRole_apiserver
	c_config.call_deadline_ms = C.int(config.Timeout.Milliseconds())
	// The probe should find a new primary soon after its election, so the pauses stay short; deadlines bound each call.
	c_config.retry = C.xce_retry_config_t{max_retries: 1000, initial_delay_ms: 10, max_delay_ms: 400, multiplier: 2}
	name := C.CString(config.Name)
	defer C.free(unsafe.Pointer(name))
	C.xce_backend_set_name(&c_config, name)

	if err := setTLS(&c_config, config); err != nil {
		return nil, err
	}

	client := &Client{health: &Health{}, hub: hub, log: log, peers: addresses(cluster), once: config.ExitIfUnreachable}
	clibLog.Store(log)
	C.xce_backend_log_to_go()
	if err := client.init(&c_config); err != nil {
		return nil, err
	}
	client.rejoin = &Rejoiner{
		join:       client.join,
		generation: func() uint64 { return uint64(C.xcecli_generation(client.ctx)) },
		last:       hub.Last,
		joined:     client.resume,
		health:     client.health,
		log:        log,
	}
	client.rejoin.Flag()
	client.caller = newCaller(client.health, client.rejoin, config.Slots, config.Timeout)
	client.handle = cgo.NewHandle(client)
	if rc := C.xce_backend_set_handlers(client.ctx, C.uintptr_t(client.handle)); rc < 0 {
		client.Close()
		return nil, fmt.Errorf("libxce refuses the rejoin hook: %s", statusText(int(-rc)))
	}
	for i := range client.peers {
		log.Info(logLine(func(out *C.char, size C.size_t) { C.xce_candidate_line(&c_config, C.int(i), out, size) }))
	}
	return client, nil
}

// logLine is one of the lines that libxce words for all daemons.
func logLine(fill func(out *C.char, size C.size_t)) string {
	var line [4096]C.char
	fill(&line[0], C.size_t(len(line)))
	return C.GoString(&line[0])
}

// unreached logs an attempt that reached no controller, before any did. One goroutine at a time.
func (c *Client) unreached(err error) {
	c.tries++
	trail := C.CString(trailOf(err))
	defer C.free(unsafe.Pointer(trail))
	c.log.Warn(logLine(func(out *C.char, size C.size_t) {
		C.xce_unreached_line(C.int(c.tries), trail, C.bool(!c.once), out, size)
	}))
}

// trailOf is each attempt of a failed call: candidate, outcome, when.
func trailOf(err error) string {
	if e := (*model.Error)(nil); errors.As(err, &e) {
		return e.Trail
	}
	return ""
}

// setTLS puts the paths of the TLS files where libxce looks for them.
func setTLS(out *C.xce_client_config_t, config *Config) error {
	ca, cert, key := C.CString(config.TLSCA), C.CString(config.TLSCert), C.CString(config.TLSKey)
	defer C.free(unsafe.Pointer(ca))
	defer C.free(unsafe.Pointer(cert))
	defer C.free(unsafe.Pointer(key))
	if rc := C.xce_client_config_set_tls(out, ca, cert, key); rc < 0 {
		return fmt.Errorf("the paths of the TLS files: %s", statusText(int(-rc)))
	}
	return nil
}

// init makes the context. Last errors belong to the operating system's thread.
func (c *Client) init(config *C.xce_client_config_t) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if rc := C.xcecli_ctx_init(&c.ctx, config); rc < 0 {
		var last C.xce_error_t
		C.xcecli_last_error(&last)
		return fmt.Errorf("libxce refuses its configuration: %s", C.GoString(&last.message[0]))
	}
	return nil
}

// Start connects and joins, trying every candidate, and from then on keeps the connection alive until Close, also when this first attempt failed:
// the error only says that it did, and names the candidates.
func (c *Client) Start() error {
	err := c.withThread(context.Background(), c.caller.timeout, func() C.int { return C.xcecli_start(c.ctx) })
	c.caller.started.Store(true)
	if err == nil {
		err = c.rejoin.Rejoin()
	}
	if err != nil {
		c.health.MarkDegraded(degradedTTL)
		c.unreached(err)
		trail := trailOf(err)
		if trail != "" {
			trail = " (" + trail + ")"
		}
		err = fmt.Errorf("no controller took us in; tried %s%s: %w", strings.Join(c.peers, ", "), trail, err)
	} else {
		c.caller.answered()
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop, c.ended = stop, make(chan struct{})
	beat := &prober{beat: c.heartbeat, hello: c.hello, rejoin: c.rejoin, health: c.health, now: time.Now, reached: err == nil, unreached: c.unreached}
	go func() {
		defer close(c.ended)
		beat.run(ctx)
	}()
	return err
}

// Cancel ends every call in flight, also that of Start, within a second.
func (c *Client) Cancel() { C.xcecli_stop(c.ctx) }

// Close ends every call in flight, within a second, and frees the context.
func (c *Client) Close() {
	c.caller.refuse()
	if c.stop != nil {
		c.stop()
	}
	C.xcecli_stop(c.ctx)
	if c.ended != nil {
		<-c.ended
	}
	c.caller.running.Wait()
	C.xcecli_ctx_free(c.ctx)
	C.xce_backend_log_to_nobody()
	c.handle.Delete()
}

// actFor makes this thread's calls those of ctx's person. The zero of it ends that.
func (c *Client) actFor(ctx context.Context) C.int {
	person := model.PersonOf(ctx)
	if person == nil || person.Trusted {
		return C.xcecli_act_for(c.ctx, nil, 0, 0, false)
	}
	name := C.CString(person.User)
	defer C.free(unsafe.Pointer(name))
	uid, gid := person.UID, person.GID
	if !person.IDsKnown {
		uid, gid = model.NobodyID, model.NobodyID
	}
	return C.xcecli_act_for(c.ctx, name, C.uint32_t(uid), C.uint32_t(gid), C.bool(person.Role == model.Admin))
}

// What the controllers say when an operation id was used for another request (controller/state/sessions.cc).
const reusedWords = "this operation id was used for another request"

// write makes one libxce call that writes, under the context's key if it has one: the same request under it gets the first answer, by
// whichever apiserver it is asked again.
func (c *Client) write(ctx context.Context, deadline time.Duration, op func() C.int) error {
	key := model.OpKeyOf(ctx)
	if key == "" {
		return c.withThread(ctx, deadline, op)
	}
	var id C.xce_op_id_t
	text := C.CString(key)
	defer C.free(unsafe.Pointer(text))
	err := c.withThread(ctx, deadline, func() C.int {
		if rc := C.xce_op_id_of_key(text, &id); rc < 0 {
			return rc
		}
		if rc := C.xcecli_set_op_id(c.ctx, &id); rc < 0 {
			return rc
		}
		defer C.xcecli_set_op_id(c.ctx, nil) // a call that was refused before it began has not taken it
		return op()
	})
	if e := (*model.Error)(nil); errors.As(err, &e) && e.Status == model.StatusInvalid && strings.Contains(e.Message, reusedWords) {
		e.KeyReused = true
	}
	return err
}

// withThread makes one libxce call on behalf of ctx's person: that, deadlines and last errors belong to the operating system's thread.
func (c *Client) withThread(ctx context.Context, deadline time.Duration, op func() C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if rc := c.actFor(ctx); rc < 0 { // never go on as the apiserver itself
		return &model.Error{Status: int(-rc), Code: C.GoString(C.xce_errname(rc)), Message: "the user's name cannot be passed on: " + statusText(int(-rc)),
			Outcome: model.NotApplied}
	}
	defer c.actFor(context.Background())
	C.xcecli_set_deadline(c.ctx, C.int(deadline.Milliseconds()))
	rc := op()
	if rc >= 0 {
		C.xcecli_set_deadline(c.ctx, 0)
		return nil
	}
	var last C.xce_error_t
	C.xcecli_last_error(&last)
	C.xcecli_set_deadline(c.ctx, 0)
	status := int(-rc)
	e := &model.Error{Status: status, Code: C.GoString(C.xce_errname(rc)), Message: C.GoString(&last.message[0]),
		Outcome: model.Outcome(last.outcome), JobID: uint64(last.job_id), SameBody: bool(last.same_body), Trail: C.GoString(&last.trail[0])}
	if e.Message == "" || int(last.status) != int(rc) {
		e.Message = statusText(status)
	}
	return e
}

func statusText(status int) string { return C.GoString(C.xce_strerror(C.int(status))) }

func (c *Client) join() (uint64, error) {
	var joined C.xce_joined_t
	err := c.withThread(context.Background(), joinDeadline, func() C.int { return C.xcecli_join(c.ctx, C.HostRole_apiserver, nil, 0, &joined) })
	if err == nil {
		c.caller.answered()
	}
	return uint64(joined.revision), err
}

// resume asks the controllers for what was pushed after a revision, before the join. What they no longer have becomes a gap, by them or here.
func (c *Client) resume(revision, from uint64) {
	if from != 0 {
		err := c.withThread(context.Background(), joinDeadline, func() C.int { return C.xcecli_subscribe(c.ctx, C.uint64_t(from)) })
		if err == nil {
			return
		}
		c.log.Warn("what was pushed meanwhile is lost to the streams", zap.Error(err))
	}
	c.hub.Publish(model.Event{Kind: "gap", Revision: revision})
}

// LibraryStats gives libxce's counters.
func (c *Client) LibraryStats() map[string]float64 {
	var text [4096]C.char
	stats := map[string]float64{}
	if C.xcecli_stats_json(c.ctx, &text[0], C.size_t(len(text))) < 0 {
		return stats
	}
	values := map[string]any{}
	if json.Unmarshal([]byte(C.GoString(&text[0])), &values) != nil {
		return stats
	}
	for name, value := range values {
		if number, ok := value.(float64); ok {
			stats[name] = number
		}
	}
	return stats
}

// Load says how many calls are under way in libxce, how many requests wait for a slot, and how many slots there are.
func (c *Client) Load() (running, waiting, slots int) {
	return len(c.caller.slots), int(c.caller.waiting.Load()), cap(c.caller.slots)
}

func (c *Client) heartbeat() error {
	return c.withThread(context.Background(), helloDeadline, func() C.int { return C.xcecli_heartbeat(c.ctx) })
}

// hello asks the primary for a sign of life; joined tells whether this connection has joined.
func (c *Client) hello() (bool, error) {
	var hello C.xce_hello_t
	err := c.withThread(context.Background(), helloDeadline, func() C.int { return C.xcecli_hello(c.ctx, &hello) })
	if err == nil {
		c.caller.answered()
	}
	return bool(hello.joined), err
}

// Connection says how things stand, without asking anybody.
func (c *Client) Connection() model.Connection {
	var master [C.XCE_MAXHOSTNAME_LEN + 16]C.char
	C.xcecli_current_master(c.ctx, &master[0], C.size_t(len(master)))
	state := model.Connection{
		Joined:       !c.rejoin.Needed(),
		Degraded:     c.health.IsDegraded(),
		Master:       C.GoString(&master[0]),
		Peers:        c.peers,
		LastAnswerMs: -1,
	}
	if last := c.caller.lastAnswer.Load(); last != 0 {
		state.LastAnswerMs = max(0, time.Since(time.Unix(0, last)).Milliseconds())
	}
	switch {
	case state.Degraded:
		state.Detail = "the controllers do not answer"
	case !state.Joined:
		state.Detail = "not joined to the cluster yet"
	case state.LastAnswerMs < 0 || state.LastAnswerMs > readyAnswerLimit.Milliseconds():
		state.Detail = "no controller has answered lately"
	default:
		state.Ready, state.Detail = true, "ok"
	}
	return state
}
