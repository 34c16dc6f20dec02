// Package model holds the values that the apiserver shows and takes, in the JSON shapes of `xce --output json`. Pure: no I/O.
package model

// Job states, in the order of xce_job_state_t.
var JobStates = []string{
	"PENDING", "HELD", "STARTING", "RUNNING", "SUSPENDED", "COMPLETED", "FAILED", "KILLED", "TIMEOUT", "LOST",
}

// HostStates in the order of xce_host_state_t, Desired in that of xce_desired_t, DependencyKinds in that of xce_dependency_kind_t.
var (
	HostStates      = []string{"UP", "DRAINED", "UNREACHABLE", "GONE"}
	Desired         = []string{"run", "suspend", "kill"}
	DependencyKinds = []string{"after", "afterok", "afternotok", "afterany", "singleton"}
)

// FirstEndedState is the index in JobStates from which on a job has ended.
const FirstEndedState = 5

// Word gives the name of an enum's value, or "UNKNOWN" for one that a newer controller knows.
func Word(words []string, value int) string {
	if value < 0 || value >= len(words) {
		return "UNKNOWN"
	}
	return words[value]
}

// Dependency of a job on another one.
type Dependency struct {
	Kind  string `json:"kind" enum:"after,afterok,afternotok,afterany,singleton" doc:"when the dependency is met"`
	JobID uint64 `json:"job_id,omitempty" doc:"the job waited for; none for singleton"`
}

// Allocation is what a job holds on one host.
type Allocation struct {
	Host     string            `json:"host"`
	CPUs     uint32            `json:"cpus"`
	MemoryMB uint64            `json:"memory_mb"`
	Gres     map[string]uint32 `json:"gres"`
	// Which ones of the host's.
	GresIndices map[string][]uint32 `json:"gres_indices" doc:"which ones of the host's the job has, counted from 0"`
}

// Usage of a job, as its worker measured it.
type Usage struct {
	CPUMs        uint64 `json:"cpu_ms"`
	PeakMemoryKB uint64 `json:"peak_memory_kb"`
	WallMs       uint64 `json:"wall_ms"`
}

// Job in summary: everything but its script, arguments and environment. Times are RFC 3339 in UTC, null while they are not known.
type Job struct {
	ID                 uint64            `json:"id"`
	ArrayID            *uint64           `json:"array_id" doc:"id of the array's first task; null: no array"`
	ArrayIndex         *uint32           `json:"array_index"`
	Name               string            `json:"name"`
	User               string            `json:"user"`
	Queue              string            `json:"queue"`
	State              string            `json:"state"`
	Desired            string            `json:"desired" doc:"what was asked for: run, suspend or kill"`
	Reason             string            `json:"reason" doc:"why it is in this state, in words"`
	ExitCode           *int32            `json:"exit_code" doc:"128 + signal when a signal ended it; null until it ended, and when it never ran"`
	ExitSignal         *uint32           `json:"exit_signal"`
	SubmitTime         *string           `json:"submit_time"`
	EligibleTime       *string           `json:"eligible_time"`
	EstimatedStartTime *string           `json:"estimated_start_time" doc:"when a pending job may start; null: not known"`
	StartTime          *string           `json:"start_time"`
	EndTime            *string           `json:"end_time"`
	Hosts              []string          `json:"hosts"`
	Allocations        []Allocation      `json:"allocations"`
	Attempt            uint32            `json:"attempt"`
	Starts             uint32            `json:"starts"`
	Usage              Usage             `json:"usage"`
	StdoutFile         string            `json:"stdout_file"`
	StderrFile         string            `json:"stderr_file"`
	CPUs               uint32            `json:"cpus"`
	MemoryMB           uint64            `json:"memory_mb"`
	Gres               map[string]uint32 `json:"gres"`
	Nodes              uint32            `json:"nodes"`
	Exclusive          bool              `json:"exclusive"`
	Requeue            bool              `json:"requeue"`
	Priority           int32             `json:"priority"`
	TimeLimitS         *uint32           `json:"time_limit_s" doc:"null: the queue's default"`
	WarnSignal         uint32            `json:"warn_signal"`
	WarnBeforeS        uint32            `json:"warn_before_s"`
	ArrayLimit         uint32            `json:"array_limit"`
	StepOf             *uint64           `json:"step_of" doc:"the job inside which this command runs and with which it ends; null: none"`
	Dependencies       []Dependency      `json:"dependencies"`
	SubmitKey          string            `json:"submit_key"`
	Comment            string            `json:"comment"`
	WorkDir            string            `json:"work_dir"`
	StdinPath          string            `json:"stdin_path"`
	StdoutPath         string            `json:"stdout_path"`
	StderrPath         string            `json:"stderr_path"`
	ModifyIndex        uint64            `json:"modify_index" doc:"log index of its last change"`
}

// JobDetail is one job in full.
type JobDetail struct {
	Job
	Script string   `json:"script"`
	Args   []string `json:"args"`
	Env    []string `json:"env"`
}

// JobFilter says which jobs to list. Zero: all, in ascending order.
type JobFilter struct {
	IDs        []uint64
	States     uint32 // bits of 1 << index in JobStates
	User       string
	Queue      string
	Host       string
	Name       string
	ArrayID    uint64
	AfterID    uint64
	Limit      uint32
	Descending bool
	SinceMs    int64 // ended at this time or later; 0: any
	UntilMs    int64 // ended before this time; 0: any
	History    bool  // of ended jobs, also those that ended long ago
}

// JobPage is one page of a listing.
type JobPage struct {
	Revision    uint64
	NextAfterID uint64 // 0: the last page
	Total       uint64
	Jobs        []Job
}

// JobSpec is what to run: the backend's side of a submission.
type JobSpec struct {
	Name         string            `json:"name"`
	User         string            `json:"user"`
	UID          uint32            `json:"uid"`
	GID          uint32            `json:"gid"`
	Queue        string            `json:"queue"`
	Script       string            `json:"script"`
	Args         []string          `json:"args"`
	Env          []string          `json:"env"`
	WorkDir      string            `json:"work_dir"`
	StdinPath    string            `json:"stdin_path"`
	StdoutPath   string            `json:"stdout_path"`
	StderrPath   string            `json:"stderr_path"`
	CPUs         uint32            `json:"cpus"`
	MemoryMB     uint64            `json:"memory_mb"`
	Gres         map[string]uint32 `json:"gres"`
	Nodes        uint32            `json:"nodes"`
	Exclusive    bool              `json:"exclusive"`
	Hold         bool              `json:"hold"`
	Requeue      bool              `json:"requeue"`
	TimeLimitS   uint32            `json:"time_limit_s"`
	WarnSignal   uint32            `json:"warn_signal"`
	WarnBeforeS  uint32            `json:"warn_before_s"`
	Priority     int32             `json:"priority"`
	Array        []uint32          `json:"array"`
	ArrayLimit   uint32            `json:"array_limit"`
	Dependencies []Dependency      `json:"dependencies"`
	StepOf       uint64            `json:"step_of"`    // the job to run inside; 0: none
	StepHosts    []string          `json:"step_hosts"` // of it; "*": each, none: its first
	Comment      string            `json:"comment"`
	SubmitKey    string            `json:"-"` // two submissions of one key are one job; "": libxce makes one
}

// Submitted says what a submission made.
type Submitted struct {
	JobID    uint64
	Count    uint32
	Existing bool
}

// Action of a job control, in the order of xce_jobctrl_action_t.
type Action int

// The actions that the REST interface offers.
const (
	Kill Action = iota
	Suspend
	Resume
	Hold
	Release
	Requeue
)

// Actions by their names in paths.
var Actions = map[string]Action{"kill": Kill, "suspend": Suspend, "resume": Resume, "hold": Hold, "release": Release, "requeue": Requeue}

// JobChange says what to change of a job; nil: leave it.
type JobChange struct {
	Priority   *int32
	TimeLimitS *uint32
	Name       *string
	Queue      *string
}

// LogChunk is a piece of a job's output.
type LogChunk struct {
	Data   []byte
	Offset uint64
	EOF    bool
}
