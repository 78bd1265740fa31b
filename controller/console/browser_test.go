package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller"
)

// browserHang bounds one case in the browser.
const browserHang = 3 * time.Minute

// needBrowser skips where a real browser cannot be driven.
func needBrowser(t *testing.T) (chromium string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	if raced {
		t.Skip("the other tests race the server; a browser adds only time")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs node, which is not here")
	}
	if _, err := os.Stat("node_modules/playwright-core"); err != nil {
		t.Skip("needs playwright-core: run npm ci in controller/console")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs chromium, which is not here")
	return ""
}

// answers are what a case may ask the test for.
type answers map[string]func() map[string]any

// browse plays one case in a real browser.
func browse(t *testing.T, name, address string, given answers) {
	t.Helper()
	chromium := needBrowser(t)
	// Reading them makes a change of a case a new test for the go command.
	for _, file := range []string{"browsertest/browser.js", "browsertest/cases.js"} {
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), browserHang)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "browsertest/browser.js", name, address)
	cmd.Env = append(os.Environ(), "CHROMIUM="+chromium)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ok := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var m struct {
			Ask        string
			OK         bool
			Error      string
			Complaints []string
			Notes      map[string]float64
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Errorf("not a line of the case: %s", lines.Text())
			continue
		}
		switch {
		case m.Ask != "" && given[m.Ask] != nil:
			answer, err := json.Marshal(given[m.Ask]())
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(in, "%s\n", answer)
		case m.Ask != "":
			t.Errorf("the case asks for %q", m.Ask)
			in.Close()
		case m.OK:
			ok = true
			for what, n := range m.Notes {
				t.Logf("%s: %.4g", what, n)
			}
		default:
			t.Errorf("%s\n%s", m.Error, strings.Join(m.Complaints, "\n"))
		}
	}
	if err := cmd.Wait(); err != nil || !ok {
		t.Errorf("the case ended with %v", err)
	}
}

// visible is a configuration whose scripts keep their delays, so that what is
// on the way can be seen.
func visible(t *testing.T, names ...string) Config {
	t.Helper()
	cfg := withScripts(t, names...)
	start := cfg.Start
	cfg.Start = func(c Choice) (controller.Config, func(), error) {
		cc, over, err := start(c)
		cc.Argv = cc.Argv[:len(cc.Argv)-2] // without --delay-ms
		return cc, over, err
	}
	return cfg
}

func TestBrowser(t *testing.T) {
	needBrowser(t)
	all := []string{"happy-path", "permission-input", "interrupted", "linger", "error"}
	for _, name := range []string{"happy", "questions", "interrupted", "tabs"} {
		t.Run(name, func(t *testing.T) {
			browse(t, name, serve(t, visible(t, all...), "127.0.0.1:0").url, nil)
		})
	}
}

// TestBrowserRestart: the server ends in the middle of a run, and another one
// stands at the same address.
func TestBrowserRestart(t *testing.T) {
	needBrowser(t)
	first := serve(t, visible(t, "interrupted", "happy-path"), "127.0.0.1:0")
	// The page must not see the end of the run: a door that is slammed.
	door := openDoor(t, first.base)
	browse(t, "restart", door.url(first.url), answers{
		"kill": func() map[string]any {
			door.cut()
			first.end()
			return map[string]any{"freeze": true}
		},
		"up": func() map[string]any {
			second := serve(t, visible(t, "interrupted", "happy-path"), "127.0.0.1:0")
			door.mend(second.base)
			return map[string]any{"url": door.url(second.url)}
		},
	})
}

// TestBrowserLost: a stream that is cut goes on where it was.
func TestBrowserLost(t *testing.T) {
	needBrowser(t)
	l := serve(t, visible(t, "permission-input"), "127.0.0.1:0")
	door := openDoor(t, l.base)
	browse(t, "lost", door.url(l.url), answers{
		"cut":  func() map[string]any { door.cut(); return map[string]any{} },
		"mend": func() map[string]any { door.mend(l.base); return map[string]any{} },
	})
}

// TestBrowserHostile: pages of other origins get nothing and start nothing.
func TestBrowserHostile(t *testing.T) {
	needBrowser(t)
	l := serve(t, visible(t, "happy-path"), "127.0.0.1:0")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>evil</title><body>")
	}))
	t.Cleanup(evil.Close)
	browse(t, "hostile", l.url, answers{
		"evil": func() map[string]any {
			// Another port of the same name, and another name.
			return map[string]any{"evil": []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)}}
		},
		"runs": func() map[string]any { return map[string]any{"runs": len(l.server.runs.list())} },
	})
}

// TestBrowserLong: a run of 50,000 events stays in bounds; what it costs is
// logged.
func TestBrowserLong(t *testing.T) {
	needBrowser(t)
	long := scriptFile(t, `{"kind":"repeat","times":250,"steps":[
		{"kind":"event","event_type":"item.started","item_id":"item_{i}","payload":{"kind":"message","title":"Long message"}},
		{"kind":"repeat","times":198,"steps":[{"kind":"event","event_type":"item.delta","item_id":"item_{i}","payload":{"delta":"Forty characters of text in every delta. "}}]},
		{"kind":"event","event_type":"item.completed","item_id":"item_{i}","payload":{}}]},{"kind":"exit","code":0}`)
	browse(t, "long", serve(t, visible(t, long), "127.0.0.1:0").url, nil)
}

// TestBrowserRecorded: recorded runs, good and bad, in the dark and on narrow
// screens.
func TestBrowserRecorded(t *testing.T) {
	needBrowser(t)
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"happy.jsonl", "source-gap.jsonl", "invalid/torn.jsonl"} {
		f, err := os.Open(filepath.Join("../../fixtures", file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := s.Load(file, f); err != nil {
			t.Fatal(err)
		}
	}
	browse(t, "recorded", serveServer(t, s, "127.0.0.1:0").url, nil)
}

// TestBrowserReduced: a page that comes late to a run that has outgrown its
// history.
func TestBrowserReduced(t *testing.T) {
	needBrowser(t)
	flood := scriptFile(t, `{"kind":"event","event_type":"item.started","item_id":"i","payload":{"kind":"message"}},
		{"kind":"repeat","times":3000,"steps":[{"kind":"event","event_type":"item.delta","item_id":"i","payload":{"delta":"0123456789"}}]},
		{"kind":"event","event_type":"item.completed","item_id":"i","payload":{}},{"kind":"exit","code":0}`)
	cfg := withScripts(t, flood)
	cfg.HistoryBytes = 200 << 10
	l := serve(t, cfg, "127.0.0.1:0")
	browse(t, "reduced", l.url, answers{"reduced": func() map[string]any {
		id := l.start(flood)
		eventually(t, "it ends", func() bool { return !l.info(id).Active })
		return map[string]any{"fragment": "#/run/" + id}
	}})
}

// door is a relay in front of a server that can be slammed and opened again.
type door struct {
	listener net.Listener
	mu       sync.Mutex
	target   string // host:port; empty while it is shut
	open     map[net.Conn]bool
}

func openDoor(t *testing.T, base string) *door {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{listener: listener, open: map[net.Conn]bool{}}
	d.mend(base)
	go func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go d.relay(conn)
			}
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		d.cut()
	})
	return d
}

// url is an address of the server as seen through the door.
func (d *door) url(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.Host = d.listener.Addr().String()
	return u.String()
}

func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.target = ""
	for c := range d.open {
		c.Close()
	}
}

func (d *door) mend(base string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.target = strings.TrimPrefix(base, "http://")
}

func (d *door) relay(in net.Conn) {
	defer in.Close()
	d.mu.Lock()
	target := d.target
	d.mu.Unlock()
	if target == "" {
		return
	}
	out, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer out.Close()
	d.mu.Lock()
	d.open[in], d.open[out] = true, true
	d.mu.Unlock()
	go func() {
		_, _ = io.Copy(out, in)
		out.Close()
	}()
	_, _ = io.Copy(in, out)
	d.mu.Lock()
	delete(d.open, in)
	delete(d.open, out)
	d.mu.Unlock()
}
