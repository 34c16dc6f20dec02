package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"xce.example/apiserver/model"
)

// Wish says what token to issue.
type Wish struct {
	User     string
	Role     string
	UID, GID *uint32 // both or none; none: the server looks the user up
	Issuer   string
	Audience string
	For      time.Duration
}

// Issue makes a token, signed with the secret or the private key in keyFile.
func Issue(keyFile string, wish Wish, now time.Time) (string, error) {
	if !goodName(wish.User) {
		return "", errors.New("--user: give a user's name")
	}
	if !slices.Contains(model.RoleNames, wish.Role) {
		return "", fmt.Errorf("--role %s: it is viewer, user or admin", wish.Role)
	}
	if (wish.UID == nil) != (wish.GID == nil) {
		return "", errors.New("give both --uid and --gid, or none")
	}
	if wish.For <= 0 {
		return "", errors.New("--hours must be above 0")
	}
	data, err := readKeyFile(keyFile)
	if err != nil {
		return "", err
	}
	method, key, err := signer(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", keyFile, err)
	}
	claims := Claims{Role: wish.Role, UID: wish.UID, GID: wish.GID, RegisteredClaims: jwt.RegisteredClaims{Subject: wish.User, Issuer: wish.Issuer,
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(wish.For))}}
	if wish.Audience != "" {
		claims.Audience = jwt.ClaimStrings{wish.Audience}
	}
	return jwt.NewWithClaims(method, claims).SignedString(key)
}

func signer(data []byte) (jwt.SigningMethod, any, error) {
	if !bytes.Contains(data, []byte("-----BEGIN")) {
		if _, err := parseKeys(data); err != nil {
			return nil, nil, err
		}
		return jwt.SigningMethodHS256, data, nil
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		switch key := key.(type) {
		case *rsa.PrivateKey:
			return jwt.SigningMethodRS256, key, nil
		case ed25519.PrivateKey:
			return jwt.SigningMethodEdDSA, key, nil
		case *ecdsa.PrivateKey:
			method := map[int]jwt.SigningMethod{256: jwt.SigningMethodES256, 384: jwt.SigningMethodES384, 521: jwt.SigningMethodES512}[key.Curve.Params().BitSize]
			if method != nil {
				return method, key, nil
			}
		}
		return nil, nil, errors.New("tokens are signed with RSA, EC (P-256, P-384, P-521) or Ed25519 keys")
	}
	return nil, nil, errors.New("it holds no private key; tokens are signed with one, or with a secret")
}
