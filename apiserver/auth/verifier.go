package auth

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/zap"

	"xce.example/apiserver/model"
)

const (
	leeway        = 30 * time.Second // between the clocks of issuer and server
	reloadEvery   = time.Second
	lookupFor     = time.Minute
	maxLookups    = 4096
	maxTokenBytes = 8 << 10
)

// Claims of a token, beside the registered ones: sub is the user's name.
type Claims struct {
	Role string  `json:"xce_role"`
	UID  *uint32 `json:"xce_uid,omitempty"`
	GID  *uint32 `json:"xce_gid,omitempty"`
	jwt.RegisteredClaims
}

// Options of a Verifier.
type Options struct {
	KeyFile  string
	Issuer   string // of tokens; "": any
	Audience string // of tokens; "": any
}

// Verifier checks bearer tokens. Safe for all goroutines. The key file is read again when it has changed.
type Verifier struct {
	options Options
	log     *zap.Logger
	now     func() time.Time
	lookup  func(name string) (*user.User, error)

	mu      sync.Mutex
	keys    *keySet
	stamp   string    // of the file that keys came from
	checked time.Time // when the file was last looked at
	known   map[string]lookedUp
}

type lookedUp struct {
	uid, gid uint32
	found    bool
	until    time.Time
}

// NewVerifier reads the key file. The error names the file and says what is wrong with it.
func NewVerifier(options Options, log *zap.Logger) (*Verifier, error) {
	v := &Verifier{options: options, log: log, now: time.Now, lookup: user.Lookup, known: map[string]lookedUp{}}
	if err := v.load(); err != nil {
		return nil, err
	}
	return v, nil
}

func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

func (v *Verifier) load() error {
	stamp := stampOf(v.options.KeyFile)
	data, err := readKeyFile(v.options.KeyFile)
	if err != nil {
		return fmt.Errorf("--auth-key: %w", err)
	}
	keys, err := parseKeys(data)
	if err != nil {
		return fmt.Errorf("--auth-key %s: %w", v.options.KeyFile, err)
	}
	v.keys, v.stamp = keys, stamp
	return nil
}

// current gives the keys, read again when their file has changed. One that cannot be used leaves the ones before in use.
func (v *Verifier) current() *keySet {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := v.now(); now.Sub(v.checked) >= reloadEvery {
		v.checked = now
		if stamp := stampOf(v.options.KeyFile); stamp != v.stamp {
			if err := v.load(); err != nil {
				v.stamp = stamp // told once
				v.log.Error("the changed key file cannot be used; the keys before stay in use", zap.Error(err))
			} else {
				v.log.Info("the key file was read again", zap.String("file", v.options.KeyFile))
			}
		}
	}
	return v.keys
}

// Verify says whose a token is. The error is for whoever sent it and never repeats the token.
func (v *Verifier) Verify(token string) (*model.Person, error) {
	if len(token) > maxTokenBytes {
		return nil, fmt.Errorf("the token has more than %d bytes", maxTokenBytes)
	}
	keys := v.current()
	options := []jwt.ParserOption{jwt.WithValidMethods(keys.methods), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(v.now)}
	if v.options.Issuer != "" {
		options = append(options, jwt.WithIssuer(v.options.Issuer))
	}
	if v.options.Audience != "" {
		options = append(options, jwt.WithAudience(v.options.Audience))
	}
	claims := &Claims{}
	_, err := jwt.ParseWithClaims(token, claims, func(token *jwt.Token) (any, error) {
		return jwt.VerificationKeySet{Keys: keys.byMethod[token.Method.Alg()]}, nil
	}, options...)
	if err != nil {
		return nil, errors.New(explain(err))
	}
	return v.person(claims)
}

func explain(err error) string {
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return "the token has expired: get a new one"
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return "the token is not valid yet: compare the clocks of its issuer and of this server"
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return "the token is from another issuer than this server trusts"
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return "the token is for another service: its aud is not this server's"
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return "the token lacks a claim that this server asks for (exp; iss and aud where set)"
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "this is no JWT"
	}
	return "the token is not signed by a key that this server trusts"
}

func (v *Verifier) person(claims *Claims) (*model.Person, error) {
	person := &model.Person{User: claims.Subject, Role: -1, UID: model.NobodyID, GID: model.NobodyID}
	for i, name := range model.RoleNames {
		if claims.Role == name {
			person.Role = model.Role(i)
		}
	}
	if person.Role < 0 {
		return nil, fmt.Errorf("the token's xce_role is %q; it must be viewer, user or admin", claims.Role)
	}
	if !goodName(person.User) {
		return nil, errors.New("the token's sub must be a user's name: 1 to 63 characters, without spaces")
	}
	switch {
	case claims.UID != nil && claims.GID != nil:
		person.UID, person.GID, person.IDsKnown = *claims.UID, *claims.GID, true
	case claims.UID != nil || claims.GID != nil:
		return nil, errors.New("the token has one of xce_uid and xce_gid: give both or none")
	case person.Role > model.Viewer:
		person.UID, person.GID, person.IDsKnown = v.ids(person.User)
	}
	if person.Role < model.Admin && (person.IDsKnown && person.UID == 0 || person.User == "root") {
		return nil, errors.New("root is an administrator: the token's xce_role must be admin")
	}
	return person, nil
}

func goodName(name string) bool {
	if name == "" || len(name) > 63 {
		return false
	}
	for _, c := range name {
		if unicode.IsSpace(c) || unicode.IsControl(c) {
			return false
		}
	}
	return true
}

// ids looks a user's numbers up on this host, at most once a minute.
func (v *Verifier) ids(name string) (uid, gid uint32, found bool) {
	now := v.now()
	v.mu.Lock()
	known, ok := v.known[name]
	v.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.uid, known.gid, known.found
	}
	known = lookedUp{uid: model.NobodyID, gid: model.NobodyID, until: now.Add(lookupFor)}
	if who, err := v.lookup(name); err == nil {
		if uid, gid, ok := IDs(who); ok {
			known.uid, known.gid, known.found = uid, gid, true
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxLookups {
		clear(v.known)
	}
	v.known[name] = known
	return known.uid, known.gid, known.found
}

// IDs gives a user's numbers; ok is false when they have none.
func IDs(who *user.User) (uid, gid uint32, ok bool) {
	u, uidErr := strconv.ParseUint(who.Uid, 10, 32)
	g, gidErr := strconv.ParseUint(who.Gid, 10, 32)
	return uint32(u), uint32(g), uidErr == nil && gidErr == nil
}
