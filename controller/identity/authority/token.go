package authority

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// tokenHeader is the header of every token of an authority (RFC 8037).
var tokenHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","typ":"JWT"}`))

// Token signs claims, as a JSON Web Token in compact form.
func (a *Authority) Token(claims map[string]any) (string, error) {
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := tokenHeader + "." + base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(a.tokenKey, []byte(text))), nil
}

// ConnectorToken is a token of one subject that ends after a while.
func (a *Authority) ConnectorToken(subject string, life time.Duration) (string, error) {
	now := time.Now()
	return a.Token(map[string]any{"sub": subject, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(life).Unix()})
}

// Verify checks the signature and the times of a token of this authority, and
// returns its subject. It is what a server does before it looks at anything
// else.
func (a *Authority) Verify(token string, now time.Time) (subject string, err error) {
	head, rest, _ := strings.Cut(token, ".")
	body, signature, ok := strings.Cut(rest, ".")
	if !ok || head != tokenHeader {
		return "", errors.New("expected a token of this server")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !ed25519.Verify(a.tokenKey.Public().(ed25519.PublicKey), []byte(head+"."+body), raw) {
		return "", errors.New("expected a token that this server has signed")
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return "", err
	}
	var c claims
	if err := json.Unmarshal(text, &c); err != nil {
		return "", fmt.Errorf("claims: %w", err)
	}
	exp, noExp := claim[*float64](c, "exp")
	nbf, noNbf := claim[*float64](c, "nbf")
	sub, noSub := claim[string](c, "sub")
	if err := errors.Join(noExp, noNbf, noSub); err != nil {
		return "", err
	}
	at := float64(now.UnixNano()) / 1e9
	switch {
	case exp == nil || at >= *exp:
		return "", errors.New("expected a token that has not expired")
	case nbf != nil && at < *nbf:
		return "", errors.New("expected a token that has begun")
	}
	return sub, nil
}

// claims are the claims of a token, by their exact names: package json would take
// Exp for exp.
type claims map[string]json.RawMessage

// claim reads one, the zero value where it is absent. An error shows nothing of the
// token.
func claim[T any](c claims, name string) (v T, err error) {
	if raw := c[name]; raw != nil && json.Unmarshal(raw, &v) != nil {
		return v, fmt.Errorf("expected another type for the claim %q", name)
	}
	return v, nil
}
