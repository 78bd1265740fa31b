package bridge

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"

	"prp/protocol/secret"
)

// maxSecretFile bounds a file with a token, in bytes.
const maxSecretFile = 64 << 10

// CheckURL reads the address of a server. Plain ws and http are for loopback
// only, unless allowPlain says otherwise; a name or password in the address is
// refused (remote.md rules 6 and 11).
func CheckURL(raw string, allowPlain bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of package url repeats the address, which may hold a secret.
		return nil, errors.New("expected an address such as wss://host/path, got one that cannot be read")
	}
	if u.User != nil {
		return nil, fmt.Errorf("expected an address without a name or password, got one for host %q", u.Host)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("expected an address with a host, got scheme %q without one", u.Scheme)
	}
	switch u.Scheme {
	case "wss", "https":
	case "ws", "http":
		if !allowPlain && !isLoopback(u.Hostname()) {
			return nil, fmt.Errorf("expected wss or https, since %q is not loopback, got %q", u.Hostname(), u.Scheme)
		}
	default:
		return nil, fmt.Errorf("expected ws, wss, http or https, got %q", u.Scheme)
	}
	return u, nil
}

// isLoopback takes addresses and the one name that always means them.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// TLS names the files of a secured link; the zero value uses the system's
// roots and no client certificate.
type TLS struct {
	// CAFile replaces the system's roots.
	CAFile string
	// CertFile and KeyFile are a client certificate; both or none.
	CertFile, KeyFile string
}

// Config reads the files. TLS 1.2 is the least, and nothing switches the
// verification off (remote.md rule 11).
func (t TLS) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: expected certificates in PEM form, got none", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("expected a client certificate and its key, got one of them")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Client is an HTTP client for these files. It follows no redirect, so that a
// token goes to the host that was named and no other.
func (t TLS) Client() (*http.Client, error) {
	c, err := t.Config()
	if err != nil {
		return nil, err
	}
	return NewClient(c), nil
}

// NewClient is an HTTP client for a configuration, as [TLS.Client] makes it.
func NewClient(c *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: c, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ReadSecret reads a token from a file as [secret.ReadFile] does, without blanks
// and newlines at its ends.
func ReadSecret(path string) (string, error) {
	text, err := secret.ReadFile(path, maxSecretFile)
	if err != nil {
		return "", err
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 || bytes.ContainsAny(text, "\r\n\x00") {
		return "", fmt.Errorf("%s: expected one line that is not empty", path)
	}
	return string(text), nil
}
