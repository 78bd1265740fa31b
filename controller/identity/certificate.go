package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"prp/protocol/secret"
)

// maxPEM bounds a file with a certificate chain or a key, in bytes.
const maxPEM = 256 << 10

// ErrNotValid is a certificate or token whose time is over or has not come.
var ErrNotValid = errors.New("not valid now")

// CertificateConfig names the files.
type CertificateConfig struct {
	// CertFile has the certificate and what is between it and its CA, in PEM
	// form. KeyFile has its key, and only its owner may be able to read it.
	CertFile, KeyFile string
	// Tell is told once of each content that cannot be used while the old pair
	// stays, and of each that replaces one. It must not block. Nil tells nobody.
	Tell func(error)
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// Certificate is a client certificate that follows its files. It is safe for
// use by many goroutines.
type Certificate struct {
	cfg   CertificateConfig
	mu    sync.Mutex
	inUse *tls.Certificate
	// told is what was last told, so that it is told once.
	told string
}

// NewCertificate reads the files, which have to be good.
func NewCertificate(cfg CertificateConfig) (*Certificate, error) {
	if cfg.CertFile == "" || cfg.KeyFile == "" {
		return nil, errors.New("expected a client certificate and its key, got at most one of them")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Tell == nil {
		cfg.Tell = func(error) {}
	}
	c := &Certificate{cfg: cfg}
	var err error
	if c.inUse, err = c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// Use makes a configuration present the certificate. Call it before the
// configuration is used.
func (c *Certificate) Use(cfg *tls.Config) {
	cfg.Certificates = nil
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.Get() }
}

// Get is the certificate for a handshake. It reads the files, and returns the
// last good pair where they are not good, as while they are being replaced. It
// is an [ErrNotValid] where that pair has expired since.
func (c *Certificate) Get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	if err := c.valid(c.inUse.Leaf); err != nil {
		return nil, err
	}
	return c.inUse, nil
}

// NotAfter is when the pair in use ends.
func (c *Certificate) NotAfter() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inUse.Leaf.NotAfter
}

// look takes what is in the files now where it is good.
func (c *Certificate) look() {
	pair, err := c.read()
	switch {
	case err != nil && err.Error() != c.told:
		c.told = err.Error()
		c.cfg.Tell(fmt.Errorf("the client certificate that was there before is still used: %w", err))
	case err == nil && !pair.Leaf.Equal(c.inUse.Leaf):
		c.cfg.Tell(fmt.Errorf("a new client certificate is used, valid until %s", stamp(pair.Leaf.NotAfter)))
	}
	if err == nil {
		c.inUse, c.told = pair, ""
	}
}

// read takes both files and makes a pair that belongs together and is valid.
func (c *Certificate) read() (*tls.Certificate, error) {
	var key []byte
	err := regular(c.cfg.KeyFile)
	if err == nil {
		key, err = secret.ReadFile(c.cfg.KeyFile, maxPEM)
	}
	if err != nil {
		return nil, fmt.Errorf("key of the client certificate: %w", err)
	}
	cert, err := readBounded(c.cfg.CertFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		// The errors of package tls tell the form and the kind of a key, not the
		// key.
		return nil, fmt.Errorf("%s and %s: expected a certificate and the key that belongs to it, in PEM form: %w",
			c.cfg.CertFile, c.cfg.KeyFile, err)
	}
	return &pair, c.valid(pair.Leaf)
}

// valid tells before a handshake what a server would only refuse.
func (c *Certificate) valid(leaf *x509.Certificate) error {
	now := c.cfg.Now()
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%s: %w: expected a certificate that is valid now, got one that ended at %s; replace it and its key",
			c.cfg.CertFile, ErrNotValid, stamp(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%s: %w: expected a certificate that is valid now, got one that begins at %s; replace it, or set this machine's clock",
			c.cfg.CertFile, ErrNotValid, stamp(leaf.NotBefore))
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// regular refuses what cannot be read whenever it is used: a pipe has its bytes
// once, and who opens one without a writer waits for ever.
func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: expected a file that can be read again and again, got %v", path, info.Mode().Type())
	}
	return err
}

// readBounded reads a file that is no secret.
func readBounded(path string, most int64) ([]byte, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: expected a file of at most %d bytes", path, most)
	}
	return text, err
}
