package bridge

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// hang is far longer than anything here takes.
const hang = 60 * time.Second

// TestBackoff: 1, 2, 4, 8, 16, then always 30 s, as bounds of a random wait.
func TestBackoff(t *testing.T) {
	var bounds []time.Duration
	b := Backoff{Random: func(n int64) int64 {
		bounds = append(bounds, time.Duration(n)/time.Second)
		return n / 2
	}}
	for range 8 {
		b.Next()
	}
	b.Reset()
	if got := b.Next(); got != time.Second/2 {
		t.Errorf("after a reset the wait is %s", got)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 30, 30, 30, 1}; !slices.Equal(bounds, want) {
		t.Errorf("the bounds are %d, want %d", bounds, want)
	}
	real := Backoff{}
	for range 100 {
		if w := real.Next(); w < 0 || w >= 30*time.Second {
			t.Errorf("a wait of %s", w)
		}
	}
}

// TestDefaultsNoticeSilence: a peer that is gone is noticed within 65 s.
func TestDefaultsNoticeSilence(t *testing.T) {
	if DefaultPingEvery*DefaultMissedPongs+DefaultPongWait > 65*time.Second {
		t.Error("the defaults take longer than 65 s")
	}
}

// server is a WebSocket server that does as told with each connection.
func server(t *testing.T, accept func(n int, ws *websocket.Conn, r *http.Request)) string {
	t.Helper()
	var mu sync.Mutex
	var n int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		mu.Lock()
		n++
		count := n
		mu.Unlock()
		accept(count, ws, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// quick is a link whose times are short.
func quick(t *testing.T, url string) *Link {
	t.Helper()
	l, err := NewLink(LinkConfig{
		URL: url, PingEvery: 20 * time.Millisecond, PongWait: 20 * time.Millisecond,
		Backoff: Backoff{Steps: []time.Duration{time.Millisecond}},
		Token:   func() (string, error) { return "t", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// read reads until the connection ends.
func read(ctx context.Context, c *Conn) error {
	for {
		if _, _, err := c.Read(ctx); err != nil {
			return err
		}
	}
}

// TestLinkReconnects: a connection that ends is made anew, with its header, and
// frames go both ways.
func TestLinkReconnects(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	url := server(t, func(n int, ws *websocket.Conn, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t" {
			t.Errorf("the header is %q", r.Header)
		}
		_, frame, err := ws.Read(ctx)
		if err == nil && n >= 3 {
			ws.Write(ctx, websocket.MessageText, frame)
			ws.Read(ctx)
		}
	})
	l := quick(t, url)
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(ctx)
	err := l.Run(ctx, func(ctx context.Context, c *Conn) error {
		if err := c.Write(ctx, []byte("hello")); err != nil {
			return err
		}
		frame, isText, err := c.Read(ctx)
		if err != nil {
			return err
		}
		if string(frame) != "hello" || !isText {
			t.Errorf("got %q, text %v", frame, isText)
		}
		stop(enough)
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("the link ended with %v", err)
	}
	if s := l.State(); s.Connections != 3 {
		t.Errorf("%d connections, want 3", s.Connections)
	}
}

// TestLinkHalfOpen: a server that neither reads nor closes is left after the
// missed pongs, and one that answers is not.
func TestLinkHalfOpen(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	alive := make(chan struct{})
	url := server(t, func(n int, ws *websocket.Conn, r *http.Request) {
		if n == 1 {
			<-ctx.Done() // no read, so no pong
			return
		}
		close(alive) // the link has left the first connection
	})
	l := quick(t, url)
	var first error
	l.cfg.Changed = func(s LinkState) {
		if s.Error != "" && first == nil {
			first = errors.New(s.Error)
		}
	}
	run, stop := context.WithCancel(ctx)
	go func() {
		select {
		case <-alive:
		case <-ctx.Done():
		}
		stop()
	}()
	l.Run(run, read)
	if first == nil || first.Error() != ErrNoPong.Error() {
		t.Errorf("the first connection ended with %v, want %v", first, ErrNoPong)
	}
}

// TestLinkStaysWithPongs: pings that are answered keep a silent connection.
func TestLinkStaysWithPongs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	pings := make(chan struct{}, 1)
	var seen int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool {
			if seen++; seen == 6 {
				pings <- struct{}{}
			}
			return true
		}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.Read(ctx)
	}))
	defer s.Close()
	l := quick(t, s.URL)
	l.cfg.PongWait = hang // a loaded machine is no missing pong
	run, stop := context.WithCancel(ctx)
	go func() {
		select {
		case <-pings:
		case <-ctx.Done():
		}
		stop()
	}()
	l.Run(run, read)
	if ctx.Err() != nil || l.State().Connections != 1 {
		t.Errorf("%d connections, %v", l.State().Connections, ctx.Err())
	}
}

// TestLinkBackoffResets: the waits grow, and begin anew after a healthy time.
func TestLinkBackoffResets(t *testing.T) {
	for name, healthy := range map[string]time.Duration{"never healthy": time.Hour, "always healthy": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), hang)
			defer cancel()
			url := server(t, func(int, *websocket.Conn, *http.Request) {})
			l := quick(t, url)
			l.cfg.HealthyAfter = healthy
			var bounds []int64
			l.cfg.Backoff = Backoff{
				Steps: []time.Duration{1, 2, 3},
				Random: func(n int64) int64 {
					if bounds = append(bounds, n); len(bounds) == 4 {
						cancel()
					}
					return 0
				},
			}
			l.Run(ctx, read)
			want := []int64{1, 2, 3, 3}
			if healthy < time.Hour {
				want = []int64{1, 1, 1, 1}
			}
			if !slices.Equal(bounds, want) {
				t.Errorf("the waits were below %d, want %d", bounds, want)
			}
		})
	}
}

// TestLinkNoRedirect: a server that sends the link elsewhere gets no second
// request there, so no token.
func TestLinkNoRedirect(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler("http://"+other.Addr().String(), http.StatusFound))
	defer s.Close()
	l := quick(t, s.URL)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	l.cfg.Changed = func(s LinkState) {
		if s.Error != "" {
			cancel()
		}
	}
	l.Run(ctx, read)
	other.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Millisecond))
	if c, err := other.Accept(); err == nil {
		c.Close()
		t.Error("the link followed a redirect")
	}
}

// TestLinkTLS: remote.md rule 11. A server is trusted by the CA file and by
// nothing else.
func TestLinkTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			ws.CloseNow()
		}
	}))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]TLS{"with the CA": {CAFile: ca}, "without": {}} {
		client, err := files.Client()
		if err != nil {
			t.Fatal(err)
		}
		l := quick(t, s.URL)
		l.cfg.Client = client
		ctx, cancel := context.WithTimeout(t.Context(), hang)
		l.cfg.Changed = func(s LinkState) {
			if s.Error != "" {
				cancel()
			}
		}
		l.Run(ctx, read)
		if got := l.State().Connections > 0; got != (files.CAFile != "") {
			t.Errorf("%s: connected is %v", name, got)
		}
	}
}

// TestLinkConnect: a refusal tells its HTTP status; a connection is compressed
// where that is asked for.
func TestLinkConnect(t *testing.T) {
	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(refused.Close)
	l, err := NewLink(LinkConfig{URL: refused.URL})
	if err != nil {
		t.Fatal(err)
	}
	var upgrade *UpgradeError
	if _, err := l.Connect(t.Context()); !errors.As(err, &upgrade) || upgrade.Status != http.StatusForbidden {
		t.Errorf("refused with %v, want status 403", err)
	}
	if text := upgrade.Error(); !strings.Contains(text, "HTTP status 403") || !strings.Contains(text, "token") {
		t.Errorf("it does not say what to do: %s", text)
	}
	refused.Close()
	// Nobody is there: the cause comes early enough for a line that is cut.
	const line = 80
	if _, err := l.Connect(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error()[:min(line, len(err.Error()))], "refused") {
		t.Errorf("the cause is not in the first %d bytes: %v", line, err)
	}
	for _, compress := range []bool{false, true} {
		var offered string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			offered = r.Header.Get("Sec-WebSocket-Extensions")
			ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionNoContextTakeover})
			if err != nil {
				return
			}
			defer ws.CloseNow()
			_ = ws.Write(r.Context(), websocket.MessageText, []byte("hello"))
			_, _, _ = ws.Read(r.Context())
		}))
		t.Cleanup(s.Close)
		l, err := NewLink(LinkConfig{URL: s.URL, Compress: compress})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		errEnough := errors.New("enough")
		err = l.Serve(t.Context(), conn, func(ctx context.Context, c *Conn) error {
			frame, _, err := c.Read(ctx)
			if string(frame) != "hello" || err != nil {
				t.Errorf("read %q, %v", frame, err)
			}
			return errEnough
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("serve ended with %v", err)
		}
		if (offered != "") != compress {
			t.Errorf("compress %v offers %q", compress, offered)
		}
	}
}
