package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

type clusterBody struct {
	model.Cluster
	Connection model.Connection `json:"connection" doc:"how this apiserver stands to the controllers"`
}

type clusterOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         clusterBody
}

type usersBody struct {
	Users []model.UserUse `json:"users"`
}

type usersOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         usersBody
}

type transferInput struct {
	Once
	To uint64 `query:"to" doc:"id of the controller that takes over; 0: the one that suits best"`
}

type memberBody struct {
	ID   uint64 `json:"id" minimum:"1"`
	Host string `json:"host" minLength:"1" maxLength:"255" doc:"where it is found by the others"`
	Port uint16 `json:"port" minimum:"1"`
}

type addMemberInput struct {
	Once
	Body memberBody
}

type memberInput struct {
	Once
	ID uint64 `path:"id" minimum:"1"`
}

type replaceMemberInput struct {
	Once
	ID   uint64 `path:"id" minimum:"1"`
	Host string `query:"host" maxLength:"255" doc:"another address of it"`
	Port uint16 `query:"port"`
}

type transferred struct {
	LeaderID *uint64 `json:"leader_id" doc:"who leads now; null: not known yet"`
}

type transferOutput struct{ Body transferred }

type whoBody struct {
	User          string `json:"user"`
	Role          string `json:"role" doc:"viewer, user or admin"`
	Authenticated bool   `json:"authenticated" doc:"by a token"`
}

type whoOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         whoBody
}

func (s *Server) registerCluster(api huma.API) {
	op := func(id, method, path, summary string, need access) huma.Operation {
		return operation(id, method, path, summary, "cluster", need, http.StatusOK)
	}
	huma.Register(api, op("get-cluster", http.MethodGet, "/api/v1/cluster", "The controllers: who leads, who lags", looks),
		func(ctx context.Context, _ *struct{}) (*clusterOutput, error) {
			status, err := s.backend.ClusterStatus(ctx)
			if err != nil {
				return nil, problemOf(ctx, err, true)
			}
			return &clusterOutput{CacheControl: noStore, Body: clusterBody{status, s.backend.Connection()}}, nil
		})
	huma.Register(api, op("list-users", http.MethodGet, "/api/v1/users", "What each user has in the cluster", looks),
		func(ctx context.Context, _ *struct{}) (*usersOutput, error) {
			users, err := s.backend.ListUsers(ctx)
			if err != nil {
				return nil, problemOf(ctx, err, true)
			}
			return &usersOutput{CacheControl: noStore, Body: usersBody{append([]model.UserUse{}, users...)}}, nil
		})
	huma.Register(api, op("transfer-primary", http.MethodPost, "/api/v1/cluster/transfer", "Hand the primary role over; nobody sees an error", administers), s.transfer)
	s.registerMembers(api, op)
	huma.Register(api, op("whoami", http.MethodGet, "/api/v1/whoami", "Whom this server takes you for", looks),
		func(ctx context.Context, _ *struct{}) (*whoOutput, error) {
			person := model.PersonOf(ctx)
			return &whoOutput{CacheControl: noStore, Body: whoBody{person.User, person.Role.String(), s.options.Verifier != nil}}, nil
		})
}

func (s *Server) transfer(ctx context.Context, in *transferInput) (*transferOutput, error) {
	return once(ctx, &s.remembered, &in.Once, fmt.Sprint("transfer ", in.To), func() (*transferOutput, error) { return s.transferOnce(ctx, in) })
}

func (s *Server) transferOnce(ctx context.Context, in *transferInput) (*transferOutput, error) {
	if err := s.backend.ControlMember(ctx, model.MemberTransfer, in.To, "", 0); err != nil {
		return nil, problemOf(ctx, err, in.To != 0 || in.IdempotencyKey != "") // else a second one would hand it on
	}
	out := &transferOutput{}
	if status, err := s.backend.ClusterStatus(ctx); err == nil {
		out.Body.LeaderID = status.LeaderID
	}
	return out, nil
}

const memberWords = " The answer comes when that is done; 429: it goes on by itself, or another change is under way: send it again, which does no harm."

// registerMembers has changes of the controllers: see docs/operating.md for what to do before and after.
func (s *Server) registerMembers(api huma.API, op func(id, method, path, summary string, need access) huma.Operation) {
	control := func(ctx context.Context, key *Once, action model.MemberAction, word string, id uint64, host string, port uint16) (*acceptedOutput, error) {
		if strings.ContainsRune(host, 0) || (host == "") != (port == 0) {
			return nil, problemOf(ctx, model.Invalid("give both host and port, or none"), true)
		}
		return once(ctx, &s.remembered, key, fmt.Sprint(word, " ", id, " ", host, " ", port), func() (*acceptedOutput, error) {
			if err := s.backend.ControlMember(ctx, action, id, host, port); err != nil {
				return nil, problemOf(ctx, err, true)
			}
			return &acceptedOutput{accepted{id, word}}, nil
		})
	}
	add := op("add-controller", http.MethodPost, "/api/v1/cluster/members", "Take a controller in that was started with --join", administers)
	add.Description = "It is in when it has caught up and votes." + memberWords
	huma.Register(api, add, func(ctx context.Context, in *addMemberInput) (*acceptedOutput, error) {
		return control(ctx, &in.Once, model.MemberAdd, "add", in.Body.ID, in.Body.Host, in.Body.Port)
	})
	remove := op("remove-controller", http.MethodDelete, "/api/v1/cluster/members/{id}", "Take a controller out", administers)
	remove.Description = "A primary hands over first." + memberWords
	huma.Register(api, remove, func(ctx context.Context, in *memberInput) (*acceptedOutput, error) {
		return control(ctx, &in.Once, model.MemberRemove, "remove", in.ID, "", 0)
	})
	replace := op("replace-controller", http.MethodPost, "/api/v1/cluster/members/{id}/replace", "Take a controller back whose disk was lost", administers)
	replace.Description = "It was started with an empty data directory." + memberWords
	huma.Register(api, replace, func(ctx context.Context, in *replaceMemberInput) (*acceptedOutput, error) {
		return control(ctx, &in.Once, model.MemberReplace, "replace", in.ID, in.Host, in.Port)
	})
}
