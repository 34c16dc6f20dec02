package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Row is one job of a listing: id, key, state.
type Row struct {
	ID    uint64
	Key   string
	State string
}

// UnmarshalJSON reads [id, key, state].
func (r *Row) UnmarshalJSON(data []byte) error {
	parts := []any{&r.ID, &r.Key, &r.State}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) != 3 {
		return fmt.Errorf("a row has 3 parts, not %d", len(parts))
	}
	return nil
}

// Op is one line of a history; e2e/checker/workload.h tells what each field means.
type Op struct {
	Client   int    `json:"client"`
	Op       string `json:"op"`
	Call     int64  `json:"call"`
	Return   int64  `json:"return"`
	Outcome  string `json:"outcome"`
	Key      string `json:"key"`
	Hold     bool   `json:"hold"`
	Job      uint64 `json:"job"`
	Existing bool   `json:"existing"`
	Count    int    `json:"count"`
	State    string `json:"state"`
	Jobs     []Row  `json:"jobs"`
}

// never is when an operation of unknown outcome returns: it may be applied at any time, or not at all.
const never = math.MaxInt64

// read takes a history, one operation a line.
func read(from io.Reader) ([]Op, error) {
	var ops []Op
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		var op Op
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if op.Return < op.Call {
			return nil, fmt.Errorf("line %d: it returns before it is called", n)
		}
		if op.Outcome == "unknown" {
			op.Return = never
		}
		ops = append(ops, op)
	}
	return ops, lines.Err()
}

// bound gives each submission of unknown outcome that somebody saw the effect of a time by which it
// was applied, the end of the first sight of it, and leaves out those that nobody saw: they may be
// taken as not applied. The meaning stays, and the search gets small.
func bound(ops []Op) []Op {
	seen := map[string]int64{}
	see := func(key string, at int64) {
		if first, ok := seen[key]; !ok || at < first {
			seen[key] = at
		}
	}
	unknown := map[string]int{}
	for _, op := range ops {
		switch {
		case op.Op == "list":
			for _, row := range op.Jobs {
				see(row.Key, op.Return)
			}
		case op.Op == "submit" && op.Outcome == "unknown":
			unknown[op.Key]++
		case op.Outcome != "unknown" && op.Outcome != "failed" && op.State != "ABSENT" && op.Outcome != "absent":
			see(op.Key, op.Return)
		}
	}
	var out []Op
	for _, op := range ops {
		if op.Op == "submit" && op.Outcome == "unknown" {
			at, ok := seen[op.Key]
			if !ok {
				continue
			}
			// With other submissions of the key about, another one may be what was seen.
			if op.Call < at && unknown[op.Key] == 1 && !answered(ops, op.Key) {
				op.Return = at
			}
		}
		out = append(out, op)
	}
	return out
}

// answered tells whether some submission of the key made the job by its own word.
func answered(ops []Op, key string) bool {
	for _, op := range ops {
		if op.Op == "submit" && op.Key == key && op.Outcome == "ok" {
			return true
		}
	}
	return false
}
