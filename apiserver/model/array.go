package model

import (
	"sort"
	"strconv"
	"strings"
)

// MaxArrayTasks is the number of tasks that one submission may ask for.
const MaxArrayTasks = 100000

// ParseArray reads "0-9", "1,3,5", "0-9:2", "0-99%4" and mixtures of these: the indices, ascending, each once, and how many tasks may
// run at once (0: any).
func ParseArray(text string) ([]uint32, uint32, error) {
	list, limitText, limited := strings.Cut(text, "%")
	var limit uint64
	if limited {
		var err error
		if limit, err = strconv.ParseUint(limitText, 10, 32); err != nil || limit == 0 {
			return nil, 0, Invalid("array %q: after %% comes how many tasks may run at once, such as 0-99%%4", text)
		}
	}
	var indices []uint32
	for _, piece := range strings.Split(list, ",") {
		first, last, step, ok := parseRange(strings.TrimSpace(piece))
		if !ok {
			return nil, 0, Invalid("array %q: %q is neither an index nor a range; write 0-9, 1,3,5 or 0-9:2", text, piece)
		}
		if (last-first)/step+1+uint64(len(indices)) > MaxArrayTasks {
			return nil, 0, Invalid("array %q asks for more than %d tasks", text, MaxArrayTasks)
		}
		for i := first; i <= last; i += step {
			indices = append(indices, uint32(i))
		}
	}
	indices, err := SortIndices(indices)
	return indices, uint32(limit), err
}

// SortIndices orders array indices and drops repeated ones.
func SortIndices(indices []uint32) ([]uint32, error) {
	if len(indices) > MaxArrayTasks {
		return nil, Invalid("an array may have at most %d tasks", MaxArrayTasks)
	}
	sort.Slice(indices, func(a, b int) bool { return indices[a] < indices[b] })
	kept := indices[:0]
	for i, index := range indices {
		if i == 0 || index != kept[len(kept)-1] {
			kept = append(kept, index)
		}
	}
	return kept, nil
}

func parseRange(text string) (first, last, step uint64, ok bool) {
	span, stepText, stepped := strings.Cut(text, ":")
	firstText, lastText, ranged := strings.Cut(span, "-")
	first, err := strconv.ParseUint(firstText, 10, 32)
	if err != nil {
		return 0, 0, 0, false
	}
	last, step = first, 1
	if ranged {
		if last, err = strconv.ParseUint(lastText, 10, 32); err != nil || last < first {
			return 0, 0, 0, false
		}
	}
	if stepped {
		if step, err = strconv.ParseUint(stepText, 10, 32); err != nil || step == 0 || !ranged {
			return 0, 0, 0, false
		}
	}
	return first, last, step, true
}
