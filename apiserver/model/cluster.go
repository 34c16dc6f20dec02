package model

// Host is a worker's machine.
type Host struct {
	Name         string            `json:"name"`
	State        string            `json:"state" doc:"UP, DRAINED, UNREACHABLE or GONE"`
	Drained      bool              `json:"drained"`
	DrainReason  string            `json:"drain_reason"`
	CPUs         uint32            `json:"cpus"`
	UsedCPUs     uint32            `json:"used_cpus"`
	MemoryMB     uint64            `json:"memory_mb"`
	UsedMemoryMB uint64            `json:"used_memory_mb"`
	Gres         map[string]uint32 `json:"gres"`
	UsedGres     map[string]uint32 `json:"used_gres"`
	RunningJobs  uint32            `json:"running_jobs"`
	Address      string            `json:"address"`
	Version      string            `json:"version"`
	JoinedTime   *string           `json:"joined_time"`
	Fault        string            `json:"fault" doc:"why it can start no jobs now, by its own word; empty: it can"`
	LeaseMs      uint32            `json:"lease_ms" doc:"its jobs with requeue run so long after it was last heard of; 0: for ever"`
	ModifyIndex  uint64            `json:"modify_index"`
}

// Queue of jobs. Limits are null where there is none.
type Queue struct {
	Name              string   `json:"name"`
	Default           bool     `json:"default"`
	Open              bool     `json:"open" doc:"takes submissions"`
	Active            bool     `json:"active" doc:"starts jobs"`
	Priority          int32    `json:"priority"`
	DefaultTimeS      *uint32  `json:"default_time_s"`
	MaxTimeS          *uint32  `json:"max_time_s"`
	MaxRunning        *uint32  `json:"max_running"`
	MaxRunningPerUser *uint32  `json:"max_running_per_user"`
	MaxPendingPerUser *uint32  `json:"max_pending_per_user"`
	MaxCPUsPerUser    *uint32  `json:"max_cpus_per_user"`
	AllowedUsers      []string `json:"allowed_users" doc:"with allowed_groups: who may submit to it; both empty: everybody"`
	AllowedGroups     []string `json:"allowed_groups"`
	Preemptible       bool     `json:"preemptible" doc:"its running jobs make room for those of queues of higher priority"`
	Pending           uint32   `json:"pending"`
	Running           uint32   `json:"running"`
	ModifyIndex       uint64   `json:"modify_index"`
}

// Reservation keeps hosts, or cpus of them, for some users and queues for a time.
type Reservation struct {
	Name        string   `json:"name"`
	Hosts       []string `json:"hosts"`
	CPUs        *uint32  `json:"cpus" doc:"of each host; null: all of it"`
	StartTime   *string  `json:"start_time"`
	EndTime     *string  `json:"end_time"`
	Users       []string `json:"users" doc:"with queues: for whom it is"`
	Queues      []string `json:"queues"`
	Comment     string   `json:"comment"`
	ModifyIndex uint64   `json:"modify_index"`
}

// QueueAction in the order of xce_queue_action_t.
type QueueAction int

// What can be done to a queue.
const (
	QueueCreate QueueAction = iota
	QueueUpdate
	QueueRemove
	QueueOpen
	QueueClose
	QueueStart
	QueueStop
)

// Fields of a queue, as xce_queue_field_t.
const (
	QueuePriority          = 1
	QueueDefaultTime       = 2
	QueueMaxTime           = 4
	QueueMaxRunning        = 8
	QueueMaxRunningPerUser = 16
	QueueDefault           = 32
	QueueAllowedUsers      = 64
	QueueAllowedGroups     = 128
	QueueMaxPendingPerUser = 256
	QueueMaxCPUsPerUser    = 512
	QueuePreemptible       = 1024
)

// HostAction in the order of xce_host_action_t.
type HostAction int

// What can be done to a host.
const (
	HostDrain HostAction = iota
	HostResume
	HostRemove
	HostRemoveLost // its jobs are given up
)

// MemberAction in the order of xce_member_action_t.
type MemberAction int

// What can be done to the controllers.
const (
	MemberAdd MemberAction = iota
	MemberRemove
	MemberReplace
	MemberTransfer
)

// UserUse is what a user has in the cluster.
type UserUse struct {
	Name     string `json:"name"`
	Pending  uint32 `json:"pending"`
	Running  uint32 `json:"running"`
	Finished uint64 `json:"finished"`
	CPUMs    uint64 `json:"cpu_ms"`
}

// Node is a controller.
type Node struct {
	ID            uint64 `json:"id"`
	Host          string `json:"host"`
	Port          uint16 `json:"port"`
	Role          string `json:"role" doc:"leader, follower, candidate, joining or unknown"`
	Connected     bool   `json:"connected"`
	MatchIndex    uint64 `json:"match_index"`
	LastContactMs *int64 `json:"last_contact_ms" doc:"milliseconds ago; null: never"`
}

// Cluster is the state of the controllers as the primary sees it.
type Cluster struct {
	AnsweredBy         uint64  `json:"answered_by"`
	Role               string  `json:"role"`
	Ready              bool    `json:"ready"`
	LeaderID           *uint64 `json:"leader_id"`
	Term               uint64  `json:"term"`
	Commit             uint64  `json:"commit"`
	Applied            uint64  `json:"applied"`
	LastIndex          uint64  `json:"last_index"`
	ClusterID          string  `json:"cluster_id" doc:"decimal; a string, because it needs all 64 bits"`
	Nodes              []Node  `json:"nodes"`
	UptimeMs           int64   `json:"uptime_ms"`
	JobsPending        uint64  `json:"jobs_pending"`
	JobsRunning        uint64  `json:"jobs_running"`
	JobsFinished       uint64  `json:"jobs_finished"`
	Sessions           uint64  `json:"sessions"`
	LastElectionTime   *string `json:"last_election_time"`
	LastElectionTookMs int64   `json:"last_election_took_ms"`
	HeartbeatMs        uint32  `json:"heartbeat_ms"`
	ElectionTimeoutMs  uint32  `json:"election_timeout_ms"`
	Disk               string  `json:"disk"`
	Scheduler          string  `json:"scheduler"`
}

// Event tells of a change. Revision rises; several events may share one.
type Event struct {
	Kind     string `json:"kind" doc:"job, job_removed, host, host_removed, queue, queue_removed or gap"`
	Revision uint64 `json:"revision"`
	Job      *Job   `json:"job,omitempty"`
	Host     *Host  `json:"host,omitempty"`
	Queue    *Queue `json:"queue,omitempty"`
	ID       uint64 `json:"id,omitempty"`   // of a removed job
	Name     string `json:"name,omitempty"` // of a removed host or queue
}

// Connection says how the apiserver stands to its controllers.
type Connection struct {
	Ready    bool     `json:"ready"`
	Joined   bool     `json:"joined"`
	Degraded bool     `json:"degraded"`
	Master   string   `json:"master" doc:"host:port of the current connection"`
	Peers    []string `json:"peers" doc:"all candidates"`
	// LastAnswerMs is how long ago a controller last answered; -1: never.
	LastAnswerMs int64  `json:"last_answer_ms"`
	Detail       string `json:"detail"`
}
