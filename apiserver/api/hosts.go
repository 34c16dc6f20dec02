package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

type listHostsInput struct {
	Conditional
	State     []string `query:"state" doc:"only these states: UP, DRAINED, UNREACHABLE, GONE"`
	Sort      string   `query:"sort" enum:"name,state,cpus,used_cpus,running_jobs" default:"name"`
	Order     string   `query:"order" enum:"asc,desc" default:"asc"`
	Limit     int      `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
	PageToken string   `query:"page_token" maxLength:"4096" doc:"next_page_token of the page before, of the same filter, sort and order"`
}

type hostList struct {
	Hosts         []model.Host `json:"hosts"`
	Total         int          `json:"total" doc:"hosts that match, on all pages"`
	NextPageToken *string      `json:"next_page_token" doc:"null: the last page"`
}

type hostInput struct {
	Conditional
	Name string `path:"name" maxLength:"255"`
}

type hostActionInput struct {
	Once
	Name   string `path:"name" maxLength:"255"`
	Action string `path:"action" enum:"drain,resume"`
	Reason string `query:"reason" maxLength:"1024" doc:"of drain, for people"`
}

type removeHostInput struct {
	Once
	Name string `path:"name" maxLength:"255"`
	Lost bool   `query:"lost" doc:"of a host that does not answer: its jobs end as LOST, those with requeue wait again"`
}

type done struct {
	Name   string `json:"name"`
	Action string `json:"action"`
}

type doneOutput struct{ Body done }

func (s *Server) registerHosts(api huma.API) {
	op := func(id, method, path, summary string, need access, status int) huma.Operation {
		return operation(id, method, path, summary, "hosts", need, status)
	}
	huma.Register(api, readable(op("list-hosts", http.MethodGet, "/api/v1/hosts", "List hosts", looks, http.StatusOK)), s.listHosts)
	huma.Register(api, readable(op("get-host", http.MethodGet, "/api/v1/hosts/{name}", "One host", looks, http.StatusOK)), s.getHost)
	control := op("control-host", http.MethodPost, "/api/v1/hosts/{name}/{action}", "Drain a host, or let it take jobs again", administers, http.StatusOK)
	control.Description = "A drained host finishes its jobs and gets no new ones."
	huma.Register(api, control, func(ctx context.Context, in *hostActionInput) (*doneOutput, error) {
		action := map[string]model.HostAction{"drain": model.HostDrain, "resume": model.HostResume}[in.Action]
		return s.controlHost(ctx, &in.Once, action, in.Name, in.Action, in.Reason)
	})
	huma.Register(api, op("remove-host", http.MethodDelete, "/api/v1/hosts/{name}", "Forget a host that is gone", administers, http.StatusOK),
		func(ctx context.Context, in *removeHostInput) (*doneOutput, error) {
			action := model.HostRemove
			if in.Lost {
				action = model.HostRemoveLost
			}
			return s.controlHost(ctx, &in.Once, action, in.Name, "remove", "")
		})
}

func (s *Server) controlHost(ctx context.Context, once *Once, action model.HostAction, name, word, reason string) (*doneOutput, error) {
	if strings.ContainsRune(name+reason, 0) {
		return nil, problemOf(ctx, model.Invalid("text must not contain a zero byte"), true)
	}
	ctx, err := once.context(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.backend.ControlHost(ctx, action, name, reason); err != nil {
		return nil, problemOf(ctx, err, true)
	}
	return &doneOutput{done{name, word}}, nil
}

func aboutHosts(event *model.Event) bool { return strings.HasPrefix(event.Kind, "host") }

// hostKey orders hosts: by a number or a text, then by name.
type hostKey struct {
	Sort, Order string
	Num         int64
	Name        string
}

func keyOfHost(host *model.Host, by string) hostKey {
	key := hostKey{Name: host.Name}
	switch by {
	case "state":
		key.Num = int64(slices.Index(model.HostStates, host.State))
	case "cpus":
		key.Num = int64(host.CPUs)
	case "used_cpus":
		key.Num = int64(host.UsedCPUs)
	case "running_jobs":
		key.Num = int64(host.RunningJobs)
	}
	return key
}

func (s *Server) listHosts(ctx context.Context, in *listHostsInput) (*answer[hostList], error) {
	wanted := map[string]bool{}
	for _, word := range in.State {
		if !slices.Contains(model.HostStates, strings.ToUpper(word)) {
			return nil, problemOf(ctx, model.Invalid("there is no host state %q; the states are %s", word, strings.Join(model.HostStates, ", ")), true)
		}
		wanted[strings.ToUpper(word)] = true
	}
	var after *hostKey
	if in.PageToken != "" {
		p, ok := placeOf(in.PageToken)
		if !ok || p.Sort != "host "+in.Sort || p.Order != in.Order {
			return nil, problemOf(ctx, badToken(in.PageToken), true)
		}
		after = &hostKey{Num: p.Num, Name: p.Text}
	}
	compare := func(a, b hostKey) int {
		order := cmp.Or(cmp.Compare(a.Num, b.Num), strings.Compare(a.Name, b.Name))
		if in.Order == "desc" {
			return -order
		}
		return order
	}
	return poll(ctx, s, &in.Conditional, aboutHosts, func() (reading[hostList], error) {
		index := s.hub.Last()
		hosts, err := s.backend.ListHosts(ctx)
		if err != nil {
			return reading[hostList]{}, err
		}
		body := hostList{Hosts: []model.Host{}}
		for _, host := range hosts {
			if len(wanted) > 0 && !wanted[host.State] {
				continue
			}
			body.Total++
			if after == nil || compare(keyOfHost(&host, in.Sort), *after) > 0 {
				body.Hosts = append(body.Hosts, host)
			}
		}
		slices.SortFunc(body.Hosts, func(a, b model.Host) int { return compare(keyOfHost(&a, in.Sort), keyOfHost(&b, in.Sort)) })
		if limit := max(1, in.Limit); len(body.Hosts) > limit {
			body.Hosts = body.Hosts[:limit]
			last := keyOfHost(&body.Hosts[limit-1], in.Sort)
			token := place{Sort: "host " + in.Sort, Order: in.Order, Num: last.Num, Text: last.Name, ID: 1}.token()
			body.NextPageToken = &token
		}
		return reading[hostList]{body, body, index}, nil
	})
}

func (s *Server) getHost(ctx context.Context, in *hostInput) (*answer[model.Host], error) {
	return poll(ctx, s, &in.Conditional, aboutHosts, func() (reading[model.Host], error) {
		index := s.hub.Last()
		hosts, err := s.backend.ListHosts(ctx)
		if err != nil {
			return reading[model.Host]{}, err
		}
		for _, host := range hosts {
			if host.Name == in.Name {
				return reading[model.Host]{host, host, index}, nil
			}
		}
		return reading[model.Host]{}, notThere("host", in.Name)
	})
}

func notThere(kind, name string) error {
	return &model.Error{Status: model.StatusNoEnt, Code: "E_XCE_NOENT", Message: fmt.Sprintf("there is no %s %q", kind, name), Outcome: model.NotApplied}
}
