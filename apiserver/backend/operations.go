package backend

/*
#include <stdlib.h>
#include <xce/client.h>
*/
import "C"

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"xce.example/apiserver/model"
)

// The operations that requests need. Each is one libxce call through call(), which see.

// ListJobs gives one page of jobs in summary.
func (c *Client) ListJobs(ctx context.Context, filter model.JobFilter) (model.JobPage, error) {
	return call(ctx, c.caller, false, func(deadline time.Duration) (model.JobPage, error) {
		var a arena
		defer a.free()
		f := C.xce_job_filter_t{
			states: C.uint32_t(filter.States), user: a.text(filter.User), queue: a.text(filter.Queue), host: a.text(filter.Host), name: a.text(filter.Name),
			array_id: C.uint64_t(filter.ArrayID), after_id: C.uint64_t(filter.AfterID), limit: C.uint32_t(filter.Limit), descending: C.bool(filter.Descending),
			since_ms: C.int64_t(filter.SinceMs), until_ms: C.int64_t(filter.UntilMs),
		}
		if len(filter.IDs) > 0 {
			f.ids, f.nids = a.ids(filter.IDs), C.size_t(len(filter.IDs))
		}
		var page *C.xce_job_page_t
		if err := c.withThread(ctx, deadline, func() C.int {
			if filter.History {
				return C.xcecli_jobhist(c.ctx, &f, &page)
			}
			return C.xcecli_joblist(c.ctx, &f, &page)
		}); err != nil {
			return model.JobPage{}, err
		}
		defer C.xce_free_job_page(page)
		out := model.JobPage{Revision: uint64(page.revision), NextAfterID: uint64(page.next_after_id), Total: uint64(page.total), Jobs: []model.Job{}}
		jobs := unsafe.Slice(page.jobs, page.njobs)
		for i := range jobs {
			out.Jobs = append(out.Jobs, goJob(&jobs[i]))
		}
		return out, nil
	})
}

// GetJob gives one job in full.
func (c *Client) GetJob(ctx context.Context, id uint64) (model.JobDetail, error) {
	return call(ctx, c.caller, false, func(deadline time.Duration) (model.JobDetail, error) {
		var page *C.xce_job_page_t
		if err := c.withThread(ctx, deadline, func() C.int { return C.xcecli_jobinfo(c.ctx, C.uint64_t(id), &page) }); err != nil {
			return model.JobDetail{}, err
		}
		defer C.xce_free_job_page(page)
		if page.njobs == 0 {
			return model.JobDetail{}, &model.Error{Status: model.StatusNoEnt, Code: "E_XCE_NOENT", Message: fmt.Sprintf("there is no job %d", id)}
		}
		return goJobDetail(page.jobs), nil
	})
}

// SubmitJob submits exactly once however often libxce has to resend.
func (c *Client) SubmitJob(ctx context.Context, spec model.JobSpec) (model.Submitted, error) {
	return call(ctx, c.caller, true, func(deadline time.Duration) (model.Submitted, error) {
		var a arena
		defer a.free()
		var s C.xce_job_spec_t
		C.xce_job_spec_init(&s)
		fillSpec(&a, &spec, &s)
		var out C.xce_submitted_t
		if err := c.withThread(ctx, deadline, func() C.int { return C.xcecli_jobsub(c.ctx, &s, &out) }); err != nil {
			return model.Submitted{}, err
		}
		return model.Submitted{JobID: uint64(out.job_id), Count: uint32(out.count), Existing: bool(out.existing)}, nil
	})
}

func fillSpec(a *arena, spec *model.JobSpec, s *C.xce_job_spec_t) {
	s.name, s.user, s.queue = a.text(spec.Name), a.text(spec.User), a.text(spec.Queue)
	s.uid, s.gid = C.uint32_t(spec.UID), C.uint32_t(spec.GID)
	if spec.Script != "" {
		s.script, s.script_len = unsafe.Pointer(a.text(spec.Script)), C.size_t(len(spec.Script))
	}
	s.args, s.nargs = a.texts(spec.Args)
	s.env, s.nenv = a.texts(spec.Env)
	s.work_dir, s.stdin_path, s.stdout_path, s.stderr_path = a.text(spec.WorkDir), a.text(spec.StdinPath), a.text(spec.StdoutPath), a.text(spec.StderrPath)
	s.cpus, s.memory_mb, s.nodes = C.uint32_t(spec.CPUs), C.uint64_t(spec.MemoryMB), C.uint32_t(spec.Nodes)
	s.gres, s.ngres = a.gres(spec.Gres)
	s.exclusive, s.hold, s.requeue = C.bool(spec.Exclusive), C.bool(spec.Hold), C.bool(spec.Requeue)
	s.time_limit_s, s.warn_signal, s.warn_before_s = C.uint32_t(spec.TimeLimitS), C.uint32_t(spec.WarnSignal), C.uint32_t(spec.WarnBeforeS)
	s.priority, s.submit_key, s.comment = C.int32_t(spec.Priority), a.text(spec.SubmitKey), a.text(spec.Comment)
	s.array_limit = C.uint32_t(spec.ArrayLimit)
	s.step.job_id = C.uint64_t(spec.StepOf)
	s.step.hosts, s.step.nhosts = a.texts(spec.StepHosts)
	if len(spec.Array) > 0 {
		indices := array[C.uint32_t](a, len(spec.Array))
		for i, index := range spec.Array {
			indices[i] = C.uint32_t(index)
		}
		s.array, s.narray = &indices[0], C.size_t(len(indices))
	}
	if len(spec.Dependencies) > 0 {
		list := array[C.xce_dependency_t](a, len(spec.Dependencies))
		for i, d := range spec.Dependencies {
			list[i].kind = C.xce_dependency_kind_t(max(0, slices.Index(model.DependencyKinds, d.Kind)))
			list[i].job_id = C.uint64_t(d.JobID)
		}
		s.dependencies, s.ndependencies = &list[0], C.size_t(len(list))
	}
}

// ControlJob does an action to a job; wholeArray: to every task of the array whose first id it is. signal is for Kill; 0: TERM, then KILL.
func (c *Client) ControlJob(ctx context.Context, id uint64, action model.Action, signal uint32, wholeArray bool) error {
	_, err := call(ctx, c.caller, true, func(deadline time.Duration) (struct{}, error) {
		ids := [1]C.uint64_t{C.uint64_t(id)}
		return struct{}{}, c.write(ctx, deadline, func() C.int {
			return C.xcecli_jobctrl(c.ctx, &ids[0], 1, C.xce_jobctrl_action_t(action), C.uint32_t(signal), C.bool(wholeArray))
		})
	})
	return err
}

// ModifyJob changes what change names; wholeArray: of every task of the array whose first id it is.
func (c *Client) ModifyJob(ctx context.Context, id uint64, change model.JobChange, wholeArray bool) error {
	_, err := call(ctx, c.caller, true, func(deadline time.Duration) (struct{}, error) {
		var a arena
		defer a.free()
		var fields C.xce_job_spec_t
		C.xce_job_spec_init(&fields)
		mask := C.uint32_t(0)
		if change.Priority != nil {
			fields.priority, mask = C.int32_t(*change.Priority), mask|1
		}
		if change.TimeLimitS != nil {
			fields.time_limit_s, mask = C.uint32_t(*change.TimeLimitS), mask|2
		}
		if change.Name != nil {
			fields.name, mask = a.text(*change.Name), mask|4
		}
		if change.Queue != nil {
			fields.queue, mask = a.text(*change.Queue), mask|8
		}
		if wholeArray {
			mask |= C.XCE_MODIFY_WHOLE_ARRAY
		}
		return struct{}{}, c.write(ctx, deadline, func() C.int {
			return C.xcecli_jobmodify(c.ctx, a.ids([]uint64{id}), 1, &fields, mask)
		})
	})
	return err
}

// ControlQueue does an action to a queue; Create takes its settings from queue, Update those of the fields in mask, the others only its name.
func (c *Client) ControlQueue(ctx context.Context, action model.QueueAction, queue model.Queue, mask uint32) error {
	_, err := call(ctx, c.caller, true, func(deadline time.Duration) (struct{}, error) {
		var a arena
		defer a.free()
		q := C.xce_queue_t{
			name: a.text(queue.Name), priority: C.int32_t(queue.Priority), default_time_s: orZero(queue.DefaultTimeS), max_time_s: orZero(queue.MaxTimeS),
			max_running: orZero(queue.MaxRunning), max_running_per_user: orZero(queue.MaxRunningPerUser), open: C.bool(queue.Open),
			active: C.bool(queue.Active), is_default: C.bool(queue.Default), max_pending_per_user: orZero(queue.MaxPendingPerUser),
			max_cpus_per_user: orZero(queue.MaxCPUsPerUser), preemptible: C.bool(queue.Preemptible),
		}
		q.allowed_users, q.nallowed_users = a.texts(queue.AllowedUsers)
		q.allowed_groups, q.nallowed_groups = a.texts(queue.AllowedGroups)
		return struct{}{}, c.write(ctx, deadline, func() C.int {
			if action == model.QueueUpdate {
				return C.xcecli_queuemodify(c.ctx, &q, C.uint32_t(mask))
			}
			return C.xcecli_queuectrl(c.ctx, C.xce_queue_action_t(action), &q)
		})
	})
	return err
}

// ControlHost does an action to a host; reason is for draining.
func (c *Client) ControlHost(ctx context.Context, action model.HostAction, host, reason string) error {
	_, err := call(ctx, c.caller, true, func(deadline time.Duration) (struct{}, error) {
		var a arena
		defer a.free()
		return struct{}{}, c.write(ctx, deadline, func() C.int {
			return C.xcecli_hostctrl(c.ctx, C.xce_host_action_t(action), a.text(host), a.text(reason))
		})
	})
	return err
}

// ListUsers says what each user has in the cluster.
func (c *Client) ListUsers(ctx context.Context) ([]model.UserUse, error) {
	return call(ctx, c.caller, false, func(deadline time.Duration) ([]model.UserUse, error) {
		var list *C.xce_user_t
		var n C.size_t
		if err := c.withThread(ctx, deadline, func() C.int { return C.xcecli_userlist(c.ctx, &list, &n) }); err != nil {
			return nil, err
		}
		defer C.xce_free_users(list, n)
		out := make([]model.UserUse, 0, n)
		for _, user := range unsafe.Slice(list, n) {
			out = append(out, model.UserUse{Name: text(user.name), Pending: uint32(user.pending), Running: uint32(user.running),
				Finished: uint64(user.finished), CPUMs: uint64(user.cpu_ms)})
		}
		return out, nil
	})
}

// ControlMember adds, removes or replaces a controller (host and port: where it is found), or hands the primary role to it; 0: to the one that
// suits best. What has begun goes on by itself when the deadline passes.
func (c *Client) ControlMember(ctx context.Context, action model.MemberAction, id uint64, host string, port uint16) error {
	_, err := call(ctx, c.caller, true, func(deadline time.Duration) (struct{}, error) {
		var a arena
		defer a.free()
		return struct{}{}, c.withThread(ctx, deadline, func() C.int {
			return C.xcecli_memberctrl(c.ctx, C.xce_member_action_t(action), C.uint64_t(id), a.text(host), C.uint16_t(port))
		})
	})
	return err
}

// JobLog gives a piece of a job's output, through its controller from its worker.
func (c *Client) JobLog(ctx context.Context, id uint64, stderr bool, offset uint64, limit uint32) (model.LogChunk, error) {
	return call(ctx, c.caller, false, func(deadline time.Duration) (model.LogChunk, error) {
		stream := C.xce_stream_t(C.XCE_STDOUT)
		if stderr {
			stream = C.XCE_STDERR
		}
		var chunk *C.xce_log_chunk_t
		if err := c.withThread(ctx, deadline, func() C.int {
			return C.xcecli_joblog(c.ctx, C.uint64_t(id), stream, C.uint64_t(offset), C.uint32_t(limit), &chunk)
		}); err != nil {
			return model.LogChunk{}, err
		}
		defer C.xce_free_log_chunk(chunk)
		if status := int(max(chunk.status, -chunk.status)); status != 0 {
			e := &model.Error{Status: status, Code: C.GoString(C.xce_errname(C.int(status))), Message: text(chunk.message)}
			if e.Message == "" {
				e.Message = statusText(status)
			}
			return model.LogChunk{}, e
		}
		out := model.LogChunk{Offset: uint64(chunk.offset), EOF: bool(chunk.eof)}
		if chunk.len > 0 {
			out.Data = C.GoBytes(unsafe.Pointer(chunk.data), C.int(chunk.len))
		}
		return out, nil
	})
}

// ListHosts gives all hosts.
func (c *Client) ListHosts(ctx context.Context) ([]model.Host, error) {
	return call(ctx, c.caller, false, func(deadline time.Duration) ([]model.Host, error) {
		var list *C.xce_host_t
		var n C.size_t
		if err := c.withThread(ctx, deadline, func() C.int { return C.xcecli_workerlist(c.ctx, &list, &n) }); err != nil {
			return nil, err
		}
		defer C.xce_free_hosts(list, n)
		out := make([]model.Host, 0, n)
		hosts := unsafe.Slice(list, n)
		for i := range hosts {
			out = append(out, goHost(&hosts[i]))
		}
		return out, nil
	})
}

// ListReservations gives all reservations.
func (c *Client) ListReservations(ctx context.Context) ([]model.Reservation, error) {
	return call(ctx, c.caller, false, func(deadline time.Duration) ([]model.Reservation, error) {
		var list *C.xce_reservation_t
		var n C.size_t
		if err := c.withThread(ctx, deadline, func() C.int { return C.xcecli_reservationlist(c.ctx, &list, &n) }); err != nil {
			return nil, err
		}
		defer C.xce_free_reservations(list, n)
		out := make([]model.Reservation, 0, n)
		reservations := unsafe.Slice(list, n)
		for i := range reservations {
			out = append(out, goReservation(&reservations[i]))
		}
		return out, nil
	})
}

// ListQueues gives all queues.
func (c *Client) ListQueues(ctx context.Context) ([]model.Queue, error) {
	return call(ctx, c.caller, false, func(deadline time.Duration) ([]model.Queue, error) {
		var list *C.xce_queue_t
		var n C.size_t
		if err := c.withThread(ctx, deadline, func() C.int { return C.xcecli_queuelist(c.ctx, &list, &n) }); err != nil {
			return nil, err
		}
		defer C.xce_free_queues(list, n)
		out := make([]model.Queue, 0, n)
		queues := unsafe.Slice(list, n)
		for i := range queues {
			out = append(out, goQueue(&queues[i]))
		}
		return out, nil
	})
}

// ClusterStatus gives the controllers' state.
func (c *Client) ClusterStatus(ctx context.Context) (model.Cluster, error) {
	return call(ctx, c.caller, false, func(deadline time.Duration) (model.Cluster, error) {
		var status *C.xce_cluster_status_t
		if err := c.withThread(ctx, deadline, func() C.int { return C.xcecli_clusterstatus(c.ctx, &status) }); err != nil {
			return model.Cluster{}, err
		}
		defer C.xce_free_cluster_status(status)
		return goCluster(status), nil
	})
}
