package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"xce.example/apiserver/model"
)

// A listing by another key than the id looks at every job that matches: at most this many, so that nobody keeps the controllers busy.
const maxScanned = 20000

// place is where a page of a sorted listing ended: its last job's key. It names no state of a server, so it holds over failovers.
type place struct {
	Sort  string `json:"s"`
	Order string `json:"o"`
	None  bool   `json:"n,omitempty"` // the key is absent
	Text  string `json:"t,omitempty"`
	Num   int64  `json:"i,omitempty"`
	ID    uint64 `json:"id"`
}

func (p place) token() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func placeOf(token string) (p place, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	return p, err == nil && json.Unmarshal(text, &p) == nil && p.ID != 0
}

func keyOf(job *model.Job, by string) place {
	p := place{ID: job.ID}
	text := func(value *string) {
		if p.None = value == nil; !p.None {
			p.Text = *value // of one format and zone: as text they sort as times
		}
	}
	switch by {
	case "submit_time":
		text(job.SubmitTime)
	case "start_time":
		text(job.StartTime)
	case "end_time":
		text(job.EndTime)
	case "name":
		p.Text = job.Name
	case "user":
		p.Text = job.User
	case "queue":
		p.Text = job.Queue
	case "state":
		p.Num = int64(slices.Index(model.JobStates, job.State))
	case "priority":
		p.Num = int64(job.Priority)
	case "cpus":
		p.Num = int64(job.CPUs) * int64(job.Nodes)
	}
	return p
}

// compare orders by key, then by id. What has no key comes last in either order.
func compare(a, b place, descending bool) int {
	if a.None != b.None {
		if a.None {
			return 1
		}
		return -1
	}
	order := cmp.Or(cmp.Compare(a.Num, b.Num), strings.Compare(a.Text, b.Text), cmp.Compare(a.ID, b.ID))
	if descending {
		return -order
	}
	return order
}

// scan gives every job that matches, or refuses when there are too many.
func (s *Server) scan(ctx context.Context, filter model.JobFilter) (jobs []model.Job, revision uint64, err error) {
	select {
	case s.scans <- struct{}{}:
		defer func() { <-s.scans }()
	case <-ctx.Done():
		return nil, 0, model.NotReady("the request was given up", 0)
	}
	filter.Limit, filter.AfterID, filter.Descending = 0, 0, false
	for {
		page, err := s.backend.ListJobs(ctx, filter)
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = page.Revision // what changed after the first page must count as changed
		}
		if jobs = append(jobs, page.Jobs...); len(jobs) > maxScanned {
			return nil, 0, model.Invalid("more than %d jobs match: sort by id, or filter by state, user or queue", maxScanned)
		}
		if filter.AfterID = page.NextAfterID; filter.AfterID == 0 {
			return jobs, revision, nil
		}
	}
}

// pageSorted takes all that match, and of these the page after the token's place.
func (s *Server) pageSorted(ctx context.Context, in *listJobsInput, filter model.JobFilter) (jobList, error) {
	var after *place
	if in.PageToken != "" {
		p, ok := placeOf(in.PageToken)
		if !ok || p.Sort != in.Sort || p.Order != in.Order {
			return jobList{}, badToken(in.PageToken)
		}
		after = &p
	}
	jobs, revision, err := s.scan(ctx, filter)
	if err != nil {
		return jobList{}, err
	}
	body := jobList{Total: uint64(len(jobs)), Revision: revision}
	keys := make([]place, 0, len(jobs))
	at := make(map[uint64]int, len(jobs))
	for i := range jobs {
		key := keyOf(&jobs[i], in.Sort)
		at[key.ID] = i
		if after == nil || compare(key, *after, filter.Descending) > 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b place) int { return compare(a, b, filter.Descending) })
	limit := min(len(keys), int(filter.Limit))
	for _, key := range keys[:limit] {
		body.Jobs = append(body.Jobs, jobs[at[key.ID]])
	}
	if limit < len(keys) {
		last := keys[limit-1]
		last.Sort, last.Order = in.Sort, in.Order
		token := last.token()
		body.NextPageToken = &token
	}
	return body, nil
}
