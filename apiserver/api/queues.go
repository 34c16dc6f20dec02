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
	Priority          *int32    `json:"priority,omitempty"`
	DefaultTimeS      *uint32   `json:"default_time_s,omitempty" doc:"0: none"`
	MaxTimeS          *uint32   `json:"max_time_s,omitempty" doc:"0: any"`
	MaxRunning        *uint32   `json:"max_running,omitempty" doc:"0: any"`
	MaxRunningPerUser *uint32   `json:"max_running_per_user,omitempty" doc:"0: any"`
	MaxPendingPerUser *uint32   `json:"max_pending_per_user,omitempty" doc:"0: any"`
	MaxCPUsPerUser    *uint32   `json:"max_cpus_per_user,omitempty" doc:"0: any"`
	AllowedUsers      *[]string `json:"allowed_users,omitempty" doc:"with allowed_groups: who may submit to it; both empty: everybody"`
	AllowedGroups     *[]string `json:"allowed_groups,omitempty"`
	Preemptible       *bool     `json:"preemptible,omitempty" doc:"its running jobs make room for those of queues of higher priority"`
	Default           *bool     `json:"default,omitempty" doc:"true: jobs that name no queue come here"`
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
		return s.controlQueue(ctx, &in.Once, action, model.Queue{Name: in.Name}, 0, in.Action)
	})
	huma.Register(api, op("remove-queue", http.MethodDelete, "/api/v1/queues/{name}", "Remove a queue without jobs", administers, http.StatusOK),
		func(ctx context.Context, in *removeQueueInput) (*doneOutput, error) {
			return s.controlQueue(ctx, &in.Once, model.QueueRemove, model.Queue{Name: in.Name}, 0, "remove")
		})
}

func (s *Server) controlQueue(ctx context.Context, once *Once, action model.QueueAction, queue model.Queue, mask uint32, word string) (*doneOutput, error) {
	if strings.ContainsRune(queue.Name, 0) {
		return nil, problemOf(ctx, model.Invalid("text must not contain a zero byte"), true)
	}
	ctx, err := once.context(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.backend.ControlQueue(ctx, action, queue, mask); err != nil {
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

// apply puts what is given into a queue and says which fields that are.
func (q *QueueSettings) apply(to *model.Queue) (mask uint32, err error) {
	limit := func(from *uint32, to **uint32, bit uint32) {
		if from != nil {
			*to = from
			mask |= bit
		}
	}
	names := func(from *[]string, to *[]string, bit uint32) {
		if from == nil {
			return
		}
		*to = *from
		mask |= bit
		for _, name := range *from {
			if name == "" || strings.ContainsRune(name, 0) {
				err = model.Invalid("a name in allowed_users or allowed_groups is empty or has a zero byte")
			}
		}
	}
	if q.Priority != nil {
		to.Priority = *q.Priority
		mask |= model.QueuePriority
	}
	if q.Default != nil {
		to.Default = *q.Default
		mask |= model.QueueDefault
	}
	if q.Preemptible != nil {
		to.Preemptible = *q.Preemptible
		mask |= model.QueuePreemptible
	}
	limit(q.DefaultTimeS, &to.DefaultTimeS, model.QueueDefaultTime)
	limit(q.MaxTimeS, &to.MaxTimeS, model.QueueMaxTime)
	limit(q.MaxRunning, &to.MaxRunning, model.QueueMaxRunning)
	limit(q.MaxRunningPerUser, &to.MaxRunningPerUser, model.QueueMaxRunningPerUser)
	limit(q.MaxPendingPerUser, &to.MaxPendingPerUser, model.QueueMaxPendingPerUser)
	limit(q.MaxCPUsPerUser, &to.MaxCPUsPerUser, model.QueueMaxCPUsPerUser)
	names(q.AllowedUsers, &to.AllowedUsers, model.QueueAllowedUsers)
	names(q.AllowedGroups, &to.AllowedGroups, model.QueueAllowedGroups)
	return mask, err
}

func (s *Server) createQueue(ctx context.Context, in *createQueueInput) (*createdQueueOutput, error) {
	queue := model.Queue{Name: in.Body.Name}
	if _, err := in.Body.apply(&queue); err != nil {
		return nil, problemOf(ctx, err, true)
	}
	out, err := s.controlQueue(ctx, &in.Once, model.QueueCreate, queue, 0, "create")
	if err != nil {
		return nil, err
	}
	return &createdQueueOutput{Location: "/api/v1/queues/" + queue.Name, Body: out.Body}, nil
}

func (s *Server) changeQueue(ctx context.Context, in *changeQueueInput) (*doneOutput, error) {
	queue := model.Queue{Name: in.Name}
	mask, err := in.Body.apply(&queue)
	switch {
	case err != nil:
	case mask == 0:
		err = model.Invalid("nothing to change: give one of a queue's settings, such as priority or max_running")
	case in.Body.Default != nil && !*in.Body.Default:
		err = model.Invalid("there must be a default queue: make another one the default instead")
	}
	if err != nil {
		return nil, problemOf(ctx, err, true)
	}
	return s.controlQueue(ctx, &in.Once, model.QueueUpdate, queue, mask, "change")
}
