// Package config reads the apiserver's flags, environment and YAML file. Flags override XCE_MASTERS, which overrides the file.
package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Config of the apiserver.
type Config struct {
	Listen            string  `yaml:"listen"`
	PortFile          string  `yaml:"-"`
	LogLevel          string  `yaml:"log_level"`
	ExitIfUnreachable bool    `yaml:"exit_if_unreachable"`
	HTTPS             HTTPS   `yaml:"https"`
	Auth              Auth    `yaml:"auth"`
	Limits            Limits  `yaml:"limits"`
	Backend           Backend `yaml:"backend"`
}

// HTTPS serves over TLS; both files or none. They are read again when they have changed.
type HTTPS struct {
	Cert string `yaml:"cert"` // PEM: our certificate and those between it and its authority
	Key  string `yaml:"key"`
}

// Auth of requests: none without a key file.
type Auth struct {
	KeyFile  string `yaml:"key_file"`
	Issuer   string `yaml:"issuer"`
	Audience string `yaml:"audience"`
}

// Limits of requests.
type Limits struct {
	BodyBytes  int64   `yaml:"body_bytes"`
	Concurrent int     `yaml:"concurrent"` // requests at once, without streams and those that wait
	Waiting    int     `yaml:"waiting"`    // requests with ?wait= and streams at once
	Rate       float64 `yaml:"rate"`       // requests a second of one caller; 0: any
	Burst      int     `yaml:"burst"`      // that may come at once
}

// Backend section: how to reach the controllers.
type Backend struct {
	Peers     []string `yaml:"peers"`   // candidates as [name=]host:port; empty: the one at Address and Port
	Address   string   `yaml:"address"` // of the only candidate
	Port      int      `yaml:"port"`
	Name      string   `yaml:"name"`       // this apiserver's, in the controllers' logs
	TimeoutMs int      `yaml:"timeout_ms"` // of one call
	MaxCalls  int      `yaml:"max_calls"`  // at once
	TLSCA     string   `yaml:"tls_ca"`     // PEM files: the authority, our certificate, its key; all empty: without TLS
	TLSCert   string   `yaml:"tls_cert"`
	TLSKey    string   `yaml:"tls_key"`
}

// Timeout of one call.
func (b *Backend) Timeout() time.Duration { return time.Duration(b.TimeoutMs) * time.Millisecond }

const help = `xce_apiserver: the REST interface and the web page of an XCE cluster.

Usage: xce_apiserver [flags]
       xce_apiserver token --key FILE --user NAME --role viewer|user|admin [--hours N] [--uid N --gid N] [--issuer I] [--audience A]

  --listen HOST:PORT     where to serve HTTP; port 0 takes a free one (default 127.0.0.1:9980).
                         Beyond loopback it needs --https-cert and --auth-key.
  --https-cert FILE      serve HTTPS with this certificate (PEM, with those between it and its authority)
  --https-key FILE       its key
  --auth-key FILE        take only requests with a bearer token (JWT) signed by the key in FILE: public keys in PEM, or a secret
  --auth-issuer NAME     and only tokens of this iss; --auth-audience NAME: only tokens for this aud
  --rate N               requests a second of one caller (default 1000, 0: any); more get 429
  --peers LIST           the controllers, [name=]host:port[,...] (default localhost:9990; environment XCE_MASTERS)
  --config FILE          YAML: listen, log_level, exit_if_unreachable, https: {cert, key}, auth: {key_file, issuer, audience},
                         limits: {body_bytes, concurrent, waiting, rate, burst}, backend: {peers, address, port, name, timeout_ms,
                         max_calls, tls_ca, tls_cert, tls_key}
  --name NAME            name of this apiserver for the controllers (default: the host's name)
  --tls-ca FILE          the authority of the cluster's certificates (environment XCE_TLS_CA); with the next two: TLS to the controllers
  --tls-cert FILE        certificate of this apiserver (XCE_TLS_CERT)
  --tls-key FILE         its key (XCE_TLS_KEY)
  --timeout-ms N         deadline of one call to the controllers (default 10000)
  --max-calls N          calls to the controllers at once; more requests wait (default 64)
  --exit-if-unreachable  exit when no controller can be reached at the start, instead of waiting for one
  --port-file FILE       write the port there when serving
  --log-level LEVEL      debug, info, warn or error (default info)
  --version              print the version
  --help                 print this

Examples:
  xce_apiserver --peers 127.0.0.1:9990,127.0.0.1:9992,127.0.0.1:9994
  XCE_MASTERS=n1=127.0.0.1:9990 xce_apiserver --listen 127.0.0.1:8080
  curl -s http://127.0.0.1:9980/api/v1/jobs?state=RUNNING
  curl -s http://127.0.0.1:9980/api/v1/jobs -H 'Content-Type: application/json' -H "Idempotency-Key: $(uuidgen)" \
       -d '{"command": ["sleep", "10"]}'
`

// ErrShown means that the user has got what they asked for (--help, --version): exit 0.
var ErrShown = errors.New("shown")

// Load makes the configuration of a command line. Help and version go to out. An error is for the user, exit code 2.
func Load(args []string, env func(string) string, version string, out io.Writer) (*Config, error) {
	flags := flag.NewFlagSet("xce_apiserver", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	given := Config{}
	var file, peers string
	var showVersion bool
	flags.StringVar(&given.Listen, "listen", "", "")
	flags.StringVar(&peers, "peers", "", "")
	flags.StringVar(&file, "config", "", "")
	flags.StringVar(&given.Backend.Name, "name", "", "")
	flags.StringVar(&given.Backend.TLSCA, "tls-ca", "", "")
	flags.StringVar(&given.Backend.TLSCert, "tls-cert", "", "")
	flags.StringVar(&given.Backend.TLSKey, "tls-key", "", "")
	flags.IntVar(&given.Backend.TimeoutMs, "timeout-ms", 0, "")
	flags.IntVar(&given.Backend.MaxCalls, "max-calls", 0, "")
	flags.BoolVar(&given.ExitIfUnreachable, "exit-if-unreachable", false, "")
	flags.StringVar(&given.PortFile, "port-file", "", "")
	flags.StringVar(&given.LogLevel, "log-level", "", "")
	flags.StringVar(&given.HTTPS.Cert, "https-cert", "", "")
	flags.StringVar(&given.HTTPS.Key, "https-key", "", "")
	flags.StringVar(&given.Auth.KeyFile, "auth-key", "", "")
	flags.StringVar(&given.Auth.Issuer, "auth-issuer", "", "")
	flags.StringVar(&given.Auth.Audience, "auth-audience", "", "")
	flags.Float64Var(&given.Limits.Rate, "rate", 0, "")
	flags.BoolVar(&showVersion, "version", false, "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, help)
		return nil, ErrShown
	} else if err != nil {
		return nil, fmt.Errorf("%s; --help lists the flags", strings.Replace(err.Error(), "flag provided but not defined: -", "unknown flag --", 1))
	}
	if showVersion {
		fmt.Fprintln(out, "xce_apiserver", version)
		return nil, ErrShown
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; --help lists the flags", flags.Arg(0))
	}
	config, err := read(file)
	if err != nil {
		return nil, err
	}
	set := config.setters(&given, &peers)
	if masters := env("XCE_MASTERS"); masters != "" {
		config.Backend.Peers = []string{masters}
	}
	for name, path := range map[string]*string{"XCE_TLS_CA": &config.Backend.TLSCA, "XCE_TLS_CERT": &config.Backend.TLSCert,
		"XCE_TLS_KEY": &config.Backend.TLSKey} {
		if value := env(name); value != "" {
			*path = value
		}
	}
	flags.Visit(func(f *flag.Flag) {
		if apply := set[f.Name]; apply != nil {
			apply()
		}
	})
	return config, config.check()
}

// setters puts what a flag has given into c, by the flag's name.
func (c *Config) setters(given *Config, peers *string) map[string]func() {
	return map[string]func(){
		"https-cert":          func() { c.HTTPS.Cert = given.HTTPS.Cert },
		"https-key":           func() { c.HTTPS.Key = given.HTTPS.Key },
		"auth-key":            func() { c.Auth.KeyFile = given.Auth.KeyFile },
		"auth-issuer":         func() { c.Auth.Issuer = given.Auth.Issuer },
		"auth-audience":       func() { c.Auth.Audience = given.Auth.Audience },
		"rate":                func() { c.Limits.Rate = given.Limits.Rate },
		"listen":              func() { c.Listen = given.Listen },
		"name":                func() { c.Backend.Name = given.Backend.Name },
		"timeout-ms":          func() { c.Backend.TimeoutMs = given.Backend.TimeoutMs },
		"max-calls":           func() { c.Backend.MaxCalls = given.Backend.MaxCalls },
		"exit-if-unreachable": func() { c.ExitIfUnreachable = given.ExitIfUnreachable },
		"port-file":           func() { c.PortFile = given.PortFile },
		"log-level":           func() { c.LogLevel = given.LogLevel },
		"peers":               func() { c.Backend.Peers = []string{*peers} },
		"tls-ca":              func() { c.Backend.TLSCA = given.Backend.TLSCA },
		"tls-cert":            func() { c.Backend.TLSCert = given.Backend.TLSCert },
		"tls-key":             func() { c.Backend.TLSKey = given.Backend.TLSKey },
	}
}

// read gives the defaults, with what a file changes; path "" is none.
func read(path string) (*Config, error) {
	config := &Config{Listen: "127.0.0.1:9980", LogLevel: "info",
		Limits:  Limits{BodyBytes: 4 << 20, Concurrent: 2048, Waiting: 512, Rate: 1000, Burst: 2000},
		Backend: Backend{Address: "localhost", Port: 9990, TimeoutMs: 10000, MaxCalls: 64}}
	if path == "" {
		return config, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(config); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("--config %s: %w", path, err)
	}
	return config, nil
}

// check refuses what cannot work. The candidate list is not looked at: libxce's parser does that.
func (c *Config) check() error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: write host:port, such as 127.0.0.1:9980", c.Listen)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("--listen %s: the port must be within 0 and 65535", c.Listen)
	}
	if (c.HTTPS.Cert == "") != (c.HTTPS.Key == "") {
		return errors.New("--https-cert and --https-key belong together: give both or none")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		switch {
		case c.HTTPS.Cert == "":
			return fmt.Errorf("--listen %s: without TLS only loopback addresses are possible, such as 127.0.0.1:%s; "+
				"give --https-cert, --https-key and --auth-key, or reach it from elsewhere through ssh -L", c.Listen, port)
		case c.Auth.KeyFile == "":
			return fmt.Errorf("--listen %s: beyond loopback everybody would be let in; give --auth-key too", c.Listen)
		}
	}
	if err := c.Limits.check(); err != nil {
		return err
	}
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
	default:
		return fmt.Errorf("--log-level %s: it is debug, info, warn or error", c.LogLevel)
	}
	if c.Backend.TimeoutMs < 100 || c.Backend.TimeoutMs > 600000 {
		return fmt.Errorf("--timeout-ms %d: it must be within 100 and 600000", c.Backend.TimeoutMs)
	}
	if c.Backend.MaxCalls < 1 || c.Backend.MaxCalls > 1024 {
		return fmt.Errorf("--max-calls %d: it must be within 1 and 1024", c.Backend.MaxCalls)
	}
	if c.Backend.Name == "" {
		c.Backend.Name, _ = os.Hostname() // only for logs
	}
	return nil
}

func (l *Limits) check() error {
	switch {
	case l.BodyBytes < 1024 || l.BodyBytes > 64<<20:
		return fmt.Errorf("limits.body_bytes %d: it must be within 1024 and 67108864", l.BodyBytes)
	case l.Concurrent < 1 || l.Concurrent > 100000:
		return fmt.Errorf("limits.concurrent %d: it must be within 1 and 100000", l.Concurrent)
	case l.Waiting < 1 || l.Waiting > 100000:
		return fmt.Errorf("limits.waiting %d: it must be within 1 and 100000", l.Waiting)
	case l.Rate < 0 || l.Rate > 1e6:
		return fmt.Errorf("--rate %v: it must be within 0 and 1000000", l.Rate)
	case l.Burst < 1:
		return fmt.Errorf("limits.burst %d: it must be 1 or more", l.Burst)
	}
	return nil
}
