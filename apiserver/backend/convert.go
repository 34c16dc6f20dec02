package backend

/*
#include <xce/client.h>
*/
import "C"

import (
	"strconv"
	"time"
	"unsafe"

	"xce.example/apiserver/model"
)

// From C values to Go ones: copies everything, keeps no pointer.

func text(s *C.char) string {
	if s == nil {
		return ""
	}
	return C.GoString(s)
}

func timeText(ms C.int64_t) *string {
	if ms == 0 {
		return nil
	}
	s := time.UnixMilli(int64(ms)).UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

func orNull(n C.uint32_t) *uint32 {
	if n == 0 {
		return nil
	}
	value := uint32(n)
	return &value
}

func orZero(n *uint32) C.uint32_t {
	if n == nil {
		return 0
	}
	return C.uint32_t(*n)
}

func gresMap(list *C.xce_gres_t, n C.size_t) map[string]uint32 {
	out := make(map[string]uint32, n)
	for _, gres := range unsafe.Slice(list, n) {
		out[text(gres.name)] = uint32(gres.count)
	}
	return out
}

func gresIndices(list *C.xce_gres_t, n C.size_t) map[string][]uint32 {
	out := make(map[string][]uint32, n)
	for _, gres := range unsafe.Slice(list, n) {
		if gres.nindices == 0 {
			continue
		}
		indices := make([]uint32, 0, gres.nindices)
		for _, index := range unsafe.Slice(gres.indices, gres.nindices) {
			indices = append(indices, uint32(index))
		}
		out[text(gres.name)] = indices
	}
	return out
}

func textList(list **C.char, n C.size_t) []string {
	out := make([]string, 0, n)
	for _, s := range unsafe.Slice(list, n) {
		out = append(out, text(s))
	}
	return out
}

func goJob(from *C.xce_job_t) model.Job {
	spec := &from.spec
	job := model.Job{
		ID: uint64(from.id), Name: text(spec.name), User: text(spec.user), Queue: text(spec.queue),
		State: model.Word(model.JobStates, int(from.state)), Desired: model.Word(model.Desired, int(from.desired)), Reason: text(from.reason),
		SubmitTime: timeText(from.submit_ms), EligibleTime: timeText(from.eligible_ms), StartTime: timeText(from.start_ms),
		EstimatedStartTime: timeText(from.estimated_start_ms),
		EndTime:            timeText(from.end_ms), Hosts: []string{}, Allocations: []model.Allocation{}, Attempt: uint32(from.attempt), Starts: uint32(from.starts),
		Usage:      model.Usage{CPUMs: uint64(from.usage.cpu_ms), PeakMemoryKB: uint64(from.usage.peak_memory_kb), WallMs: uint64(from.usage.wall_ms)},
		StdoutFile: text(from.stdout_file), StderrFile: text(from.stderr_file),
		CPUs: max(1, uint32(spec.cpus)), MemoryMB: uint64(spec.memory_mb), Gres: gresMap(spec.gres, spec.ngres), Nodes: max(1, uint32(spec.nodes)),
		Exclusive: bool(spec.exclusive), Requeue: bool(spec.requeue), Priority: int32(spec.priority), TimeLimitS: orNull(spec.time_limit_s),
		WarnSignal: uint32(spec.warn_signal), WarnBeforeS: uint32(spec.warn_before_s), ArrayLimit: uint32(spec.array_limit),
		Dependencies: []model.Dependency{}, SubmitKey: text(spec.submit_key), Comment: text(spec.comment), WorkDir: text(spec.work_dir),
		StdinPath: text(spec.stdin_path), StdoutPath: text(spec.stdout_path), StderrPath: text(spec.stderr_path), ModifyIndex: uint64(from.modify_index),
	}
	if from.array_id != 0 {
		array, index := uint64(from.array_id), uint32(from.array_index)
		job.ArrayID, job.ArrayIndex = &array, &index
	}
	if spec.step.job_id != 0 {
		owner := uint64(spec.step.job_id)
		job.StepOf = &owner
	}
	if from.state >= model.FirstEndedState {
		if code := int32(from.exit_code); code != 0 || from.start_ms != 0 {
			job.ExitCode = &code
		}
		job.ExitSignal = orNull(from.exit_signal)
	}
	for _, alloc := range unsafe.Slice(from.allocs, from.nallocs) {
		job.Hosts = append(job.Hosts, text(alloc.host))
		job.Allocations = append(job.Allocations, model.Allocation{Host: text(alloc.host), CPUs: uint32(alloc.cpus),
			MemoryMB: uint64(alloc.memory_mb), Gres: gresMap(alloc.gres, alloc.ngres), GresIndices: gresIndices(alloc.gres, alloc.ngres)})
	}
	for _, d := range unsafe.Slice(spec.dependencies, spec.ndependencies) {
		job.Dependencies = append(job.Dependencies, model.Dependency{Kind: model.Word(model.DependencyKinds, int(d.kind)), JobID: uint64(d.job_id)})
	}
	return job
}

func goJobDetail(from *C.xce_job_t) model.JobDetail {
	detail := model.JobDetail{Job: goJob(from), Args: textList(from.spec.args, from.spec.nargs), Env: textList(from.spec.env, from.spec.nenv)}
	if from.spec.script != nil {
		detail.Script = string(unsafe.Slice((*byte)(from.spec.script), from.spec.script_len))
	}
	return detail
}

func goHost(from *C.xce_host_t) model.Host {
	return model.Host{
		Name: text(from.attrs.name), State: model.Word(model.HostStates, int(from.state)), Drained: bool(from.drained), DrainReason: text(from.drain_reason),
		CPUs: uint32(from.attrs.cpus), UsedCPUs: uint32(from.used_cpus), MemoryMB: uint64(from.attrs.memory_mb), UsedMemoryMB: uint64(from.used_memory_mb),
		Gres: gresMap(from.attrs.gres, from.attrs.ngres), UsedGres: gresMap(from.used_gres, from.nused_gres), RunningJobs: uint32(from.running_jobs),
		Address: text(from.attrs.address), Version: text(from.attrs.version), JoinedTime: timeText(from.joined_ms), Fault: text(from.attrs.fault), LeaseMs: uint32(from.lease_ms), ModifyIndex: uint64(from.modify_index),
	}
}

func goQueue(from *C.xce_queue_t) model.Queue {
	return model.Queue{
		Name: text(from.name), Default: bool(from.is_default), Open: bool(from.open), Active: bool(from.active), Priority: int32(from.priority),
		DefaultTimeS: orNull(from.default_time_s), MaxTimeS: orNull(from.max_time_s), MaxRunning: orNull(from.max_running),
		MaxRunningPerUser: orNull(from.max_running_per_user), Pending: uint32(from.pending), Running: uint32(from.running), ModifyIndex: uint64(from.modify_index),
		MaxPendingPerUser: orNull(from.max_pending_per_user), MaxCPUsPerUser: orNull(from.max_cpus_per_user), Preemptible: bool(from.preemptible),
		AllowedUsers: textList(from.allowed_users, from.nallowed_users), AllowedGroups: textList(from.allowed_groups, from.nallowed_groups),
	}
}

func goCluster(from *C.xce_cluster_status_t) model.Cluster {
	cluster := model.Cluster{
		AnsweredBy: uint64(from.node_id), Role: text(from.role), Ready: bool(from.ready), Term: uint64(from.term), Commit: uint64(from.commit),
		Applied: uint64(from.applied), LastIndex: uint64(from.last_index), ClusterID: strconv.FormatUint(uint64(from.cluster_id), 10), Nodes: []model.Node{},
		UptimeMs: int64(from.uptime_ms), JobsPending: uint64(from.jobs_pending), JobsRunning: uint64(from.jobs_running),
		JobsFinished: uint64(from.jobs_finished), Sessions: uint64(from.sessions), LastElectionTime: timeText(from.last_election_ms),
		LastElectionTookMs: int64(from.last_election_took_ms), HeartbeatMs: uint32(from.heartbeat_ms), ElectionTimeoutMs: uint32(from.election_timeout_ms),
		Disk: text(from.disk), Scheduler: text(from.scheduler),
	}
	if leader := uint64(from.leader_id); leader != 0 {
		cluster.LeaderID = &leader
	}
	for _, node := range unsafe.Slice(from.nodes, from.nnodes) {
		n := model.Node{ID: uint64(node.id), Host: text(node.host), Port: uint16(node.port), Role: text(node.role), Connected: bool(node.connected),
			MatchIndex: uint64(node.match_index)}
		if ago := int64(node.last_contact_ms); ago >= 0 {
			n.LastContactMs = &ago
		}
		cluster.Nodes = append(cluster.Nodes, n)
	}
	return cluster
}

// goEvent converts what streams show; ok is false for events that concern other daemons.
func goReservation(from *C.xce_reservation_t) model.Reservation {
	return model.Reservation{
		Name: text(from.name), Hosts: textList(from.hosts, from.nhosts), CPUs: orNull(from.cpus), StartTime: timeText(from.start_ms),
		EndTime: timeText(from.end_ms), Users: textList(from.users, from.nusers), Queues: textList(from.queues, from.nqueues),
		Comment: text(from.comment), ModifyIndex: uint64(from.modify_index),
	}
}

func goEvent(from *C.xce_event_t) (event model.Event, ok bool) {
	event.Revision = uint64(from.revision)
	switch from.kind {
	case C.XCE_EVENT_JOB:
		job := goJob(from.job)
		event.Kind, event.Job = "job", &job
	case C.XCE_EVENT_JOB_REMOVED:
		event.Kind, event.ID = "job_removed", uint64(from.id)
	case C.XCE_EVENT_HOST:
		host := goHost(from.host)
		event.Kind, event.Host = "host", &host
	case C.XCE_EVENT_HOST_REMOVED:
		event.Kind, event.Name = "host_removed", text(from.name)
	case C.XCE_EVENT_QUEUE:
		queue := goQueue(from.queue)
		event.Kind, event.Queue = "queue", &queue
	case C.XCE_EVENT_QUEUE_REMOVED:
		event.Kind, event.Name = "queue_removed", text(from.name)
	case C.XCE_EVENT_RESERVATION:
		event.Kind, event.Name = "reservation", text(from.name)
	case C.XCE_EVENT_RESERVATION_REMOVED:
		event.Kind, event.Name = "reservation_removed", text(from.name)
	case C.XCE_EVENT_GAP:
		event.Kind = "gap"
	default:
		return event, false
	}
	return event, true
}
