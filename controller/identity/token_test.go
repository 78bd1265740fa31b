package identity_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"prp/controller/identity"
	"prp/controller/identity/identitytest"
)

const connector = "4f0c2b9e-7d39-4a58-9f43-0b6f3c6b6f11"

func openToken(t *testing.T, cfg identity.TokenConfig) *identity.Token {
	t.Helper()
	cfg.Subject = connector
	token, err := identity.NewToken(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestTokenIsReread: connector.md row 18, "renewed before exp by rereading the
// file". The server of the kit takes what is given.
func TestTokenIsReread(t *testing.T) {
	kit := identitytest.New(t)
	token := openToken(t, identity.TokenConfig{File: kit.TokenFile("t", connector, time.Hour)})
	first, err := token.Get()
	if err != nil {
		t.Fatal(err)
	}
	kit.TokenFile("t", connector, 2*time.Hour)
	second, err := token.Get()
	if err != nil || second == first {
		t.Fatalf("after the change Get gives the old token, %v", err)
	}
	for _, text := range []string{first, second} {
		if sub, err := kit.Verify(text, time.Now()); sub != connector || err != nil {
			t.Errorf("the server says %q, %v", sub, err)
		}
	}
	if left := time.Until(token.Claims().Expires); left < time.Hour || left > 2*time.Hour {
		t.Errorf("the claims end in %v, want those of the new token", left)
	}
}

// TestTokenRefusedAtStart: connector.md row 18, "its sub the connector_id".
// Every error names the file and shows nothing of the token.
func TestTokenRefusedAtStart(t *testing.T) {
	kit := identitytest.New(t)
	now := time.Now()
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	head, body := part(`{"alg":"EdDSA"}`), part(`{"sub":"`+connector+`"}`)
	for _, tt := range []struct {
		name, file, want string
		notValid         bool
	}{
		{"missing", kit.File("gone", "") + ".x", "no such file", false},
		{"empty", kit.File("empty", ""), "not empty", false},
		{"two lines", kit.File("two", "a.b.c\na.b.c"), "one line", false},
		{"no token", kit.File("no", "secret-of-a-kind"), "three parts", false},
		{"with a word before it", kit.File("bearer", "Bearer "+head+"."+body+".c2ln"), "header is a JSON object", false},
		{"five parts", kit.File("jwe", "a.b.c.d.e"), "three parts", false},
		{"no base64", kit.File("b64", "!!!."+body+".c2ln"), "header is a JSON object", false},
		{"claims are no object", kit.File("arr", head+"."+part(`["x"]`)+".c2ln"), "claims is a JSON object", false},
		{"claims are null", kit.File("null", head+"."+part(`null`)+".c2ln"), "claims is a JSON object", false},
		{"not signed", kit.File("none", part(`{"alg":"none"}`)+"."+body+".c2ln"), "signed", false},
		{"no signature", kit.File("nosig", head+"."+body+"."), "signed", false},
		{"no alg", kit.File("noalg", part(`{}`)+"."+body+".c2ln"), "signed", false},
		{"bad signature form", kit.File("badsig", head+"."+body+".*"), "signature", false},
		{"exp is text", kit.File("exptext", head+"."+part(`{"sub":"`+connector+`","exp":"soon"}`)+".c2ln"), `"exp"`, false},
		{"exp is negative", kit.File("expneg", head+"."+part(`{"sub":"`+connector+`","exp":-1}`)+".c2ln"), `"exp"`, false},
		{"sub is a number", kit.File("subnum", head+"."+part(`{"sub":5}`)+".c2ln"), `"sub"`, false},
		{"no sub", kit.ClaimsFile("nosub", map[string]any{"exp": now.Add(time.Hour).Unix()}), `"` + connector + `", got ""`, false},
		{"SUB is not sub", kit.ClaimsFile("upper", map[string]any{"SUB": connector}), `got ""`, false},
		{"another sub", kit.TokenFile("other", "somebody", time.Hour), `"` + connector + `", got "somebody"`, false},
		{"expired", kit.TokenFile("expired", connector, -time.Minute), `whose "exp" is`, true},
		{"not yet", kit.ClaimsFile("nbf", map[string]any{"sub": connector, "nbf": now.Add(time.Hour).Unix()}), `whose "nbf" is`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := identity.NewToken(identity.TokenConfig{File: tt.file, Subject: connector})
			if err == nil || errors.Is(err, identity.ErrNotValid) != tt.notValid {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.file) {
				t.Errorf("got %q, want the file and %q", err, tt.want)
			}
			for _, piece := range strings.FieldsFunc(read(tt.file), func(r rune) bool { return r == '.' || r == '\n' }) {
				if len(piece) > 8 && strings.Contains(err.Error(), piece) {
					t.Errorf("%q shows %q", err, piece)
				}
			}
		})
	}
	if _, err := identity.NewToken(identity.TokenConfig{File: kit.TokenFile("t", connector, time.Hour)}); err == nil {
		t.Error("a token of no subject is taken")
	}
}

func read(path string) string {
	text, _ := os.ReadFile(path) // one is not there
	return string(text)
}

// TestTokenClock: what is valid by this machine's clock, and by how much.
func TestTokenClock(t *testing.T) {
	kit := identitytest.New(t)
	at := time.Date(2026, 7, 20, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		nbf, exp int64 // seconds from now
		ok       bool
	}{
		{"ends in a second", 0, 1, true},
		{"ends now", 0, 0, false},
		{"begins within the leeway", 60, 3600, true},
		{"begins after it", 61, 3600, false},
	} {
		file := kit.ClaimsFile("t", map[string]any{"sub": connector, "nbf": at.Unix() + tt.nbf, "exp": at.Unix() + tt.exp})
		_, err := identity.NewToken(identity.TokenConfig{File: file, Subject: connector, Now: func() time.Time { return at }})
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// TestTokenKeepsTheOld: a file that is wrong meanwhile keeps the old token, told
// once, until that has ended.
func TestTokenKeepsTheOld(t *testing.T) {
	kit, list := identitytest.New(t), &told{}
	now := time.Now()
	file := kit.TokenFile("t", connector, time.Hour)
	token := openToken(t, identity.TokenConfig{File: file, Tell: list.tell, Now: func() time.Time { return now }})
	first, err := token.Get()
	if err != nil {
		t.Fatal(err)
	}
	kit.File("t.jwt", first[:len(first)/3])
	for range 3 {
		if got, err := token.Get(); got != first || err != nil {
			t.Fatalf("a torn file gives %v, want the old token", err)
		}
	}
	if got := list.take(); len(got) != 1 || !strings.Contains(got[0], file) || strings.Contains(got[0], first[:20]) {
		t.Errorf("told %q, want the file, once, and nothing of the token", got)
	}
	// Torn at its very end, in steps of whole groups of base64.
	for _, n := range []int{4, 8, 40} {
		kit.File("t.jwt", first[:len(first)-n])
		if got, err := token.Get(); got != first || err != nil {
			t.Errorf("without its last %d characters it gives %q, %v, want the old token", n, got, err)
		}
	}
	list.take()
	kit.TokenFile("t", "somebody", time.Hour)
	if got, err := token.Get(); got != first || err != nil || len(list.take()) != 1 {
		t.Errorf("a token of somebody else gives %v, want the old one", err)
	}
	now = now.Add(2 * time.Hour)
	if got, err := token.Get(); got != "" || !errors.Is(err, identity.ErrNotValid) || !strings.Contains(err.Error(), file) {
		t.Errorf("after its end Get gives %q, %v", got, err)
	}
}

// TestTokenRenewed: whoever has a connection learns of the new token before the
// old one ends.
func TestTokenRenewed(t *testing.T) {
	kit := identitytest.New(t)
	const quick = time.Millisecond
	renewed := func(token *identity.Token) <-chan error {
		end := make(chan error, 1)
		go func() { end <- token.Renewed(t.Context()) }()
		return end
	}
	t.Run("new one", func(t *testing.T) {
		file := kit.TokenFile("a", connector, time.Hour)
		token := openToken(t, identity.TokenConfig{File: file, RenewBefore: 2 * time.Hour, RenewEvery: quick})
		first, err := token.Get()
		if err != nil {
			t.Fatal(err)
		}
		end := renewed(token)
		kit.TokenFile("a", connector, 3*time.Hour)
		if err := await(t, end); err != nil {
			t.Fatal(err)
		}
		if second, err := token.Get(); err != nil || second == first {
			t.Errorf("Get gives the old token, %v", err)
		}
	})
	t.Run("none in time", func(t *testing.T) {
		file := kit.TokenFile("b", connector, time.Hour)
		var later atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
		token := openToken(t, identity.TokenConfig{File: file, RenewEvery: quick, Now: now})
		later.Store(int64(time.Hour))
		if err := await(t, renewed(token)); !errors.Is(err, identity.ErrNotValid) || !strings.Contains(err.Error(), file) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without an end", func(t *testing.T) {
		file := kit.ClaimsFile("c", map[string]any{"sub": connector})
		token := openToken(t, identity.TokenConfig{File: file, RenewEvery: quick})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := token.Renewed(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// await bounds a wait generously.
func await(t *testing.T, end <-chan error) error {
	t.Helper()
	select {
	case err := <-end:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it does not return")
		return nil
	}
}

// TestAuthorityVerifies: the controls of the kit's own server side.
func TestAuthorityVerifies(t *testing.T) {
	kit, other := identitytest.New(t), identitytest.New(t)
	now := time.Now()
	good, err := kit.ConnectorToken(connector, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.ConnectorToken(connector, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	forged := parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"root","exp":9999999999}`)) + "." + parts[2]
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	for name, tt := range map[string]struct {
		token string
		at    time.Time
		ok    bool
	}{
		"good": {good, now, true}, "expired": {good, now.Add(2 * time.Hour), false}, "not yet": {good, now.Add(-time.Hour), false},
		"of another": {foreign, now, false}, "forged": {forged, now, false}, "unsigned": {none, now, false}, "empty": {"", now, false},
	} {
		if sub, err := kit.Verify(tt.token, tt.at); (err == nil) != tt.ok || tt.ok && sub != connector {
			t.Errorf("%s: %q, %v", name, sub, err)
		}
	}
}
