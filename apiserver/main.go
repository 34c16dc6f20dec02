// xce_apiserver serves the REST interface and the web page of an XCE cluster. See DESIGN, "apiserver".
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"xce.example/apiserver/api"
	"xce.example/apiserver/auth"
	"xce.example/apiserver/backend"
	"xce.example/apiserver/config"
	"xce.example/apiserver/events"
	"xce.example/apiserver/model"
	"xce.example/apiserver/web"
)

var version = "0.1.0"

const (
	exitFailure = 1
	exitUsage   = 2
	shutdownFor = 10 * time.Second // for requests that are under way at SIGTERM
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "token" {
		if err := issueToken(os.Args[2:], os.Stdout); err != nil {
			fail(exitUsage, err)
		}
		return
	}
	settings, err := config.Load(os.Args[1:], os.Getenv, version, os.Stdout)
	if errors.Is(err, config.ErrShown) {
		return
	}
	if err != nil {
		fail(exitUsage, err)
	}
	log, err := newLogger(settings.LogLevel)
	if err != nil {
		fail(exitUsage, err)
	}
	code := run(settings, log)
	_ = log.Sync() // stderr may be no file
	os.Exit(code)
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "xce_apiserver:", err)
	os.Exit(code)
}

func newLogger(level string) (*zap.Logger, error) {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	settings := zap.NewProductionConfig()
	settings.Level = zap.NewAtomicLevelAt(parsed)
	settings.Encoding = "console"
	settings.Sampling = nil
	settings.DisableCaller, settings.DisableStacktrace = true, true
	settings.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	return settings.Build()
}

// run serves until SIGTERM or SIGINT. HTTP comes up first, so that /livez and /readyz tell how the connection to the cluster goes.
func run(settings *config.Config, log *zap.Logger) int {
	signals, restore := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer restore()
	hub := &events.Hub{}
	client, err := backend.RegisterToBackend(&backend.Config{Peers: settings.Backend.Peers, Address: settings.Backend.Address, Port: settings.Backend.Port,
		Name: settings.Backend.Name, Timeout: settings.Backend.Timeout(), Slots: settings.Backend.MaxCalls,
		TLSCA: settings.Backend.TLSCA, TLSCert: settings.Backend.TLSCert, TLSKey: settings.Backend.TLSKey,
		ExitIfUnreachable: settings.ExitIfUnreachable}, hub, log)
	if err != nil {
		log.Error("the settings of the connection to the controllers are wrong (--peers, --tls-...)", zap.Error(err))
		return exitUsage
	}
	defer client.Close()
	listener, err := net.Listen("tcp", settings.Listen)
	if err != nil {
		explainListen(log, settings.Listen, err)
		return exitFailure
	}
	options, err := apiOptions(settings, log)
	if err != nil {
		log.Error("the keys that tokens are checked with cannot be used", zap.Error(err))
		return exitUsage
	}
	rest := api.New(client, hub, log, version, options)
	server, serve, err := newServer(settings, rest.Handler(web.Handler()), listener, log)
	if err != nil {
		log.Error("--https-cert, --https-key", zap.Error(err))
		return exitUsage
	}
	served := make(chan error, 1)
	go func() { served <- serve() }()
	if err := writePort(settings.PortFile, listener.Addr()); err != nil {
		log.Error("--port-file", zap.Error(err))
		return exitFailure
	}
	log.Info("xce_apiserver ready on "+listener.Addr().String(), zap.String("version", version), zap.Strings("candidates", client.Connection().Peers),
		zap.Bool("https", settings.HTTPS.Cert != ""), zap.Bool("tokens", options.Verifier != nil))

	started := make(chan error, 1)
	go func() { started <- client.Start() }()
	code := 0
	for waiting := true; waiting; {
		select {
		case err := <-started:
			started = nil
			if err != nil && settings.ExitIfUnreachable {
				log.Error("giving up, as --exit-if-unreachable says", zap.Error(err))
				code, waiting = exitFailure, false
			} // else it goes on trying, and has said so
		case err := <-served:
			log.Error("serving HTTP failed", zap.Error(err))
			code, waiting = exitFailure, false
		case <-signals.Done():
			log.Info("shutting down: requests under way are finished first")
			waiting = false
		}
	}
	restore()       // a second signal ends the process at once
	rest.Shutdown() // streams end with a hint, /readyz says no
	limit, cancel := context.WithTimeout(context.Background(), shutdownFor)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		log.Warn("some requests were cut off", zap.Error(err))
	}
	hub.Close()
	if started != nil { // Close may not overtake Start
		client.Cancel()
		<-started
	}
	log.Info("stopped")
	return code
}

// newServer makes the HTTP server, and what serves with it: HTTPS when there is a certificate.
func newServer(settings *config.Config, handler http.Handler, listener net.Listener, log *zap.Logger) (*http.Server, func() error, error) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: zap.NewStdLog(log.Named("http"))}
	if settings.HTTPS.Cert == "" {
		return server, func() error { return server.Serve(listener) }, nil
	}
	certificate, err := newCertificate(settings.HTTPS.Cert, settings.HTTPS.Key, log)
	if err != nil {
		return nil, nil, err
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: certificate.get}
	return server, func() error { return server.ServeTLS(listener, "", "") }, nil
}

// apiOptions says who may ask and how much.
func apiOptions(settings *config.Config, log *zap.Logger) (api.Options, error) {
	options := api.Options{BodyBytes: settings.Limits.BodyBytes, Concurrent: settings.Limits.Concurrent, Waiting: settings.Limits.Waiting,
		Rate: settings.Limits.Rate, Burst: settings.Limits.Burst,
		AnswerWithin: settings.Backend.Timeout() + time.Minute}
	if settings.Auth.KeyFile != "" {
		verifier, err := auth.NewVerifier(auth.Options{KeyFile: settings.Auth.KeyFile, Issuer: settings.Auth.Issuer, Audience: settings.Auth.Audience}, log)
		if err != nil {
			return options, err
		}
		options.Verifier, options.AnyHost = verifier, true // a stranger's page has no token
		return options, nil
	}
	options.Anonymous = &model.Person{User: "nobody", Role: model.Viewer, UID: model.NobodyID, GID: model.NobodyID}
	if settings.Backend.TLSCert != "" {
		log.Warn("no --auth-key: everybody on this host may look, nobody may change anything")
		return options, nil
	}
	who, err := user.Current()
	if err != nil {
		return options, err
	}
	// Without TLS the controllers believe whatever anybody on this host says: nothing is won by asking more of them here.
	options.Anonymous.User, options.Anonymous.Role, options.Anonymous.Trusted = who.Username, model.Admin, true
	options.Anonymous.UID, options.Anonymous.GID, options.Anonymous.IDsKnown = auth.IDs(who)
	return options, nil
}

func explainListen(log *zap.Logger, address string, err error) {
	if errors.Is(err, syscall.EADDRINUSE) {
		log.Error("another process serves on "+address+": stop it or choose another --listen", zap.Error(err))
		return
	}
	log.Error("cannot listen on "+address, zap.Error(err))
}

// writePort writes the port atomically, for tests that let us choose one.
func writePort(path string, address net.Addr) error {
	if path == "" {
		return nil
	}
	port := address.(*net.TCPAddr).Port
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(port)+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
