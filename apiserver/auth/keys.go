// Package auth says who a bearer token belongs to and what they may do. Tokens are JWTs, signed by a key of a file: a shared secret, or the
// private half of public keys. Keys come from files only: never from arguments, and never into logs.
package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/golang-jwt/jwt/v5"
)

const (
	minSecretBytes = 32
	maxKeyFile     = 1 << 20
)

// keySet is what a key file holds. Every key has exactly one kind of algorithm, so that a token cannot choose another for it.
type keySet struct {
	byMethod map[string][]jwt.VerificationKey
	methods  []string
}

func (k *keySet) add(key jwt.VerificationKey, methods ...string) {
	for _, method := range methods {
		if _, known := k.byMethod[method]; !known {
			k.methods = append(k.methods, method)
		}
		k.byMethod[method] = append(k.byMethod[method], key)
	}
}

// readKeyFile reads a file that others may not read, unless it holds public keys only.
func readKeyFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxKeyFile {
		return nil, fmt.Errorf("%s has %d bytes: that is no key", path, info.Size())
	}
	data := make([]byte, info.Size())
	n, err := file.Read(data)
	if err != nil && info.Size() > 0 {
		return nil, err
	}
	data = bytes.TrimSpace(data[:n])
	public := bytes.Contains(data, []byte("-----BEGIN")) && !bytes.Contains(data, []byte("PRIVATE KEY"))
	if !public && info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("everybody can read the key in %s: chmod 600 it, and replace the key if others may have seen it", path)
	}
	return data, nil
}

// parseKeys makes the set of a key file: public keys or certificates in PEM, one or several, or a secret of 32 bytes or more.
func parseKeys(data []byte) (*keySet, error) {
	set := &keySet{byMethod: map[string][]jwt.VerificationKey{}}
	if !bytes.Contains(data, []byte("-----BEGIN")) {
		if len(data) < minSecretBytes {
			return nil, fmt.Errorf("the secret has %d bytes, at least %d are needed: make one with 'openssl rand -base64 48'", len(data), minSecretBytes)
		}
		set.add(data, "HS256")
		return set, nil
	}
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if err := set.addPEM(block); err != nil {
			return nil, err
		}
	}
	if len(set.methods) == 0 {
		return nil, errors.New("it holds no whole PEM block")
	}
	return set, nil
}

func (k *keySet) addPEM(block *pem.Block) error {
	var public any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			public = certificate.PublicKey
		}
	case "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY":
		return errors.New("it holds a private key, which belongs to whoever issues tokens: give the server the public key ('openssl pkey -pubout')")
	default:
		return fmt.Errorf("it holds a PEM block %q; PUBLIC KEY and CERTIFICATE are known", block.Type)
	}
	if err != nil {
		return fmt.Errorf("a %s cannot be read: %w", block.Type, err)
	}
	switch key := public.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < 2048 {
			return fmt.Errorf("an RSA key of %d bits is too short: 2048 at least", key.N.BitLen())
		}
		k.add(key, "RS256", "RS384", "RS512", "PS256")
	case *ecdsa.PublicKey:
		method, known := map[elliptic.Curve]string{elliptic.P256(): "ES256", elliptic.P384(): "ES384", elliptic.P521(): "ES512"}[key.Curve]
		if !known {
			return errors.New("an EC key must be of curve P-256, P-384 or P-521")
		}
		k.add(key, method)
	case ed25519.PublicKey:
		k.add(key, "EdDSA")
	default:
		return fmt.Errorf("a key of type %T is not supported: RSA, EC and Ed25519 are", public)
	}
	return nil
}
