package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	caFile       = "ca.pem"
	caKeyFile    = "ca.key"
	tokenKeyFile = "token.key"

	// caLife and leafLife are how long certificates are valid where nothing
	// else is said. A year is long enough to try a door, and no secret of a
	// forgotten folder stays good for ever.
	caLife   = 5 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// backdate is how much earlier a certificate begins, for clocks that are
	// behind.
	backdate = 5 * time.Minute
	// serialBits is the length of a serial number: random, so that none is used
	// twice.
	serialBits = 120
)

// Authority issues certificates and tokens. It is safe for use by many
// goroutines.
type Authority struct {
	dir      string
	cert     *x509.Certificate
	key      crypto.Signer
	tokenKey ed25519.PrivateKey
}

// Open takes the authority of a folder, or makes the folder and a new one.
func Open(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	var err error
	// The certificate is written last: without it there is no authority, and
	// with it a missing key is a fault.
	if _, there := os.Stat(a.CAFile()); errors.Is(there, fs.ErrNotExist) {
		err = a.create()
	} else {
		err = a.load()
	}
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	return a, nil
}

// CAFile is the file with the certificate of the authority, in PEM form.
func (a *Authority) CAFile() string { return filepath.Join(a.dir, caFile) }

// Pool has the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *Authority) load() error {
	cert, err := readPEM(a.CAFile(), "CERTIFICATE")
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(cert); err != nil {
		return err
	}
	key, err := readKey(filepath.Join(a.dir, caKeyFile))
	if err != nil {
		return err
	}
	token, err := readKey(filepath.Join(a.dir, tokenKeyFile))
	if err != nil {
		return err
	}
	var ok bool
	if a.tokenKey, ok = token.(ed25519.PrivateKey); !ok {
		return fmt.Errorf("%s: expected an Ed25519 key", tokenKeyFile)
	}
	a.key = key
	return nil
}

func (a *Authority) create() error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if _, a.tokenKey, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "prp authority"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		return err
	}
	a.key = key
	for _, f := range []struct {
		name string
		key  crypto.Signer
	}{{caKeyFile, key}, {tokenKeyFile, a.tokenKey}} {
		text, err := keyPEM(f.key)
		if err == nil {
			err = write(filepath.Join(a.dir, f.name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return write(a.CAFile(), certPEM(raw), 0o644)
}

// Leaf says what a certificate is for.
type Leaf struct {
	// Name is the common name.
	Name string
	// Hosts are names and addresses of a server; without any the certificate is
	// a client's.
	Hosts []string
	// NotBefore and NotAfter are about now and in a year where they are zero.
	NotBefore, NotAfter time.Time
}

// Pair is a certificate and its key, in PEM form.
type Pair struct{ Cert, Key []byte }

// Issue makes a pair.
func (a *Authority) Issue(l Leaf) (Pair, error) {
	if l.NotBefore.IsZero() {
		l.NotBefore = time.Now().Add(-backdate)
	}
	if l.NotAfter.IsZero() {
		l.NotAfter = time.Now().Add(leafLife)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: l.Name}, NotBefore: l.NotBefore, NotAfter: l.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(l.Hosts) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, h := range l.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	text, err := keyPEM(key)
	return Pair{Cert: certPEM(raw), Key: text}, err
}

// Write writes the pair as NAME.pem and NAME.key, each as a whole, the key
// first.
func (p Pair) Write(dir, name string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	if err := write(keyFile, p.Key, 0o600); err != nil {
		return "", "", err
	}
	return certFile, keyFile, write(certFile, p.Cert, 0o644)
}

// ServerConfig is for a server of these hosts that wants a client certificate of
// this authority.
func (a *Authority) ServerConfig(hosts ...string) (*tls.Config, error) {
	if len(hosts) == 0 {
		return nil, errors.New("expected the hosts of the server, got none")
	}
	p, err := a.Issue(Leaf{Name: hosts[0], Hosts: hosts})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
	}, nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil { // crypto/rand ends the program instead
		panic(err)
	}
	return n
}

func certPEM(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), err
}

func readPEM(path, kind string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: expected one PEM block of type %q", path, kind)
	}
	return block.Bytes, nil
}

func readKey(path string) (crypto.Signer, error) {
	raw, err := readPEM(path, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: expected a key in PKCS #8 form", path)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: expected a key that can sign", path)
	}
	return signer, nil
}

// write makes a file appear as a whole.
func write(path string, text []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", text, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
