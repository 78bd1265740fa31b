package authority

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func authority(t *testing.T, dir string) *Authority {
	t.Helper()
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOpenAgain: what a folder's authority issued stays good when it is opened
// again; another folder is another authority.
func TestOpenAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	first := authority(t, dir)
	pair, err := first.Issue(Leaf{Name: "client"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := first.ConnectorToken("id", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(pair.Cert)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		a  *Authority
		ok bool
	}{"again": {authority(t, dir), true}, "another": {authority(t, filepath.Join(t.TempDir(), "b")), false}} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: tt.a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != tt.ok {
			t.Errorf("%s: the certificate: %v", name, err)
		}
		if _, err := tt.a.Verify(token, time.Now()); (err == nil) != tt.ok {
			t.Errorf("%s: the token: %v", name, err)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: first.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a client's certificate is taken for a server's")
	}
}

// TestClaimNames: a claim in other letters is another one (RFC 7519 section 4),
// and takes nothing away from the one that is.
func TestClaimNames(t *testing.T) {
	a := authority(t, filepath.Join(t.TempDir(), "a"))
	now := time.Now()
	soon, past := now.Add(time.Hour).Unix(), now.Add(-time.Hour).Unix()
	for name, tt := range map[string]struct {
		claims map[string]any
		want   string // the subject; empty is refused
	}{
		"plain":                {map[string]any{"sub": "me", "exp": soon, "nbf": past}, "me"},
		"expired":              {map[string]any{"sub": "me", "exp": past, "Exp": soon, "EXP": soon, "eXp": soon}, ""},
		"no end":               {map[string]any{"sub": "me", "EXP": soon}, ""},
		"not begun":            {map[string]any{"sub": "me", "exp": soon, "nbf": soon, "Nbf": past, "nBF": past}, ""},
		"another subject":      {map[string]any{"sub": "me", "Sub": "you", "sUb": "you", "exp": soon}, "me"},
		"another type":         {map[string]any{"sub": "me", "exp": "soon"}, ""},
		"a subject by no name": {map[string]any{"sub": 1, "exp": soon}, ""},
	} {
		token, err := a.Token(tt.claims)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := a.Verify(token, now); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestOpenSpoilt: an authority that is not whole is not replaced in silence.
func TestOpenSpoilt(t *testing.T) {
	for _, name := range []string{caFile, caKeyFile, tokenKeyFile} {
		dir := t.TempDir()
		authority(t, dir)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s, torn: got %v", name, err)
		}
		if name == caFile {
			continue // without it there is none
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s, missing: got %v", name, err)
		}
	}
}

// TestModes: keys are readable by their owner only.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	dir := filepath.Join(t.TempDir(), "a")
	a := authority(t, dir)
	pair, err := a.Issue(Leaf{Name: "client"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := pair.Write(dir, "client"); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(dir, "*.key"))
	if err != nil || len(list) != 3 {
		t.Fatalf("the keys are %q, %v", list, err)
	}
	for _, path := range append(list, dir) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}
