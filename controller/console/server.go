package console

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"prp/protocol/schema"
)

// Timeouts of the server. A stream moves its deadline on with each write.
const (
	headerWait = 10 * time.Second // for the head of a request
	answerWait = time.Minute      // for a whole request and its answer; more than [actionWait]
	idleWait   = 2 * time.Minute  // for the next request of a connection
	// endWait is how long connections may take to end when every run is over.
	endWait   = 3 * time.Second
	maxHeader = 16 << 10 // bytes
)

// page is everything that the browser loads.
//
//go:embed page
var page embed.FS

// prefix is where the interface begins.
const prefix = "/api/localRunner"

// Server is a console. Its methods are safe for use by many goroutines, but
// each of Listen and Serve is called once.
type Server struct {
	cfg      Config
	runs     *registry
	listener net.Listener
	guard    *guard
	killOnce sync.Once
}

// New makes a console that does not listen yet.
func New(config Config) (*Server, error) {
	cfg, err := config.filled()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, runs: newRegistry(cfg)}, nil
}

// CheckAddress refuses what [Server.Listen] can never take: what is not
// HOST:PORT with a number as its port, and the address of another interface
// than loopback. It looks nothing up; the error says what was expected.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("expected HOST:PORT with a port from 0 to 65535, got %q", address)
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() && !ip.IsUnspecified() {
		return notLoopback(address)
	}
	return nil
}

func notLoopback(address string) error {
	return fmt.Errorf("expected a loopback address, got %q: nothing else is served", address)
}

// Listen opens the address, for example "127.0.0.1:0", and returns the URL that
// lets a browser in. Whoever has it can act; it is not to be logged. A broad
// address is allowed, and still serves loopback only.
func (s *Server) Listen(address string) (url string, err error) {
	s.listener, err = net.Listen("tcp", address)
	if err != nil {
		return "", err // it says what it was to listen on
	}
	at, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok {
		return "", fmt.Errorf("expected a TCP address, got %s", s.listener.Addr())
	}
	host := "127.0.0.1"
	switch {
	case at.IP.IsLoopback():
		host = at.IP.String()
	case !at.IP.IsUnspecified():
		s.listener.Close()
		return "", notLoopback(address)
	}
	s.guard = newGuard(http.HandlerFunc(s.route), at.Port)
	return fmt.Sprintf("http://%s/?token=%s", net.JoinHostPort(host, fmt.Sprint(at.Port)), s.guard.token), nil
}

// Load reads a recorded run and shows it among the others. The fragment leads
// to it when it is appended to the URL of Listen.
func (s *Server) Load(name string, in io.Reader) (fragment string, err error) {
	r, err := s.runs.load(name, in)
	if err != nil {
		return "", err
	}
	return "#/run/" + r.id, nil
}

// Serve serves until ctx ends; then it ends every run by the controller's
// ladder, lets the streams tell it, and returns when nothing is left.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.guard,
		ReadHeaderTimeout: headerWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    maxHeader,
		WriteTimeout:      answerWait,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(s.listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.runs.close()
	ending, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	if server.Shutdown(ending) != nil {
		server.Close()
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// Kill ends every run at once, for a person who does not want to wait for the
// ladder that the end of Serve's context has started. It does not block.
func (s *Server) Kill() { s.killOnce.Do(s.runs.kill) }

// route serves a request that has passed the guard.
func (s *Server) route(w http.ResponseWriter, req *http.Request) {
	rest, isAPI := strings.CutPrefix(req.URL.Path, prefix+"/")
	if !isAPI {
		servePage(w, req)
		return
	}
	parts := strings.Split(rest, "/")
	if parts[0] != "runs" || len(parts) > 3 {
		noRoute(req).write(w)
		return
	}
	if len(parts) == 1 {
		switch req.Method {
		case http.MethodGet:
			s.listRuns(w)
		case http.MethodPost:
			s.startRun(w, req)
		default:
			methodRefusal(req.Method, "GET or POST").write(w)
		}
		return
	}
	r, no := s.runs.find(parts[1])
	if no != nil {
		no.write(w)
		return
	}
	s.routeRun(w, req, r, strings.Join(parts[2:], ""))
}

// routeRun serves what is below one run.
func (s *Server) routeRun(w http.ResponseWriter, req *http.Request, r *run, what string) {
	want := http.MethodGet
	if _, isAction := actions[what]; isAction {
		want = http.MethodPost
	}
	if req.Method != want && (what == "" || what == "events" || what == "trace" || want == http.MethodPost) {
		methodRefusal(req.Method, want).write(w)
		return
	}
	switch what {
	case "":
		answer(w, http.StatusOK, map[string]any{"run": r.info()})
	case "events":
		s.stream(w, req, r)
	case "trace":
		s.finalTrace(w, r)
	case "resolve", "interrupt", "stop", "close", "cancel":
		s.act(w, req, r, what)
	default:
		noRoute(req).write(w)
	}
}

func noRoute(req *http.Request) *refusal {
	return refuse(http.StatusNotFound, codeNotFound, fmt.Sprintf("nothing is at %q", req.URL.Path))
}

// contentTypes are those of the files of the page.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json; charset=utf-8",
}

// schemaPath is where the page finds the schema of events.
const schemaPath = "/schema/event.json"

// servePage serves the files of the page. They are small and come from memory.
func servePage(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		methodRefusal(req.Method, http.MethodGet).write(w)
		return
	}
	name := req.URL.Path
	if name == "/" {
		name = "/index.html"
	}
	kind := contentTypes[path.Ext(name)]
	text, err := pageFile(name)
	if kind == "" || err != nil {
		noRoute(req).write(w)
		return
	}
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(text))
}

func pageFile(name string) ([]byte, error) {
	if name == schemaPath {
		return schema.Get("event")
	}
	name = "page" + name
	if !fs.ValidPath(name) || strings.HasSuffix(name, "_test.js") {
		return nil, fs.ErrNotExist
	}
	return page.ReadFile(name)
}

// readAll reads a body that the guard has bounded.
func readAll(req *http.Request) ([]byte, error) { return io.ReadAll(req.Body) }

// unmarshalStrict refuses members that the struct does not have.
func unmarshalStrict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
