package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// certificate is what HTTPS is served with. Its files are read again when they have changed, so that it can be renewed without a restart.
type certificate struct {
	cert, key string
	log       *zap.Logger

	mu      sync.Mutex
	current *tls.Certificate
	stamp   string
	checked time.Time
}

func newCertificate(cert, key string, log *zap.Logger) (*certificate, error) {
	if info, err := os.Stat(key); err == nil && info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("everybody can read the key %s: chmod 600 it", key)
	}
	c := &certificate{cert: cert, key: key, log: log, stamp: stamp(cert, key)}
	pair, err := tls.LoadX509KeyPair(cert, key)
	c.current = &pair
	return c, err
}

func stamp(paths ...string) (out string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			out += fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), " ")
		}
	}
	return out
}

// get looks at the files at most once a second. A pair that cannot be used (half copied) leaves the one before in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < time.Second {
		return c.current, nil
	}
	c.checked = time.Now()
	now := stamp(c.cert, c.key)
	if now == c.stamp {
		return c.current, nil
	}
	c.stamp = now
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.log.Error("the changed HTTPS certificate cannot be used; the one before stays in use", zap.Error(err))
		return c.current, nil
	}
	c.log.Info("the HTTPS certificate was read again", zap.String("file", c.cert))
	c.current = &pair
	return c.current, nil
}
