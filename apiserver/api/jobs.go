package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

const defaultPage = 100

type listJobsInput struct {
	State     []string `query:"state" doc:"only these states, such as PENDING,RUNNING" example:"PENDING,RUNNING"`
	User      string   `query:"user" maxLength:"255"`
	Queue     string   `query:"queue" maxLength:"255"`
	Host      string   `query:"host" maxLength:"255" doc:"only jobs allocated to this host"`
	Name      string   `query:"name" maxLength:"1024"`
	ArrayID   uint64   `query:"array_id" doc:"only tasks of this array"`
	Limit     uint32   `query:"limit" minimum:"1" maximum:"10000" default:"100"`
	Order     string   `query:"order" enum:"asc,desc" default:"asc" doc:"by id"`
	PageToken string   `query:"page_token" maxLength:"64" doc:"next_page_token of the page before"`
}

type jobList struct {
	Jobs          []model.Job `json:"jobs"`
	Total         uint64      `json:"total" doc:"jobs that match, on all pages"`
	NextPageToken *string     `json:"next_page_token" doc:"null: the last page"`
	Revision      uint64      `json:"revision" doc:"log index that the page reflects"`
}

type listJobsOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         jobList
}

type jobInput struct {
	ID uint64 `path:"id" minimum:"1"`
}

type jobOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         model.JobDetail
}

type killInput struct {
	ID     uint64 `path:"id" minimum:"1"`
	Signal uint32 `query:"signal" maximum:"64" doc:"signal number; 0: TERM, then KILL"`
	Array  bool   `query:"array" doc:"every task of the array whose id this is"`
}

type actionInput struct {
	ID     uint64 `path:"id" minimum:"1"`
	Action string `path:"action" enum:"suspend,resume,hold,release,requeue"`
	Array  bool   `query:"array" doc:"every task of the array whose id this is"`
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
	op := func(id, method, path, summary string, status int) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{"jobs"}, DefaultStatus: status}
	}
	submit := op("submit-job", http.MethodPost, "/api/v1/jobs", "Submit a job or an array", http.StatusCreated)
	submit.MaxBodyBytes = maxBodyBytes
	submit.Description = "With an Idempotency-Key the request may be repeated without making a second job, also over restarts and failovers."
	kill := op("kill-job", http.MethodDelete, "/api/v1/jobs/{id}", "Kill a job", http.StatusAccepted)
	kill.Description = "Asks for the job's end; its state changes when its worker has done it."
	huma.Register(api, op("list-jobs", http.MethodGet, "/api/v1/jobs", "List jobs", http.StatusOK), s.listJobs)
	huma.Register(api, submit, s.submitJob)
	huma.Register(api, op("get-job", http.MethodGet, "/api/v1/jobs/{id}", "One job in full", http.StatusOK), s.getJob)
	huma.Register(api, kill, s.killJob)
	huma.Register(api, op("control-job", http.MethodPost, "/api/v1/jobs/{id}/{action}", "Suspend, resume, hold, release or requeue a job",
		http.StatusAccepted), s.controlJob)
	huma.Register(api, op("get-job-output", http.MethodGet, "/api/v1/jobs/{id}/output", "What a job has written", http.StatusOK), s.jobOutput)
}

func (s *Server) listJobs(ctx context.Context, in *listJobsInput) (*listJobsOutput, error) {
	filter := model.JobFilter{User: in.User, Queue: in.Queue, Host: in.Host, Name: in.Name, ArrayID: in.ArrayID, Limit: in.Limit, Descending: in.Order == "desc"}
	if filter.Limit == 0 {
		filter.Limit = defaultPage
	}
	for _, text := range []string{in.User, in.Queue, in.Host, in.Name} {
		if strings.ContainsRune(text, 0) {
			return nil, problemOf(ctx, model.Invalid("a filter must not contain a zero byte"), true)
		}
	}
	for _, word := range in.State {
		bit, err := stateBit(word)
		if err != nil {
			return nil, problemOf(ctx, err, true)
		}
		filter.States |= bit
	}
	if in.PageToken != "" {
		after, found := strings.CutPrefix(in.PageToken, in.Order+"-")
		id, err := strconv.ParseUint(after, 10, 64)
		if !found || err != nil {
			return nil, problemOf(ctx, model.Invalid("page_token %q is none of this listing; take next_page_token of the page before", in.PageToken), true)
		}
		filter.AfterID = id
	}
	page, err := s.backend.ListJobs(ctx, filter)
	if err != nil {
		return nil, problemOf(ctx, err, true)
	}
	body := jobList{Jobs: page.Jobs, Total: page.Total, Revision: page.Revision}
	if page.NextAfterID != 0 {
		token := fmt.Sprintf("%s-%d", in.Order, page.NextAfterID)
		body.NextPageToken = &token
	}
	if body.Jobs == nil {
		body.Jobs = []model.Job{}
	}
	return &listJobsOutput{CacheControl: noStore, Body: body}, nil
}

func stateBit(word string) (uint32, error) {
	for i, state := range model.JobStates {
		if strings.EqualFold(word, state) {
			return 1 << i, nil
		}
	}
	return 0, model.Invalid("there is no job state %q; the states are %s", word, strings.Join(model.JobStates, ", "))
}

func (s *Server) getJob(ctx context.Context, in *jobInput) (*jobOutput, error) {
	job, err := s.backend.GetJob(ctx, in.ID)
	if err != nil {
		return nil, problemOf(ctx, err, true)
	}
	return &jobOutput{CacheControl: noStore, Body: job}, nil
}

func (s *Server) killJob(ctx context.Context, in *killInput) (*acceptedOutput, error) {
	if err := s.backend.ControlJob(ctx, in.ID, model.Kill, in.Signal, in.Array); err != nil {
		return nil, problemOf(ctx, err, true)
	}
	return &acceptedOutput{accepted{in.ID, "kill"}}, nil
}

func (s *Server) controlJob(ctx context.Context, in *actionInput) (*acceptedOutput, error) {
	actions := map[string]model.Action{"suspend": model.Suspend, "resume": model.Resume, "hold": model.Hold, "release": model.Release, "requeue": model.Requeue}
	action := actions[in.Action]
	if err := s.backend.ControlJob(ctx, in.ID, action, 0, in.Array); err != nil {
		return nil, problemOf(ctx, err, action != model.Requeue) // a second requeue would stop what the first one started
	}
	return &acceptedOutput{accepted{in.ID, in.Action}}, nil
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
