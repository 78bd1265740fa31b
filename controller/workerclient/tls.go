package workerclient

import (
	"errors"
	"fmt"
	"net/http"

	"prp/controller/bridge"
)

// maxRedirects bounds the redirects of one call.
const maxRedirects = 5

// errRefused is a call that this side refuses, so that trying again is useless.
var errRefused = errors.New("refused here")

// NewTLSClient returns a client for these files. It fails where a file cannot be
// read or has no certificate. TLS 1.2 is the least, the server is always
// verified, and a redirect to another host is refused (workerclient.md row 12,
// remote.md rule 11).
func NewTLSClient(options TLSClientOptions) (*http.Client, error) {
	c, err := bridge.TLS{
		CAFile: options.CAFile, CertFile: options.ClientCertFile, KeyFile: options.ClientKeyFile,
	}.Client()
	if err != nil {
		return nil, fmt.Errorf("workerclient: tls: %w", err)
	}
	c.CheckRedirect = sameHost
	return c, nil
}

// sameHost refuses what would carry the token elsewhere, or turn a PATCH into a
// GET, whose success would be taken for that of the PATCH.
func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case r.URL.Scheme != first.URL.Scheme || r.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: a redirect from %q to %q", errRefused, first.URL.Scheme+"://"+first.URL.Host, r.URL.Scheme+"://"+r.URL.Host)
	case r.Method != first.Method:
		return fmt.Errorf("%w: a redirect that makes a %s of a %s", errRefused, r.Method, first.Method)
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: more than %d redirects", errRefused, maxRedirects)
	}
	return nil
}
