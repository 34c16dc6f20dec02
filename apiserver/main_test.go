package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"xce.example/apiserver/auth"
	"xce.example/apiserver/config"
	"xce.example/apiserver/model"
)

func keyFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte("0123456789abcdef0123456789abcdef"), 0o600))
	return path
}

func TestATokenThatIsIssuedIsBelieved(t *testing.T) {
	key := keyFile(t)
	var out bytes.Buffer
	require.NoError(t, issueToken([]string{"--key", key, "--user", "ann", "--role", "user", "--uid", "7", "--gid", "8", "--hours", "0.5"}, &out))
	verifier, err := auth.NewVerifier(auth.Options{KeyFile: key}, zap.NewNop())
	require.NoError(t, err)
	person, err := verifier.Verify(string(bytes.TrimSpace(out.Bytes())))
	require.NoError(t, err)
	require.Equal(t, &model.Person{User: "ann", Role: model.User, UID: 7, GID: 8, IDsKnown: true}, person)
	out.Reset()
	require.NoError(t, issueToken([]string{"--help"}, &out))
	require.Contains(t, out.String(), "Example:")
	for _, bad := range [][]string{{}, {"--key", key}, {"--key", key, "--user", "a", "--role", "king"}, {"--bogus"}, {"--key", key, "--user", "a", "--role", "user", "--uid", "1"},
		{"--key", key, "--user", "a", "--role", "user", "x"}, {"--key", "/nonexistent", "--user", "a", "--role", "user"},
		{"--key", key, "--user", "a", "--role", "user", "--uid", "4294967296", "--gid", "1"}, {"--key", key, "--user", "a", "--role", "user", "--hours", "-1"}} {
		require.Error(t, issueToken(bad, &out), bad)
	}
}

func TestWhoMayAskWithoutTokens(t *testing.T) {
	settings := &config.Config{}
	options, err := apiOptions(settings, zap.NewNop())
	require.NoError(t, err)
	require.Equal(t, model.Admin, options.Anonymous.Role)
	require.False(t, options.AnyHost)
	settings.Backend.TLSCert = "c"
	options, err = apiOptions(settings, zap.NewNop())
	require.NoError(t, err)
	require.Equal(t, model.Viewer, options.Anonymous.Role, "a cluster that knows who asks")
	require.False(t, options.Anonymous.Trusted)
	settings.Auth.KeyFile = keyFile(t)
	options, err = apiOptions(settings, zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, options.Anonymous)
	require.NotNil(t, options.Verifier)
	settings.Auth.KeyFile = "/nonexistent"
	_, err = apiOptions(settings, zap.NewNop())
	require.Error(t, err)
}

func pair(t *testing.T, dir string, serial int64) (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "c"), filepath.Join(dir, "k")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return cert, key
}

func TestAnHTTPSCertificateIsRenewedWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	cert, key := pair(t, dir, 1)
	c, err := newCertificate(cert, key, zap.NewNop())
	require.NoError(t, err)
	serial := func() int64 {
		c.checked = time.Time{} // as if a second had passed
		got, err := c.get(nil)
		require.NoError(t, err)
		parsed, err := x509.ParseCertificate(got.Certificate[0])
		require.NoError(t, err)
		return parsed.SerialNumber.Int64()
	}
	require.Equal(t, int64(1), serial())
	require.NoError(t, os.WriteFile(cert, []byte("half copied"), 0o644))
	require.Equal(t, int64(1), serial(), "the one before stays")
	pair(t, dir, 22)
	require.Equal(t, int64(22), serial())
	require.NoError(t, os.Chmod(key, 0o644))
	_, err = newCertificate(cert, key, zap.NewNop())
	require.ErrorContains(t, err, "everybody can read")
}
