package devserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"prp/controller/bridge"
)

const (
	tokenFile   = "token"
	addressFile = "address"
	// retryEvery is how often [PostTo] looks for a server and a worker.
	retryEvery = 50 * time.Millisecond
	// headerWait bounds how long a client may take for its request.
	headerWait = 10 * time.Second
	// maxRefusal bounds the text of a refusal, in bytes.
	maxRefusal = 4 << 10
)

// Host is a place on loopback where a server is found: a folder has its token
// and its address.
type Host struct {
	dir, token string
	listener   net.Listener
}

// Listen takes an address, which has to be on loopback, and writes a new token
// and the address into a folder, which it makes. Serve has to follow.
func Listen(dir, addr string) (*Host, error) {
	if _, err := bridge.CheckURL("http://"+addr, false); err != nil {
		return nil, fmt.Errorf("expected host:port of loopback such as 127.0.0.1:0, got %q", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	h := &Host{dir: dir, token: rand.Text(), listener: listener}
	if err := h.write(); err != nil {
		listener.Close()
		return nil, err
	}
	return h, nil
}

// write writes the address last: whoever finds it finds the token.
func (h *Host) write() error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return err
	}
	for _, f := range [][2]string{{h.TokenFile(), h.token}, {filepath.Join(h.dir, addressFile), h.Address()}} {
		if err := os.WriteFile(f[0]+".new", []byte(f[1]+"\n"), 0o600); err != nil {
			return err
		}
		if err := os.Rename(f[0]+".new", f[0]); err != nil {
			return err
		}
	}
	return nil
}

// Address is host:port.
func (h *Host) Address() string { return h.listener.Addr().String() }

// Token is the token that Listen made.
func (h *Host) Token() string { return h.token }

// TokenFile is the file that has the token.
func (h *Host) TokenFile() string { return filepath.Join(h.dir, tokenFile) }

// Serve serves a worker's server with the host's token until ctx ends.
func (h *Host) Serve(ctx context.Context, cfg WorkerConfig) error {
	cfg.Token = h.token
	w := NewWorker(cfg)
	return h.ServeHandler(ctx, w, w.Close)
}

// ServeHandler serves a handler until ctx ends, and then calls end, which ends
// what the handler still does.
func (h *Host) ServeHandler(ctx context.Context, handler http.Handler, end func()) error {
	return serve(ctx, h.listener, handler, end)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler, end func()) error {
	defer end()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerWait}
	stop := context.AfterFunc(ctx, func() {
		end()
		server.Close()
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// readBody reads the JSON value that a client sends, of at most so many bytes. The
// error is an [*http.MaxBytesError] where it is longer.
func readBody(rw http.ResponseWriter, r *http.Request, most int64, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, most))
	if err != nil {
		return err
	}
	return bridge.Decode(body, into)
}

// ErrNotYet is a server or a client of it that is not there, so nothing was sent.
var ErrNotYet = errors.New("nothing was sent")

// Post hands a command for a worker to the server whose files are in a folder,
// and returns what it answers: a frame a line, up to the result. It waits so long
// for a server and a worker, and tells at once what it waits for, each reason once
// in a row; tell may be nil. The error is [ErrNotYet] where nothing was sent until
// then or until ctx has ended. The caller closes the answer.
func Post(ctx context.Context, dir string, command []byte, wait time.Duration, tell func(why string)) (io.ReadCloser, error) {
	return PostTo(ctx, dir, SendPath, command, wait, tell)
}

// PostTo is [Post] for another path of the server.
func PostTo(ctx context.Context, dir, path string, command []byte, wait time.Duration, tell func(why string)) (io.ReadCloser, error) {
	deadline, told := time.Now().Add(wait), ""
	for {
		answer, err := try(ctx, dir, path, command)
		if err == nil || !errors.Is(err, ErrNotYet) || time.Now().After(deadline) {
			return answer, err
		}
		if why := strings.TrimSuffix(err.Error(), "; "+ErrNotYet.Error()); why != told && tell != nil {
			told = why
			tell(why)
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func try(ctx context.Context, dir, path string, command []byte) (io.ReadCloser, error) {
	token, err := bridge.ReadSecret(filepath.Join(dir, tokenFile))
	address, err2 := bridge.ReadSecret(filepath.Join(dir, addressFile))
	switch err := errors.Join(err, err2); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no server has used %q; %w", dir, ErrNotYet)
	case err != nil:
		return nil, fmt.Errorf("cannot read what a server has left in its folder: %w", err)
	}
	url, err := bridge.CheckURL("http://"+address+path, false)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url.String(), bytes.NewReader(command))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no server at %s; %w", address, ErrNotYet)
	}
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusal)) // it is only shown
	why := strings.TrimSpace(string(text))
	if answer.StatusCode == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("the server says: %s; %w", why, ErrNotYet)
	}
	return nil, fmt.Errorf("the server says: %s", why)
}

// knows tells whether a request has the host's token.
func (h *Host) knows(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+h.token)) == 1
}
