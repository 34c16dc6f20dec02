@0xd3a1f0c27b5e4916;
# The client protocol: what clients and daemons say to a controller. A client sends Requests; the controller answers each
# with one Reply of the same seq, and sends Pushes to those that have joined or subscribed. The write ops are
# also what the replicated log holds (see log.capnp), so fields are only ever added, never renumbered.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("xce::wire");

struct Request {
  seq @0 :UInt64;               # chosen by the client, unique on its connection
  clientIdHi @1 :UInt64;        # random 128-bit client id
  clientIdLo @2 :UInt64;
  opSeq @3 :UInt64;             # of a write, unique per client id; 0 for reads and fire-and-forget
  lowestUnanswered @4 :UInt64;  # every write of this client with a lower opSeq has been answered
  birth @5 :UInt64;             # the applied index that the client's first hello gave
  deadlineMs @6 :UInt32;        # what the caller still gives, in milliseconds
  resent @7 :Bool;              # an earlier attempt of this write may have been applied
  staleOk @8 :Bool;             # a read that any controller may answer from what it has applied
  op @9 :Op;
  opHash @10 :UInt64;           # of a write whose op id its caller chose: of what it asks; 0: its client chose it
  onBehalf @11 :OnBehalf;       # only from an apiserver: the person who asks through it
}

# A person whom the apiserver has authenticated. The request is then theirs, with their rights and no more.
struct OnBehalf {
  user @0 :Text;
  uid @1 :UInt32;
  gid @2 :UInt32;
  administrator @3 :Bool;       # with the apiserver's own rights, under this name
}

enum Role { none @0; user @1; worker @2; scheduler @3; apiserver @4; controller @5; }

struct Op {
  union {
    nop @0 :Void;
    # reads
    hello @1 :Hello;
    jobList @2 :JobFilter;
    jobInfo @3 :UInt64;          # job id
    jobHist @4 :JobFilter;
    workerList @5 :Void;
    queueList @6 :Void;
    userList @7 :Void;
    resList @8 :Void;
    resVal @9 :Text;
    clusterConf @10 :Void;
    clusterStatus @11 :Void;
    jobLog @12 :JobLog;
    # writes
    join @13 :Join;
    jobSubmit @14 :JobSpec;
    jobCtrl @15 :JobCtrl;
    queueCtrl @16 :QueueCtrl;
    hostCtrl @17 :HostCtrl;
    updateResvals @18 :List(Gres);   # of the sender's host
    runTask @19 :RunTask;
    jobDispatch @20 :Dispatches;
    setPendReason @21 :PendReasons;
    schedAdmin @22 :Text;
    memberCtrl @23 :MemberCtrl;
    # fire and forget
    notify @24 :Notify;
    heartbeat @25 :Void;
    wakeup @26 :Void;
    # connection
    subscribe @27 :Subscribe;
    unsubscribe @28 :Void;
    backup @29 :Void;
    # made by the primary itself, never by a client
    tick @30 :Void;                  # time passes: sessions expire, hosts go unreachable
    hostLost @31 :Text;              # a host unheard of for its grace time
    jobLogData @32 :LogChunk;        # a worker's answer to a pushed LogQuery
    backupRead @33 :BackupRead;      # the next piece of what `backup` has begun; connection-bound, not a write
    estimates @34 :Estimates;        # fire and forget, of the active scheduler: when jobs may start
    reservationCtrl @35 :ReservationCtrl;  # a write
    reservationList @36 :Void;             # a read
  }
}

struct Hello {
  role @0 :Role;
  name @1 :Text;        # host name of a worker, name of a daemon
  user @2 :Text;        # the person who asks
  uid @3 :UInt32;
  gid @4 :UInt32;
  version @5 :Text;
  pid @6 :UInt32;
}

struct JobFilter {
  ids @0 :List(UInt64);
  states @1 :UInt32;     # bit mask of 1 << JobState; 0 = all
  user @2 :Text;
  queue @3 :Text;
  host @4 :Text;         # allocated to this host
  name @5 :Text;
  arrayId @6 :UInt64;
  afterId @7 :UInt64;    # page: jobs with a higher id (lower, when descending)
  limit @8 :UInt32;      # rows a page; 0 = the server's choice; bounded by the server
  descending @9 :Bool;
  full @10 :Bool;        # with script, arguments and environment
  sinceMs @11 :Int64;    # ended at this time or later; 0: any time, and those that have not ended
  untilMs @12 :Int64;    # ended before this time; 0: any time, and those that have not ended
}

struct JobLog {
  id @0 :UInt64;
  stream @1 :Stream;
  offset @2 :UInt64;
  limit @3 :UInt32;
  waitMs @4 :UInt32;     # with nothing at offset: answer when there is, or the job has ended, at most so much later
}
enum Stream { stdout @0; stderr @1; }
struct LogChunk { queryId @0 :UInt64; status @1 :Int32; data @2 :Data; offset @3 :UInt64; eof @4 :Bool; message @5 :Text; }

struct Gres {
  name @0 :Text;
  count @1 :UInt32;
  indices @2 :List(UInt32);   # of what a job holds on a host: which ones, counted from 0; empty: not told apart
}

struct Join {
  role @0 :Role;
  host @1 :HostAttrs;       # of a worker
  instance @2 :UInt64;      # random per start of the daemon
  unknown @3 :List(UInt64); # reserved
  leaseMs @4 :UInt32;       # of a worker, set by the primary: the lease that hello gives from now on
}

struct HostAttrs {
  name @0 :Text;
  cpus @1 :UInt32;
  memoryMb @2 :UInt64;
  gres @3 :List(Gres);
  version @4 :Text;
  address @5 :Text;
  bootId @6 :Text;
  workerId @7 :UInt64;       # of the worker's data directory; a host's name belongs to one. 0: it has none
  fault @8 :Text;            # why this host can start no jobs now, by its worker's own word; empty: it can
}

struct JobSpec {
  name @0 :Text;
  user @1 :Text;
  uid @2 :UInt32;
  gid @3 :UInt32;
  queue @4 :Text;
  script @5 :Data;            # a script with a #! line; empty when args alone is the command
  args @6 :List(Text);        # arguments of the script, or the command and its arguments
  env @7 :List(Text);         # KEY=VALUE
  workDir @8 :Text;
  stdoutPath @9 :Text;        # patterns: %j job id, %A array id, %a array index, %x name, %u user
  stderrPath @10 :Text;       # empty: as stdout
  cpus @11 :UInt32;           # a host
  memoryMb @12 :UInt64;       # a host
  gres @13 :List(Gres);       # a host
  nodes @14 :UInt32;          # hosts; 0 counts as 1
  exclusive @15 :Bool;
  timeLimitS @16 :UInt32;     # 0: the queue's default
  warnSignal @17 :UInt32;     # sent warnBeforeS before the limit; 0: none
  warnBeforeS @18 :UInt32;
  priority @19 :Int32;
  hold @20 :Bool;
  requeue @21 :Bool;          # may be started again when its host is lost
  submitKey @22 :Text;        # two submissions of one key are one job
  array @23 :List(UInt32);    # indices; empty: no array
  arrayLimit @24 :UInt32;     # tasks that may run at once; 0: any
  dependencies @25 :List(Dependency);
  stdinPath @26 :Text;
  comment @27 :Text;
  bodyHash @28 :UInt64;       # of everything but submitKey, to tell a replay from another submission of that key
  step @29 :Step;             # absent: a job that the scheduler starts
}

# A command that runs inside the allocation of a running job: a job of its own that is started at once and ends with that job.
struct Step {
  jobId @0 :UInt64;           # whose allocation; 0: no step
  hosts @1 :List(Text);       # of a request: where, one step a host; "*": on each of the job's; empty: on its first.
                              # Of a job: all hosts of the job that it belongs to
  attempt @2 :UInt32;         # of that job; this and the next two are the controllers' to fill in
  arrayId @3 :UInt64;         # that job's array and index
  arrayIndex @4 :UInt32;
}

struct Dependency { kind @0 :DependencyKind; jobId @1 :UInt64; }
enum DependencyKind { after @0; afterOk @1; afterNotOk @2; afterAny @3; singleton @4; }

enum JobState {
  pending @0; held @1; starting @2; running @3; suspended @4;
  completed @5; failed @6; killed @7; timeout @8; lost @9;
}
enum Desired { run @0; suspend @1; kill @2; }

struct Alloc { host @0 :Text; cpus @1 :UInt32; memoryMb @2 :UInt64; gres @3 :List(Gres); }

struct Usage { cpuMs @0 :UInt64; peakMemoryKb @1 :UInt64; wallMs @2 :UInt64; }

struct Job {
  id @0 :UInt64;
  arrayId @1 :UInt64;        # id of the array's first task; 0: no array
  arrayIndex @2 :UInt32;
  spec @3 :JobSpec;          # script, args and env only where asked for
  state @4 :JobState;
  desired @5 :Desired;       # what its owner wants of a running job
  attempt @6 :UInt32;        # number of its newest dispatch; 0: never dispatched
  allocs @7 :List(Alloc);
  reason @8 :Text;           # why it is pending, or how it ended, in words
  submitMs @9 :Int64;        # wall clock of the primary, milliseconds since the epoch; so are all times
  startMs @10 :Int64;
  endMs @11 :Int64;
  exitCode @12 :Int32;       # of an ended job; 128 + signal when a signal ended it
  exitSignal @13 :UInt32;
  usage @14 :Usage;
  modifyIndex @15 :UInt64;   # log index of its newest change
  eligibleMs @16 :Int64;
  starts @17 :UInt32;        # attempts of which a start was reported (more than one only for requeued jobs)
  killSignal @18 :UInt32;
  stdoutFile @19 :Text;      # as opened by the worker
  stderrFile @20 :Text;
  estimatedStartMs @21 :Int64;  # of a pending job, by the scheduler's newest plan; 0: unknown. Not replicated: the primary adds it
}

enum HostState { up @0; drained @1; unreachable @2; gone @3; }
struct Host {
  attrs @0 :HostAttrs;
  state @1 :HostState;
  drainReason @2 :Text;
  usedCpus @3 :UInt32;
  usedMemoryMb @4 :UInt64;
  runningJobs @5 :UInt32;
  joinedMs @6 :Int64;
  outboxApplied @7 :UInt64;
  instance @8 :UInt64;
  modifyIndex @9 :UInt64;
  usedGres @10 :List(Gres);
  drained @11 :Bool;
  leaseMs @12 :UInt32;       # its jobs with requeue may run so long after a hello of its worker; 0: for ever
}

struct Queue {
  name @0 :Text;
  priority @1 :Int32;
  defaultTimeS @2 :UInt32;   # 0: none
  maxTimeS @3 :UInt32;       # 0: any
  open @4 :Bool;             # takes submissions
  active @5 :Bool;           # its jobs are started
  pending @6 :UInt32;
  running @7 :UInt32;
  modifyIndex @8 :UInt64;
  maxRunningPerUser @9 :UInt32;
  isDefault @10 :Bool;
  maxRunning @11 :UInt32;
  allowedUsers @12 :List(Text);     # with allowedGroups: who may submit to it; both empty: everybody
  allowedGroups @13 :List(Text);
  maxPendingPerUser @14 :UInt32;    # waiting jobs; more submissions are refused; 0: any
  maxCpusPerUser @15 :UInt32;       # that a user's running jobs of this queue hold; 0: any
  preemptible @16 :Bool;            # its running jobs may be requeued for jobs of queues of higher priority
}

struct User { name @0 :Text; pending @1 :UInt32; running @2 :UInt32; finished @3 :UInt64; cpuMs @4 :UInt64; }

enum JobAction { kill @0; suspend @1; resume @2; hold @3; release @4; requeue @5; modify @6; }
struct JobCtrl {
  ids @0 :List(UInt64);
  action @1 :JobAction;
  signal @2 :UInt32;         # of kill; 0: the usual sequence TERM, then KILL
  wholeArray @3 :Bool;       # ids name arrays
  modify @4 :JobSpec;        # of modify: the fields of modifyMask
  modifyMask @5 :UInt32;     # 1 priority, 2 timeLimitS, 4 name, 8 queue
}

enum QueueAction { create @0; update @1; remove @2; open @3; close @4; start @5; stop @6; }
struct QueueCtrl {
  action @0 :QueueAction;
  queue @1 :Queue;
  mask @2 :UInt32;   # of update, what to change: 1 priority, 2 defaultTimeS, 4 maxTimeS, 8 maxRunning, 16 maxRunningPerUser,
                     # 32 isDefault, 64 allowedUsers, 128 allowedGroups, 256 maxPendingPerUser, 512 maxCpusPerUser,
                     # 1024 preemptible; 0: the first six
}

enum HostAction {
  drain @0; resume @1; remove @2;
  removeLost @3;       # of an unreachable host: its jobs end as LOST, those with requeue wait again
  giveUp @4;           # the primary's own: the leases of an unreachable host have run out, it is GONE
}
struct HostCtrl { action @0 :HostAction; name @1 :Text; reason @2 :Text; }

# Hosts, or cpus of them, that are kept for some users and queues for a time. Jobs of others start there only when they end before
# it begins, by their time limits.
struct Reservation {
  name @0 :Text;
  hosts @1 :List(Text);
  cpus @2 :UInt32;           # of each of the hosts; 0: the whole host
  startMs @3 :Int64;         # milliseconds since the epoch
  endMs @4 :Int64;           # it is removed then
  users @5 :List(Text);      # for whom it is; with queues: any of both
  queues @6 :List(Text);
  comment @7 :Text;
  modifyIndex @8 :UInt64;
}
enum ReservationAction { create @0; remove @1; }
struct ReservationCtrl { action @0 :ReservationAction; reservation @1 :Reservation; }   # of remove: its name

struct RunTask { jobId @0 :UInt64; args @1 :List(Text); }   # as jobSubmit of a step on the job's first host

struct Dispatch { jobId @0 :UInt64; attempt @1 :UInt32; allocs @2 :List(Alloc); }
struct Eviction { jobId @0 :UInt64; attempt @1 :UInt32; reason @2 :Text; }   # a running job is stopped and waits again
struct Dispatches { epoch @0 :UInt64; items @1 :List(Dispatch); evictions @2 :List(Eviction); }
# hopeless: a dependency can never be met, so the job is ended (KILLED) with that reason.
struct PendReason { jobId @0 :UInt64; reason @1 :Text; hopeless @2 :Bool; }
struct PendReasons { epoch @0 :UInt64; items @1 :List(PendReason); }
struct Estimate { jobId @0 :UInt64; startMs @1 :Int64; }   # 0: no longer known
struct Estimates { epoch @0 :UInt64; items @1 :List(Estimate); }

enum MemberAction { add @0; remove @1; replace @2; transfer @3; }
struct MemberCtrl { action @0 :MemberAction; nodeId @1 :UInt64; host @2 :Text; port @3 :UInt16; }

enum NotifyKind { start @0; finish @1; fail @2; stop @3; chkpt @4; resumed @5; }
struct Notify {
  host @0 :Text;
  instance @1 :UInt64;
  items @2 :List(Report);
}
struct Report {
  outboxSeq @0 :UInt64;      # rises by one a report of a host, over restarts; applied once, in order
  kind @1 :NotifyKind;
  jobId @2 :UInt64;
  attempt @3 :UInt32;
  exitCode @4 :Int32;
  exitSignal @5 :UInt32;
  outcome @6 :JobState;      # of finish and fail
  usage @7 :Usage;
  message @8 :Text;
  timeMs @9 :Int64;
  stdoutFile @10 :Text;
  stderrFile @11 :Text;
}

struct BackupRead { id @0 :UInt64; offset @1 :UInt64; }

struct Subscribe {
  fromRevision @0 :UInt64;
  jobs @1 :List(UInt64);  # events of these jobs alone, from now on; none: all events
}

struct Reply {
  seq @0 :UInt64;
  status @1 :Int32;          # 0, or one of xce/errnox.h
  message @2 :Text;          # what went wrong and what to do, for people
  redirectHost @3 :Text;
  redirectPort @4 :UInt16;
  term @5 :UInt64;
  index @6 :UInt64;          # log index that this answer reflects
  body @7 :Body;
  outcome @8 :UInt8;         # of a failed write: 1 not applied, 2 unknown, 3 applied
  clusterId @9 :UInt64;
}

struct Body {
  union {
    none @0 :Void;
    hello @1 :HelloReply;
    jobs @2 :JobPage;
    hosts @3 :List(Host);
    queues @4 :List(Queue);
    users @5 :List(User);
    gres @6 :List(Gres);
    conf @7 :ClusterConf;
    cluster @8 :ClusterStatus;
    log @9 :LogChunk;
    joined @10 :Joined;
    submitted @11 :Submitted;
    affected @12 :UInt32;            # how many jobs a control changed
    dispatched @13 :List(Int32);     # one status an item
    text @14 :Text;
    data @15 :Data;
    backup @16 :BackupPart;
    reservations @17 :List(Reservation);
  }
}

struct HelloReply {
  nodeId @0 :UInt64;
  applied @1 :UInt64;
  outboxApplied @2 :UInt64;   # of a worker: reports up to here are applied
  joined @3 :Bool;            # this connection has joined
  serverMs @4 :Int64;
  schedulerEpoch @5 :UInt64;  # of the active scheduler
  version @6 :Text;
  hostKnown @7 :Bool;
  members @8 :List(Node);     # the controllers as of now: where else to look for a primary
  leaseMs @9 :UInt32;         # of a joined worker: its jobs with requeue may run so long after this hello was sent
}
struct BackupPart {           # of the bytes of a backup; the answer to `backup` has none
  id @0 :UInt64;              # for the next backupRead, on the same connection
  index @1 :UInt64;           # everything up to this log index is in it
  total @2 :UInt64;           # bytes
  offset @3 :UInt64;
  data @4 :Data;
  crc @5 :UInt32;             # CRC32C of all bytes up to the end of data
}
struct JobPage { jobs @0 :List(Job); nextAfterId @1 :UInt64; total @2 :UInt64; }   # nextAfterId 0: last page
struct Joined { revision @0 :UInt64; epoch @1 :UInt64; active @2 :Bool; outboxApplied @3 :UInt64; }
struct Submitted { jobId @0 :UInt64; count @1 :UInt32; existing @2 :Bool; }
struct Node {
  id @0 :UInt64; host @1 :Text; port @2 :UInt16; role @3 :Text; connected @4 :Bool; matchIndex @5 :UInt64; lastContactMs @6 :Int64;
}
struct ClusterConf { nodes @0 :List(Node); heartbeatMs @1 :UInt32; electionTimeoutMs @2 :UInt32; clusterId @3 :UInt64; }
struct ClusterStatus {
  nodeId @0 :UInt64; role @1 :Text; leaderId @2 :UInt64; term @3 :UInt64; commit @4 :UInt64; applied @5 :UInt64; lastIndex @6 :UInt64;
  nodes @7 :List(Node); uptimeMs @8 :Int64; jobsPending @9 :UInt64; jobsRunning @10 :UInt64; jobsFinished @11 :UInt64;
  sessions @12 :UInt64; lastElectionMs @13 :Int64; lastElectionTookMs @14 :Int64; ready @15 :Bool; disk @16 :Text; clusterId @17 :UInt64;
  schedulerName @18 :Text; heartbeatMs @19 :UInt32; electionTimeoutMs @20 :UInt32;
}

struct Push {
  revision @0 :UInt64;       # log index of the change; rises
  events @1 :List(Event);
}
struct Event {
  union {
    job @0 :Job;             # new state of a job (workers get it in full)
    jobRemoved @1 :UInt64;
    host @2 :Host;
    hostRemoved @3 :Text;
    queue @4 :Queue;
    queueRemoved @5 :Text;
    gap @6 :UInt64;          # events up to this revision are gone: take the state anew
    wakeup @7 :Void;
    logQuery @8 :LogQuery;   # to a worker: answer with jobLogData
    outboxApplied @9 :UInt64; # to a worker: reports up to here are applied
    scheduler @10 :SchedulerInfo;
    schedAdmin @11 :Text;
    reservation @12 :Reservation;
    reservationRemoved @13 :Text;
  }
}
struct LogQuery { queryId @0 :UInt64; jobId @1 :UInt64; stream @2 :Stream; offset @3 :UInt64; limit @4 :UInt32; waitMs @5 :UInt32; }
struct SchedulerInfo { epoch @0 :UInt64; clientIdHi @1 :UInt64; clientIdLo @2 :UInt64; name @3 :Text; }

# From a controller to its connection: either a reply or a push.
struct ServerMessage {
  union {
    reply @0 :Reply;
    push @1 :Push;
  }
}
