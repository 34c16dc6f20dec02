package main

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// identities gives the job of each key, and what contradicts "ids are unique, a key is one job, and
// no job is there that nobody submitted".
func identities(ops []Op) (map[string]uint64, []string) {
	ids, keys := map[string]uint64{}, map[uint64]string{}
	called := map[string]int64{}
	var wrong []string
	for _, op := range ops {
		if first, ok := called[op.Key]; op.Op == "submit" && op.Outcome != "failed" && (!ok || op.Call < first) {
			called[op.Key] = op.Call
		}
	}
	told := map[string]bool{}
	complain := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !told[text] {
			told[text] = true
			wrong = append(wrong, text)
		}
	}
	pair := func(key string, id uint64, at int64) {
		if id == 0 {
			return
		}
		if first, ok := called[key]; !ok || at < first {
			complain("job %d has key %s, which nobody had submitted", id, key)
		}
		if other, ok := ids[key]; ok && other != id {
			complain("key %s is both job %d and job %d", key, other, id)
		} else {
			ids[key] = id
		}
		if other, ok := keys[id]; ok && other != key {
			complain("job %d has both key %s and key %s", id, other, key)
		} else {
			keys[id] = key
		}
	}
	for _, op := range ops {
		if op.Op == "list" {
			in := map[string]bool{}
			for _, row := range op.Jobs {
				if in[row.Key] {
					complain("a listing has key %s twice", row.Key)
				}
				in[row.Key] = true
				pair(row.Key, row.ID, op.Return)
			}
		} else if op.Outcome != "unknown" {
			pair(op.Key, op.Job, op.Return)
		}
	}
	return ids, wrong
}

// setOp is an operation on the set of all jobs: one job is added, or the whole set is read. A set is
// a string of '0' and '1', one for each key.
type setOp struct {
	add  int    // number of the key, or -1
	read string // the set that was read
}

var setModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		set, op := state.(string), input.(setOp)
		if op.add < 0 {
			return op.read == set || set == "" && !strings.Contains(op.read, "1"), set
		}
		for len(set) <= op.add {
			set += "0"
		}
		return true, set[:op.add] + "1" + set[op.add+1:]
	},
}

// checkSet checks that listings, each as a whole, are the set of jobs at one moment: they contain
// what was submitted before them, nothing from after them, and agree on an order with each other.
func checkSet(ops []Op, limit time.Duration) []string {
	number, total := map[string]int{}, 0
	for _, op := range ops {
		if _, ok := number[op.Key]; op.Op == "submit" && !ok {
			number[op.Key] = total
			total++
		}
	}
	empty := strings.Repeat("0", total)
	made := earliest(ops)
	var history []porcupine.Operation
	for key, span := range made {
		history = append(history, porcupine.Operation{Input: setOp{add: number[key]}, Call: span[0], Return: span[1]})
	}
	var wrong []string
	for _, op := range ops {
		if op.Op != "list" {
			continue
		}
		set, in := []byte(empty), map[string]bool{}
		for _, row := range op.Jobs {
			in[row.Key] = true
			if n, ok := number[row.Key]; ok {
				set[n] = '1'
			}
		}
		for key, span := range made {
			if span[1] < op.Call && !in[key] {
				wrong = append(wrong, fmt.Sprintf(
					"key %s was there before a listing of client %d began, which has not got it", key, op.Client))
			}
		}
		history = append(history, porcupine.Operation{ClientId: op.Client, Input: setOp{-1, string(set)}, Call: op.Call, Return: op.Return})
	}
	if len(wrong) > 0 {
		sort.Strings(wrong)
		return wrong
	}
	model := setModel
	model.Init = func() any { return empty }
	switch porcupine.CheckOperationsTimeout(model, history, limit) {
	case porcupine.Illegal:
		wrong = append(wrong, "the listings have no common order: they are not linearizable as a whole")
	case porcupine.Unknown:
		wrong = append(wrong, fmt.Sprintf("the listings: undecided after %v", limit))
	}
	return wrong
}

// earliest gives for each key that became a job the time in which that happened: after its first
// submission was called, before anybody had word of it.
func earliest(ops []Op) map[string][2]int64 {
	called, seen := map[string]int64{}, map[string]int64{}
	note := func(to map[string]int64, key string, at int64) {
		if old, ok := to[key]; !ok || at < old {
			to[key] = at
		}
	}
	for _, op := range ops {
		switch {
		case op.Op == "list":
			for _, row := range op.Jobs {
				note(seen, row.Key, op.Return)
			}
		case op.Outcome == "failed":
		case op.Op == "submit":
			note(called, op.Key, op.Call)
			if op.Outcome == "ok" || op.Outcome == "dup" {
				note(seen, op.Key, op.Return)
			}
		case op.Outcome == "ok" && op.State != "ABSENT":
			note(seen, op.Key, op.Return)
		}
	}
	out := map[string][2]int64{}
	for key, at := range seen {
		if from, ok := called[key]; ok && from <= at {
			out[key] = [2]int64{from, at}
		}
	}
	return out
}
