package api

import (
	"context"

	"xce.example/apiserver/model"
)

// Once is the header of writes that a caller may repeat.
type Once struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"chosen by the caller, one a request: the same request with the same key is done once and gets the first answer again, for an hour"`
}

// context gives the write its key. It is the person's own: others may use the same one.
func (o *Once) context(ctx context.Context) (context.Context, error) {
	if o.IdempotencyKey == "" {
		return ctx, nil
	}
	if !isToken(o.IdempotencyKey, 255) {
		return ctx, problemOf(ctx, model.Invalid("Idempotency-Key must be 1 to 255 visible ASCII characters"), false)
	}
	user := ""
	if person := model.PersonOf(ctx); person != nil {
		user = person.User
	}
	return model.WithOpKey(ctx, "rest:"+user+":"+o.IdempotencyKey), nil
}
