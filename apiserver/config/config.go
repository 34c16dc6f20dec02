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
	Backend           Backend `yaml:"backend"`
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

  --listen HOST:PORT     where to serve HTTP; port 0 takes a free one (default 127.0.0.1:9980).
                         Without TLS only loopback addresses are possible.
  --peers LIST           the controllers, [name=]host:port[,...] (default localhost:9990; environment XCE_MASTERS)
  --config FILE          YAML: listen, log_level, exit_if_unreachable, backend: {peers, address, port, name, timeout_ms, max_calls,
                         tls_ca, tls_cert, tls_key}
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
	set := map[string]func(){
		"listen":              func() { config.Listen = given.Listen },
		"name":                func() { config.Backend.Name = given.Backend.Name },
		"timeout-ms":          func() { config.Backend.TimeoutMs = given.Backend.TimeoutMs },
		"max-calls":           func() { config.Backend.MaxCalls = given.Backend.MaxCalls },
		"exit-if-unreachable": func() { config.ExitIfUnreachable = given.ExitIfUnreachable },
		"port-file":           func() { config.PortFile = given.PortFile },
		"log-level":           func() { config.LogLevel = given.LogLevel },
		"peers":               func() { config.Backend.Peers = []string{peers} },
		"tls-ca":              func() { config.Backend.TLSCA = given.Backend.TLSCA },
		"tls-cert":            func() { config.Backend.TLSCert = given.Backend.TLSCert },
		"tls-key":             func() { config.Backend.TLSKey = given.Backend.TLSKey },
	}
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

// read gives the defaults, with what a file changes; path "" is none.
func read(path string) (*Config, error) {
	config := &Config{Listen: "127.0.0.1:9980", LogLevel: "info", Backend: Backend{Address: "localhost", Port: 9990, TimeoutMs: 10000, MaxCalls: 64}}
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
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %s: without TLS only loopback addresses are possible, such as 127.0.0.1:%s; "+
			"reach it from elsewhere through ssh -L", c.Listen, port)
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
