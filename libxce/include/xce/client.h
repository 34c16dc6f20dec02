/* libxce: the client library of XCE. Every xcecli_* operation fails over by itself: it finds the
 * new primary, repairs the connection, replays writes without doing them twice, and returns only a
 * result or a distinct error (L1-L7).
 *
 * Threads: every function may be called from any thread; many operations may be in flight on one
 * context. Callbacks run on the thread that each one's comment names. Results: >= 0 on success,
 * -E_XCE_... or -errno on failure. After a failure xcecli_last_error() gives the words, per thread.
 */
#ifndef XCE_CLIENT_H_
#define XCE_CLIENT_H_

#include <errno.h>

#include "xce/config.h"
#include "xce/errnox.h"
#include "xce/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define N_MAX_MASTERS MAX_HA_CANDIDATES
#ifdef __cplusplus
static_assert(N_MAX_MASTERS == MAX_HA_CANDIDATES, "one limit, one source (A1.7)");
#else
_Static_assert(N_MAX_MASTERS == MAX_HA_CANDIDATES, "one limit, one source (A1.7)");
#endif

#if defined(__GNUC__)
#define XCE_API __attribute__((visibility("default")))
#else
#define XCE_API
#endif

typedef struct xcecli_ctx* xcecli_ctx_t;

typedef struct {
  int max_retries;      /* attempts after the first of one call; default 20 */
  int initial_delay_ms; /* default 10 */
  int max_delay_ms;     /* default 5000 */
  double multiplier;    /* default 2.0 */
} xce_retry_config_t;
#define XCE_RETRY_DEFAULTS \
  { 20, 10, 5000, 2.0 }

typedef struct {
  int nmasters; /* 1..N_MAX_MASTERS */
  char masters[N_MAX_MASTERS][XCE_MAXHOSTNAME_LEN];
  uint16_t master_ports[N_MAX_MASTERS];
  xce_host_role_t role;           /* of this client; HostRole_user for people's tools */
  char name[XCE_MAXHOSTNAME_LEN]; /* a worker's host name, a daemon's name */
  char user[64];                  /* "" : the process's effective user */
  int call_deadline_ms;           /* 0: XCE_DEFAULT_CALL_DEADLINE_MS */
  xce_retry_config_t retry;       /* all zero: XCE_RETRY_DEFAULTS */
  uint64_t client_id[2];          /* both 0: random */
  /* TLS: PEM files; all three or, for plain connections, none. Read again at a new connection when
   * they have changed. A certificate of role user names the user. */
  char tls_ca[XCE_MAX_PATH_LEN];   /* the authorities that are trusted */
  char tls_cert[XCE_MAX_PATH_LEN]; /* our certificate, of this client's role and name */
  char tls_key[XCE_MAX_PATH_LEN];  /* its key, unreadable to others */
} xce_client_config_t;

typedef enum { XCE_LOG_DEBUG = 0, XCE_LOG_INFO, XCE_LOG_WARN, XCE_LOG_ERROR } xce_log_level_t;
typedef void (*xce_log_cb)(xce_log_level_t level, const char* line, void* arg);
/* Where libxce's log lines go; NULL: nowhere (the default). Called on any thread. Process wide; set
 * it before xcecli_start. */
XCE_API void xce_set_log_callback(xce_log_cb cb, void* arg);

/* ---- life of a context
 * ---------------------------------------------------------------------------------------- */

XCE_API void xce_client_config_init(xce_client_config_t* config); /* zero, with defaults */
XCE_API void xce_job_spec_init(xce_job_spec_t* spec);
/* Sets the three paths of TLS; NULL counts as "". 0; -ENAMETOOLONG: one is too long. */
XCE_API int xce_client_config_set_tls(xce_client_config_t* config, const char* ca, const char* cert,
                                      const char* key);
/* The log lines by which every daemon of XCE shows how it finds the controllers: one for each
 * candidate (index from 0), and one for each attempt (from 1; `trail` of its xce_error_t) that
 * reached none before any did; waiting: another attempt follows. Length, or -ENOSPC when it was
 * cut, or -EINVAL. */
XCE_API int xce_candidate_line(const xce_client_config_t* config, int index, char* out, size_t len);
XCE_API int xce_unreached_line(int attempt, const char* trail, bool waiting, char* out, size_t len);
/* Makes a context; no network I/O. 0, or -EINVAL when the config is unusable: xcecli_last_error
 * says what is wrong with the TLS files. */
XCE_API int xcecli_ctx_init(xcecli_ctx_t* out, const xce_client_config_t* config);
/* Starts the context's thread and connects to a master, trying each. 0; or -E_XCE_NOT_READY when
 * none could be reached within the deadline: the context is usable all the same and its operations
 * go on trying. */
XCE_API int xcecli_start(xcecli_ctx_t ctx);
/* Ends every call in flight with -ECANCELED, within a second, from any thread. */
XCE_API void xcecli_stop(xcecli_ctx_t ctx);
/* Stops, joins the thread, frees. No call may be in flight on other threads when it returns. */
XCE_API void xcecli_ctx_free(xcecli_ctx_t ctx);

/* Runs on the calling thread, while the connection is being repaired: after the new connection's
 * handshake and before any waiting request resumes. Return 0 to go on, < 0 to count the repair as
 * failed. A call into ctx from inside returns -EDEADLK: set a flag and rejoin afterwards (A2). */
typedef int (*xcecli_reconnect_cb)(xcecli_ctx_t ctx, void* arg);
XCE_API int xcecli_set_reconnect_handler(xcecli_ctx_t ctx, xcecli_reconnect_cb cb, void* arg);
/* Runs on the context's own thread as soon as the connection is lost, also while no call is in
 * flight; must not block nor call into ctx. Wake a thread that calls xcecli_hello: that repairs the
 * connection. */
typedef void (*xcecli_disconnect_cb)(xcecli_ctx_t ctx, void* arg);
XCE_API int xcecli_set_disconnect_handler(xcecli_ctx_t ctx, xcecli_disconnect_cb cb, void* arg);
/* Runs on the context's own thread, in order of revision; must not block nor call into ctx. The
 * event is valid during the call. A context with a push handler watches its connection also while
 * no call is in flight: within five seconds of the primary's silence it is given up, and the
 * disconnect handler is called. */
typedef void (*xcecli_push_cb)(xcecli_ctx_t ctx, const xce_event_t* event, void* arg);
XCE_API int xcecli_set_push_handler(xcecli_ctx_t ctx, xcecli_push_cb cb, void* arg);
/* Rises with every connection made, also by fire-and-forget calls: a changed value means "join
 * again". 0: never connected. */
XCE_API uint64_t xcecli_generation(xcecli_ctx_t ctx);
/* "host:port" of the current connection, or "". */
XCE_API void xcecli_current_master(xcecli_ctx_t ctx, char* out, size_t len);
/* Overrides the deadline of this thread's next calls on ctx, in milliseconds; 0 restores the
 * default. */
XCE_API void xcecli_set_deadline(xcecli_ctx_t ctx, int ms);
/* This thread's next calls on ctx, of an apiserver, are those of a person whom it has
 * authenticated: the controllers grant what that person may do. administrator: everything, under
 * this name. NULL or "": the apiserver's own again. 0; -EPERM when ctx is no apiserver's;
 * -ENAMETOOLONG. */
XCE_API int xcecli_act_for(xcecli_ctx_t ctx, const char* user, uint32_t uid, uint32_t gid,
                           bool administrator);
/* Counters of the context as JSON: calls, retries, reconnects, rotations, redirects, exhaustions,
 * ff_dropped... */
XCE_API int xcecli_stats_json(xcecli_ctx_t ctx, char* out, size_t len);

/* ---- errors
 * ----------------------------------------------------------------------------------------------------
 */

XCE_API const char* xce_strerror(int status); /* takes either sign */
XCE_API const char* xce_errname(int status);  /* "E_XCE_NOT_READY", "ECONNREFUSED", ... */
XCE_API bool xce_is_retriable(int status);
typedef enum { XCE_APPLIED = 0, XCE_NOT_APPLIED, XCE_OUTCOME_MAYBE } xce_outcome_t;
typedef struct {
  int status;            /* what the call returned */
  xce_outcome_t outcome; /* of the write */
  int attempts;
  uint64_t job_id;   /* of -E_XCE_DUP_JOB */
  bool same_body;    /* of -E_XCE_DUP_JOB: that job was submitted with the same body */
  char message[512]; /* for people */
  char trail[1024];  /* attempts: endpoint, class, milliseconds */
} xce_error_t;
XCE_API void xcecli_last_error(xce_error_t* out); /* of this thread's last call */

/* ---- reads
 * -----------------------------------------------------------------------------------------------------
 */

XCE_API int xcecli_hello(xcecli_ctx_t ctx,
                         xce_hello_t* out); /* out may be NULL; free: none (version is static) */
XCE_API int xcecli_joblist(xcecli_ctx_t ctx, const xce_job_filter_t* filter, xce_job_page_t** out);
XCE_API int xcecli_jobinfo(xcecli_ctx_t ctx, uint64_t id,
                           xce_job_page_t** out); /* one job, in full */
XCE_API int xcecli_jobhist(xcecli_ctx_t ctx, const xce_job_filter_t* filter, xce_job_page_t** out);
XCE_API int xcecli_workerlist(xcecli_ctx_t ctx, xce_host_t** out, size_t* n);
XCE_API int xcecli_queuelist(xcecli_ctx_t ctx, xce_queue_t** out, size_t* n);
XCE_API int xcecli_reservationlist(xcecli_ctx_t ctx, xce_reservation_t** out, size_t* n);
XCE_API int xcecli_userlist(xcecli_ctx_t ctx, xce_user_t** out, size_t* n);
XCE_API int xcecli_reslist(xcecli_ctx_t ctx, xce_gres_t** out, size_t* n);
XCE_API int xcecli_resval(xcecli_ctx_t ctx, const char* name, uint32_t* out);
/* The next two are each controller's own view: the primary answers when one serves, else the first
 * controller that can be reached (node_id, role and ready say who and what it is). */
XCE_API int xcecli_clusterconf(xcecli_ctx_t ctx, xce_cluster_status_t** out);
XCE_API int xcecli_clusterstatus(xcecli_ctx_t ctx, xce_cluster_status_t** out);
XCE_API int xcecli_joblog(xcecli_ctx_t ctx, uint64_t id, xce_stream_t stream, uint64_t offset,
                          uint32_t limit, xce_log_chunk_t** out);
/* The same of a job that runs: with nothing at offset it is answered when there is, or when the job
 * has ended, at most wait_ms (at most XCE_MAX_LOG_WAIT_MS) later. The worker waits; nobody asks. */
XCE_API int xcecli_joblog_wait(xcecli_ctx_t ctx, uint64_t id, xce_stream_t stream, uint64_t offset,
                               uint32_t limit, uint32_t wait_ms, xce_log_chunk_t** out);

/* Begins a backup (id 0; the part has no data) or gives its next piece: id as told, offset where
 * the last one ended. Pieces come in order and from the primary that began it; -E_XCE_STALE: that
 * one is no longer asked, begin anew. For root and the user that runs the controllers. */
XCE_API int xcecli_backup(xcecli_ctx_t ctx, uint64_t id, uint64_t offset, xce_backup_part_t** out);

XCE_API void xce_free_backup_part(xce_backup_part_t* part);
XCE_API void xce_free_job_page(xce_job_page_t* page);
XCE_API void xce_free_hosts(xce_host_t* hosts, size_t n);
XCE_API void xce_free_queues(xce_queue_t* queues, size_t n);
XCE_API void xce_free_reservations(xce_reservation_t* reservations, size_t n);
XCE_API void xce_free_users(xce_user_t* users, size_t n);
XCE_API void xce_free_gres(xce_gres_t* gres, size_t n);
XCE_API void xce_free_cluster_status(xce_cluster_status_t* status);
XCE_API void xce_free_log_chunk(xce_log_chunk_t* chunk);

/* ---- writes: each is applied exactly once, however often it is resent
 * ------------------------------------------ */

/* Operation ids: once across calls, processes and restarts. A write that is sent again under its
 * id, by whichever process of the same user, gets the first answer and changes nothing; another
 * request under that id is refused with -E_XCE_INVALID. Answers are kept for an hour after the id
 * was last used (docs/semantics.md). After that an id of xcecli_make_op_id gets
 * -E_XCE_OUTCOME_UNKNOWN, one of xce_op_id_of_key stands for a new write. */
typedef struct {
  uint64_t hi, lo;
  uint64_t birth; /* a log index from before its first use; 0: unknown */
} xce_op_id_t;
#define XCE_OP_ID_TEXT_LEN 64
/* An id that nobody else has; to be kept with xce_op_id_text before the write is sent. Asks the
 * primary. */
XCE_API int xcecli_make_op_id(xcecli_ctx_t ctx, xce_op_id_t* out);
/* The id that stands for a key of the caller's own choice, for instance an order number. 0, or
 * -EINVAL: no key. */
XCE_API int xce_op_id_of_key(const char* key, xce_op_id_t* out);
/* As a word, and back. 0; -EINVAL: this is none; -ENAMETOOLONG: len < XCE_OP_ID_TEXT_LEN. */
XCE_API int xce_op_id_text(const xce_op_id_t* id, char* out, size_t len);
XCE_API int xce_op_id_parse(const char* text, xce_op_id_t* out);
/* This thread's next write on ctx carries that id; NULL: none after all. For every write but
 * xcecli_join. 0, or -EINVAL: the id is all zero. */
XCE_API int xcecli_set_op_id(xcecli_ctx_t ctx, const xce_op_id_t* id);

XCE_API int xcecli_join(xcecli_ctx_t ctx, xce_host_role_t role, const xce_host_attrs_t* host,
                        uint64_t instance, xce_joined_t* out);
XCE_API int xcecli_jobsub(xcecli_ctx_t ctx, const xce_job_spec_t* spec, xce_submitted_t* out);
XCE_API int xcecli_jobctrl(xcecli_ctx_t ctx, const uint64_t* ids, size_t nids,
                           xce_jobctrl_action_t action, uint32_t signal, bool whole_array);
/* mask: which fields to set: 1 priority, 2 time_limit_s, 4 name, 8 queue; with
 * XCE_MODIFY_WHOLE_ARRAY of every task, that has not ended, of the arrays whose first ids are given
 * (all in one write, so one operation id stands for it). */
#define XCE_MODIFY_WHOLE_ARRAY 0x80000000u
XCE_API int xcecli_jobmodify(xcecli_ctx_t ctx, const uint64_t* ids, size_t nids,
                             const xce_job_spec_t* fields, uint32_t mask);
typedef enum {
  XCE_QUEUE_CREATE = 0,
  XCE_QUEUE_UPDATE,
  XCE_QUEUE_REMOVE,
  XCE_QUEUE_OPEN,
  XCE_QUEUE_CLOSE,
  XCE_QUEUE_START,
  XCE_QUEUE_STOP
} xce_queue_action_t;
XCE_API int xcecli_queuectrl(xcecli_ctx_t ctx, xce_queue_action_t action, const xce_queue_t* queue);
typedef enum {
  XCE_QUEUE_PRIORITY = 1,
  XCE_QUEUE_DEFAULT_TIME = 2,
  XCE_QUEUE_MAX_TIME = 4,
  XCE_QUEUE_MAX_RUNNING = 8,
  XCE_QUEUE_MAX_RUNNING_PER_USER = 16,
  XCE_QUEUE_DEFAULT = 32,
  XCE_QUEUE_ALLOWED_USERS = 64,
  XCE_QUEUE_ALLOWED_GROUPS = 128,
  XCE_QUEUE_MAX_PENDING_PER_USER = 256,
  XCE_QUEUE_MAX_CPUS_PER_USER = 512,
  XCE_QUEUE_PREEMPTIBLE = 1024
} xce_queue_field_t;
/* Changes only these fields (mask: xce_queue_field_t values, or-ed) of the queue of that name. */
XCE_API int xcecli_queuemodify(xcecli_ctx_t ctx, const xce_queue_t* queue, uint32_t mask);
typedef enum { XCE_RESERVATION_CREATE = 0, XCE_RESERVATION_REMOVE } xce_reservation_action_t;
/* To remove one only its name is looked at. -E_XCE_INVALID, -E_XCE_NOENT (an unknown host, queue or
 * name), -E_XCE_BUSY (another one keeps these hosts at that time), -E_XCE_PERM: the message says
 * what to change. */
XCE_API int xcecli_reservationctrl(xcecli_ctx_t ctx, xce_reservation_action_t action,
                                   const xce_reservation_t* reservation);
typedef enum {
  XCE_HOST_DRAIN = 0,
  XCE_HOST_RESUME,
  XCE_HOST_REMOVE,     /* E_XCE_BUSY while it holds jobs */
  XCE_HOST_REMOVE_LOST /* of a host that does not answer: its jobs end as LOST, those with requeue
                          wait again; E_XCE_BUSY when it does answer */
} xce_host_action_t;
XCE_API int xcecli_hostctrl(xcecli_ctx_t ctx, xce_host_action_t action, const char* host,
                            const char* reason);
XCE_API int xcecli_update_resvals(xcecli_ctx_t ctx, const xce_gres_t* gres, size_t n);
/* Runs a command on the first host of a running job, as xcecli_jobsub with a step does; that tells
 * the step's id too, with which its output and its end can be asked for. */
XCE_API int xcecli_runtask(xcecli_ctx_t ctx, uint64_t job_id, const char* const* args,
                           size_t nargs);
/* item_status (n entries, may be NULL) tells each item's fate: 0 or a positive E_XCE_ value. */
XCE_API int xcecli_jobdispatch(xcecli_ctx_t ctx, uint64_t epoch, const xce_dispatch_t* items,
                               size_t n, int* item_status);
/* Stops running jobs, which then wait again: preemption. Those that are not running that attempt
 * any more are left alone. */
XCE_API int xcecli_jobevict(xcecli_ctx_t ctx, uint64_t epoch, const xce_eviction_t* items,
                            size_t n);
XCE_API int xcecli_set_pend_reason(xcecli_ctx_t ctx, uint64_t epoch, const xce_pend_reason_t* items,
                                   size_t n);
XCE_API int xcecli_schedadmin(xcecli_ctx_t ctx, const char* command, char* out, size_t len);
typedef enum {
  XCE_MEMBER_ADD = 0,
  XCE_MEMBER_REMOVE,
  XCE_MEMBER_REPLACE,
  XCE_MEMBER_TRANSFER
} xce_member_action_t;
/* Adds, removes or replaces a controller, or hands the primary role over. host and port: where the
 * one that is added or replaced is found; NULL and 0 for the others. Returns when that is done: for
 * one that was added or replaced, when it has caught up and counts as a voter. Exactly once, though
 * the log and no session remembers it: asked for again, it is found done or under way.
 * -E_XCE_NOENT: no such controller; -E_XCE_INVALID: refused, last error says why; -E_XCE_BUSY:
 * another change is under way, or this one goes on by itself beyond the call's deadline. For root
 * and the user that runs the controllers. */
XCE_API int xcecli_memberctrl(xcecli_ctx_t ctx, xce_member_action_t action, uint64_t node_id,
                              const char* host, uint16_t port);
XCE_API int xcecli_subscribe(xcecli_ctx_t ctx, uint64_t from_revision);
/* Like xcecli_subscribe, but only events of these jobs come (JOB, JOB_REMOVED; GAP when the
 * connection is about to end), from now on. Subscribe, then read how they stand; after a lost
 * connection do both again. -EINVAL: no ids, or over XCE_MAX_WATCHED_JOBS. For users and
 * apiservers. */
XCE_API int xcecli_subscribe_jobs(xcecli_ctx_t ctx, const uint64_t* ids, size_t nids);
XCE_API int xcecli_unsubscribe(xcecli_ctx_t ctx);
XCE_API int xcecli_joblog_answer(
    xcecli_ctx_t ctx,
    const xce_log_chunk_t* chunk); /* a worker's answer to LOG_QUERY; fire and forget */

/* ---- fire and forget: no reply; reconnect only a connection known to be dead; 0 means handed to
 * the connection --- */

XCE_API int xcecli_notify(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* reports,
                          size_t n); /* kinds as set */
XCE_API int xcecli_notify_jobstart(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report);
XCE_API int xcecli_notify_jobfinish(xcecli_ctx_t ctx, uint64_t instance,
                                    const xce_report_t* report);
XCE_API int xcecli_notify_jobfail(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report);
XCE_API int xcecli_notify_jobstop(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report);
XCE_API int xcecli_notify_jobchkpt(xcecli_ctx_t ctx, uint64_t instance, const xce_report_t* report);
/* The active scheduler's: when jobs may start; kept by the primary until it hears otherwise. */
XCE_API int xcecli_estimates(xcecli_ctx_t ctx, uint64_t epoch, const xce_estimate_t* items,
                             size_t n);
XCE_API int xcecli_heartbeat(xcecli_ctx_t ctx);
XCE_API int xcecli_wakeup(xcecli_ctx_t ctx);
XCE_API int xcecli_nop(xcecli_ctx_t ctx);

#ifdef __cplusplus
}
#endif

#endif /* XCE_CLIENT_H_ */
