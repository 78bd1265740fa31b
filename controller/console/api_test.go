package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/awaittest"
	"prp/protocol"
)

// contextWithLocal is the context of a request on a socket.
func contextWithLocal(address string) context.Context {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		panic(err)
	}
	return context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(a))
}

// TestRoutes: what is not there, and what is asked for in the wrong way.
func TestRoutes(t *testing.T) {
	l := serve(t, withScripts(t, "happy-path", "interrupted"), "127.0.0.1:0")
	id := l.start("interrupted")
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"GET", prefix + "/nowhere", "", 404, "not_found"},
		{"GET", prefix + "/", "", 404, "not_found"},
		{"GET", "/nowhere.js", "", 404, "not_found"},
		{"GET", "/page/index.html", "", 404, "not_found"},
		{"GET", "/../server.go", "", 404, "not_found"},
		{"POST", "/", "{}", 405, "method_not_allowed"},
		{"DELETE", prefix + "/runs", "{}", 405, "method_not_allowed"},
		{"GET", prefix + "/runs/none", "", 404, "unknown_run"},
		{"POST", prefix + "/runs/none/cancel", "{}", 404, "unknown_run"},
		{"GET", prefix + "/runs/" + id + "/cancel", "", 405, "method_not_allowed"},
		{"POST", prefix + "/runs/" + id + "/events", "{}", 405, "method_not_allowed"},
		{"GET", prefix + "/runs/" + id + "/nowhere", "", 404, "not_found"},
		{"GET", prefix + "/runs/" + id + "/events/more", "", 404, "not_found"},
		{"GET", prefix + "/runs/" + id + "/events?from=-1", "", 400, "invalid_from"},
		{"GET", prefix + "/runs/" + id + "/events?from=x", "", 400, "invalid_from"},
		{"GET", prefix + "/runs/" + id + "/events?from=1&from=2", "", 400, "invalid_from"},
		{"GET", prefix + "/runs/" + id + "/trace", "", 409, "run_active"},
		{"POST", prefix + "/runs", `{"kind":"script","name":"/etc/passwd"}`, 404, "unknown_choice"},
		{"POST", prefix + "/runs", `{"kind":"harness","name":"happy-path"}`, 404, "unknown_choice"},
		{"POST", prefix + "/runs", `{"kind":"script","name":"happy-path","argv":["sh"]}`, 400, "invalid_body"},
		{"POST", prefix + "/runs", `{"kind":"script","kind":"harness"}`, 400, "invalid_body"},
		{"POST", prefix + "/runs", `{"kind":"script"}{}`, 400, "invalid_body"},
		{"POST", prefix + "/runs", `[]`, 400, "invalid_body"},
		{"POST", prefix + "/runs/" + id + "/resolve", `{}`, 400, "invalid_body"},
		{"POST", prefix + "/runs/" + id + "/resolve", `{"requestId":"r"}`, 400, "invalid_body"},
		{"POST", prefix + "/runs/" + id + "/cancel", `{"reason":1}`, 400, "invalid_body"},
	} {
		status, body := l.do(tt.method, tt.path, tt.body)
		if status != tt.status || code(t, body) != tt.code {
			t.Errorf("%s %s %s: got %d %s, want %d %s", tt.method, tt.path, tt.body, status, body, tt.status, tt.code)
		}
	}
}

// TestPage: the page and all it loads is there, with its type.
func TestPage(t *testing.T) {
	l := serve(t, withScripts(t), "127.0.0.1:0")
	for path, want := range map[string]string{
		"/": "text/html", "/main.js": "text/javascript", "/styles.css": "text/css", "/icon.svg": "image/svg+xml",
		"/model/reduce.js": "text/javascript", "/schema/event.json": "application/json",
	} {
		resp, body := l.raw(ask{method: "GET", path: path}, l.cookie())
		if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), want) || body == "" {
			t.Errorf("%s: got %d %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
		}
		checkHeaders(t, resp)
	}
	text, err := os.ReadFile("page/index.html")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "<style") || strings.Contains(string(text), "style=") || strings.Contains(string(text), "<script>") {
		t.Error("the page has inline code or style, which its policy refuses")
	}
}

// TestStream: history first, then what is new, and from goes on at an index.
func TestStream(t *testing.T) {
	l := serve(t, withScripts(t, "permission-input"), "127.0.0.1:0")
	id := l.start("permission-input")
	lines, _ := l.follow(id, "")
	head, _ := next(t, lines)
	if head.Run == nil || head.Run.ID != id || head.Run.RunID == "" || head.Run.SessionID == "" || head.Run.RunnerID == "" {
		t.Fatalf("the stream begins with %s", head.text)
	}
	asked := until(t, lines, "runtime_request.created")
	resolve := func(body string) (int, []byte) { return l.do("POST", prefix+"/runs/"+id+"/resolve", body) }
	if status, body := resolve(`{"requestId":"request_permission","response":{"decision":"allow"}}`); status != 200 {
		t.Fatalf("resolve: %d %s", status, body)
	}
	until(t, lines, "runtime_request.created")
	if status, body := resolve(`{"requestId":"request_permission","response":{"decision":"deny"}}`); status != 409 || code(t, body) != string(protocol.CodeRequestAlreadyResolved) {
		t.Errorf("the second answer: %d %s", status, body)
	}
	if status, body := resolve(`{"requestId":"request_input","response":{"text":"x","n":9007199254740993}}`); status != 200 {
		t.Fatalf("resolve: %d %s", status, body)
	}
	rest := all(t, lines)
	if last := rest[len(rest)-1]; !last.End {
		t.Fatalf("the stream ends with %s", last.text)
	}
	again, _ := l.follow(id, fmt.Sprintf("?from=%d", *asked.Index+1))
	later := all(t, again)
	if later[0].Run == nil || *later[1].Index != *asked.Index+1 {
		t.Errorf("from %d goes on with %s", *asked.Index+1, later[1].text)
	}
	if got := later[len(later)-1].text; got != rest[len(rest)-1].text {
		t.Errorf("the second stream ends with %s", got)
	}
	checkTrace(t, l, id, "succeeded", "9007199254740993")
	beyond, _ := l.follow(id, "?from=100000")
	if got := all(t, beyond); len(got) != 2 || !got[1].End {
		t.Errorf("from beyond the end gives %d lines", len(got))
	}
	status, body := l.do("POST", prefix+"/runs/"+id+"/cancel", "{}")
	if status != 410 || code(t, body) != "run_over" {
		t.Errorf("an action after the end: %d %s", status, body)
	}
}

// checkTrace: the final trace has the snapshot that the stream's lines give.
func checkTrace(t *testing.T, l *live, id, state, text string) {
	t.Helper()
	lines, _ := l.follow(id, "")
	var recorded strings.Builder
	for i, s := range all(t, lines) {
		if s.Line == nil {
			continue
		}
		if *s.Index != int64(i-1) {
			t.Fatalf("index %d stands at %d", *s.Index, i-1)
		}
		var line struct{ Line json.RawMessage }
		if err := json.Unmarshal([]byte(s.text), &line); err != nil {
			t.Fatal(err)
		}
		recorded.Write(line.Line)
		recorded.WriteByte('\n')
	}
	r, problems, err := controller.Replay(strings.NewReader(recorded.String()))
	if err != nil || len(problems) > 0 {
		t.Fatalf("replay of the stream: %v %v", err, problems)
	}
	want, err := json.Marshal(&r.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	status, body := l.do("GET", prefix+"/runs/"+id+"/trace", "")
	var trace traceBody
	if err := json.Unmarshal(body, &trace); err != nil || status != 200 {
		t.Fatalf("trace: %d %s", status, body)
	}
	if string(trace.Snapshot) != string(want) {
		t.Errorf("the trace's snapshot is\n%s\nand the stream gives\n%s", trace.Snapshot, want)
	}
	if string(trace.Run.State) != state || !strings.Contains(string(trace.Snapshot), text) {
		t.Errorf("run %s: %s", trace.Run.State, trace.Snapshot)
	}
	if trace.Exit == nil || !trace.Exit.Success || trace.Forced != "" || trace.Fault != "" {
		t.Errorf("the runner: %s", body)
	}
}

// TestActions: each one has the effect of its command.
func TestActions(t *testing.T) {
	waits := scriptFile(t, `{"kind":"await_command","command_type":"session.close"},{"kind":"exit","code":3}`)
	for _, tt := range []struct{ action, script, reason string }{
		{"interrupt", "interrupted", "turn_interrupted"},
		{"stop", "interrupted", "turn_interrupted"},
		{"cancel", "interrupted", "run_cancelled"},
		{"close", waits, "harness_process_failed"},
	} {
		t.Run(tt.action, func(t *testing.T) {
			l := serve(t, withScripts(t, tt.script), "127.0.0.1:0")
			id := l.start(tt.script)
			lines, _ := l.follow(id, "")
			until(t, lines, "turn.started")
			if status, body := l.do("POST", prefix+"/runs/"+id+"/"+tt.action, `{}`); status != 200 || !strings.Contains(string(body), `"accepted"`) {
				t.Fatalf("got %d %s", status, body)
			}
			all(t, lines)
			if got := l.info(id); string(got.Reason) != tt.reason || got.Active {
				t.Errorf("the run ended with %q, want %q", got.Reason, tt.reason)
			}
		})
	}
}

// TestLimits: 4 active runs, 16 kept of which the oldest finished go, 8 clients.
func TestLimits(t *testing.T) {
	l := serve(t, withScripts(t, "interrupted", "happy-path"), "127.0.0.1:0")
	var active []string
	for range maxActiveRuns {
		active = append(active, l.start("interrupted"))
	}
	status, body := l.do("POST", prefix+"/runs", `{"kind":"script","name":"happy-path"}`)
	if status != 429 || code(t, body) != "too_many_active_runs" {
		t.Fatalf("the run above the limit: %d %s", status, body)
	}
	var stops []func()
	for range maxStreams {
		_, stop := l.follow(active[0], "")
		stops = append(stops, stop)
	}
	status, body = l.do("GET", prefix+"/runs/"+active[0]+"/events", "")
	if status != 429 || code(t, body) != "too_many_streams" {
		t.Fatalf("the client above the limit: %d %s", status, body)
	}
	l.follow(active[1], "") // another run has room
	stops[0]()
	eventually(t, "a place is free again", func() bool {
		r, _ := l.server.runs.find(active[0])
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.streams < maxStreams
	})
	l.follow(active[0], "")

	l.do("POST", prefix+"/runs/"+active[3]+"/cancel", "{}")
	eventually(t, "a run has ended", func() bool { return !l.info(active[3]).Active })
	var ended []string
	for range maxKeptRuns {
		eventually(t, "there is room", func() bool {
			l.server.runs.mu.Lock()
			defer l.server.runs.mu.Unlock()
			return l.server.runs.active < maxActiveRuns
		})
		id := l.start("happy-path")
		ended = append(ended, id)
		eventually(t, "it ends", func() bool { return !l.info(id).Active })
	}
	var kept []string
	for _, r := range l.server.runs.list() {
		kept = append(kept, r.id)
	}
	if len(kept) != maxKeptRuns {
		t.Errorf("%d runs are kept, want %d", len(kept), maxKeptRuns)
	}
	for _, id := range active[:3] {
		if !slices.Contains(kept, id) {
			t.Errorf("an active run went")
		}
	}
	if slices.Contains(kept, active[3]) || slices.Contains(kept, ended[0]) || !slices.Contains(kept, ended[len(ended)-1]) {
		t.Errorf("not the oldest finished ones went")
	}
}

// TestDeadClient: a client that does not read is cut off, and delays nobody.
func TestDeadClient(t *testing.T) {
	flood := scriptFile(t, `{"kind":"repeat","times":4000,"steps":[{"kind":"event","event_type":"item.delta","item_id":"i","payload":{"delta":"`+
		strings.Repeat("x", 4000)+`"}}]},{"kind":"exit","code":0}`)
	cfg := withScripts(t, flood)
	cfg.WriteTimeout = 200 * time.Millisecond
	l := serve(t, cfg, "127.0.0.1:0")
	id := l.start(flood)
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s/runs/%s/events HTTP/1.1\r\nHost: localhost\r\nCookie: %s\r\n%s: %s\r\n\r\n", prefix, id, l.cookie(), keyHeader, l.server.guard.key)
	r, no := l.server.runs.find(id)
	if no != nil {
		t.Fatal(no)
	}
	streams := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.streams
	}
	eventually(t, "the client is there", func() bool { return streams() == 1 || r.isOver() })
	eventually(t, "the run ends", r.isOver)
	eventually(t, "the client is cut off", func() bool { return streams() == 0 })
}

// TestHeartbeat: a stream without news shows that it is alive.
func TestHeartbeat(t *testing.T) {
	cfg := withScripts(t, "interrupted")
	cfg.Heartbeat = 10 * time.Millisecond
	l := serve(t, cfg, "127.0.0.1:0")
	id := l.start("interrupted")
	resp, err := l.client.Get(l.base + prefix + "/runs/" + id + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	timer := time.AfterFunc(hang, func() { resp.Body.Close() })
	defer timer.Stop()
	buf, text := make([]byte, 4096), ""
	for !strings.Contains(text, "\n\n\n") {
		n, err := resp.Body.Read(buf)
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		text += string(buf[:n])
	}
}

// TestShutdown: the end of the console ends its runs by the ladder, the streams
// tell it to their end, and nothing is left.
func TestShutdown(t *testing.T) {
	l := serve(t, withScripts(t, "interrupted", "linger"), "127.0.0.1:0")
	first, second := l.start("interrupted"), l.start("linger")
	one, _ := l.follow(first, "")
	two, _ := l.follow(second, "")
	until(t, one, "turn.started")
	until(t, two, "item.started")
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.end()
	}()
	for _, lines := range []<-chan streamed{one, two} {
		list := all(t, lines)
		if n := len(list); n < 2 || !list[n-1].End {
			t.Errorf("the stream did not end by itself")
		}
		if !slices.ContainsFunc(list, func(s streamed) bool {
			return s.Line != nil && s.Line.Message.Event.EventType == "run.terminal"
		}) {
			t.Error("the stream has no terminal")
		}
	}
	awaittest.Came(t, "the end of the console", done)
	if _, err := l.client.Get(l.base); err == nil {
		t.Error("the console still answers")
	}
	if _, no := l.server.runs.start(KindScript, "interrupted", ""); no == nil || no.code != "console_ending" {
		t.Errorf("a run was started after the end: %v", no)
	}
}

// TestOver: what a run was given is taken back once it is over, before it gives
// up its place, and also where it could not be started.
func TestOver(t *testing.T) {
	cfg := withScripts(t, "happy-path", "nothing")
	start := cfg.Start
	over := make(chan string, 2)
	cfg.Start = func(c Choice) (controller.Config, func(), error) {
		cc, _, err := start(c)
		if c.Name == "nothing" {
			cc.Argv = []string{"/does/not/exist"}
		}
		return cc, func() { over <- c.Name }, err
	}
	l := serve(t, cfg, "127.0.0.1:0")
	if status, body := l.do("POST", prefix+"/runs", `{"kind":"script","name":"nothing"}`); status != 500 || code(t, body) != "start_failed" {
		t.Errorf("got %d %s", status, body)
	}
	if got := awaittest.Came(t, "the end of the run", over); got != "nothing" {
		t.Errorf("over is %q", got)
	}
	l.start("happy-path")
	if got := awaittest.Came(t, "the end of the run", over); got != "happy-path" {
		t.Errorf("over is %q", got)
	}
	l.end()
	if len(over) > 0 {
		t.Errorf("%s is over again", <-over)
	}
}

// TestRecorded: a recorded run is shown as it is, with what is wrong in it.
func TestRecorded(t *testing.T) {
	for _, tt := range []struct {
		file     string
		problems int
	}{{"happy.jsonl", 0}, {"source-gap.jsonl", 1}, {"unknown-fields.jsonl", 0}, {"invalid/torn.jsonl", 2}} {
		t.Run(tt.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../fixtures", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(Config{})
			if err != nil {
				t.Fatal(err)
			}
			fragment, err := s.Load(tt.file, strings.NewReader(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			id := strings.TrimPrefix(fragment, "#/run/")
			l := serveServer(t, s, "127.0.0.1:0")
			lines, _ := l.follow(id, "")
			list := all(t, lines)
			for _, line := range list {
				if line.Line != nil && !strings.Contains(string(text), strings.TrimSuffix(strings.SplitN(line.text, `"line":`, 2)[1], "}")) {
					t.Errorf("not a line of the file: %s", line.text)
				}
			}
			status, body := l.do("GET", prefix+"/runs/"+id+"/trace", "")
			var trace traceBody
			if err := json.Unmarshal(body, &trace); err != nil || status != 200 || trace.ProblemCount != tt.problems {
				t.Errorf("trace: %d, %d problems, want %d: %v", status, trace.ProblemCount, tt.problems, trace.Problems)
			}
			status, body = l.do("POST", prefix+"/runs", `{"kind":"script","name":"happy-path"}`)
			if status != 404 {
				t.Errorf("a console of a recorded run starts runs: %d %s", status, body)
			}
		})
	}
}
