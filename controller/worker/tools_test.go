//go:build unix

package worker

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prp/controller/devserver"
)

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
	p.write("x", "text")
	var ids []string
	for i := range 4 {
		ids = append(ids, p.send(ToolRun, fmt.Sprintf(`{"argv":["sh","-c","echo > run%d; while [ ! -e go ]; do sleep 0.02; done"]}`, i)))
	}
	p.until("four", func() bool { return p.read("run0")+p.read("run1")+p.read("run2")+p.read("run3") == "\n\n\n\n" })
	for range 64 {
		ids = append(ids, p.send(ToolWrite, `{"path":"log","mode":"append","content":"x"}`))
	}
	read := p.send(ToolRead, `{"path":"x"}`)
	p.refused("one more", p.result(read), CodeBusy)
	if p.do(ToolPing, "{}").Status != StatusSuccess {
		t.Error("a ping waits for others")
	}
	if p.read("log") != "" {
		t.Error("five run at once")
	}
	p.write("log", "")
	p.write("go", "")
	for _, id := range ids {
		if r := p.result(id); r.Status != StatusSuccess {
			t.Errorf("%s: %s", id, r.Raw)
		}
	}
	if got := p.read("log"); got != strings.Repeat("x", 64) {
		t.Errorf("%d of the queued took effect", len(got))
	}
	p.frame(fmt.Sprintf(`{"command_id":%q,"task_id":"task","tool":"file.read","args":{"path":"x"}}`, read))
	p.until("the answer", func() bool { return p.results(read) == 2 })
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

// TestMaskedPieces: remote.md rule 7. A secret is not given away piece by
// piece, wherever a part of a file or of a line begins and ends.
func TestMaskedPieces(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	const secret = "s3cr3t-0123456789"
	p.cfg.Secrets = []string{secret}
	p.start()
	p.write("f", "a "+secret+" b")
	for limit := range 6 {
		for offset := range len(secret) + 4 {
			r := p.do(ToolRead, fmt.Sprintf(`{"path":"f","offset":%d,"limit":%d}`, offset, limit+1))
			text, _ := r.Fields["content"].(string)
			rest := strings.ReplaceAll(text, "[masked]", "")
			if strings.Trim(rest, "a b") != "" || offset == 0 && !strings.HasPrefix(text, "a") || r.Fields["bytes"] == 0.0 {
				t.Errorf("%d bytes at %d: %q", limit+1, offset, text)
			}
		}
	}
	// The end of what is shown of a line lies inside the secret, then its begin.
	p.write("long", "needle"+strings.Repeat(".", 484)+secret+strings.Repeat(".", 590)+"\n")
	p.write("begin", strings.Repeat(".", 600)+secret+strings.Repeat(".", 115)+"needle"+strings.Repeat(".", 590)+"\n")
	r := p.do(ToolSearch, `{"query":"needle"}`)
	if raw := string(r.Raw); len(r.Fields["matches"].([]any)) != 2 || strings.Contains(raw, secret[:4]) || strings.Contains(raw, secret[len(secret)-4:]) || strings.Count(raw, "[masked]") != 2 {
		t.Errorf("the search says %s", raw)
	}
	// The name of a file is not told either, nor found out by asking for pieces.
	p.write(secret+".txt", "x")
	for _, args := range []string{
		`{"kind":"name","glob":"s3*"}`, `{"kind":"name","glob":"*789.txt"}`, `{"kind":"name","query":"s3cr"}`, `{"query":"x","glob":"[s]*"}`,
	} {
		r := p.do(ToolSearch, args)
		if r.Status != StatusSuccess || len(r.Fields["matches"].([]any)) != 0 {
			t.Errorf("%s is answered with %s", args, r.Raw)
		}
	}
	if r := p.do(ToolSearch, `{"kind":"name","glob":"*.txt"}`); !strings.Contains(string(r.Raw), `[{"file":"[masked].txt"}]`) {
		t.Errorf("the search says %s", r.Raw)
	}
}

// TestFullOfSecrets: rows 2, 6, 11, 13. What is masked may be longer than what was
// read: a result that is full of short secrets fits into a frame all the same,
// and says where it goes on or that it was cut.
func TestFullOfSecrets(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	const secret, times = "s3cret", 180_000 // more than 1 MiB
	p.cfg.Secrets = []string{secret}
	p.start()
	p.write("f", strings.Repeat(secret, times))
	p.write("lines", strings.Repeat(strings.Repeat(secret, 80)+" x\n", 2000))
	p.write("bin", "\x00"+strings.Repeat(secret, times))
	done := func(tool, args string) full {
		t.Helper()
		r := p.do(tool, args)
		if r.Status != StatusSuccess {
			t.Fatalf("%s %s: %.300s", tool, args, r.Raw)
		}
		return r
	}
	for name, size := range map[string]float64{"f": 6 * times, "bin": 6*times + 1} {
		calls, masked, read := 0, 0, 0.0
		for more := true; more; calls++ {
			r := done(ToolRead, fmt.Sprintf(`{"path":%q,"offset":%.0f}`, name, read))
			text := r.Fields["content"].(string)
			if r.Fields["encoding"] == "base64" {
				b, err := base64.StdEncoding.DecodeString(text)
				if text = strings.TrimPrefix(string(b), "\x00"); err != nil {
					t.Fatal(err)
				}
			}
			if strings.ReplaceAll(text, "[masked]", "") != "" {
				t.Fatalf("%s: read %.100q", name, text)
			}
			masked += strings.Count(text, "[masked]")
			read += r.Fields["bytes"].(float64)
			_, more = r.Fields["next_offset"]
		}
		// A secret that is cut is masked twice.
		if read != size || masked < times || masked >= times+calls || calls > 3 {
			t.Errorf("%s: in %d calls %.0f bytes were read, with %d secrets; want %.0f and %d", name, calls, read, masked, size, times)
		}
	}
	if r := done(ToolSearch, `{"query":"x","max_results":10000,"context_lines":20}`); r.Fields["truncated"] != true {
		t.Error("the search is whole")
	}
	r := done(ToolRun, `{"argv":["cat","f"]}`)
	if r.Fields["stdout_truncated"] != true || r.Fields["stdout_bytes"] != 6.0*times || !strings.HasPrefix(r.Stdout, "[masked][masked]") {
		t.Errorf("the output is %.300s", r.Raw)
	}
	b := done(ToolRun, `{"argv":["cat","f"],"background":true}`)
	p.until("the end", func() bool {
		s := done(ToolStatus, fmt.Sprintf(`{"process_id":%q,"max_bytes":262144}`, b.Fields["process_id"]))
		return s.Fields["state"] == "exited"
	})
	const few = 7000 // their diff is not left out
	r = done(ToolWrite, fmt.Sprintf(`{"path":"new","content":%q}`, strings.Repeat(secret+"\n", few)))
	if diff, _ := r.Fields["diff"].(string); strings.Count(diff, "+[masked]\n") != few {
		t.Errorf("the diff is %.300s", r.Raw)
	}
}

// TestExchangedInQueue: row 16. A path that is exchanged while its command waits
// does not lead to a file that the policy denies.
func TestExchangedInQueue(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Policy = Policy{Rules: []PolicyRule{{Class: ClassDeny, Paths: []string{"locked"}}, {Class: ClassAllow}}}
	for _, name := range []string{"locked/f", "free/f", "go/x"} {
		p.write(name, "secret\n")
	}
	p.start()
	for i := range maxRunning {
		p.send(ToolRun, fmt.Sprintf(`{"argv":["sh","-c","echo > run%d; while [ ! -e go/on ]; do sleep 0.02; done"]}`, i))
	}
	p.until("four", func() bool { return p.read("run0")+p.read("run1")+p.read("run2")+p.read("run3") == "\n\n\n\n" })
	var ids []string
	for tool, args := range map[string]string{
		ToolRead: `{"path":"free/f"}`, ToolSearch: `{"path":"free","query":"secret"}`,
		ToolWrite: `{"path":"free/f","content":"x","mode":"overwrite"}`,
		ToolPatch: `{"patch":"--- a/free/f\n+++ b/free/f\n@@ -1 +1 @@\n-secret\n+y\n"}`,
	} {
		ids = append(ids, p.send(tool, args))
	}
	p.do(ToolPing, "{}") // all are queued
	dir := p.config.Root
	if err := errors.Join(os.Rename(dir+"/free", dir+"/away"), os.Symlink("locked", dir+"/free")); err != nil {
		t.Fatal(err)
	}
	p.write("go/on", "")
	for _, id := range ids {
		p.refused("exchanged", p.result(id), "CONFLICT")
	}
	if p.read("locked/f") != "secret\n" {
		t.Errorf("the file is %q", p.read("locked/f"))
	}
}
