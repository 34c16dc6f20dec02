package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

const defaultPage = 100

type listJobsInput struct {
	Conditional
	ID        []uint64 `query:"id" maxItems:"500" doc:"only these jobs, such as 7,8"`
	State     []string `query:"state" doc:"only these states, such as PENDING,RUNNING; active and ended are groups of them" example:"PENDING,RUNNING"`
	User      string   `query:"user" maxLength:"255"`
	Queue     string   `query:"queue" maxLength:"255"`
	Host      string   `query:"host" maxLength:"255" doc:"only jobs allocated to this host"`
	Name      string   `query:"name" maxLength:"1024"`
	ArrayID   uint64   `query:"array_id" doc:"only tasks of this array"`
	Since     string   `query:"ended_since" maxLength:"40" doc:"only jobs that ended at this time or later: RFC 3339, or how long ago, such as 24h" example:"24h"`
	Until     string   `query:"ended_until" maxLength:"40" doc:"only jobs that ended before this time"`
	Sort      string   `query:"sort" enum:"id,submit_time,start_time,end_time,name,user,queue,state,priority,cpus" default:"id" doc:"by any but id every job that matches is looked at; absent times come last"`
	Order     string   `query:"order" enum:"asc,desc" default:"asc"`
	Limit     uint32   `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	PageToken string   `query:"page_token" maxLength:"4096" doc:"next_page_token of the page before, of the same filter, sort and order; good for ever, over failovers"`
}

type jobList struct {
	Jobs          []model.Job `json:"jobs"`
	Total         uint64      `json:"total" doc:"jobs that match, on all pages; of several filters at once counted among the first 5000 candidates"`
	NextPageToken *string     `json:"next_page_token" doc:"null: the last page"`
	Revision      uint64      `json:"revision" doc:"log index that the page reflects"`
}

type jobInput struct {
	Conditional
	ID uint64 `path:"id" minimum:"1"`
}

type killInput struct {
	Once
	ID     uint64 `path:"id" minimum:"1"`
	Signal uint32 `query:"signal" maximum:"64" doc:"signal number; 0: TERM, then KILL"`
	Array  bool   `query:"array" doc:"every task of the array whose id this is"`
}

type actionInput struct {
	Once
	ID     uint64 `path:"id" minimum:"1"`
	Action string `path:"action" enum:"kill,suspend,resume,hold,release,requeue"`
	Array  bool   `query:"array" doc:"every task of the array whose id this is"`
}

type changeBody struct {
	Priority   *int32  `json:"priority,omitempty"`
	TimeLimitS *uint32 `json:"time_limit_s,omitempty" doc:"0: none"`
	Name       *string `json:"name,omitempty" minLength:"1" maxLength:"1024"`
	Queue      *string `json:"queue,omitempty" minLength:"1" maxLength:"255" doc:"only of a job that waits"`
}

type changeInput struct {
	Once
	ID   uint64 `path:"id" minimum:"1"`
	Body changeBody
}

type accepted struct {
	ID     uint64 `json:"id"`
	Action string `json:"action"`
}

type acceptedOutput struct{ Body accepted }

type outputInput struct {
	ID     uint64 `path:"id" minimum:"1"`
	Stream string `query:"stream" enum:"stdout,stderr" default:"stdout"`
	Offset uint64 `query:"offset"`
	Limit  uint32 `query:"limit" minimum:"1" maximum:"1048576" default:"65536" doc:"bytes"`
}

type outputOutput struct {
	ContentType  string `header:"Content-Type"`
	CacheControl string `header:"Cache-Control"`
	NextOffset   string `header:"X-Next-Offset" doc:"offset of what comes after this piece"`
	EOF          string `header:"X-End-Of-Output" doc:"true: the job has ended and this was the last piece"`
	Body         []byte
}

const noStore = "no-store"

func (s *Server) registerJobs(api huma.API) {
	op := func(id, method, path, summary string, need access, status int) huma.Operation {
		return operation(id, method, path, summary, "jobs", need, status)
	}
	submit := op("submit-job", http.MethodPost, "/api/v1/jobs", "Submit a job or an array", changes, http.StatusCreated)
	submit.MaxBodyBytes = s.options.BodyBytes
	submit.Description = "With an Idempotency-Key the request may be repeated without making a second job, also over restarts and failovers."
	submit.Responses["200"] = &huma.Response{Description: "an earlier request with this Idempotency-Key made the job", Content: map[string]*huma.MediaType{
		"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(submitted{}), true, "Submitted")}}}
	kill := op("kill-job", http.MethodDelete, "/api/v1/jobs/{id}", "Kill a job", changes, http.StatusAccepted)
	kill.Description = "Asks for the job's end; its state changes when its worker has done it."
	huma.Register(api, readable(op("list-jobs", http.MethodGet, "/api/v1/jobs", "List jobs", looks, http.StatusOK)), s.listJobs)
	past := readable(op("list-history", http.MethodGet, "/api/v1/history", "List ended jobs, as far back as the cluster keeps them", looks, http.StatusOK))
	past.Description = "The cluster may know ended jobs for longer than /api/v1/jobs lists them."
	huma.Register(api, past, s.listHistory)
	huma.Register(api, submit, s.submitJob)
	huma.Register(api, readable(op("get-job", http.MethodGet, "/api/v1/jobs/{id}", "One job in full", looks, http.StatusOK)), s.getJob)
	huma.Register(api, kill, s.killJob)
	huma.Register(api, op("modify-job", http.MethodPatch, "/api/v1/jobs/{id}", "Change priority, time limit, name or queue", changes, http.StatusAccepted),
		func(ctx context.Context, in *changeInput) (*acceptedOutput, error) { return s.modify(ctx, in, false) })
	huma.Register(api, op("control-job", http.MethodPost, "/api/v1/jobs/{id}/{action}", "Kill, suspend, resume, hold, release or requeue a job",
		changes, http.StatusAccepted), s.controlJob)
	output := op("get-job-output", http.MethodGet, "/api/v1/jobs/{id}/output", "What a job has written", looks, http.StatusOK)
	output.Responses["200"] = &huma.Response{Description: "bytes from offset on, as they are", Content: map[string]*huma.MediaType{
		"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	huma.Register(api, output, s.jobOutput)
}

func (in *listJobsInput) filter() (model.JobFilter, error) {
	filter := model.JobFilter{IDs: in.ID, User: in.User, Queue: in.Queue, Host: in.Host, Name: in.Name, ArrayID: in.ArrayID, Limit: in.Limit,
		Descending: in.Order == "desc"}
	if filter.Limit == 0 {
		filter.Limit = defaultPage
	}
	for _, text := range []string{in.User, in.Queue, in.Host, in.Name} {
		if strings.ContainsRune(text, 0) {
			return filter, model.Invalid("a filter must not contain a zero byte")
		}
	}
	var err error
	if filter.SinceMs, err = momentOf("ended_since", in.Since); err != nil {
		return filter, err
	}
	if filter.UntilMs, err = momentOf("ended_until", in.Until); err != nil {
		return filter, err
	}
	for _, word := range in.State {
		bits, err := stateBits(word)
		if err != nil {
			return filter, err
		}
		filter.States |= bits
	}
	return filter, nil
}

// momentOf reads a time in milliseconds since the epoch: RFC 3339, or how long ago.
func momentOf(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.UnixMilli() > 0 {
		return at.UnixMilli(), nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return max(1, time.Now().Add(-ago).UnixMilli()), nil
	}
	return 0, model.Invalid("%s=%s: write a time such as 2026-01-31T08:00:00Z, or how long ago, such as 24h", name, text)
}

func (s *Server) listJobs(ctx context.Context, in *listJobsInput) (*answer[jobList], error) {
	return s.list(ctx, in, false)
}

func (s *Server) listHistory(ctx context.Context, in *listJobsInput) (*answer[jobList], error) {
	return s.list(ctx, in, true)
}

func (s *Server) list(ctx context.Context, in *listJobsInput, history bool) (*answer[jobList], error) {
	filter, err := in.filter()
	if err != nil {
		return nil, problemOf(ctx, err, true)
	}
	filter.History = history
	page := s.pageByID
	if in.Sort != "id" && in.Sort != "" {
		page = s.pageSorted
	}
	about := func(event *model.Event) bool {
		switch {
		case event.Kind == "job_removed":
			return len(in.ID) == 0 || slices.Contains(in.ID, event.ID)
		case event.Job == nil:
			return false
		}
		return (len(in.ID) == 0 || slices.Contains(in.ID, event.Job.ID)) && (in.User == "" || event.Job.User == in.User) &&
			(in.ArrayID == 0 || event.Job.ArrayID != nil && *event.Job.ArrayID == in.ArrayID)
	}
	return poll(ctx, s, &in.Conditional, about, func() (reading[jobList], error) {
		body, err := page(ctx, in, filter)
		if err != nil {
			return reading[jobList]{}, err
		}
		if body.Jobs == nil {
			body.Jobs = []model.Job{}
		}
		content := body
		content.Revision = 0
		return reading[jobList]{body, content, body.Revision}, nil
	})
}

// pageByID takes the page as the controllers have it: their order is by id.
func (s *Server) pageByID(ctx context.Context, in *listJobsInput, filter model.JobFilter) (jobList, error) {
	if in.PageToken != "" {
		after, found := strings.CutPrefix(in.PageToken, in.Order+"-")
		id, err := strconv.ParseUint(after, 10, 64)
		if !found || err != nil {
			return jobList{}, badToken(in.PageToken)
		}
		filter.AfterID = id
	}
	page, err := s.backend.ListJobs(ctx, filter)
	if err != nil {
		return jobList{}, err
	}
	body := jobList{Jobs: page.Jobs, Total: page.Total, Revision: page.Revision}
	if page.NextAfterID != 0 {
		token := fmt.Sprintf("%s-%d", in.Order, page.NextAfterID)
		body.NextPageToken = &token
	}
	return body, nil
}

func badToken(token string) error {
	return model.Invalid("page_token %.40q is none of this listing; take next_page_token of the page before", token)
}

// stateBits of a state's name, or of a group of states.
func stateBits(word string) (uint32, error) {
	const active = 1<<model.FirstEndedState - 1
	switch strings.ToLower(word) {
	case "active":
		return active, nil
	case "ended":
		return (1<<len(model.JobStates) - 1) &^ active, nil
	}
	for i, state := range model.JobStates {
		if strings.EqualFold(word, state) {
			return 1 << i, nil
		}
	}
	return 0, model.Invalid("there is no job state %q; the states are %s; active and ended are groups of them", word, strings.Join(model.JobStates, ", "))
}

func (s *Server) getJob(ctx context.Context, in *jobInput) (*answer[model.JobDetail], error) {
	about := func(event *model.Event) bool {
		return event.Job != nil && event.Job.ID == in.ID || event.Kind == "job_removed" && event.ID == in.ID
	}
	return poll(ctx, s, &in.Conditional, about, func() (reading[model.JobDetail], error) {
		index := s.hub.Last()
		job, err := s.backend.GetJob(ctx, in.ID)
		return reading[model.JobDetail]{job, job, max(index, job.ModifyIndex)}, err
	})
}

func (s *Server) killJob(ctx context.Context, in *killInput) (*acceptedOutput, error) {
	ctx, err := in.context(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.backend.ControlJob(ctx, in.ID, model.Kill, in.Signal, in.Array); err != nil {
		return nil, problemOf(ctx, err, true)
	}
	return &acceptedOutput{accepted{in.ID, "kill"}}, nil
}

func (s *Server) controlJob(ctx context.Context, in *actionInput) (*acceptedOutput, error) {
	ctx, err := in.context(ctx)
	if err != nil {
		return nil, err
	}
	action := model.Actions[in.Action]
	if err := s.backend.ControlJob(ctx, in.ID, action, 0, in.Array); err != nil {
		// Without a key a second requeue would stop what the first one started.
		return nil, problemOf(ctx, err, action != model.Requeue || in.IdempotencyKey != "")
	}
	return &acceptedOutput{accepted{in.ID, in.Action}}, nil
}

func (s *Server) modify(ctx context.Context, in *changeInput, wholeArray bool) (*acceptedOutput, error) {
	ctx, err := in.context(ctx)
	if err != nil {
		return nil, err
	}
	change := model.JobChange(in.Body)
	if change == (model.JobChange{}) {
		return nil, problemOf(ctx, model.Invalid("nothing to change: give priority, time_limit_s, name or queue"), true)
	}
	for _, text := range []*string{change.Name, change.Queue} {
		if text != nil && strings.ContainsRune(*text, 0) {
			return nil, problemOf(ctx, model.Invalid("text must not contain a zero byte"), true)
		}
	}
	if err := s.backend.ModifyJob(ctx, in.ID, change, wholeArray); err != nil {
		return nil, problemOf(ctx, err, true)
	}
	return &acceptedOutput{accepted{in.ID, "modify"}}, nil
}

func (s *Server) jobOutput(ctx context.Context, in *outputInput) (*outputOutput, error) {
	limit := in.Limit
	if limit == 0 {
		limit = 65536
	}
	chunk, err := s.backend.JobLog(ctx, in.ID, in.Stream == "stderr", in.Offset, limit)
	if err != nil {
		return nil, problemOf(ctx, err, true)
	}
	data := chunk.Data
	if data == nil {
		data = []byte{}
	}
	return &outputOutput{ContentType: "text/plain; charset=utf-8", CacheControl: noStore, NextOffset: strconv.FormatUint(chunk.Offset+uint64(len(data)), 10),
		EOF: strconv.FormatBool(chunk.EOF), Body: data}, nil
}
