package api

import (
	"context"
	"net/http"

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
	To uint64 `query:"to" doc:"id of the controller that takes over; 0: the one that suits best"`
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
	huma.Register(api, op("whoami", http.MethodGet, "/api/v1/whoami", "Whom this server takes you for", looks),
		func(ctx context.Context, _ *struct{}) (*whoOutput, error) {
			person := model.PersonOf(ctx)
			return &whoOutput{CacheControl: noStore, Body: whoBody{person.User, person.Role.String(), s.options.Verifier != nil}}, nil
		})
}

func (s *Server) transfer(ctx context.Context, in *transferInput) (*transferOutput, error) {
	if err := s.backend.TransferPrimary(ctx, in.To); err != nil {
		return nil, problemOf(ctx, err, in.To != 0) // without a name a second one would hand it on
	}
	out := &transferOutput{}
	if status, err := s.backend.ClusterStatus(ctx); err == nil {
		out.Body.LeaderID = status.LeaderID
	}
	return out, nil
}
