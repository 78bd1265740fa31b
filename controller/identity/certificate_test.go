package identity_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller/identity"
	"prp/controller/identity/authority"
	"prp/controller/identity/identitytest"
)

// told keeps what an identity tells.
type told struct {
	mu   sync.Mutex
	list []string
}

func (t *told) tell(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, err.Error())
}

// take returns what was told since the last call.
func (t *told) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.list
	t.list = nil
	return list
}

// peer is a server that wants a client certificate and answers its name.
func peer(t *testing.T, kit *identitytest.Kit) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	s.TLS = kit.Server()
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// name asks the server who we are, with a new connection.
func name(t *testing.T, kit *identitytest.Kit, url string, cert *identity.Certificate) (string, error) {
	t.Helper()
	cfg := &tls.Config{RootCAs: kit.Pool()}
	if cert != nil {
		cert.Use(cfg)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

func open(t *testing.T, cfg identity.CertificateConfig) *identity.Certificate {
	t.Helper()
	c, err := identity.NewCertificate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCertificateIsReloaded: connector.md row 18, "client certificate from
// files, reloaded on change": the next handshake has the new one.
func TestCertificateIsReloaded(t *testing.T) {
	kit, list := identitytest.New(t), &told{}
	url := peer(t, kit)
	certFile, keyFile := kit.Leaf("client", authority.Leaf{Name: "first"})
	c := open(t, identity.CertificateConfig{CertFile: certFile, KeyFile: keyFile, Tell: list.tell})
	if got, err := name(t, kit, url, c); got != "first" || err != nil {
		t.Fatalf("the server sees %q, %v", got, err)
	}
	kit.Leaf("client", authority.Leaf{Name: "second"})
	if got, err := name(t, kit, url, c); got != "second" || err != nil {
		t.Fatalf("after the change the server sees %q, %v", got, err)
	}
	if got := list.take(); len(got) != 1 || !strings.Contains(got[0], "a new client certificate is used") {
		t.Errorf("told %q, want the change once", got)
	}
	if got, err := name(t, kit, url, c); got != "second" || err != nil || len(list.take()) != 0 {
		t.Errorf("without a change the server sees %q, %v", got, err)
	}
}

// TestCertificateHalfWritten: a pair that is being replaced keeps the old one,
// and that is told once.
func TestCertificateHalfWritten(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, kit *identitytest.Kit, certFile, keyFile string)
		want  string
	}{
		{"certificate without its key", func(t *testing.T, kit *identitytest.Kit, certFile, _ string) {
			other, _ := kit.Client("other")
			copyFile(t, other, certFile)
		}, "the key that belongs to it"},
		{"torn certificate", func(t *testing.T, _ *identitytest.Kit, certFile, _ string) { truncate(t, certFile) }, "in PEM form"},
		{"torn key", func(t *testing.T, _ *identitytest.Kit, _, keyFile string) { truncate(t, keyFile) }, "in PEM form"},
		{"no certificate", func(t *testing.T, _ *identitytest.Kit, certFile, _ string) { remove(t, certFile) }, "no such file"},
		{"no key", func(t *testing.T, _ *identitytest.Kit, _, keyFile string) { remove(t, keyFile) }, "no such file"},
		{"a key for everybody", func(t *testing.T, _ *identitytest.Kit, _, keyFile string) {
			if err := os.Chmod(keyFile, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "chmod 600"},
		{"a new one that has expired", func(_ *testing.T, kit *identitytest.Kit, _, _ string) { kit.Expired("client") }, "ended at"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kit, list := identitytest.New(t), &told{}
			url := peer(t, kit)
			certFile, keyFile := kit.Client("client")
			key, err := os.ReadFile(keyFile)
			if err != nil {
				t.Fatal(err)
			}
			c := open(t, identity.CertificateConfig{CertFile: certFile, KeyFile: keyFile, Tell: list.tell})
			tt.spoil(t, kit, certFile, keyFile)
			for range 3 {
				if got, err := name(t, kit, url, c); got != "client" || err != nil {
					t.Fatalf("the server sees %q, %v, want the old one", got, err)
				}
			}
			got := list.take()
			if len(got) != 1 || !strings.Contains(got[0], tt.want) || !strings.Contains(got[0], certFile) && !strings.Contains(got[0], keyFile) {
				t.Errorf("told %q, want it once, with the file and %q", got, tt.want)
			}
			showsNoKey(t, strings.Join(got, "\n"), key)
			// The exchange is over: the new one is taken.
			kit.Leaf("client", authority.Leaf{Name: "next"})
			if got, err := name(t, kit, url, c); got != "next" || err != nil {
				t.Errorf("after the exchange the server sees %q, %v", got, err)
			}
		})
	}
}

// TestCertificateRefusedAtStart: what is missing or wrong is said by name
// before anything is dialled.
func TestCertificateRefusedAtStart(t *testing.T) {
	kit := identitytest.New(t)
	certFile, keyFile := kit.Client("client")
	expired, expiredKey := kit.Expired("expired")
	notYet, notYetKey := kit.NotYet("notyet")
	for _, tt := range []struct {
		name, cert, key string
		want            []string
		notValid        bool
	}{
		{"none", "", "", []string{"client certificate and its key"}, false},
		{"no key", certFile, "", []string{"client certificate and its key"}, false},
		{"missing", certFile + "x", keyFile, []string{certFile + "x", "no such file"}, false},
		{"expired", expired, expiredKey, []string{expired, "ended at", "replace it"}, true},
		{"not yet valid", notYet, notYetKey, []string{notYet, "begins at", "clock"}, true},
		{"of another key", certFile, expiredKey, []string{certFile, expiredKey, "belongs to it"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := identity.NewCertificate(identity.CertificateConfig{CertFile: tt.cert, KeyFile: tt.key})
			if err == nil || errors.Is(err, identity.ErrNotValid) != tt.notValid {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}

// TestCertificateExpires: one that ends while the door lives is not presented,
// and the error of the handshake says what to do.
func TestCertificateExpires(t *testing.T) {
	kit := identitytest.New(t)
	url := peer(t, kit)
	certFile, keyFile := kit.Client("client")
	now := time.Now()
	c := open(t, identity.CertificateConfig{CertFile: certFile, KeyFile: keyFile, Now: func() time.Time { return now }})
	now = c.NotAfter().Add(time.Second)
	if _, err := name(t, kit, url, c); !errors.Is(err, identity.ErrNotValid) || !strings.Contains(err.Error(), certFile) {
		t.Errorf("the handshake ends with %v, want an error with the file", err)
	}
	if _, err := c.Get(); !errors.Is(err, identity.ErrNotValid) {
		t.Errorf("Get gives %v", err)
	}
}

// TestServerRefuses: the controls of the kit. A server of the kit takes no
// client without a certificate and none of another authority.
func TestServerRefuses(t *testing.T) {
	kit, other := identitytest.New(t), identitytest.New(t)
	url := peer(t, kit)
	if got, err := name(t, kit, url, nil); err == nil {
		t.Errorf("a client without a certificate is taken as %q", got)
	}
	certFile, keyFile := other.Client("stranger")
	stranger := open(t, identity.CertificateConfig{CertFile: certFile, KeyFile: keyFile})
	if got, err := name(t, kit, url, stranger); err == nil {
		t.Errorf("a client of another authority is taken as %q", got)
	}
	certFile, keyFile = kit.Client("client")
	mine := open(t, identity.CertificateConfig{CertFile: certFile, KeyFile: keyFile})
	if got, err := name(t, other, url, mine); err == nil {
		t.Errorf("a server of another authority is trusted as %q", got)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 60); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// showsNoKey looks for any line of a key.
func showsNoKey(t *testing.T, text string, key []byte) {
	t.Helper()
	for line := range strings.SplitSeq(string(key), "\n") {
		if len(line) > 20 && !strings.HasPrefix(line, "-----") && strings.Contains(text, line[:20]) {
			t.Errorf("%q shows the key", text)
		}
	}
}
