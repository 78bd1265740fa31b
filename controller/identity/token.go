package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"prp/controller/bridge"
)

const (
	// nbfLeeway is how far this machine's clock may be behind the issuer's: a
	// token is often used in the second in which it was made.
	nbfLeeway = time.Minute
	// DefaultRenewBefore is how long before its end a token is replaced.
	DefaultRenewBefore = time.Minute
	// DefaultRenewEvery is how often the file is looked at from then on.
	DefaultRenewEvery = 5 * time.Second
	// maxDate is the largest time of a claim, in seconds: the year 9999.
	maxDate = 253402300799
)

// TokenConfig names the file and its owner.
type TokenConfig struct {
	// File has the token in compact form; only its owner may be able to read it.
	File string
	// Subject is what the claim "sub" has to be: the connector_id.
	Subject string
	// RenewBefore and RenewEvery are the defaults above where they are 0.
	RenewBefore, RenewEvery time.Duration
	// Tell is told once of each content that cannot be used while the old token
	// stays. It must not block. Nil tells nobody.
	Tell func(error)
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// Claims are what is read of a token.
type Claims struct {
	Subject string
	// Expires and NotBefore are zero where the token does not have them.
	Expires, NotBefore time.Time
}

// Token is a JSON Web Token that follows its file. It is safe for use by many
// goroutines.
type Token struct {
	cfg TokenConfig
	mu  sync.Mutex
	// told is what was last told, so that it is told once.
	told   string
	inUse  string
	claims Claims
}

// NewToken reads the file, which has to be good.
func NewToken(cfg TokenConfig) (*Token, error) {
	if cfg.Subject == "" {
		return nil, errors.New("expected the subject of the token, got none")
	}
	if cfg.RenewBefore <= 0 {
		cfg.RenewBefore = DefaultRenewBefore
	}
	if cfg.RenewEvery <= 0 {
		cfg.RenewEvery = DefaultRenewEvery
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Tell == nil {
		cfg.Tell = func(error) {}
	}
	t := &Token{cfg: cfg}
	var err error
	t.inUse, t.claims, err = t.read()
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Get is the token for an upgrade or a request. It reads the file, and returns
// the last good token where that is not good, as while it is being replaced. It
// is an [ErrNotValid] where that token has expired since. Its form is that of
// [bridge.LinkConfig].
func (t *Token) Get() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	if err := t.valid(t.claims); err != nil {
		return "", err
	}
	return t.inUse, nil
}

// Claims are those of the token that is in use.
func (t *Token) Claims() Claims {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.claims
}

// look takes what is in the file now where it is good.
func (t *Token) look() {
	text, claims, err := t.read()
	if err == nil {
		t.inUse, t.claims, t.told = text, claims, ""
		return
	}
	if err.Error() != t.told {
		t.told = err.Error()
		t.cfg.Tell(fmt.Errorf("the token that was there before is still used: %w", err))
	}
}

// Renewed blocks until the file has another token than the one in use, and
// begins to look [TokenConfig.RenewBefore] before the end of that. The next Get
// gives the new one: a link that is open was made with the old one, and has to
// be made anew. It returns an [ErrNotValid] when the old one has ended without a
// new one, and the cause where ctx ends. A token without an end is not renewed.
func (t *Token) Renewed(ctx context.Context) error {
	t.mu.Lock()
	old, claims := t.inUse, t.claims
	t.mu.Unlock()
	if claims.Expires.IsZero() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for {
		// The end is a time of the wall clock, which may be set meanwhile: it is
		// looked at often and never slept through.
		now := t.cfg.Now()
		if !now.Before(claims.Expires.Add(-t.cfg.RenewBefore)) {
			text, err := t.Get()
			if err != nil || text != old {
				return err
			}
		}
		timer := time.NewTimer(t.cfg.RenewEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// read takes what is in the file.
func (t *Token) read() (string, Claims, error) {
	text, err := "", regular(t.cfg.File)
	if err == nil {
		text, err = bridge.ReadSecret(t.cfg.File)
	}
	if err != nil {
		return "", Claims{}, fmt.Errorf("token: %w", err)
	}
	claims, err := ParseToken(text)
	if err == nil && claims.Subject != t.cfg.Subject {
		err = fmt.Errorf("expected a token whose \"sub\" is the connector_id %q, got %q; ask for a token of this connector",
			t.cfg.Subject, claims.Subject)
	}
	if err != nil {
		return "", Claims{}, fmt.Errorf("%s: %w", t.cfg.File, err)
	}
	return text, claims, t.valid(claims)
}

// valid tells before a request what a server would only refuse.
func (t *Token) valid(c Claims) error {
	now := t.cfg.Now()
	switch {
	case !c.Expires.IsZero() && !now.Before(c.Expires):
		return fmt.Errorf("%s: %w: expected a token that is valid now, got one whose \"exp\" is %s; replace it",
			t.cfg.File, ErrNotValid, stamp(c.Expires))
	case now.Add(nbfLeeway).Before(c.NotBefore):
		return fmt.Errorf("%s: %w: expected a token that is valid now, got one whose \"nbf\" is %s; replace it, or set this machine's clock",
			t.cfg.File, ErrNotValid, stamp(c.NotBefore))
	}
	return nil
}

// ParseToken reads the claims of a token in compact form (RFC 7519), and does
// not verify it. A token that is not signed, or whose signature is cut, is refused.
func ParseToken(text string) (Claims, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Claims{}, fmt.Errorf("expected a token of three parts with a dot between them, got %d", len(parts))
	}
	header, err := object("header", parts[0])
	if err != nil {
		return Claims{}, err
	}
	alg, err := word(header, "alg")
	if err != nil {
		return Claims{}, err
	}
	if alg == "" || strings.EqualFold(alg, "none") || parts[2] == "" {
		return Claims{}, errors.New("expected a token that is signed, got one that is not")
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return Claims{}, errors.New("expected a signature in base64url form")
	}
	body, err := object("claims", parts[1])
	if err != nil {
		return Claims{}, err
	}
	var c Claims
	var err1, err2, err3 error
	c.Subject, err1 = word(body, "sub")
	c.Expires, err2 = date(body, "exp")
	c.NotBefore, err3 = date(body, "nbf")
	return c, errors.Join(err1, err2, err3, whole(alg, len(signature)))
}

// signatureSizes are bytes by algorithm (RFC 7518 and 8037).
var signatureSizes = map[string]int{
	"HS256": 32, "HS384": 48, "HS512": 64, "ES256": 64, "ES384": 96, "ES512": 132, "EdDSA": 64,
}

// leastRSA is the signature of the smallest key that is allowed, in bytes (RFC
// 7518, 3.3).
const leastRSA = 256

// whole tells a signature that is cut, as in a file that is being written, which
// else would look like a new token. Of an algorithm that is not known any is
// whole.
func whole(alg string, size int) error {
	want, exact := signatureSizes[alg]
	switch {
	case exact && size != want:
		return fmt.Errorf("expected a signature of %d bytes for %s, got %d", want, alg, size)
	case (strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")) && size < leastRSA:
		return fmt.Errorf("expected a signature of %d bytes or more for %q, got %d", leastRSA, alg, size)
	}
	return nil
}

// object decodes a part. Names are compared exactly, as a map does and a struct
// does not.
func object(name, part string) (map[string]json.RawMessage, error) {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	var m map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &m) != nil || m == nil {
		// The cause would show a piece of the token.
		return nil, fmt.Errorf("expected a token whose %s is a JSON object in base64url form", name)
	}
	return m, nil
}

// word is a claim that is text, empty where it is absent.
func word(m map[string]json.RawMessage, name string) (string, error) {
	var s string
	if raw, ok := m[name]; ok && (json.Unmarshal(raw, &s) != nil || string(raw) == "null") {
		return "", fmt.Errorf("expected %q to be text", name)
	}
	return s, nil
}

// date is a claim in seconds since 1970, zero where it is absent.
func date(m map[string]json.RawMessage, name string) (time.Time, error) {
	raw, ok := m[name]
	if !ok {
		return time.Time{}, nil
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) != nil || string(raw) == "null" || seconds < 0 || seconds > maxDate {
		return time.Time{}, fmt.Errorf("expected %q to be seconds since 1970", name)
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), nil
}
