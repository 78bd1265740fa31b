//go:build unix

package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"prp/controller/devserver"
)

// TestRun: rows 4, 5, 6 and 8.
func TestRun(t *testing.T) {
	p := ready(t)
	p.write("sub/file", "")
	ids := map[string]string{} // all are sent before one is waited for
	cases := map[string]struct {
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
	}
	for name, tt := range cases {
		ids[name] = p.send(ToolRun, tt.args)
	}
	for name, tt := range cases {
		r := p.result(ids[name])
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
		"NUL in env": `{"argv":["a"],"env":{"A":"x\u0000y"}}`, "NUL": `{"argv":["a\u0000"]}`, "a quote": `{"command":"a 'b"}`,
	} {
		p.refused(name, p.do(ToolRun, args), CodeInvalidRequest)
	}
	p.refused("cwd outside", p.do(ToolRun, `{"argv":["ls"],"cwd":"/"}`), "PATH_NOT_ALLOWED")
	p.refused("no cwd", p.do(ToolRun, `{"argv":["ls"],"cwd":"none"}`), "FILE_NOT_FOUND")
}

// TestLargeInput: row 8. A stdin that fills the frame comes through whole,
// however it is spelled; what does not fit into a turn is refused.
func TestLargeInput(t *testing.T) {
	p := ready(t)
	for _, unit := range []string{"<", "\u2028"} {
		text := strings.Repeat(unit, 900<<10/len(unit))
		input, err := json.Marshal(text) // with many escapes
		if err != nil {
			t.Fatal(err)
		}
		if len(input) > 1<<20 {
			input = []byte(`"` + text + `"`)
		}
		r := p.do(ToolRun, fmt.Sprintf(`{"argv":["sh","-c","wc -c; cat >/dev/null"],"stdin":%s}`, input))
		if strings.TrimSpace(r.Stdout) != fmt.Sprint(len(text)) {
			t.Errorf("of %d bytes came %s: %s", len(text), r.Stdout, r.Result.Result)
		}
	}
	r := p.do(ToolRun, `{"argv":["cat"],"stdin":"`+strings.Repeat("x", 1<<20-4<<10)+`"}`)
	if p.refused("too much", r, CodeInvalidRequest); r.Error.Details["field"] != "args.stdin" {
		t.Errorf("the details are %v", r.Error.Details)
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
	t.Parallel() // it waits
	p := ready(t)
	r := p.do(ToolRun, `{"argv":["sh","-c","echo before; trap '' TERM; setsid sleep 300 & echo $! > pid; echo $$ > own; while :; do sleep 0.1; done"]}`, `,"timeout_ms":3000`)
	if r.Status != StatusTimeout || r.Error.Code != CodeTimeout || r.Stdout != "before\n" {
		t.Errorf("the result is %s", r.Raw)
	}
	for _, name := range []string{"pid", "own"} {
		if pid := strings.TrimSpace(p.read(name)); alive(pid) {
			t.Errorf("%s %s lives", name, pid)
		}
	}
	if r.DurationMS < 3000 {
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
	p.until("a new link", func() bool { return hellos(p) == 2 })
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
	t.Parallel()
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

// TestStatusFits: rows 2 and 9. Output that needs escapes is read in parts that
// fit into a frame, and whole in the end.
func TestStatusFits(t *testing.T) {
	t.Parallel()
	p := ready(t)
	const size = 256 << 10
	r := p.do(ToolRun, fmt.Sprintf(`{"argv":["sh","-c","head -c %d /dev/zero | tr '\\0' '\\1'"],"background":true}`, size))
	p.until("the end", func() bool {
		return p.do(ToolStatus, fmt.Sprintf(`{"process_id":%q}`, r.Fields["process_id"])).Fields["state"] == "exited"
	})
	offset, parts := 0.0, 0
	for offset < size && parts < 10 {
		s := p.do(ToolStatus, fmt.Sprintf(`{"process_id":%q,"offset":%.0f,"max_bytes":%d}`, r.Fields["process_id"], offset, size))
		out, _ := s.Fields["output"].(map[string]any)
		text, _ := out["content"].(string)
		next, _ := out["next_offset"].(float64)
		if s.Status != StatusSuccess || text == "" || strings.Trim(text, "\x01") != "" || next != offset+float64(len(text)) {
			t.Fatalf("at %.0f: %.300s", offset, s.Raw)
		}
		offset = next
		parts++
	}
	if offset != size || parts < 2 {
		t.Errorf("%.0f bytes in %d parts, want %d in several", offset, parts, size)
	}
}

// TestProcessors: the programs between worker and command start for one processor.
// The command knows nothing of it, and sees what somebody has given it.
func TestProcessors(t *testing.T) {
	for want, give := range map[string]func(p *peer) string{
		"unset\n": func(*peer) string { return "" },
		"2\n": func(p *peer) string {
			p.cfg.Env = append(p.cfg.Env, "GOMAXPROCS=2")
			p.cfg.Runner = append(p.cfg.Runner, "--env-allow", "GOMAXPROCS")
			return ""
		},
		"3\n": func(p *peer) string {
			p.cfg.CommandEnv = append(p.cfg.CommandEnv, "GOMAXPROCS=3")
			return ""
		},
		"4\n": func(*peer) string { return `,"env":{"GOMAXPROCS":"4"}` },
	} {
		p := serve(t, devserver.WorkerConfig{})
		more := give(p)
		p.start()
		if r := p.do(ToolRun, `{"argv":["sh","-c","echo ${GOMAXPROCS-unset}"]`+more+`}`); r.Stdout != want {
			t.Errorf("the output is %q, want %q: %s", r.Stdout, want, r.Raw)
		}
	}
}
