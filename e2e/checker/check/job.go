package main

import (
	"fmt"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// jobState is the register that a submit key names. The zero value: there is no such job.
type jobState struct {
	id    uint64
	state string // "PENDING", "HELD", "KILLED"
}

// step applies op to a job: whether op may have had this answer now, and the state after it.
// An operation of unknown outcome may be applied in every state; porcupine puts one that was not
// applied after everything else, since it never returns.
func step(s jobState, op Op) (bool, jobState) {
	exists := s.state != ""
	if op.Outcome == "failed" {
		return true, s
	}
	switch op.Op {
	case "submit":
		return submit(s, op)
	case "info", "list":
		if op.State == "ABSENT" {
			return !exists, s
		}
		return exists && s.state == op.State && s.id == op.Job, s
	}
	after, valid, changes := control(s, op.Op)
	switch op.Outcome {
	case "unknown":
		return true, after
	case "ok":
		count := 0
		if changes {
			count = 1
		}
		return exists && s.id == op.Job && valid && op.Count == count, after
	case "refused":
		return exists && !valid, s
	case "absent":
		return !exists, s
	}
	return false, s
}

func submit(s jobState, op Op) (bool, jobState) {
	exists := s.state != ""
	made := jobState{op.Job, "PENDING"}
	if op.Hold {
		made.state = "HELD"
	}
	switch op.Outcome {
	case "ok":
		if exists { // made by an earlier attempt of somebody with the same body, and said so
			return op.Existing && s.id == op.Job, s
		}
		return true, made
	case "dup":
		return exists && s.id == op.Job, s
	case "unknown":
		if exists {
			return true, s
		}
		return true, made
	}
	return false, s
}

// control gives the job after hold, release or kill; whether its state allows that, and whether it
// is a change.
func control(s jobState, op string) (after jobState, valid, changes bool) {
	if s.state == "" {
		return s, false, false
	}
	to := map[string]string{"hold": "HELD", "release": "PENDING", "kill": "KILLED"}[op]
	if s.state == to {
		return s, true, false
	}
	if s.state == "KILLED" {
		return s, false, false
	}
	return jobState{s.id, to}, true, true
}

var jobModel = porcupine.Model{
	Init: func() any { return jobState{} },
	Step: func(state, input, _ any) (bool, any) {
		ok, after := step(state.(jobState), input.(Op))
		return ok, after
	},
}

// byKey splits a history into one of each job; a listing is a read of every job, those that are not
// in it too. ids tells each key's job, for submissions of unknown outcome.
func byKey(ops []Op, ids map[string]uint64) map[string][]Op {
	out := map[string][]Op{}
	for _, op := range ops {
		if op.Op == "list" {
			continue
		}
		if op.Op == "submit" && op.Outcome == "unknown" {
			op.Job = ids[op.Key]
		}
		out[op.Key] = append(out[op.Key], op)
	}
	for _, op := range ops {
		if op.Op != "list" {
			continue
		}
		shown := map[string]Row{}
		for _, row := range op.Jobs {
			shown[row.Key] = row
			if _, known := out[row.Key]; !known {
				out[row.Key] = nil
			}
		}
		for key := range out {
			one := op
			one.Jobs, one.Key, one.State = nil, key, "ABSENT"
			if row, ok := shown[key]; ok {
				one.Job, one.State = row.ID, row.State
			}
			out[key] = append(out[key], one)
		}
	}
	return out
}

// checkJobs checks each job's history for itself.
func checkJobs(ops []Op, ids map[string]uint64, limit time.Duration) []string {
	var wrong []string
	parts := byKey(ops, ids)
	keys := make([]string, 0, len(parts))
	for key := range parts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	end := time.Now().Add(limit)
	for _, key := range keys {
		var history []porcupine.Operation
		for _, op := range parts[key] {
			history = append(history, porcupine.Operation{
				ClientId: op.Client, Input: op, Call: op.Call, Return: op.Return})
		}
		switch porcupine.CheckOperationsTimeout(jobModel, history, max(time.Until(end), time.Millisecond)) {
		case porcupine.Illegal:
			wrong = append(wrong, fmt.Sprintf("job %d (key %s) is not linearizable:%s", ids[key], key, story(parts[key])))
		case porcupine.Unknown:
			wrong = append(wrong, fmt.Sprintf("job %d (key %s): undecided after %v", ids[key], key, limit))
		}
	}
	return wrong
}

// story tells a job's history for people, listings that repeat what was seen left out.
func story(ops []Op) string {
	sorted := append([]Op(nil), ops...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Call < sorted[j].Call })
	text, last := "", ""
	for _, op := range sorted {
		if op.Op == "list" && op.State == last {
			continue
		}
		if op.State != "" {
			last = op.State
		}
		end := "never"
		if op.Return != never {
			end = fmt.Sprintf("%.3f ms", float64(op.Return-sorted[0].Call)/1e6)
		}
		text += fmt.Sprintf("\n    %.3f ms .. %s client %d %s %s job %d %s count %d",
			float64(op.Call-sorted[0].Call)/1e6, end, op.Client, op.Op, op.Outcome, op.Job, op.State, op.Count)
	}
	return text
}
