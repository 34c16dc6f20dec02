package config

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func noEnv(string) string { return "" }

func load(args ...string) (*Config, error) { return Load(args, noEnv, "test", &bytes.Buffer{}) }

func file(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "apiserver.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestDefaults(t *testing.T) {
	config, err := load()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:9980", config.Listen)
	require.Empty(t, config.Backend.Peers)
	require.Equal(t, "localhost", config.Backend.Address)
	require.Equal(t, 9990, config.Backend.Port)
	require.Equal(t, 64, config.Backend.MaxCalls)
}

func TestFlagsBeforeEnvironmentBeforeFile(t *testing.T) {
	path := file(t, "listen: 127.0.0.1:1\nbackend:\n  peers: [\"a=h:1\", \"b=h:2\"]\n  max_calls: 3\n")
	config, err := load("--config", path)
	require.NoError(t, err)
	require.Equal(t, []string{"a=h:1", "b=h:2"}, config.Backend.Peers)
	require.Equal(t, 3, config.Backend.MaxCalls)

	env := func(name string) string { return map[string]string{"XCE_MASTERS": "e:1"}[name] }
	config, err = Load([]string{"--config", path}, env, "test", &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, []string{"e:1"}, config.Backend.Peers)

	config, err = Load([]string{"--config", path, "--peers", "f:1,g:2", "--listen", "[::1]:0"}, env, "test", &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, []string{"f:1,g:2"}, config.Backend.Peers)
	require.Equal(t, "[::1]:0", config.Listen)
}

func TestAnEmptyPeersFlagIsGivenOn(t *testing.T) {
	config, err := load("--peers", "")
	require.NoError(t, err)
	require.Equal(t, []string{""}, config.Backend.Peers, "the C parser says what is wrong with it")
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"unknown flag":  {[]string{"--bogus"}, "unknown flag --bogus; --help"},
		"argument":      {[]string{"x"}, `unexpected argument "x"`},
		"all addresses": {[]string{"--listen", "0.0.0.0:9980"}, "without TLS only loopback"},
		"another host":  {[]string{"--listen", "example.org:9980"}, "without TLS only loopback"},
		"no host":       {[]string{"--listen", ":9980"}, "without TLS only loopback"},
		"no port":       {[]string{"--listen", "127.0.0.1"}, "write host:port"},
		"port":          {[]string{"--listen", "127.0.0.1:70000"}, "within 0 and 65535"},
		"https half":    {[]string{"--https-cert", "c"}, "belong together"},
		"https, no key": {[]string{"--listen", "0.0.0.0:1", "--https-cert", "c", "--https-key", "k"}, "give --auth-key too"},
		"rate":          {[]string{"--rate", "-1"}, "within 0 and"},
		"concurrent":    {[]string{"--config", file(t, "limits: {concurrent: 0}\n")}, "limits.concurrent"},
		"waiting":       {[]string{"--config", file(t, "limits: {waiting: 0}\n")}, "limits.waiting"},
		"body":          {[]string{"--config", file(t, "limits: {body_bytes: 1}\n")}, "limits.body_bytes"},
		"burst":         {[]string{"--config", file(t, "limits: {burst: 0}\n")}, "limits.burst"},
		"log level":     {[]string{"--log-level", "loud"}, "debug, info, warn or error"},
		"timeout":       {[]string{"--timeout-ms", "1"}, "within 100"},
		"calls":         {[]string{"--max-calls", "0"}, "within 1 and 1024"},
		"no file":       {[]string{"--config", "/nonexistent/x.yaml"}, "no such file"},
		"unknown key":   {[]string{"--config", file(t, "backend:\n  peer: [a:1]\n")}, "field peer not found"},
		"wrong type":    {[]string{"--config", file(t, "backend:\n  port: many\n")}, "cannot unmarshal"},
	} {
		_, err := load(c.args...)
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestBeyondLoopbackWithHTTPSAndAuthentication(t *testing.T) {
	path := file(t, "auth: {key_file: k, issuer: i}\nlimits: {rate: 5, burst: 7}\n")
	config, err := load("--config", path, "--listen", "0.0.0.0:9980", "--https-cert", "c", "--https-key", "p", "--auth-audience", "xce", "--rate", "6")
	require.NoError(t, err)
	require.Equal(t, Auth{KeyFile: "k", Issuer: "i", Audience: "xce"}, config.Auth)
	require.Equal(t, HTTPS{Cert: "c", Key: "p"}, config.HTTPS)
	require.Equal(t, Limits{BodyBytes: 4 << 20, Concurrent: 2048, Waiting: 512, Rate: 6, Burst: 7}, config.Limits)
}

func TestHelpAndVersion(t *testing.T) {
	var out bytes.Buffer
	_, err := Load([]string{"--help"}, noEnv, "1.2", &out)
	require.ErrorIs(t, err, ErrShown)
	require.Contains(t, out.String(), "Examples:")
	out.Reset()
	_, err = Load([]string{"--version"}, noEnv, "1.2", &out)
	require.ErrorIs(t, err, ErrShown)
	require.Equal(t, "xce_apiserver 1.2\n", out.String())
}
