package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/programstest"
)

// hang bounds every wait of a test: far above what anything takes, also on a
// loaded machine.
const hang = 60 * time.Second

// programs are the runner and the fake harness.
var programs = programstest.Of("prp-runner", "prp-harness")

func TestMain(m *testing.M) {
	os.Exit(programs.Main(m))
}

// withScripts is a configuration that offers these scripts: built-in ones, or
// files where the name has a slash.
func withScripts(t testing.TB, names ...string) Config {
	t.Helper()
	dir := programs.Dir(t)
	cfg := Config{Text: "Do it."}
	for _, name := range names {
		cfg.Choices = append(cfg.Choices, Choice{Kind: KindScript, Name: name, Description: "a script"})
	}
	cfg.Start = func(c Choice) (controller.Config, func(), error) {
		return controller.Config{Argv: []string{
			filepath.Join(dir, "prp-runner"), "--clock", "system",
			"--fake-harness", filepath.Join(dir, "prp-harness"), "--script", c.Name, "--delay-ms", "1",
		}}, nil, nil
	}
	return cfg
}

// scriptFile writes a script of steps and returns its path.
func scriptFile(t testing.TB, steps string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mine.json")
	text := `{"schema":"paperclip.fake_harness.script.v1","name":"mine","steps":[` + steps + `]}`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// live is a console that serves, and a client that was let in.
type live struct {
	t      testing.TB
	server *Server
	url    string // as printed
	base   string // http://host:port
	client *http.Client
	end    func() // ends it and waits
}

// keyed adds the key of the page to every request.
type keyed struct{ key string }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(keyHeader, k.key)
	return http.DefaultTransport.RoundTrip(r)
}

func serve(t testing.TB, cfg Config, address string) *live {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return serveServer(t, s, address)
}

func serveServer(t testing.TB, s *Server, address string) *live {
	t.Helper()
	printed, err := s.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(hang):
			t.Error("the console did not end")
		}
	})
	t.Cleanup(end)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t: t, server: s, url: printed, client: &http.Client{Jar: jar, Transport: keyed{s.guard.key}}, end: end}
	u, err := url.Parse(printed)
	if err != nil {
		t.Fatal(err)
	}
	l.base = "http://" + u.Host
	if status, body := l.do("GET", "/?"+u.RawQuery, ""); status != http.StatusOK {
		t.Fatalf("the printed address: %d %s", status, body)
	}
	return l
}

// do makes a request as the page would.
func (l *live) do(method, path, body string) (status int, answer []byte) {
	l.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, l.base+path, in)
	if err != nil {
		l.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := l.client.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// code is the code of a refusal.
func code(t testing.TB, body []byte) string {
	t.Helper()
	var e errorBody
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatalf("expected a JSON refusal, got %q", body)
	}
	if e.Error.Message == "" {
		t.Errorf("a refusal without a message: %s", body)
	}
	return e.Error.Code
}

// start starts a run of a script and returns its id.
func (l *live) start(script string) string {
	l.t.Helper()
	status, body := l.do("POST", prefix+"/runs", `{"kind":"script","name":"`+script+`","text":"Do it."}`)
	if status != http.StatusCreated {
		l.t.Fatalf("start %s: %d %s", script, status, body)
	}
	var b struct{ Run runInfo }
	if err := json.Unmarshal(body, &b); err != nil || b.Run.ID == "" {
		l.t.Fatalf("start %s: %s", script, body)
	}
	return b.Run.ID
}

// info is what the console says of a run.
func (l *live) info(id string) runInfo {
	l.t.Helper()
	status, body := l.do("GET", prefix+"/runs/"+id, "")
	var b struct{ Run runInfo }
	if err := json.Unmarshal(body, &b); err != nil || status != http.StatusOK {
		l.t.Fatalf("run %s: %d %s", id, status, body)
	}
	return b.Run
}

// streamed is one line of a stream.
type streamed struct {
	text  string
	Run   *runInfo
	Index *int64
	Next  int64
	Line  *struct {
		Message struct {
			Kind  string
			Event struct {
				EventType string
				SourceSeq int64
			}
		}
	}
	Gap     *gap
	Problem *controller.Problem
	End     bool
}

// follow opens a stream; stop ends it. The lines end with the stream.
func (l *live) follow(id, query string) (lines <-chan streamed, stop func()) {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", l.base+prefix+"/runs/"+id+"/events"+query, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		l.t.Fatalf("stream of %s: %s", id, resp.Status)
	}
	out := make(chan streamed)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(out)
		defer resp.Body.Close()
		in := bufio.NewScanner(resp.Body)
		in.Buffer(nil, 8<<20)
		for in.Scan() {
			if len(bytes.TrimSpace(in.Bytes())) == 0 {
				continue
			}
			s := streamed{text: in.Text()}
			if err := json.Unmarshal(in.Bytes(), &s); err != nil {
				s.text = "not JSON: " + s.text
			}
			select {
			case out <- s:
			case <-ctx.Done():
				return
			}
		}
	})
	stop = func() {
		cancel()
		wg.Wait()
	}
	l.t.Cleanup(stop)
	return out, stop
}

// next is the next line of a stream.
func next(t testing.TB, lines <-chan streamed) (streamed, bool) {
	t.Helper()
	select {
	case s, ok := <-lines:
		return s, ok
	case <-time.After(hang):
		t.Fatal("the stream is silent")
		return streamed{}, false
	}
}

// all reads a stream to its end.
func all(t testing.TB, lines <-chan streamed) []streamed {
	t.Helper()
	var list []streamed
	for {
		s, ok := next(t, lines)
		if !ok {
			return list
		}
		list = append(list, s)
	}
}

// until reads a stream up to an event of a type.
func until(t testing.TB, lines <-chan streamed, eventType string) streamed {
	t.Helper()
	for {
		s, ok := next(t, lines)
		if !ok {
			t.Fatalf("the stream ended before %s", eventType)
		}
		if s.Line != nil && s.Line.Message.Event.EventType == eventType {
			return s
		}
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(hang)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
