package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

type queueList struct {
	Queues []model.Queue `json:"queues"`
}

type queuesInput struct{ Conditional }

type queueInput struct {
	Conditional
	Name string `path:"name" maxLength:"255"`
}

// QueueSettings is what may be set of a queue. What is not given is left as it is, or at its default in a new queue.
type QueueSettings struct {
	Priority          *int32  `json:"priority,omitempty"`
	DefaultTimeS      *uint32 `json:"default_time_s,omitempty" doc:"0: none"`
	MaxTimeS          *uint32 `json:"max_time_s,omitempty" doc:"0: any"`
	MaxRunning        *uint32 `json:"max_running,omitempty" doc:"0: any"`
	MaxRunningPerUser *uint32 `json:"max_running_per_user,omitempty" doc:"0: any"`
	Default           *bool   `json:"default,omitempty" doc:"true: jobs that name no queue come here"`
}

type createQueueInput struct {
	Once
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"64"`
		QueueSettings
	}
}

type changeQueueInput struct {
	Once
	Name string `path:"name" maxLength:"255"`
	Body QueueSettings
}

type queueActionInput struct {
	Once
	Name   string `path:"name" maxLength:"255"`
	Action string `path:"action" enum:"open,close,start,stop"`
}

type removeQueueInput struct {
	Once
	Name string `path:"name" maxLength:"255"`
}

type createdQueueOutput struct {
	Location string `header:"Location"`
	Body     done
}

func (s *Server) registerQueues(api huma.API) {
	op := func(id, method, path, summary string, need access, status int) huma.Operation {
		return operation(id, method, path, summary, "queues", need, status)
	}
	huma.Register(api, readable(op("list-queues", http.MethodGet, "/api/v1/queues", "List queues", looks, http.StatusOK)), s.listQueues)
	huma.Register(api, readable(op("get-queue", http.MethodGet, "/api/v1/queues/{name}", "One queue", looks, http.StatusOK)), s.getQueue)
	huma.Register(api, op("create-queue", http.MethodPost, "/api/v1/queues", "Make a queue", administers, http.StatusCreated), s.createQueue)
	huma.Register(api, op("change-queue", http.MethodPatch, "/api/v1/queues/{name}", "Change a queue's settings", administers, http.StatusOK), s.changeQueue)
	control := op("control-queue", http.MethodPost, "/api/v1/queues/{name}/{action}", "Open or close it for submissions, start or stop its jobs' starts",
		administers, http.StatusOK)
	huma.Register(api, control, func(ctx context.Context, in *queueActionInput) (*doneOutput, error) {
		action := map[string]model.QueueAction{"open": model.QueueOpen, "close": model.QueueClose, "start": model.QueueStart, "stop": model.QueueStop}[in.Action]
		return s.controlQueue(ctx, &in.Once, action, model.Queue{Name: in.Name}, in.Action)
	})
	huma.Register(api, op("remove-queue", http.MethodDelete, "/api/v1/queues/{name}", "Remove a queue without jobs", administers, http.StatusOK),
		func(ctx context.Context, in *removeQueueInput) (*doneOutput, error) {
			return s.controlQueue(ctx, &in.Once, model.QueueRemove, model.Queue{Name: in.Name}, "remove")
		})
}

func (s *Server) controlQueue(ctx context.Context, once *Once, action model.QueueAction, queue model.Queue, word string) (*doneOutput, error) {
	if strings.ContainsRune(queue.Name, 0) {
		return nil, problemOf(ctx, model.Invalid("text must not contain a zero byte"), true)
	}
	ctx, err := once.context(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.backend.ControlQueue(ctx, action, queue); err != nil {
		return nil, problemOf(ctx, err, action > model.QueueRemove || once.IdempotencyKey != "") // made or removed twice is an error
	}
	return &doneOutput{done{queue.Name, word}}, nil
}

func aboutQueues(event *model.Event) bool { return strings.HasPrefix(event.Kind, "queue") }

func (s *Server) listQueues(ctx context.Context, in *queuesInput) (*answer[queueList], error) {
	return poll(ctx, s, &in.Conditional, aboutQueues, func() (reading[queueList], error) {
		index := s.hub.Last()
		queues, err := s.backend.ListQueues(ctx)
		body := queueList{append([]model.Queue{}, queues...)}
		return reading[queueList]{body, body, index}, err
	})
}

func (s *Server) findQueue(ctx context.Context, name string) (model.Queue, error) {
	queues, err := s.backend.ListQueues(ctx)
	if err != nil {
		return model.Queue{}, err
	}
	for _, queue := range queues {
		if queue.Name == name {
			return queue, nil
		}
	}
	return model.Queue{}, notThere("queue", name)
}

func (s *Server) getQueue(ctx context.Context, in *queueInput) (*answer[model.Queue], error) {
	return poll(ctx, s, &in.Conditional, aboutQueues, func() (reading[model.Queue], error) {
		index := s.hub.Last()
		queue, err := s.findQueue(ctx, in.Name)
		return reading[model.Queue]{queue, queue, index}, err
	})
}

func (q *QueueSettings) apply(to *model.Queue) {
	limit := func(from *uint32, to **uint32) {
		if from != nil {
			*to = from
		}
	}
	if q.Priority != nil {
		to.Priority = *q.Priority
	}
	if q.Default != nil {
		to.Default = *q.Default
	}
	limit(q.DefaultTimeS, &to.DefaultTimeS)
	limit(q.MaxTimeS, &to.MaxTimeS)
	limit(q.MaxRunning, &to.MaxRunning)
	limit(q.MaxRunningPerUser, &to.MaxRunningPerUser)
}

func (s *Server) createQueue(ctx context.Context, in *createQueueInput) (*createdQueueOutput, error) {
	queue := model.Queue{Name: in.Body.Name}
	in.Body.apply(&queue)
	out, err := s.controlQueue(ctx, &in.Once, model.QueueCreate, queue, "create")
	if err != nil {
		return nil, err
	}
	return &createdQueueOutput{Location: "/api/v1/queues/" + queue.Name, Body: out.Body}, nil
}

func (s *Server) changeQueue(ctx context.Context, in *changeQueueInput) (*doneOutput, error) {
	queue, err := s.findQueue(ctx, in.Name)
	if err != nil {
		return nil, problemOf(ctx, err, true)
	}
	if in.Body == (QueueSettings{}) {
		return nil, problemOf(ctx, model.Invalid("nothing to change: give priority, default_time_s, max_time_s, max_running, max_running_per_user or default"), true)
	}
	if in.Body.Default != nil && !*in.Body.Default && queue.Default {
		return nil, problemOf(ctx, model.Invalid("there must be a default queue: make another one the default instead"), true)
	}
	in.Body.apply(&queue)
	return s.controlQueue(ctx, &in.Once, model.QueueUpdate, queue, "change")
}
