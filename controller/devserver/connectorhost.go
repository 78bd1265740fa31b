package devserver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"prp/controller/identity/authority"
)

const (
	// tokenLife is how long the token of a connector is good, and renewEvery
	// how often there is a new one.
	tokenLife  = time.Hour
	renewEvery = tokenLife / 2
	// Names of what is in the folder of a connector's server.
	authorityDir  = "authority"
	connectorFile = "connector.json"
	connectorName = "connector"
)

// ConnectorHost is a connector's server on loopback: one listener for the
// connector, which wants a certificate and a token, and that of [Host] for
// artifacts and for the shell.
type ConnectorHost struct {
	host   *Host
	ca     *authority.Authority
	tls    net.Listener
	server *Connector
	id     string
}

// ListenConnector takes two addresses on loopback and writes into a folder, which
// it makes, all that a connector needs: a certificate, a token, which is renewed,
// and a configuration with agents, a JSON list. Serve has to follow.
func ListenConnector(dir, addr string, agents json.RawMessage, cfg ConnectorConfig) (*ConnectorHost, error) {
	host, err := Listen(dir, addr)
	if err != nil {
		return nil, err
	}
	h := &ConnectorHost{host: host, id: connectorName}
	if err := h.open(dir, agents, cfg); err != nil {
		host.listener.Close()
		if h.tls != nil {
			h.tls.Close()
		}
		return nil, err
	}
	return h, nil
}

func (h *ConnectorHost) open(dir string, agents json.RawMessage, cfg ConnectorConfig) (err error) {
	if h.ca, err = authority.Open(filepath.Join(dir, authorityDir)); err != nil {
		return err
	}
	secured, err := h.ca.ServerConfig("127.0.0.1", "::1", "localhost")
	if err != nil {
		return err
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.tls = tls.NewListener(inner, secured)
	cfg.Verify, cfg.Base = h.verify, "http://"+h.host.Address()
	h.server = NewConnector(cfg)
	return h.write(dir, agents)
}

// write writes what a connector needs.
func (h *ConnectorHost) write(dir string, agents json.RawMessage) error {
	pair, err := h.ca.Issue(authority.Leaf{Name: h.id})
	if err != nil {
		return err
	}
	cert, key, err := pair.Write(dir, connectorName)
	if err != nil {
		return err
	}
	if err := h.renew(dir); err != nil {
		return err
	}
	ca, err := filepath.Abs(h.ca.CAFile())
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string]any{
		"url": "wss://" + h.tls.Addr().String() + ConnectorPath, "ca_file": ca,
		"cert_file": filepath.Base(cert), "key_file": filepath.Base(key), "token_file": connectorName + ".jwt",
		"connector_id": h.id, "dir": "state", "agents": agents,
	}, "", "  ")
	if err != nil {
		return err
	}
	return writePrivate(filepath.Join(dir, connectorFile), append(text, '\n'))
}

// renew writes a new token.
func (h *ConnectorHost) renew(dir string) error {
	token, err := h.ca.ConnectorToken(h.id, tokenLife)
	if err != nil {
		return err
	}
	return writePrivate(filepath.Join(dir, connectorName+".jwt"), []byte(token+"\n"))
}

func writePrivate(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// verify asks for the token; the listener has asked for the certificate.
func (h *ConnectorHost) verify(r *http.Request) (string, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "", errors.New("expected a client certificate")
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "", errors.New("expected a bearer token, got none")
	}
	subject, err := h.ca.Verify(token, time.Now())
	if err != nil {
		return "", fmt.Errorf("the token is refused: %w", err)
	}
	return subject, nil
}

// ConfigFile is the configuration for a connector.
func (h *ConnectorHost) ConfigFile() string { return filepath.Join(h.host.dir, connectorFile) }

// Serve serves until ctx ends.
func (h *ConnectorHost) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 3)
	go func() { ended <- serve(ctx, h.tls, h.server, h.server.Close) }()
	go func() { ended <- serve(ctx, h.host.listener, http.HandlerFunc(h.local), h.server.Close) }()
	go func() { ended <- h.renewals(ctx) }()
	var faults error
	for range cap(ended) {
		faults = errors.Join(faults, <-ended)
		cancel()
	}
	return faults
}

// renewals keeps the token fresh.
func (h *ConnectorHost) renewals(ctx context.Context) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := h.renew(h.host.dir); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// local serves what is not the connector's: the store, and the shell with the
// host's token.
func (h *ConnectorHost) local(rw http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, ObjectsPath):
		h.server.serveObject(rw, r)
	case !h.host.knows(r):
		http.Error(rw, "expected the token", http.StatusUnauthorized)
	case r.URL.Path == ShellPath && r.Method == http.MethodPost:
		h.server.shell(rw, r)
	default:
		http.NotFound(rw, r)
	}
}
