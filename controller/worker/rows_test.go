//go:build unix

package worker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"prp/controller/bridge"
	"prp/controller/devserver"
)

// TestErrorCodes: row 17. Each code over the wire, with details that name what
// it is about. BUSY is in TestBusy, CANCELLED in TestCancel, and what the
// account may not do in package files.
func TestErrorCodes(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	rules := []PolicyRule{{Class: ClassDeny, Paths: []string{"deny"}}, {Class: ClassApprove, Paths: []string{"approve"}}, {Class: ClassAllow}}
	p.cfg.Policy, p.cfg.Keeper = Policy{Rules: rules}, nil
	p.write("f", "x\n")
	p.write("huge", "")
	if err := os.Truncate(filepath.Join(p.config.Root, "huge"), 1<<30); err != nil {
		t.Fatal(err)
	}
	const approval = `,"policy_context":{"approved":true,"approval_id":"a"}`
	lost := `{"command_id":"lost","task_id":"task","tool":"command.run","args":{"argv":["true"]}}`
	begin(t, p, lost)
	p.start()
	for _, tt := range []struct {
		code             Code
		tool, args, more string
		detail           string
	}{
		{CodeInvalidRequest, ToolRead, `{"path":7}`, "", "field"},
		{CodeUnknownTool, "file.chmod", `{}`, "", "field"},
		{CodeUnsupported, ToolRun, `{"argv":["true"],"background":true,"keep":true}`, "", "field"},
		{CodePolicyDenied, ToolWrite, `{"path":"deny","content":""}`, approval, "tool"},
		{CodeApprovalRequired, ToolWrite, `{"path":"approve","content":""}`, "", "digest"},
		{"", ToolWrite, `{"path":"approve","content":""}`, approval, ""},
		{CodeApprovalInvalid, ToolWrite, `{"path":"approve","content":"2"}`, approval, "field"},
		{CodeProcessNotFound, ToolStatus, `{"process_id":"proc_none"}`, "", "field"},
		{CodeNotStarted, ToolRun, `{"argv":["no-such-program"]}`, "", "field"},
		{CodeTimeout, ToolRun, `{"argv":["sleep","300"]}`, `,"timeout_ms":100`, "field"},
		{"PATH_NOT_ALLOWED", ToolRead, `{"path":"/etc/passwd"}`, "", "path"},
		{"FILE_NOT_FOUND", ToolRead, `{"path":"none"}`, "", "path"},
		{"NOT_A_FILE", ToolRead, `{"path":"."}`, "", "path"},
		{"FILE_TOO_LARGE", ToolWrite, `{"path":"huge","mode":"append","content":"x"}`, "", "path"},
		{"CONFLICT", ToolWrite, `{"path":"f","content":"x"}`, "", "path"},
		{"PATCH_FAILED", ToolPatch, `{"patch":"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-y\n+z\n"}`, "", "hunk"},
	} {
		r := p.do(tt.tool, tt.args, tt.more)
		if tt.code == "" {
			if r.Status != StatusSuccess {
				t.Errorf("%s %s: %s", tt.tool, tt.args, r.Raw)
			}
			continue
		}
		if r.Error == nil || r.Error.Code != tt.code || r.Error.Details[tt.detail] == nil || r.Error.Message == "" {
			t.Errorf("%s %s: %s, want %s with %s", tt.tool, tt.args, r.Raw, tt.code, tt.detail)
		}
	}
	p.refused("a command that had begun", p.result("lost"), CodeOutcomeUnknown)
	if err := os.RemoveAll(filepath.Join(p.config.Dir, processesDir)); err != nil {
		t.Fatal(err)
	}
	p.refused("a fault of our own", p.do(ToolRun, `{"argv":["true"],"background":true}`), CodeInternal)
}

// begin records a command as one that a worker before had begun.
func begin(t *testing.T, p *peer, frame string) {
	t.Helper()
	in, err := decodeFrame([]byte(frame))
	if err != nil {
		t.Fatal(err)
	}
	c := in.command
	store, err := bridge.OpenStore(filepath.Join(p.config.Dir, commandsFile), bridge.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Begin(bridge.Remembered{ID: c.CommandID, Task: c.TaskID, Tool: c.Tool, Digest: c.digest}); err != nil {
		t.Fatal(err)
	}
}

// TestPermissionCode: row 17. What package files refuses for want of rights has
// its code on the wire, also where it comes as the system's error.
func TestPermissionCode(t *testing.T) {
	if e := fromFiles(fmt.Errorf("x: %w", os.ErrPermission)); e.Code != "PERMISSION_DENIED" {
		t.Errorf("the code is %s", e.Code)
	}
}

// TestTimeoutOfCommand: row 7. 30 000 ms where nothing is said, else what is.
func TestTimeoutOfCommand(t *testing.T) {
	for more, want := range map[string]time.Duration{"": 30_000 * time.Millisecond, `,"timeout_ms":7`: 7 * time.Millisecond, `,"timeout_ms":null`: 30_000 * time.Millisecond} {
		in, err := decodeFrame([]byte(`{"command_id":"c","tool":"worker.ping"` + more + `}`))
		if err != nil || in.bad != nil || in.command.Timeout != want {
			t.Errorf("%s: %+v, %v; want %s", more, in.command, err, want)
		}
	}
}

// TestFirstFrames: rows 1 and 2. The token is in the header and the hello comes
// first; a binary frame is none; 1 MiB is the bound each way, to the byte.
func TestFirstFrames(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	const mebibyte = 1 << 20
	over := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token || strings.Contains(r.URL.String(), token) {
			t.Errorf("the header is %q for %s", got, r.URL)
		}
		ws, err := websocket.Accept(rw, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(mebibyte)
		read := func() (m map[string]any) {
			kind, raw, err := ws.Read(p.ctx)
			if err != nil || kind != websocket.MessageText || json.Unmarshal(raw, &m) != nil {
				t.Errorf("read %v: %v", kind, err)
			}
			return m
		}
		write := func(kind websocket.MessageType, text string) {
			if err := ws.Write(p.ctx, kind, []byte(text)); err != nil {
				t.Error(err)
			}
		}
		padded := func(id string, size int) string {
			head := fmt.Sprintf(`{"command_id":%q,"tool":"worker.ping","pad":"`, id)
			return head + strings.Repeat("x", size-len(head)-2) + `"}`
		}
		if m := read(); m["event"] != "hello" {
			t.Errorf("the first frame is %v", m)
		}
		write(websocket.MessageText, `{"event":"welcome"}`)
		write(websocket.MessageBinary, `{"command_id":"binary","tool":"worker.ping"}`)
		write(websocket.MessageText, padded("fits", mebibyte))
		if m := read(); m["command_id"] != "fits" || m["status"] != "success" {
			t.Errorf("the answer is %v", m)
		}
		write(websocket.MessageText, padded("large", mebibyte+1))
		_, _, err = ws.Read(p.ctx)
		over <- err
	}))
	defer s.Close()
	p.cfg.Link.URL = s.URL
	p.cfg.Link.Backoff.Steps = []time.Duration{time.Hour} // one connection is enough
	p.start()
	select {
	case err := <-over:
		if websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
			t.Errorf("the connection ended with %v", err)
		}
	case <-p.ctx.Done():
		t.Fatal("waited in vain")
	}
	if n := p.worker.ignored.Load(); n != 1 {
		t.Errorf("%d frames were ignored, want the binary one", n)
	}
}
