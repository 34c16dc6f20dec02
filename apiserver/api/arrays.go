package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

const maxFailedShown = 1000

type arrayInput struct {
	Conditional
	ID uint64 `path:"id" minimum:"1" doc:"of the array's first task, as its submission gave it"`
}

type arrayActionInput struct {
	Once
	ID     uint64 `path:"id" minimum:"1"`
	Action string `path:"action" enum:"kill,suspend,resume,hold,release,requeue"`
}

type arrayKillInput struct {
	Once
	ID     uint64 `path:"id" minimum:"1"`
	Signal uint32 `query:"signal" maximum:"64" doc:"signal number; 0: TERM, then KILL"`
}

func (s *Server) registerArrays(api huma.API) {
	op := func(id, method, path, summary string, need access, status int) huma.Operation {
		return operation(id, method, path, summary, "arrays", need, status)
	}
	huma.Register(api, readable(op("get-array", http.MethodGet, "/api/v1/arrays/{id}", "An array as one thing: its tasks in sum", looks, http.StatusOK)), s.getArray)
	huma.Register(api, op("kill-array", http.MethodDelete, "/api/v1/arrays/{id}", "Kill all tasks of an array", changes, http.StatusAccepted),
		func(ctx context.Context, in *arrayKillInput) (*acceptedOutput, error) {
			return s.killJob(ctx, &killInput{Once: in.Once, ID: in.ID, Signal: in.Signal, Array: true})
		})
	huma.Register(api, op("modify-array", http.MethodPatch, "/api/v1/arrays/{id}", "Change all tasks that have not ended", changes, http.StatusAccepted),
		func(ctx context.Context, in *changeInput) (*acceptedOutput, error) { return s.modify(ctx, in, true) })
	huma.Register(api, op("control-array", http.MethodPost, "/api/v1/arrays/{id}/{action}", "Kill, suspend, resume, hold, release or requeue all tasks",
		changes, http.StatusAccepted), func(ctx context.Context, in *arrayActionInput) (*acceptedOutput, error) {
		return s.controlJob(ctx, &actionInput{Once: in.Once, ID: in.ID, Action: in.Action, Array: true})
	})
}

func (s *Server) getArray(ctx context.Context, in *arrayInput) (*answer[model.Array], error) {
	about := func(event *model.Event) bool {
		return event.Job != nil && event.Job.ArrayID != nil && *event.Job.ArrayID == in.ID
	}
	return poll(ctx, s, &in.Conditional, about, func() (reading[model.Array], error) {
		sum := model.ArraySum{}
		var revision uint64
		filter := model.JobFilter{ArrayID: in.ID}
		for {
			page, err := s.backend.ListJobs(ctx, filter)
			if err != nil {
				return reading[model.Array]{}, err
			}
			if revision == 0 {
				revision = page.Revision
			}
			for i := range page.Jobs {
				sum.Add(&page.Jobs[i], maxFailedShown)
			}
			if filter.AfterID = page.NextAfterID; filter.AfterID == 0 {
				break
			}
		}
		if sum.Array.Tasks == 0 {
			return reading[model.Array]{}, &model.Error{Status: model.StatusNoEnt, Code: "E_XCE_NOENT", Outcome: model.NotApplied,
				Message: "there is no array " + strconv.FormatUint(in.ID, 10) + "; one job is at /api/v1/jobs/" + strconv.FormatUint(in.ID, 10)}
		}
		array := sum.Result()
		return reading[model.Array]{array, array, revision}, nil
	})
}
