package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"xce.example/apiserver/model"
)

// A listing by another key than the id looks at every job that matches, page by page, and keeps no more than the page to be: any number may
// match. So long it may take, so that nobody keeps the controllers busy.
const scanWithin = 20 * time.Second

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

// best keeps the jobs that come first, `room` of them.
type best struct {
	room       int
	descending bool
	rows       []row // the first `room` are the best so far, in order, once it has been full
	full       bool
}

type row struct {
	key place
	job model.Job
}

func (b *best) add(key place, job *model.Job) {
	if b.full && compare(key, b.rows[b.room-1].key, b.descending) >= 0 {
		return
	}
	if b.rows = append(b.rows, row{key, *job}); len(b.rows) >= 2*b.room {
		b.prune()
	}
}

func (b *best) prune() {
	slices.SortFunc(b.rows, func(x, y row) int { return compare(x.key, y.key, b.descending) })
	if b.full = len(b.rows) >= b.room; b.full {
		b.rows = b.rows[:b.room]
	}
}

// scan calls each for every job that matches.
func (s *Server) scan(ctx context.Context, filter model.JobFilter, each func(job *model.Job)) (total, revision uint64, err error) {
	select {
	case s.scans <- struct{}{}:
		defer func() { <-s.scans }()
	case <-ctx.Done():
		return 0, 0, model.NotReady("the request was given up", 0)
	}
	began := time.Now()
	filter.Limit, filter.AfterID, filter.Descending = 0, 0, false
	for {
		page, err := s.backend.ListJobs(ctx, filter)
		if err != nil {
			return 0, 0, err
		}
		if revision == 0 {
			revision = page.Revision // what changed after the first page must count as changed
		}
		for i := range page.Jobs {
			each(&page.Jobs[i])
		}
		total += uint64(len(page.Jobs))
		if filter.AfterID = page.NextAfterID; filter.AfterID == 0 {
			return total, revision, nil
		}
		if time.Since(began) > s.scanWithin {
			return 0, 0, model.Invalid("sorting looked at %d jobs within %v, and more match: sort by id, or filter by state, user, queue or ended_since",
				total, s.scanWithin)
		}
	}
}

// pageSorted looks at all that match and takes the page after the token's place.
func (s *Server) pageSorted(ctx context.Context, in *listJobsInput, filter model.JobFilter) (jobList, error) {
	var after *place
	if in.PageToken != "" {
		p, ok := placeOf(in.PageToken)
		if !ok || p.Sort != in.Sort || p.Order != in.Order {
			return jobList{}, badToken(in.PageToken)
		}
		after = &p
	}
	limit := int(filter.Limit)
	first := best{room: limit + 1, descending: filter.Descending} // one more tells whether there is a next page
	total, revision, err := s.scan(ctx, filter, func(job *model.Job) {
		if key := keyOf(job, in.Sort); after == nil || compare(key, *after, filter.Descending) > 0 {
			first.add(key, job)
		}
	})
	if err != nil {
		return jobList{}, err
	}
	first.prune()
	body := jobList{Total: total, Revision: revision}
	for _, row := range first.rows[:min(limit, len(first.rows))] {
		body.Jobs = append(body.Jobs, row.job)
	}
	if limit < len(first.rows) {
		last := first.rows[limit-1].key
		last.Sort, last.Order = in.Sort, in.Order
		token := last.token()
		body.NextPageToken = &token
	}
	return body, nil
}
