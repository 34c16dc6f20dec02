package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const secret = "a-secret-that-nobody-else-knows-0123456789"

// selfSigned makes a certificate of 127.0.0.1 and its key, and the pool that trusts it.
func selfSigned(t *testing.T, dir string) (cert, key string, pool *x509.CertPool) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "https.crt"), filepath.Join(dir, "https.key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return cert, key, pool
}

// Everything is TLS and every request has a token: people have their own jobs, and only theirs, also after a failover.
func TestPeopleOverTLS(t *testing.T) {
	c := prepare(t)
	c.pki = filepath.Join(c.dir, "pki")
	c.run("cli/xce", "pki", "init", c.pki)
	keyFile := filepath.Join(c.dir, "token.key")
	require.NoError(t, os.WriteFile(keyFile, []byte(secret+"\n"), 0o600))
	cert, key, pool := selfSigned(t, c.dir)
	c.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	c.apiFlags = []string{"--auth-key", keyFile, "--https-cert", cert, "--https-key", key}
	c.startAll()
	token := func(user, role string, uid int) string {
		return c.run("apiserver/xce_apiserver", "token", "--key", keyFile, "--user", user, "--role", role, "--uid", fmt.Sprint(uid), "--gid", fmt.Sprint(uid))
	}
	ann, bob, admin, viewer := token("ann", "user", 7001), token("bob", "user", 7002), token("eve", "admin", 7003), token("vic", "viewer", 7004)
	as := func(token, method, path, body string) (int, map[string]any) {
		c.token = token
		status, value, _ := c.do(method, path, body, "")
		return status, value
	}
	status, problem := as("", "GET", "/api/v1/jobs", "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, "E_XCE_AUTH", problem["code"])

	status, made := as(ann, "POST", "/api/v1/jobs", `{"command": ["sleep", "1"], "hold": true, "env": {"PASSWORD": "x"}}`)
	require.Equal(t, http.StatusCreated, status, made)
	path := fmt.Sprintf("/api/v1/jobs/%v", made["id"])
	_, job := as(ann, "GET", path, "")
	require.Equal(t, "ann", job["user"])
	require.Equal(t, []any{"PASSWORD=x"}, job["env"])
	for _, other := range []string{bob, viewer} {
		_, job = as(other, "GET", path, "")
		require.Equal(t, "ann", job["user"])
		require.Empty(t, job["env"], "the environment is ann's own")
	}
	status, problem = as(bob, "DELETE", path, "")
	require.Equal(t, http.StatusForbidden, status, problem)
	require.Contains(t, problem["detail"], "belongs to ann", "the controllers say so")
	status, _ = as(bob, "POST", "/api/v1/jobs", `{"command": ["true"], "user": "root"}`)
	require.Equal(t, http.StatusForbidden, status)
	status, _ = as(bob, "POST", "/api/v1/queues", `{"name": "bobs"}`)
	require.Equal(t, http.StatusForbidden, status)
	status, _ = as(admin, "POST", "/api/v1/queues", `{"name": "night", "priority": 3}`)
	require.Equal(t, http.StatusCreated, status)

	c.token = viewer
	events := c.stream()
	victim := c.primary()
	kill(c.controllers[victim])
	c.eventually(30*time.Second, "ann may release her job on the new primary", func() bool {
		status, _ = as(ann, "POST", path+"/release", "")
		return status == http.StatusAccepted
	})
	c.next(events, `"state":"PENDING"`)
	status, problem = as(bob, "DELETE", path, "")
	require.Equal(t, http.StatusForbidden, status, problem)
	status, _ = as(admin, "DELETE", path, "")
	require.Equal(t, http.StatusAccepted, status)
	_, job = as(ann, "GET", path, "")
	require.Contains(t, job["reason"], "killed by eve")

	third := 6 - (victim + 1) - (c.primary() + 1) // neither the one that was killed nor the one that leads now
	transfer := fmt.Sprintf("/api/v1/cluster/transfer?to=%d", third)
	status, _ = as(ann, "POST", transfer, "")
	require.Equal(t, http.StatusForbidden, status)
	c.startController(victim)
	c.eventually(20*time.Second, "the admin hands the primary role over", func() bool {
		status, _ = as(admin, "POST", transfer, "")
		return status == http.StatusOK
	})
	require.Equal(t, third-1, c.primary())

	for _, file := range []string{filepath.Join(c.dir, "api.log"), fmt.Sprintf("/proc/%d/cmdline", c.apiserver.Process.Pid)} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, hidden := range []string{secret, ann, admin} {
			require.NotContains(t, string(text), hidden, file)
		}
	}
}

// A cluster with TLS knows who asks. An apiserver that asks for no tokens does not, so through it nobody changes anything.
func TestWithoutTokensOverTLSOneOnlyLooks(t *testing.T) {
	c := prepare(t)
	c.pki = filepath.Join(c.dir, "pki")
	c.run("cli/xce", "pki", "init", c.pki)
	c.startAll()
	status, _, _ := c.do("GET", "/api/v1/jobs", "", "")
	require.Equal(t, http.StatusOK, status)
	status, problem, _ := c.do("POST", "/api/v1/jobs", `{"command": ["true"]}`, "")
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, problem["detail"], "--auth-key")
}
