//go:build unix

package worker

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller/bridge"
	"prp/controller/devserver"
)

// TestHello: row 1. The first frame of each connection tells what the worker is.
func TestHello(t *testing.T) {
	p := ready(t)
	p.do(ToolPing, "{}")
	f := p.server.Frames()[0]
	var h map[string]any
	if err := json.Unmarshal(f.Raw, &h); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"event": "hello", "worker_id": "home_pc", "machine": "TEST-1", "version": "0.1.0", "protocol_version": 1.0, "last_seq": 0.0, "ack_seq": 0.0,
	} {
		if h[name] != want {
			t.Errorf("%s is %v, want %v", name, h[name], want)
		}
	}
	if h["os"] == "" || h["instance_id"] == "" || len(h["capabilities"].([]any)) != len(Tools()) {
		t.Errorf("hello is %s", f.Raw)
	}
}

// TestSilentServer: row 1. A server that answers nothing works.
func TestSilentServer(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{Silent: true, Ack: devserver.AckNone}).start()
	begun := time.Now()
	p.do(ToolPing, "{}")
	if took := time.Since(begun); took < p.cfg.HelloWait {
		t.Errorf("a command was accepted after %s", took)
	}
}

// TestFrames: row 2. What is which, and what is ignored.
func TestFrames(t *testing.T) {
	p := ready(t)
	for _, frame := range []string{
		`nonsense`, `[]`, `null`, `{}`, `{"x":1}`, `{"tool":"worker.ping"}`, `{"tool":"worker.ping","command_id":""}`,
		`{"tool":"worker.ping","command_id":7}`, `{"tool":"worker.ping","command_id":"a","command_id":"b"}`, `{"event":"news"}`, `{"ack":"unknown"}`,
	} {
		p.frame(frame)
	}
	p.do(ToolPing, "{}")
	if n := p.worker.ignored.Load(); n != 9 {
		t.Errorf("%d frames were ignored, want 9", n)
	}
	for i, frame := range []string{
		`{"command_id":%q}`, `{"command_id":%q,"tool":7}`, `{"command_id":%q,"tool":"worker.ping","args":[]}`,
		`{"command_id":%q,"tool":"worker.ping","args":{"x":1}}`, `{"command_id":%q,"tool":"worker.ping","timeout_ms":0}`,
		`{"command_id":%q,"tool":"worker.ping","timeout_ms":1.5}`, `{"command_id":%q,"tool":"file.read","args":{"path":7}}`,
		`{"command_id":%q,"tool":"file.read","args":{"Path":"f"}}`, `{"command_id":%q,"tool":"file.read","args":null}`,
		`{"command_id":%q,"tool":"file.read","args":{"path":"f","limit":1.5}}`,
		`{"command_id":%q,"tool":"worker.ping","policy_context":7}`,
		`{"tool":"worker.ping","tool":"worker.ping","command_id":%q}`,
		`{"command_id":%q,"tool":"file.read","args":{"path":"f","path":"g"}}`,
		`{"command_id":%q,"tool":"worker.ping","args":{"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`,
		`{"command_id":%q,"tool":"file.read","args":{"path":"\ud800"}}`,
	} {
		id := fmt.Sprintf("bad_%d", i)
		p.frame(fmt.Sprintf(frame, id))
		r := p.result(id)
		p.refused(frame, r, CodeInvalidRequest)
		if r.Error.Details["field"] == nil {
			t.Errorf("%s: the details name no field: %s", frame, r.Raw)
		}
	}
	for n, answers := range map[int]int{161: 1, 4096: 1, 4097: 0} { // row 2; up to 160 it is an id
		long := strings.Repeat("é", n)
		p.frame(fmt.Sprintf(`{"command_id":%q,"task_id":"task","tool":"worker.ping"}`, long))
		if p.do(ToolPing, "{}"); answers > 0 {
			r := p.result(long)
			p.refused("a long id", r, CodeInvalidRequest)
			if r.Error.Details["field"] != "command_id" || r.TaskID != "task" {
				t.Errorf("an id of %d characters: %s", n, r.Raw)
			}
		}
		if got := p.results(long); got != answers {
			t.Errorf("an id of %d characters: %d answers, want %d", n, got, answers)
		}
	}
	exact := strings.Repeat("é", 160)
	p.frame(fmt.Sprintf(`{"command_id":%q,"tool":"worker.ping"}`, exact))
	if r := p.result(exact); r.Status != StatusSuccess {
		t.Errorf("an id of 160 characters: %s", r.Raw)
	}
	r := p.do("file.chmod", "{}")
	if p.refused("unknown tool", r, CodeUnknownTool); !strings.Contains(r.Error.Message, strings.Join(Tools(), ", ")) {
		t.Errorf("the message is %q, want the tools in it", r.Error.Message)
	}
	p.frame(`{"command_id":"big","tool":"worker.ping","args":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`)
	p.until("a new connection", func() bool {
		frames := p.server.Frames()
		return frames[len(frames)-1].Kind == devserver.OnHello
	})
	p.do(ToolPing, "{}")
	if n := len(p.server.Frames()); p.results("big") != 0 {
		t.Errorf("a frame of 2 MiB was answered, %d frames", n)
	}
}

// TestIdempotent: row 3, remote.md rule 3. One effect and the stored answer,
// also after a restart; other content is an error.
func TestIdempotent(t *testing.T) {
	p := ready(t)
	command := `{"command_id":"once","tool":"command.run","args":{"argv":["sh","-c","echo x >> %s; echo said"],"cwd":"."}%s}`
	log := filepath.Join(p.config.Root, "log")
	p.frame(fmt.Sprintf(command, log, ""))
	first := p.result("once")
	reordered := `{"args":{"cwd":".","argv":["sh","-c","echo x >> ` + log + `; echo said"]}, "tool":"command.run","command_id":"once"}`
	for i, frame := range []string{fmt.Sprintf(command, log, ""), reordered} {
		p.frame(frame)
		p.until("the stored answer", func() bool { return p.results("once") == i+2 })
	}
	p.end()
	p.start()
	p.frame(reordered)
	p.until("the stored answer after a restart", func() bool { return p.results("once") >= 4 })
	for _, f := range p.server.Frames() {
		if f.ID != "once" {
			continue
		}
		if r := decodeResult(t, f.Raw); r.Stdout != first.Stdout || r.FinishedAt != first.FinishedAt || r.Stdout != "said\n" {
			t.Errorf("an answer is %s", f.Raw)
		}
	}
	if got := p.read("log"); got != "x\n" {
		t.Errorf("the command ran %d times", strings.Count(got, "x"))
	}
	p.frame(fmt.Sprintf(command, log, `,"timeout_ms":5`))
	p.until("the refusal", func() bool {
		frames := p.server.Frames()
		last := frames[len(frames)-1]
		return last.ID == "once" && last.Status == "error" && strings.Contains(string(last.Raw), `"reason":"reused"`)
	})
}

// TestDuplicateWhileRunning: row 3. One result, no second run.
func TestDuplicateWhileRunning(t *testing.T) {
	p := ready(t)
	frame := `{"command_id":"long","task_id":"t","tool":"command.run","args":{"argv":["sh","-c","echo x >> log; while [ ! -e go ]; do sleep 0.01; done"]}}`
	p.frame(frame)
	p.until("the start", func() bool { return p.read("log") != "" })
	p.frame(frame)
	p.frame(frame)
	p.do(ToolPing, "{}")
	p.write("go", "")
	p.result("long")
	p.do(ToolPing, "{}")
	if n := p.results("long"); n != 1 || p.read("log") != "x\n" {
		t.Errorf("%d results, log %q", n, p.read("log"))
	}
}

// TestGapIsTold: remote.md rule 10. What a full spool has dropped is told in its
// place.
func TestGapIsTold(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	outbox, err := bridge.OpenOutbox(filepath.Join(p.config.Dir, outboxFile), bridge.OutboxConfig{SpoolBytes: 300})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := outbox.Put("c", true, func(seq int64) []byte { return withSeq(encodeProgress("c", nil, "%d", i), seq) }); err != nil {
			t.Fatal(err)
		}
	}
	outbox.Close()
	p.start()
	p.do(ToolPing, "{}")
	var told struct {
		FromSeq int64 `json:"from_seq"`
		ToSeq   int64 `json:"to_seq"`
	}
	f := p.server.Frames()[1]
	if err := json.Unmarshal(f.Raw, &told); err != nil || f.Kind != "gap" || told.FromSeq != 1 || told.ToSeq < 2 {
		t.Errorf("the first frame is %s", f.Raw)
	}
	next := p.server.Frames()[2]
	if next.Kind != devserver.OnProgress || next.Seq != told.ToSeq+1 {
		t.Errorf("after it comes %s", next.Raw)
	}
}
