package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

type hostsOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		Hosts []model.Host `json:"hosts"`
	}
}

type queuesOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		Queues []model.Queue `json:"queues"`
	}
}

type clusterOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		model.Cluster
		Connection model.Connection `json:"connection" doc:"how this apiserver stands to the controllers"`
	}
}

func (s *Server) registerCluster(api huma.API) {
	cluster := []string{"cluster"}
	huma.Register(api, huma.Operation{OperationID: "list-hosts", Method: http.MethodGet, Path: "/api/v1/hosts", Summary: "List hosts", Tags: cluster},
		func(ctx context.Context, _ *struct{}) (*hostsOutput, error) {
			hosts, err := s.backend.ListHosts(ctx)
			if err != nil {
				return nil, problemOf(ctx, err, true)
			}
			out := &hostsOutput{CacheControl: noStore}
			out.Body.Hosts = append([]model.Host{}, hosts...)
			return out, nil
		})
	huma.Register(api, huma.Operation{OperationID: "list-queues", Method: http.MethodGet, Path: "/api/v1/queues", Summary: "List queues", Tags: cluster},
		func(ctx context.Context, _ *struct{}) (*queuesOutput, error) {
			queues, err := s.backend.ListQueues(ctx)
			if err != nil {
				return nil, problemOf(ctx, err, true)
			}
			out := &queuesOutput{CacheControl: noStore}
			out.Body.Queues = append([]model.Queue{}, queues...)
			return out, nil
		})
	huma.Register(api, huma.Operation{OperationID: "get-cluster", Method: http.MethodGet, Path: "/api/v1/cluster", Summary: "The controllers: who leads, who lags", Tags: cluster},
		func(ctx context.Context, _ *struct{}) (*clusterOutput, error) {
			status, err := s.backend.ClusterStatus(ctx)
			if err != nil {
				return nil, problemOf(ctx, err, true)
			}
			out := &clusterOutput{CacheControl: noStore}
			out.Body.Cluster, out.Body.Connection = status, s.backend.Connection()
			return out, nil
		})
}
