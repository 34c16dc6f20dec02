package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"xce.example/apiserver/model"
)

const secret = "0123456789abcdef0123456789abcdef-secret"

func write(t *testing.T, data string, mode os.FileMode) string {
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte(data), mode))
	return path
}

func newVerifier(t *testing.T, options Options) *Verifier {
	if options.KeyFile == "" {
		options.KeyFile = write(t, secret+"\n", 0o600)
	}
	v, err := NewVerifier(options, zap.NewNop())
	require.NoError(t, err)
	v.lookup = func(name string) (*user.User, error) {
		if name == "ann" || name == "root" {
			return &user.User{Username: name, Uid: map[string]string{"ann": "1000", "root": "0"}[name], Gid: "100"}, nil
		}
		return nil, errors.New("unknown")
	}
	return v
}

func claims(subject, role string) Claims {
	return Claims{Role: role, RegisteredClaims: jwt.RegisteredClaims{Subject: subject, ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))}}
}

func sign(t *testing.T, c Claims) string {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte(secret))
	require.NoError(t, err)
	return token
}

func pemOf(t *testing.T, kind string, der []byte, err error) string {
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestWhoATokenBelongsTo(t *testing.T) {
	v := newVerifier(t, Options{})
	person, err := v.Verify(sign(t, claims("ann", "user")))
	require.NoError(t, err)
	require.Equal(t, &model.Person{User: "ann", Role: model.User, UID: 1000, GID: 100, IDsKnown: true}, person)

	person, err = v.Verify(sign(t, claims("stranger", "user")))
	require.NoError(t, err)
	require.False(t, person.IDsKnown)
	require.Equal(t, uint32(model.NobodyID), person.UID)

	uid, gid := uint32(7), uint32(8)
	with := claims("stranger", "admin")
	with.UID, with.GID = &uid, &gid
	person, err = v.Verify(sign(t, with))
	require.NoError(t, err)
	require.Equal(t, &model.Person{User: "stranger", Role: model.Admin, UID: 7, GID: 8, IDsKnown: true}, person)
}

func TestTokensThatAreRefused(t *testing.T) {
	v := newVerifier(t, Options{Issuer: "us", Audience: "xce"})
	good := claims("ann", "user")
	good.Issuer, good.Audience = "us", jwt.ClaimStrings{"xce"}
	_, err := v.Verify(sign(t, good))
	require.NoError(t, err)
	zero, one := uint32(0), uint32(1)
	for says, change := range map[string]func(*Claims){
		"expired":                func(c *Claims) { c.ExpiresAt = jwt.NewNumericDate(time.Now().Add(-time.Minute)) },
		"lacks a claim":          func(c *Claims) { c.ExpiresAt = nil },
		"not valid yet":          func(c *Claims) { c.NotBefore = jwt.NewNumericDate(time.Now().Add(time.Hour)) },
		"another issuer":         func(c *Claims) { c.Issuer = "them" },
		"another service":        func(c *Claims) { c.Audience = jwt.ClaimStrings{"other"} },
		`xce_role is ""`:         func(c *Claims) { c.Role = "" },
		`xce_role is "superman"`: func(c *Claims) { c.Role = "superman" },
		"sub must be":            func(c *Claims) { c.Subject = "" },
		"without spaces":         func(c *Claims) { c.Subject = "a b" },
		"both or none":           func(c *Claims) { c.UID = &one },
		"root is an":             func(c *Claims) { c.UID, c.GID = &zero, &zero },
		"must be admin":          func(c *Claims) { c.Subject = "root" },
	} {
		bad := good
		change(&bad)
		_, err := v.Verify(sign(t, bad))
		require.ErrorContains(t, err, says)
	}
	token := sign(t, good)
	for _, bad := range []string{"", "x", "a.b.c", token + "x", token[:len(token)-4] + "AAAA", strings.Repeat("x", 10000)} {
		_, err := v.Verify(bad)
		require.Error(t, err)
		if len(bad) > 3 {
			require.NotContains(t, err.Error(), bad, "the token itself is never repeated")
		}
	}
}

// A token must not choose how it is verified: no algorithm, and no public key taken for a secret.
func TestATokenDoesNotChooseItsAlgorithm(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	public := pemOf(t, "PUBLIC KEY", der, err)
	v := newVerifier(t, Options{KeyFile: write(t, public, 0o644)})
	good, err := jwt.NewWithClaims(jwt.SigningMethodRS256, claims("ann", "user")).SignedString(key)
	require.NoError(t, err)
	_, err = v.Verify(good)
	require.NoError(t, err)
	forged, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims("ann", "admin")).SignedString([]byte(strings.TrimSpace(public)))
	require.NoError(t, err)
	_, err = v.Verify(forged)
	require.Error(t, err)
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims("ann", "admin")).SignedString(jwt.UnsafeAllowNoneSignatureType)
	require.NoError(t, err)
	_, err = v.Verify(none)
	require.Error(t, err)
}

func TestKeysOfEveryKindIssueAndVerify(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	bundle := ""
	private := map[string]string{"secret": write(t, secret, 0o600)}
	for name, key := range map[string]crypto.Signer{"rsa": rsaKey, "ec": ecKey, "ed": edKey} {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		private[name] = write(t, pemOf(t, "PRIVATE KEY", der, err), 0o600)
		der, err = x509.MarshalPKIXPublicKey(key.Public())
		bundle += pemOf(t, "PUBLIC KEY", der, err)
	}
	for name, path := range private {
		v := newVerifier(t, Options{KeyFile: write(t, bundle, 0o644), Issuer: "us", Audience: "xce"})
		if name == "secret" {
			v = newVerifier(t, Options{Issuer: "us", Audience: "xce"})
		}
		token, err := Issue(path, Wish{User: "ann", Role: "viewer", For: time.Hour, Issuer: "us", Audience: "xce"}, time.Now())
		require.NoError(t, err, name)
		person, err := v.Verify(token)
		require.NoError(t, err, name)
		require.Equal(t, model.Viewer, person.Role)
	}
	for _, bad := range []Wish{{User: "", Role: "user", For: 1}, {User: "a", Role: "x", For: 1}, {User: "a", Role: "user"}, {User: "a", Role: "user", For: 1, UID: new(uint32)}} {
		_, err := Issue(private["secret"], bad, time.Now())
		require.Error(t, err)
	}
	_, err = Issue(write(t, bundle, 0o600), Wish{User: "a", Role: "user", For: 1}, time.Now())
	require.ErrorContains(t, err, "no private key")
}

func TestKeyFilesThatAreRefused(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	odd := pemOf(t, "PUBLIC KEY", der, err)
	for says, path := range map[string]string{
		"everybody can read":    write(t, secret, 0o644),
		"at least 32":           write(t, "short", 0o600),
		"private key":           write(t, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0o600),
		"no whole PEM":          write(t, "-----BEGIN PUBLIC KEY-----\n", 0o600),
		"cannot be read":        write(t, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", 0o600),
		"curve P-256":           write(t, odd, 0o644),
		"no such file":          "/nonexistent/key",
		"are known":             write(t, "-----BEGIN X-----\nAAAA\n-----END X-----\n", 0o600),
		"has 2000000 bytes":     write(t, strings.Repeat("x", 2000000), 0o600),
		"has 0 bytes, at least": write(t, "", 0o600),
	} {
		_, err := NewVerifier(Options{KeyFile: path}, zap.NewNop())
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), secret)
	}
}

func TestAChangedKeyFileIsReadAgain(t *testing.T) {
	path := write(t, secret, 0o600)
	v := newVerifier(t, Options{KeyFile: path})
	now := time.Now()
	v.now = func() time.Time { return now }
	old := sign(t, claims("ann", "user"))
	_, err := v.Verify(old)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("short"), 0o600)) // half written: the ones before stay
	now = now.Add(2 * reloadEvery)
	_, err = v.Verify(old)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("another secret of more than 32 bytes......."), 0o600))
	now = now.Add(2 * reloadEvery)
	_, err = v.Verify(old)
	require.Error(t, err, "its key is no longer trusted")
}

func TestUsersAreLookedUpOnceAMinute(t *testing.T) {
	v := newVerifier(t, Options{})
	looked, plain := 0, v.lookup
	v.lookup = func(name string) (*user.User, error) { looked++; return plain(name) }
	now := time.Now()
	v.now = func() time.Time { return now }
	token := sign(t, claims("ann", "user"))
	for range 5 {
		_, err := v.Verify(token)
		require.NoError(t, err)
	}
	require.Equal(t, 1, looked)
	now = now.Add(2 * lookupFor)
	_, err := v.Verify(token)
	require.NoError(t, err)
	require.Equal(t, 2, looked)
}
