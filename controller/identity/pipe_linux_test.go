package identity_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/controller/identity"
	"prp/controller/identity/identitytest"
)

// TestPipeInstead: a pipe in the place of a file is told and stops nobody, since
// opening it would wait for a writer.
func TestPipeInstead(t *testing.T) {
	kit, list := identitytest.New(t), &told{}
	certFile, keyFile := kit.Client("client")
	file := kit.TokenFile("t", connector, time.Hour)
	c := open(t, identity.CertificateConfig{CertFile: certFile, KeyFile: keyFile, Tell: list.tell})
	token := openToken(t, identity.TokenConfig{File: file, Tell: list.tell})
	first, err := token.Get()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{certFile, keyFile, file} {
		keep, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		remove(t, path)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if got, err := token.Get(); got != first || err != nil {
				t.Errorf("%s: the token is %v, want the old one", path, err)
			}
			if _, err := c.Get(); err != nil {
				t.Errorf("%s: the certificate is %v, want the old one", path, err)
			}
		}()
		const patience = time.Minute
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatalf("%s: still waiting", path)
		}
		if got := list.take(); len(got) != 1 || !strings.Contains(got[0], path) || !strings.Contains(got[0], "again and again") {
			t.Errorf("told %q, want %s, once", got, path)
		}
		remove(t, path)
		if err := os.WriteFile(path, keep, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
