//go:build unix

package taskrun

import (
	"crypto/tls"
	"flag"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"prp/controller/identity/identitytest"
	"prp/controller/workerclient"
)

// everyLink is for the long form of [TestFailures].
var everyLink = flag.Bool("links", false, "try each failure over each link")

// link is how a server is reached. The zero value is http.
type link struct {
	// server is what a server over TLS has, client what a worker has for it.
	server *tls.Config
	client workerclient.TLSClientOptions
}

// links are those of the issue: HTTP, TLS, and TLS with a client certificate.
func links(t testing.TB) []link {
	kit := identitytest.New(t)
	mutual, plain := kit.Server(), kit.Server()
	plain.ClientAuth = tls.NoClientCert
	with := workerclient.TLSClientOptions{CAFile: kit.CAFile()}
	without := with
	with.ClientCertFile, with.ClientKeyFile = kit.Client("worker")
	return []link{{}, {plain, without}, {mutual, with}}
}

// String names a link.
func (l link) String() string {
	switch {
	case l.server == nil:
		return "http"
	case l.client.ClientCertFile == "":
		return "tls"
	}
	return "tls with a client certificate"
}

// serve serves a handler, and returns the client that reaches it; nil is the
// default. The caller closes the server.
func (l link) serve(t testing.TB, handler http.Handler) (*httptest.Server, *http.Client) {
	t.Helper()
	if l.server == nil {
		return httptest.NewServer(handler), nil
	}
	s := httptest.NewUnstartedServer(handler)
	s.TLS = l.server.Clone()
	s.EnableHTTP2 = l.client.ClientCertFile == ""  // so that both are tried
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it is told of each connection that is dropped
	s.StartTLS()
	client, err := workerclient.NewTLSClient(l.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return s, client
}

// TestUntrusted: where one end does not trust the other nothing is tried again,
// and the error says so (row 12).
func TestUntrusted(t *testing.T) {
	t.Parallel()
	all := links(t)
	for name, tt := range map[string]struct {
		server link
		client workerclient.TLSClientOptions
		text   string
	}{
		"server of an unknown authority": {all[1], workerclient.TLSClientOptions{}, "certificate"},
		"no client certificate":          {all[2], all[1].client, "certificate required"},
		"client of another authority":    {all[2], mixed(t, all[2].client), "certificate"},
		"no TLS":                         {link{}, all[1].client, "HTTP response to HTTPS client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBenchOver(t, tt.server)
			waitForSignal(b)
			client, err := workerclient.NewTLSClient(tt.client)
			if err != nil {
				t.Fatal(err)
			}
			defer client.CloseIdleConnections()
			b.client = client
			b.http.URL = "https://" + b.http.Listener.Addr().String()
			outcome, err := b.work()
			if outcome != Unreported || err == nil || !strings.Contains(err.Error(), "expected a server with a certificate that is trusted here") || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("the outcome is %d, %v", outcome, err)
			}
			if st := b.state(); st.Status != "SCHEDULED" || len(b.told) > 0 {
				t.Errorf("%s; told %q", st.Status, b.told)
			}
		})
	}
}

// mixed is a client that has the certificate of another authority.
func mixed(t testing.TB, o workerclient.TLSClientOptions) workerclient.TLSClientOptions {
	o.ClientCertFile, o.ClientKeyFile = identitytest.New(t).Client("stranger")
	return o
}
