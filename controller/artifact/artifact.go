package artifact

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"prp/controller/bridge"
)

// Limits of a transfer (connector.md row 14, remote.md rule 2).
const (
	// DefaultLife is how long a URL may be used, from when it came.
	DefaultLife = 300 * time.Second
	// DefaultTries is how often one URL is tried.
	DefaultTries = 3
	// DefaultStall is how long a transfer may move nothing.
	DefaultStall = 60 * time.Second
	// DefaultTotal bounds one try as a whole: the largest download at 300 KB/s.
	DefaultTotal = time.Hour
	// DefaultMaxDownload bounds what is fetched, in bytes.
	DefaultMaxDownload = 1 << 30
)

const (
	// dialWait bounds the making of a connection.
	dialWait = 20 * time.Second
	// continueWait is how long a store is given to refuse a request before the
	// bytes are sent; a store that does not know the question takes so long.
	continueWait = time.Second
	// sendBuffer bounds what the system holds that the store has not taken, in
	// bytes: much more would look like a stall on a slow link.
	sendBuffer = 256 << 10
	// chunk is what is read at once, in bytes.
	chunk = 64 << 10
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 64 << 10
	// maxAnswer bounds what is read of a text that the store answers, in bytes.
	maxAnswer = 4 << 10
	// maxRedirects bounds redirects within a host.
	maxRedirects = 3
)

// Config says how patient a client is. Zero members are the defaults above.
type Config struct {
	// CAFile replaces the system's roots where it is not empty.
	CAFile string
	// AllowPlain allows plain http to other hosts than loopback (remote.md rule
	// 11).
	AllowPlain bool

	Life        time.Duration
	Tries       int
	Stall       time.Duration
	Total       time.Duration
	MaxDownload int64
	// Backoff is waited between tries; zero is the rule of the doors.
	Backoff bridge.Backoff
}

// Client sends and fetches. It is safe for use by many goroutines.
type Client struct {
	cfg  Config
	http *http.Client
}

// New returns a client. The CA file is read now.
func New(cfg Config) (*Client, error) {
	tls, err := bridge.TLS{CAFile: cfg.CAFile}.Config()
	if err != nil {
		return nil, err
	}
	bridge.Fill(&cfg.Life, DefaultLife)
	bridge.Fill(&cfg.Tries, DefaultTries)
	bridge.Fill(&cfg.Stall, DefaultStall)
	bridge.Fill(&cfg.Total, DefaultTotal)
	bridge.Fill(&cfg.MaxDownload, DefaultMaxDownload)
	dialer := net.Dialer{Timeout: dialWait}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: tls,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if t, ok := conn.(*net.TCPConn); ok {
				_ = t.SetWriteBuffer(sendBuffer) // it only makes a stall be seen earlier
			}
			return conn, err
		},
		TLSHandshakeTimeout:    dialWait,
		ExpectContinueTimeout:  continueWait,
		MaxResponseHeaderBytes: maxHeader,
		// The bytes of an artifact are kept as they are stored.
		DisableCompression: true,
		// Transfers are rare: an idle connection would only be found dead.
		DisableKeepAlives: true,
	}
	return &Client{cfg: cfg, http: &http.Client{Transport: transport, CheckRedirect: checkRedirect}}, nil
}

// checkRedirect follows within one host only: whoever has a presigned URL can
// use it. A method that a redirect changes would make a PUT a GET that succeeds.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	// The header would repeat the whole URL.
	r.Header.Del("Referer")
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: more than %d", errRedirect, maxRedirects)
	case r.URL.Scheme != first.URL.Scheme || r.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: from host %q to %s of %q", errRedirect, first.URL.Host, r.URL.Scheme, r.URL.Host)
	case r.Method != first.Method:
		return fmt.Errorf("%w: %s would become %s", errRedirect, first.Method, r.Method)
	}
	return nil
}

// Sum is what was transferred. Its names are those of the message
// artifact_uploaded.
type Sum struct {
	Size int64 `json:"size_bytes"`
	// SHA256 is lower-case hex.
	SHA256 string `json:"sha256"`
}

// task is one URL with its tries.
type task struct {
	op     string
	target *url.URL
	issued time.Time
	once   func(context.Context) (Sum, *failure)
}

// newTask checks a URL by the rules of the doors.
func (c *Client) newTask(op, raw string, issued time.Time) (task, error) {
	u, err := bridge.CheckURL(raw, c.cfg.AllowPlain)
	if err != nil {
		return task{}, &Error{Op: op, Err: err}
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return task{}, &Error{Op: op, Host: u.Host, Err: fmt.Errorf("expected an https address, got %q", u.Scheme)}
	}
	u.Fragment, u.RawFragment = "", ""
	if issued.IsZero() {
		issued = time.Now()
	}
	return task{op: op, target: u, issued: issued}, nil
}

// run tries a URL while it lives.
func (c *Client) run(ctx context.Context, t task) (Sum, error) {
	backoff := c.cfg.Backoff
	for try := 1; ; try++ {
		// time.Since is monotonic: a clock that jumps ends no URL (rule 9).
		left := c.cfg.Life - time.Since(t.issued)
		if left <= 0 {
			return Sum{}, t.fail(try-1, &failure{err: fmt.Errorf("the URL is older than %v", c.cfg.Life), next: renew})
		}
		sum, failed := c.bounded(ctx, t)
		if failed == nil {
			return sum, nil
		}
		if ctx.Err() != nil {
			return Sum{}, t.fail(try, &failure{err: context.Cause(ctx), next: stop})
		}
		wait := max(backoff.Next(), failed.after)
		if failed.next == again && (try >= c.cfg.Tries || wait >= c.cfg.Life-time.Since(t.issued)) {
			failed.next = renew
		}
		if failed.next != again {
			return Sum{}, t.fail(try, failed)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Sum{}, t.fail(try, &failure{err: context.Cause(ctx), next: stop})
		}
	}
}

// bounded is one try, which ends when nothing moves and in any case.
func (c *Client) bounded(ctx context.Context, t task) (Sum, *failure) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Total, fmt.Errorf("the transfer took longer than %v", c.cfg.Total))
	defer cancel()
	return t.once(ctx)
}
