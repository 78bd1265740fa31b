//go:build unix

package worker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		`{"tool":"worker.ping","command_id":7}`, `{"tool":"worker.ping","tool":"worker.ping","command_id":"a"}`, `{"event":"news"}`, `{"ack":"unknown"}`,
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
		`{"command_id":%q,"tool":"worker.ping","policy_context":7}`,
	} {
		id := fmt.Sprintf("bad_%d", i)
		p.frame(fmt.Sprintf(frame, id))
		r := p.result(id)
		p.refused(frame, r, CodeInvalidRequest)
		if r.Error.Details["field"] == nil {
			t.Errorf("%s: the details name no field: %s", frame, r.Raw)
		}
	}
	p.refused("unknown tool", p.do("file.chmod", "{}"), CodeUnknownTool)
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

// TestRun: rows 4, 5, 6 and 8.
func TestRun(t *testing.T) {
	p := ready(t)
	p.write("sub/file", "")
	for name, tt := range map[string]struct {
		args           string
		stdout, stderr string
		code, signal   any
	}{
		"argv":            {`{"argv":["sh","-c","echo out; echo err >&2"]}`, "out\n", "err\n", 0.0, nil},
		"words":           {`{"command":"printf '%s|' a 'b c' \"d\""}`, "a|b c|d|", "", 0.0, nil},
		"status":          {`{"argv":["sh","-c","exit 7"]}`, "", "", 7.0, nil},
		"signal":          {`{"argv":["sh","-c","kill -9 $$"]}`, "", "", nil, 9.0},
		"status 137":      {`{"argv":["sh","-c","exit 137"]}`, "", "", 137.0, nil},
		"stdin":           {`{"argv":["cat"],"stdin":"in\u2603"}`, "in\u2603", "", 0.0, nil},
		"no stdin":        {`{"argv":["cat"]}`, "", "", 0.0, nil},
		"cwd":             {`{"argv":["ls"],"cwd":"sub"}`, "file\n", "", 0.0, nil},
		"env":             {`{"argv":["sh","-c","echo $A-$B"],"env":{"A":"a b","B":"$x"}}`, "a b-$x\n", "", 0.0, nil},
		"invalid UTF-8":   {`{"argv":["printf","a\\377b"]}`, "a\ufffdb", "", 0.0, nil},
		"leaves children": {`{"argv":["sh","-c","sleep 300 & echo x"]}`, "x\n", "", 0.0, nil},
	} {
		r := p.do(ToolRun, tt.args)
		if r.Status != StatusSuccess || r.Stdout != tt.stdout || r.Stderr != tt.stderr || r.Fields["exit_code"] != tt.code || r.Fields["signal"] != tt.signal {
			t.Errorf("%s: %s", name, r.Raw)
		}
		if name == "invalid UTF-8" && r.Fields["replaced_bytes"] != 1.0 {
			t.Errorf("%s: %s", name, r.Raw)
		}
	}
	for name, args := range map[string]string{
		"no such program": `{"argv":["no-such-program"]}`, "a folder": `{"argv":["/"]}`,
	} {
		p.refused(name, p.do(ToolRun, args), CodeNotStarted)
	}
	for name, args := range map[string]string{
		"nothing": `{}`, "both": `{"argv":["a"],"command":"a"}`, "an operator": `{"command":"a | b"}`, "env": `{"argv":["a"],"env":{"A=B":"x"}}`,
		"a newline in env": `{"argv":["a"],"env":{"A":"x\ny"}}`, "NUL": `{"argv":["a\u0000"]}`, "a quote": `{"command":"a 'b"}`,
	} {
		p.refused(name, p.do(ToolRun, args), CodeInvalidRequest)
	}
	p.refused("cwd outside", p.do(ToolRun, `{"argv":["ls"],"cwd":"/"}`), "PATH_NOT_ALLOWED")
	p.refused("no cwd", p.do(ToolRun, `{"argv":["ls"],"cwd":"none"}`), "FILE_NOT_FOUND")
	p.refused("keep", p.do(ToolRun, `{"argv":["ls"],"keep":true}`), CodeUnsupported)
	if left, _ := os.ReadDir(filepath.Join(p.config.Dir, tempDir)); len(left) != 0 {
		t.Errorf("%d files with an environment are left", len(left))
	}
}

// TestOutputBounds: row 6. The beginning and the end of 3 MiB, and the counts.
func TestOutputBounds(t *testing.T) {
	p := ready(t)
	r := p.do(ToolRun, `{"argv":["sh","-c","i=0; echo begin; head -c 3000000 /dev/zero | tr '\\\\0' '\\\\001'; echo end; echo e >&2"]}`)
	if r.Status != StatusSuccess || r.Fields["stdout_truncated"] != true || r.Fields["stderr_truncated"] != false || r.Fields["stdout_bytes"] != 3000010.0 {
		t.Errorf("the result is %s", r.Result.Result)
	}
	if !strings.HasPrefix(r.Stdout, "begin\n") || !strings.HasSuffix(r.Stdout, "end\n") || !strings.Contains(r.Stdout, "bytes left out]") || len(r.Raw) > MaxFrame {
		t.Errorf("%d bytes of output in a frame of %d", len(r.Stdout), len(r.Raw))
	}
}

// TestTimeout: row 7. The tree is gone before "timeout" is sent, with what came.
func TestTimeout(t *testing.T) {
	p := ready(t)
	r := p.do(ToolRun, `{"argv":["sh","-c","echo before; trap '' TERM; setsid sleep 300 & echo $! > pid; echo $$ > own; while :; do sleep 0.1; done"]}`, `,"timeout_ms":700`)
	if r.Status != StatusTimeout || r.Error.Code != CodeTimeout || r.Stdout != "before\n" {
		t.Errorf("the result is %s", r.Raw)
	}
	for _, name := range []string{"pid", "own"} {
		if pid := strings.TrimSpace(p.read(name)); alive(pid) {
			t.Errorf("%s %s lives", name, pid)
		}
	}
	if r.DurationMS < 700 {
		t.Errorf("it took %d ms", r.DurationMS)
	}
}

// alive tells whether a process runs; a zombie does not.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil || pid == "" {
		return false
	}
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+2:])
	return rest[0] != 'Z' && rest[0] != 'X'
}

// TestCancel: row 10. Results first, then the reply; a second one says the same.
func TestCancel(t *testing.T) {
	for _, mode := range []string{"graceful", "force"} {
		t.Run(mode, func(t *testing.T) {
			p := ready(t)
			var ids []string
			for i := range maxRunning + 2 { // two of them queued
				ids = append(ids, p.send(ToolRun, fmt.Sprintf(`{"argv":["sh","-c","trap '' TERM; setsid sleep 300 & echo $! > pid%d; while :; do sleep 0.1; done"]}`, i)))
			}
			other := p.send(ToolPing, "{}")
			p.result(other)
			for i := range maxRunning {
				p.until("the start", func() bool { return p.read(fmt.Sprintf("pid%d", i)) != "" })
			}
			args := fmt.Sprintf(`{"task_id":"task","mode":%q}`, mode)
			reply := p.do(ToolCancel, args)
			if reply.Status != StatusSuccess || reply.Fields["outcome"] != "cancelled" {
				t.Errorf("the reply is %s", reply.Raw)
			}
			for i := range maxRunning {
				if pid := strings.TrimSpace(p.read(fmt.Sprintf("pid%d", i))); alive(pid) {
					t.Errorf("process %s lives when the reply is here", pid)
				}
			}
			var order []string
			for _, f := range p.server.Frames() {
				if slices.Contains(ids, f.ID) {
					order = append(order, f.Status)
				}
				if f.ID == reply.CommandID {
					order = append(order, "reply")
				}
			}
			want := append(slices.Repeat([]string{"cancelled"}, len(ids)), "reply")
			if !slices.Equal(order, want) {
				t.Errorf("the order is %q", order)
			}
			again := p.do(ToolCancel, args)
			if string(again.Result.Result) != string(reply.Result.Result) {
				t.Errorf("the second reply is %s, the first %s", again.Result.Result, reply.Result.Result)
			}
			one := p.do(ToolCancel, `{"task_id":"task","command_id":"`+other+`"}`)
			if one.Fields["outcome"] != "already_finished" || one.Fields["command_id"] != other {
				t.Errorf("a finished command: %s", one.Raw)
			}
			none := p.do(ToolCancel, `{"task_id":"another"}`)
			if none.Fields["outcome"] != "not_found" {
				t.Errorf("an unknown task: %s", none.Raw)
			}
		})
	}
}

// TestProcess: row 9. A background process answers at once, outlives the link,
// is read by offset, and ends with the task.
func TestProcess(t *testing.T) {
	p := ready(t)
	p.cfg.KeepProcess = time.Hour
	r := p.do(ToolRun, `{"argv":["sh","-c","echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; echo err >&2; exec sleep 300"],"background":true}`)
	id, _ := r.Fields["process_id"].(string)
	if r.Status != StatusSuccess || id == "" {
		t.Fatalf("the answer is %s", r.Raw)
	}
	status := func(more string) full {
		t.Helper()
		return p.do(ToolStatus, fmt.Sprintf(`{"process_id":%q%s}`, id, more))
	}
	output := func(more string) (string, float64) {
		t.Helper()
		out, _ := status(more).Fields["output"].(map[string]any)
		text, _ := out["content"].(string)
		next, _ := out["next_offset"].(float64)
		return text, next
	}
	p.until("output", func() bool { text, _ := output(`,"max_bytes":100`); return text == "one\n" })
	p.server.DropLink()
	p.write("go", "")
	p.until("more output", func() bool { text, next := output(`,"max_bytes":100,"offset":4`); return text == "two\n" && next == 8 })
	p.until("stderr", func() bool { text, _ := output(`,"max_bytes":100,"stream":"stderr"`); return text == "err\n" })
	s := status("")
	if s.Fields["state"] != "running" || s.Fields["stdout_bytes"] != 8.0 || s.Fields["output"] != nil || s.Fields["start_time"] == "" {
		t.Errorf("the status is %s", s.Raw)
	}
	pid := fmt.Sprint(s.Fields["pid"])
	if !alive(pid) {
		t.Errorf("process %s does not live", pid)
	}
	if reply := p.do(ToolCancel, `{"task_id":"task","command_id":"`+r.CommandID+`"}`); reply.Fields["outcome"] != "cancelled" || alive(pid) {
		t.Errorf("the reply is %s, the process lives: %v", reply.Raw, alive(pid))
	}
	if s := status(""); s.Fields["state"] != "exited" || s.Fields["signal"] != 15.0 || s.Fields["exit_code"] != nil {
		t.Errorf("after the end: %s", s.Raw)
	}
	p.refused("another", p.do(ToolStatus, `{"process_id":"proc_none"}`), CodeProcessNotFound)
	p.refused("not started", p.do(ToolRun, `{"argv":["no-such-program"],"background":true}`), CodeNotStarted)
}

// TestProcessEndsWithWorker: a background process ends with the worker, and is
// known to the next one; past its time it is forgotten.
func TestProcessEndsWithWorker(t *testing.T) {
	p := ready(t)
	r := p.do(ToolRun, `{"argv":["sh","-c","echo x; exec setsid sleep 300"],"background":true}`)
	args := fmt.Sprintf(`{"process_id":%q,"max_bytes":9}`, r.Fields["process_id"])
	var pid string
	p.until("output", func() bool {
		s := p.do(ToolStatus, args)
		pid = fmt.Sprint(s.Fields["pid"])
		return s.Fields["stdout_bytes"] == 2.0
	})
	p.end()
	if alive(pid) {
		t.Errorf("process %s lives without its worker", pid)
	}
	p.start()
	s := p.do(ToolStatus, args)
	if s.Fields["state"] != "exited" || s.Fields["output"].(map[string]any)["content"] != "x\n" {
		t.Errorf("after a restart: %s", s.Raw)
	}
	p.end()
	p.cfg.KeepProcess = time.Millisecond
	p.start()
	p.until("the end of its time", func() bool {
		r := p.do(ToolStatus, args)
		return r.Error != nil && r.Error.Code == CodeProcessNotFound
	})
}

// TestFileTools: rows 11 to 15 over the wire.
func TestFileTools(t *testing.T) {
	p := ready(t)
	p.write("f", "one\ntwo\n")
	p.write("bin", "\x00\xff")
	r := p.do(ToolRead, `{"path":"f","offset":4,"limit":3}`)
	if r.Fields["content"] != "two" || r.Fields["encoding"] != "utf-8" || r.Fields["size"] != 8.0 || len(r.Fields["sha256"].(string)) != 64 {
		t.Errorf("read: %s", r.Raw)
	}
	if r := p.do(ToolRead, `{"path":"bin"}`); r.Fields["content"] != base64.StdEncoding.EncodeToString([]byte("\x00\xff")) {
		t.Errorf("read: %s", r.Raw)
	}
	w := p.do(ToolWrite, fmt.Sprintf(`{"path":"f","content":"1\n","mode":"overwrite","expected_sha256":%q}`, r.Fields["sha256"]))
	backup, _ := w.Fields["backup"].(string)
	if b, _ := os.ReadFile(backup); w.Status != StatusSuccess || string(b) != "one\ntwo\n" || p.read("f") != "1\n" {
		t.Errorf("write: %s, backup %q", w.Raw, b)
	}
	p.refused("another hash", p.do(ToolWrite, fmt.Sprintf(`{"path":"f","content":"2","mode":"overwrite","expected_sha256":%q}`, r.Fields["sha256"])), "CONFLICT")
	if s := p.do(ToolSearch, `{"query":"1"}`); string(s.Result.Result) != `{"matches":[{"file":"f","line":1,"column":1,"text":"1"}],"truncated":false,"files":1,"skipped":1}` {
		t.Errorf("search: %s", s.Raw)
	}
	patch := `{"patch":"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+uno\n"`
	if d := p.do(ToolPatch, patch+`,"dry_run":true}`); d.Status != StatusSuccess || p.read("f") != "1\n" {
		t.Errorf("dry run: %s", d.Raw)
	}
	if d := p.do(ToolPatch, patch+`}`); d.Status != StatusSuccess || p.read("f") != "uno\n" {
		t.Errorf("patch: %s", d.Raw)
	}
	again := p.do(ToolPatch, patch+`}`)
	p.refused("patch again", again, "PATCH_FAILED")
	if again.Error.Details["file"] != "f" || again.Error.Details["hunk"] != 1.0 {
		t.Errorf("the details are %v", again.Error.Details)
	}
	p.refused("outside", p.do(ToolRead, `{"path":"/etc/passwd"}`), "PATH_NOT_ALLOWED")
	p.refused("no file", p.do(ToolRead, `{"path":"none"}`), "FILE_NOT_FOUND")
	p.refused("a folder", p.do(ToolRead, `{"path":"."}`), "NOT_A_FILE")
}

// TestLargeRead: a read of 1 MiB fits into a frame of 1 MiB: the rest follows.
func TestLargeRead(t *testing.T) {
	p := ready(t)
	whole := strings.Repeat("0123456789abcde\n", 100_000)
	p.write("f", whole)
	var got string
	for offset := 0.0; ; {
		r := p.do(ToolRead, fmt.Sprintf(`{"path":"f","offset":%.0f}`, offset))
		if r.Status != StatusSuccess {
			t.Fatal(string(r.Raw[:500]))
		}
		got += r.Fields["content"].(string)
		next, more := r.Fields["next_offset"].(float64)
		if !more {
			break
		}
		offset = next
	}
	if got != whole {
		t.Errorf("%d bytes, want %d", len(got), len(whole))
	}
}

// TestNoRoot: row 15. Without a root there is no file tool and no command.
func TestNoRoot(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Roots = nil
	p.start()
	r := p.do(ToolCapabilities, "{}")
	if got := fmt.Sprint(r.Fields["capabilities"]); got != "[worker.ping worker.capabilities process.status task.cancel]" {
		t.Errorf("the capabilities are %s", got)
	}
	p.refused("read", p.do(ToolRead, `{"path":"f"}`), CodeUnsupported)
	p.refused("run", p.do(ToolRun, `{"argv":["ls"]}`), CodeUnsupported)
}

// TestBusy: row 18. Four at once, 64 queued, then BUSY, which may be sent again.
func TestBusy(t *testing.T) {
	p := ready(t)
	var ids []string
	for i := range maxRunning + maxQueued {
		ids = append(ids, p.send(ToolRun, fmt.Sprintf(`{"argv":["sh","-c","echo > run%d; while [ ! -e go ]; do sleep 0.02; done"]}`, i)))
	}
	p.until("four", func() bool { return p.read("run3") != "" })
	extra := p.send(ToolRead, `{"path":"x"}`)
	p.refused("one more", p.result(extra), CodeBusy)
	if p.read("run4") != "" {
		t.Error("five run at once")
	}
	p.write("go", "")
	for _, id := range ids {
		if r := p.result(id); r.Status != StatusSuccess {
			t.Errorf("%s: %s", id, r.Raw)
		}
	}
	p.frame(fmt.Sprintf(`{"command_id":%q,"task_id":"task","tool":"file.read","args":{"path":"x"}}`, extra))
	p.until("the answer", func() bool { return p.results(extra) == 2 })
}

// TestWritesInOrder: row 18. Writes to one file come out in their order.
func TestWritesInOrder(t *testing.T) {
	p := ready(t)
	p.write("f", "")
	want, last := "", ""
	for i := range 40 {
		want += fmt.Sprintln(i)
		last = p.send(ToolWrite, fmt.Sprintf(`{"path":"f","content":"%d\n","mode":"append"}`, i))
	}
	p.result(last)
	if got := p.read("f"); got != want {
		t.Errorf("the file is %q", got)
	}
}

// TestMasked: remote.md rule 7. A secret is nowhere: not in a frame, not on disk.
func TestMasked(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	const secret = "s3cr3t/val\"ue"
	p.cfg.Secrets = append(p.cfg.Secrets, secret)
	p.cfg.CommandEnv = []string{"SECRET=" + secret}
	p.start()
	p.write("f", "a "+secret+" b\n")
	p.write("name "+strings.ReplaceAll(secret, "/", "-"), "")
	p.do(ToolRead, `{"path":"f"}`)
	p.do(ToolSearch, `{"query":"a "}`)
	r := p.do(ToolRun, `{"argv":["sh","-c","printf %s \"$SECRET\"; printf '%s' \"${SECRET%val*}\" >&2; sleep 0.1; printf '%s' \"val${SECRET#*val}\" >&2; printf %s \"$SECRET\" | base64"]}`)
	if r.Stdout != "[masked][masked]\n" && !strings.HasPrefix(r.Stdout, "[masked]") || r.Stderr != "[masked]" {
		t.Errorf("the output is %q and %q", r.Stdout, r.Stderr)
	}
	b := p.do(ToolRun, `{"argv":["sh","-c","printf %s \"$SECRET\""],"background":true}`)
	p.until("the end", func() bool {
		s := p.do(ToolStatus, fmt.Sprintf(`{"process_id":%q,"max_bytes":100}`, b.Fields["process_id"]))
		return s.Fields["state"] == "exited"
	})
	p.do(ToolRead, `{"path":"`+token+`"}`)
	p.end()
	escaped, _ := json.Marshal(secret)
	forms := []string{secret, string(escaped[1 : len(escaped)-1]), token}
	for _, f := range p.server.Frames() {
		for _, form := range forms {
			if strings.Contains(string(f.Raw), form) {
				t.Errorf("a frame has the secret: %s", f.Raw)
			}
		}
	}
	err := filepath.WalkDir(p.config.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, form := range forms {
			if strings.Contains(string(text), form) {
				t.Errorf("%s has the secret: %q", path, text)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
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
