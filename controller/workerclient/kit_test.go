package workerclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"prp/controller/devserver"
	"prp/controller/workerclient"
)

// authority makes certificates in a folder.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	next int64
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, dir: t.TempDir(), pool: x509.NewCertPool()}
	a.issue("ca", nil)
	a.pool.AddCert(a.cert)
	return a
}

// issue writes NAME.pem and NAME.key; the first one is the authority itself.
func (a *authority) issue(name string, ips []net.IP) (certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.next++
	from := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name}, IPAddresses: ips,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if a.cert == nil {
		from.IsCA, from.BasicConstraintsValid, from.KeyUsage = true, true, x509.KeyUsageCertSign
		a.cert, a.key = from, key
	}
	der, err := x509.CreateCertificate(rand.Reader, from, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	if from.IsCA {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	a.write(certFile, "CERTIFICATE", der)
	a.write(keyFile, "PRIVATE KEY", raw)
	return certFile, keyFile
}

func (a *authority) write(path, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// way is how the server is reached.
type way struct {
	name       string
	url        string
	client     *http.Client // nil is the default
	authorized bool
}

// ways serves a handler over HTTP, over TLS, and over TLS that asks for a client
// certificate.
func ways(t *testing.T, handler http.Handler) []way {
	t.Helper()
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	a := newAuthority(t)
	ca := filepath.Join(a.dir, "ca.pem")
	cert, key := a.issue("server", []net.IP{net.IPv4(127, 0, 0, 1)})
	mine, mineKey := a.issue("client", nil)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	secured := func(auth tls.ClientAuthType) string {
		s := httptest.NewUnstartedServer(handler)
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: auth, ClientCAs: a.pool}
		s.Config.ErrorLog = quiet()
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL
	}
	client := func(o workerclient.TLSClientOptions) *http.Client {
		t.Helper()
		c, err := workerclient.NewTLSClient(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	one, both := secured(tls.NoClientCert), secured(tls.RequireAndVerifyClientCert)
	return []way{
		{"http", plain.URL, nil, true},
		{"tls", one, client(workerclient.TLSClientOptions{CAFile: ca}), true},
		{"tls with a client certificate", both, client(workerclient.TLSClientOptions{CAFile: ca, ClientCertFile: mine, ClientKeyFile: mineKey}), true},
		{"tls without the certificate that is asked for", both, client(workerclient.TLSClientOptions{CAFile: ca}), false},
		{"tls with the system's roots", one, nil, false},
	}
}

// served is a server of task runs on loopback.
func served(t *testing.T, rules ...devserver.Rule) (*devserver.TaskRuns, *httptest.Server) {
	t.Helper()
	runs := devserver.NewTaskRuns(devserver.TaskRunsConfig{Rules: rules})
	s := httptest.NewServer(runs)
	t.Cleanup(func() {
		runs.Close()
		s.Close()
	})
	return runs, s
}

// updater is a client with a token.
func updater(url, token string) *workerclient.WorkerHTTPUpdater {
	return workerclient.NewWorkerHTTPUpdater(workerclient.WorkerAPIClientConfig{BaseURL: url, Token: token})
}
