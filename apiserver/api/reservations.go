package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/model"
)

type reservationList struct {
	Reservations []model.Reservation `json:"reservations"`
}

type reservationsInput struct{ Conditional }

func (s *Server) registerReservations(api huma.API) {
	huma.Register(api, readable(operation("list-reservations", http.MethodGet, "/api/v1/reservations",
		"List what is kept of hosts for some users and queues", "reservations", looks, http.StatusOK)), s.listReservations)
}

func aboutReservations(event *model.Event) bool {
	return event.Kind == "reservation" || event.Kind == "reservation_removed"
}

func (s *Server) listReservations(ctx context.Context, in *reservationsInput) (*answer[reservationList], error) {
	return poll(ctx, s, &in.Conditional, aboutReservations, func() (reading[reservationList], error) {
		index := s.hub.Last()
		reservations, err := s.backend.ListReservations(ctx)
		body := reservationList{append([]model.Reservation{}, reservations...)}
		return reading[reservationList]{body, body, index}, err
	})
}
