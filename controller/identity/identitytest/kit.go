package identitytest

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"prp/controller/identity/authority"
)

// Kit is an authority and a folder for what it issues.
type Kit struct {
	*authority.Authority
	t   testing.TB
	dir string
}

// New makes an authority of its own in a folder of the test. Two kits do not
// trust each other.
func New(t testing.TB) *Kit {
	t.Helper()
	dir := t.TempDir()
	a, err := authority.Open(filepath.Join(dir, "authority"))
	if err != nil {
		t.Fatal(err)
	}
	return &Kit{Authority: a, t: t, dir: dir}
}

// Server is for a server on loopback that wants a client certificate of this
// kit.
func (k *Kit) Server() *tls.Config {
	k.t.Helper()
	c, err := k.ServerConfig("localhost", "127.0.0.1", "::1")
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// Client writes a client certificate that is valid now. A second call with the
// same name replaces it.
func (k *Kit) Client(name string) (certFile, keyFile string) {
	k.t.Helper()
	return k.Leaf(name, authority.Leaf{Name: name})
}

// Expired writes a client certificate that ended an hour ago.
func (k *Kit) Expired(name string) (certFile, keyFile string) {
	k.t.Helper()
	now := time.Now()
	return k.Leaf(name, authority.Leaf{Name: name, NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(-time.Hour)})
}

// NotYet writes a client certificate that begins in an hour.
func (k *Kit) NotYet(name string) (certFile, keyFile string) {
	k.t.Helper()
	now := time.Now()
	return k.Leaf(name, authority.Leaf{Name: name, NotBefore: now.Add(time.Hour), NotAfter: now.Add(48 * time.Hour)})
}

// Leaf writes a certificate of any kind as NAME.pem and NAME.key.
func (k *Kit) Leaf(name string, l authority.Leaf) (certFile, keyFile string) {
	k.t.Helper()
	p, err := k.Issue(l)
	if err == nil {
		certFile, keyFile, err = p.Write(k.dir, name)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return certFile, keyFile
}

// TokenFile writes a token of a subject as NAME.jwt that ends after life, which
// may be negative. A second call with the same name replaces it.
func (k *Kit) TokenFile(name, subject string, life time.Duration) string {
	k.t.Helper()
	text, err := k.ConnectorToken(subject, life)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.File(name+".jwt", text)
}

// ClaimsFile writes a token with any claims as NAME.jwt.
func (k *Kit) ClaimsFile(name string, claims map[string]any) string {
	k.t.Helper()
	text, err := k.Token(claims)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.File(name+".jwt", text)
}

// File writes a file as a whole that only its owner can read.
func (k *Kit) File(name, text string) string {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	err := os.WriteFile(path+".new", []byte(text+"\n"), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return path
}
