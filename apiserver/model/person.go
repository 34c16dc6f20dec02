package model

import "context"

// Role says what a person may ask of the REST interface. Each may do what those before it may.
type Role int

// The roles, by rising power.
const (
	Viewer Role = iota // looks
	User               // and submits and controls their own jobs
	Admin              // and controls everything
)

// RoleNames in the order of the roles.
var RoleNames = []string{"viewer", "user", "admin"}

func (r Role) String() string { return Word(RoleNames, int(r)) }

// NobodyID is the user and group id of whose numbers do not matter.
const NobodyID = 65534

// Person is who asks. The controllers are asked on their behalf and grant what they may do.
type Person struct {
	User     string
	Role     Role
	UID, GID uint32
	// IDsKnown: UID and GID belong to User. Only then may jobs be submitted as them.
	IDsKnown bool
	// Trusted marks the one person of a server without authentication on a cluster without TLS: requests are the apiserver's own.
	Trusted bool
}

type personKey struct{}

// WithPerson gives a context whose requests are person's.
func WithPerson(ctx context.Context, person *Person) context.Context {
	return context.WithValue(ctx, personKey{}, person)
}

// PersonOf says who asks; nil: nobody has said.
func PersonOf(ctx context.Context) *Person {
	person, _ := ctx.Value(personKey{}).(*Person)
	return person
}

type opKeyKey struct{}

// WithOpKey gives a context whose write is done once, however often it is asked for under that key by the same person.
func WithOpKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, opKeyKey{}, key)
}

// OpKeyOf gives the key of the context's write; "": none.
func OpKeyOf(ctx context.Context) string {
	key, _ := ctx.Value(opKeyKey{}).(string)
	return key
}
