/* Values that operations take and give. Strings are NUL-terminated UTF-8; NULL in an input means
 * "not given", outputs never hold NULL strings. What a call gives is freed with the xce_free_...
 * function of its type, by any thread. */
#ifndef XCE_TYPES_H_
#define XCE_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xce/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  HostRole_none = 0,
  HostRole_user = 1,
  HostRole_worker = 2,
  HostRole_scheduler = 3,
  HostRole_apiserver = 4,
  HostRole_controller = 5
} xce_host_role_t;

typedef enum {
  XCE_JOB_PENDING = 0,
  XCE_JOB_HELD,
  XCE_JOB_STARTING,
  XCE_JOB_RUNNING,
  XCE_JOB_SUSPENDED,
  XCE_JOB_COMPLETED,
  XCE_JOB_FAILED,
  XCE_JOB_KILLED,
  XCE_JOB_TIMEOUT,
  XCE_JOB_LOST
} xce_job_state_t;
typedef enum { XCE_DESIRED_RUN = 0, XCE_DESIRED_SUSPEND, XCE_DESIRED_KILL } xce_desired_t;
typedef enum {
  XCE_JOBCTRL_KILL = 0,
  XCE_JOBCTRL_SUSPEND,
  XCE_JOBCTRL_RESUME,
  XCE_JOBCTRL_HOLD,
  XCE_JOBCTRL_RELEASE,
  XCE_JOBCTRL_REQUEUE,
  XCE_JOBCTRL_MODIFY
} xce_jobctrl_action_t;
typedef enum {
  XCE_HOST_UP = 0,
  XCE_HOST_DRAINED,
  XCE_HOST_UNREACHABLE,
  XCE_HOST_GONE
} xce_host_state_t;
typedef enum {
  XCE_DEP_AFTER = 0,
  XCE_DEP_AFTEROK,
  XCE_DEP_AFTERNOTOK,
  XCE_DEP_AFTERANY,
  XCE_DEP_SINGLETON
} xce_dependency_kind_t;
typedef enum { XCE_STDOUT = 0, XCE_STDERR = 1 } xce_stream_t;

typedef struct {
  const char* name;
  uint32_t count;
  const uint32_t* indices; /* of what a job holds on a host: which ones, from 0 on; else NULL */
  size_t nindices;
} xce_gres_t;
typedef struct {
  xce_dependency_kind_t kind;
  uint64_t job_id;
} xce_dependency_t;

/* Which running job's allocation a command runs in. job_id 0: none, it is a job of its own. The
 * rest but hosts is the controllers' to fill in. */
typedef struct {
  uint64_t job_id;
  const char* const* hosts; /* submitting: where, one step a host; "*": on each of the job's; none:
                               on its first. Of a job: all hosts of the job that it belongs to */
  size_t nhosts;
  uint32_t attempt;  /* of that job */
  uint64_t array_id; /* and its array */
  uint32_t array_index;
} xce_step_t;

/* What to run. Zero everything first (xce_job_spec_init): every zero is a sensible default. */
typedef struct {
  const char* name;
  const char* user; /* a person's tool leaves it NULL: the connection's user */
  uint32_t uid, gid;
  const char* queue;       /* NULL: the default queue */
  const void* script;      /* a script with a #! line; NULL when args is the command */
  size_t script_len;       /* bytes, at most XCE_MAX_SCRIPT_BYTES */
  const char* const* args; /* arguments of the script, or the command and its arguments */
  size_t nargs;
  const char* const* env; /* KEY=VALUE */
  size_t nenv;
  const char* work_dir;
  const char* stdin_path;
  const char*
      stdout_path; /* patterns %j job, %A array, %a index, %x name, %u user; NULL: xce-%j.out */
  const char* stderr_path; /* NULL: as stdout */
  uint32_t cpus;           /* a host; 0 counts as 1 */
  uint64_t memory_mb;      /* a host */
  const xce_gres_t* gres;  /* a host */
  size_t ngres;
  uint32_t nodes; /* hosts; 0 counts as 1 */
  bool exclusive, hold, requeue;
  uint32_t time_limit_s, warn_signal, warn_before_s;
  int32_t priority;
  const char* submit_key; /* two submissions of one key are one job; NULL: libxce makes one */
  const uint32_t* array;  /* indices */
  size_t narray;
  uint32_t array_limit;
  const xce_dependency_t* dependencies;
  size_t ndependencies;
  const char* comment;
  xce_step_t step; /* a command inside a running job: resources, queue and dependencies are that
                      job's; environment and work directory too, where none is given here */
} xce_job_spec_t;

typedef struct {
  const char* host;
  uint32_t cpus;
  uint64_t memory_mb;
  const xce_gres_t* gres;
  size_t ngres;
} xce_alloc_t;

typedef struct {
  uint64_t cpu_ms, peak_memory_kb, wall_ms;
} xce_usage_t;

typedef struct {
  uint64_t id;
  uint64_t array_id; /* id of the array's first task; 0: no array */
  uint32_t array_index;
  xce_job_spec_t spec; /* script, args, env only where asked for (jobinfo, a worker's push) */
  xce_job_state_t state;
  xce_desired_t desired;
  uint32_t kill_signal;
  uint32_t attempt; /* number of its newest dispatch; 0: never dispatched */
  uint32_t starts;
  const xce_alloc_t* allocs;
  size_t nallocs;
  const char* reason;
  int64_t submit_ms, eligible_ms, start_ms, end_ms; /* milliseconds since the epoch; 0: not yet */
  int32_t exit_code;                                /* 128 + signal when a signal ended it */
  uint32_t exit_signal;
  xce_usage_t usage;
  const char* stdout_file;
  const char* stderr_file;
  uint64_t modify_index;
  int64_t estimated_start_ms; /* of a pending job: when it may start; 0: not known */
} xce_job_t;

typedef struct {
  uint64_t revision;      /* log index that the page reflects */
  uint64_t next_after_id; /* give it as after_id for the next page; 0: this was the last */
  uint64_t total;         /* jobs that match, on all pages */
  xce_job_t* jobs;
  size_t njobs;
} xce_job_page_t;

typedef struct { /* zero: all jobs, in summary */
  const uint64_t* ids;
  size_t nids;
  uint32_t states; /* bits of 1u << xce_job_state_t; 0: all */
  const char* user;
  const char* queue;
  const char* host; /* allocated to this host */
  const char* name;
  uint64_t array_id;
  uint64_t after_id;
  uint32_t limit; /* rows a page; 0: the server's choice */
  bool descending;
  bool full;
  bool stale_ok;    /* any controller may answer from what it has applied */
  int64_t since_ms; /* ended at this time or later, milliseconds since the epoch; 0: any time, and
                       jobs that have not ended */
  int64_t until_ms; /* ended before this time; 0: any time, and jobs that have not ended */
} xce_job_filter_t;

typedef struct {
  const char* name;
  const char* version;
  const char* address;
  const char* boot_id;
  uint32_t cpus;
  uint64_t memory_mb;
  const xce_gres_t* gres;
  size_t ngres;
  uint64_t worker_id; /* of its worker's data directory: the name belongs to it; 0: none */
  const char* fault;  /* why it can start no jobs now, by its own word; "" or NULL: it can */
} xce_host_attrs_t;

typedef struct {
  xce_host_attrs_t attrs;
  xce_host_state_t state;
  bool drained;
  const char* drain_reason;
  uint32_t used_cpus;
  uint64_t used_memory_mb;
  const xce_gres_t* used_gres;
  size_t nused_gres;
  uint32_t running_jobs;
  int64_t joined_ms;
  uint64_t outbox_applied;
  uint64_t instance;
  uint64_t modify_index;
  uint32_t lease_ms; /* its jobs with requeue run so long after a hello at most; 0: for ever */
} xce_host_t;

typedef struct {
  const char* name;
  int32_t priority;
  uint32_t default_time_s, max_time_s, max_running, max_running_per_user;
  bool open, active, is_default;
  uint32_t pending, running;
  uint64_t modify_index;
  const char* const* allowed_users; /* with the groups: who may submit; none of both: everybody */
  size_t nallowed_users;
  const char* const* allowed_groups;
  size_t nallowed_groups;
  uint32_t max_pending_per_user; /* more submissions are refused; 0: any number */
  uint32_t max_cpus_per_user;    /* held by a user's running jobs of this queue; 0: any number */
  bool preemptible; /* its running jobs may be requeued for jobs of queues of higher priority */
} xce_queue_t;

typedef struct { /* hosts, or cpus of them, that are kept for some users and queues for a time */
  const char* name;
  const char* const* hosts;
  size_t nhosts;
  uint32_t cpus;            /* of each host; 0: all of it */
  int64_t start_ms, end_ms; /* milliseconds since the epoch; start 0 in a creation: now */
  const char* const* users; /* for whom it is; with the queues: any of both */
  size_t nusers;
  const char* const* queues;
  size_t nqueues;
  const char* comment;
  uint64_t modify_index;
} xce_reservation_t;

typedef struct {
  const char* name;
  uint32_t pending, running;
  uint64_t finished, cpu_ms;
} xce_user_t;

typedef struct {
  uint64_t id;
  const char* host;
  uint16_t port;
  const char* role; /* "leader", "follower", "candidate", "joining", "unknown" */
  bool connected;
  uint64_t match_index;
  int64_t last_contact_ms; /* ago; -1: never */
} xce_node_t;

typedef struct {
  uint64_t node_id; /* who answers */
  const char* role;
  bool ready;
  uint64_t leader_id, term, commit, applied, last_index, cluster_id;
  xce_node_t* nodes;
  size_t nnodes;
  int64_t uptime_ms;
  uint64_t jobs_pending, jobs_running, jobs_finished, sessions;
  int64_t last_election_ms; /* since the epoch */
  int64_t last_election_took_ms;
  uint32_t heartbeat_ms, election_timeout_ms;
  const char* disk;      /* "ok", or what is wrong */
  const char* scheduler; /* the active one; "" when there is none */
} xce_cluster_status_t;

typedef struct {   /* of the bytes of a backup */
  uint64_t id;     /* of the backup, for the next piece */
  uint64_t index;  /* everything up to this log index is in it */
  uint64_t total;  /* bytes of the backup */
  uint64_t offset; /* of data */
  uint8_t* data;
  size_t len;
  uint32_t crc; /* CRC32C of all bytes up to the end of data */
} xce_backup_part_t;

typedef struct { /* what hello tells */
  uint64_t node_id, applied, outbox_applied, scheduler_epoch, cluster_id, term;
  bool joined; /* this connection has joined */
  int64_t server_ms;
  const char* version;
  uint32_t lease_ms; /* of a joined worker: its jobs with requeue may run so long after the sending
                        of this hello */
} xce_hello_t;

typedef struct {
  uint64_t revision, epoch, outbox_applied;
  bool active;
} xce_joined_t;
typedef struct {
  uint64_t job_id;
  uint32_t count;
  bool existing;
} xce_submitted_t;

typedef struct {
  uint64_t job_id;
  uint32_t attempt;
  const xce_alloc_t* allocs;
  size_t nallocs;
} xce_dispatch_t;
typedef struct {
  uint64_t job_id;
  const char* reason;
  bool hopeless; /* a dependency can never be met: the job is ended with that reason */
} xce_pend_reason_t;
typedef struct { /* a running job is stopped and waits again, like a requeued one */
  uint64_t job_id;
  uint32_t attempt;
  const char* reason;
} xce_eviction_t;
typedef struct {
  uint64_t job_id;
  int64_t start_ms; /* milliseconds since the epoch; 0: not known any more */
} xce_estimate_t;

typedef enum {
  XCE_NOTIFY_START = 0,
  XCE_NOTIFY_FINISH,
  XCE_NOTIFY_FAIL,
  XCE_NOTIFY_STOP,
  XCE_NOTIFY_CHKPT,
  XCE_NOTIFY_RESUMED
} xce_notify_kind_t;
typedef struct {          /* a worker's report of a job */
  uint64_t outbox_seq;    /* rises by one a report of a host, over restarts */
  xce_notify_kind_t kind; /* set by xcecli_notify_* */
  uint64_t job_id;
  uint32_t attempt;
  int32_t exit_code;
  uint32_t exit_signal;
  xce_job_state_t outcome;
  xce_usage_t usage;
  const char* message;
  int64_t time_ms;
  const char* stdout_file;
  const char* stderr_file;
} xce_report_t;

typedef struct {
  uint64_t query_id;
  int32_t status;
  uint8_t* data;
  size_t len;
  uint64_t offset;
  bool eof;
  const char* message;
} xce_log_chunk_t;

typedef enum {
  XCE_EVENT_JOB = 0,
  XCE_EVENT_JOB_REMOVED,
  XCE_EVENT_HOST,
  XCE_EVENT_HOST_REMOVED,
  XCE_EVENT_QUEUE,
  XCE_EVENT_QUEUE_REMOVED,
  XCE_EVENT_GAP,
  XCE_EVENT_WAKEUP,
  XCE_EVENT_LOG_QUERY,
  XCE_EVENT_OUTBOX_APPLIED,
  XCE_EVENT_SCHEDULER,
  XCE_EVENT_SCHED_ADMIN,
  XCE_EVENT_RESERVATION,
  XCE_EVENT_RESERVATION_REMOVED
} xce_event_kind_t;
typedef struct {
  xce_event_kind_t kind;
  uint64_t revision;
  const xce_job_t* job;     /* JOB */
  const xce_host_t* host;   /* HOST */
  const xce_queue_t* queue; /* QUEUE */
  uint64_t id; /* JOB_REMOVED: job; GAP: revision; OUTBOX_APPLIED: sequence; SCHEDULER: epoch */
  const char* name;          /* of what was REMOVED, SCHEDULER, SCHED_ADMIN */
  uint64_t query_id, offset; /* LOG_QUERY, with id = job */
  uint32_t limit;
  xce_stream_t stream;
  uint32_t wait_ms;                     /* LOG_QUERY: for output that is not there yet */
  const xce_reservation_t* reservation; /* RESERVATION */
} xce_event_t;

#ifdef __cplusplus
}
#endif

#endif /* XCE_TYPES_H_ */
