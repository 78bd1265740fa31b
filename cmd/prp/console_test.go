package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// pageHang bounds what a test waits for.
const pageHang = time.Minute

// startPage starts prp with these arguments and returns the address that it
// prints, and what ends it as Ctrl-C does.
func startPage(t *testing.T, args ...string) (address string, end func() error) {
	t.Helper()
	cmd := exec.Command("prp", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(pageHang, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		timer.Stop()
		cmd.Process.Kill()
	})
	lines := bufio.NewReader(out)
	address, err = lines.ReadString('\n')
	if err != nil {
		t.Fatalf("prp %q printed no address: %v", args, err)
	}
	return strings.TrimSpace(address), func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, lines)
		return cmd.Wait()
	}
}

// visitor is a browser that was let in.
type visitor struct {
	t      *testing.T
	client *http.Client
	base   string
	key    string // that the way in has given
}

// visit goes to the printed address as a browser does.
func visit(t *testing.T, address string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, client: &http.Client{Jar: jar, Timeout: pageHang}, base: "http://" + u.Host}
	_, way, found := strings.Cut(v.get("/?"+u.RawQuery), `content="0;url=/#key=`)
	if v.key, _, _ = strings.Cut(way, `"`); !found || v.key == "" {
		t.Fatal("the way in gives no key")
	}
	return v
}

// do makes a request as the page does.
func (v *visitor) do(method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequest(method, v.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Prp-Console-Key", v.key)
	req.Header.Set("Content-Type", "application/json")
	return v.client.Do(req)
}

func (v *visitor) get(path string) string {
	v.t.Helper()
	resp, err := v.do("GET", path, nil)
	return v.answer(path, resp, err)
}

func (v *visitor) post(path, body string) string {
	v.t.Helper()
	resp, err := v.do("POST", path, strings.NewReader(body))
	return v.answer(path, resp, err)
}

func (v *visitor) answer(path string, resp *http.Response, err error) string {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		v.t.Fatalf("%s: %s %v %s", path, resp.Status, err, text)
	}
	return string(text)
}

// browse goes to the printed address, and then to paths.
func browse(t *testing.T, address string, paths ...string) (answers []string) {
	t.Helper()
	v := visit(t, address)
	for _, path := range paths {
		answers = append(answers, v.get(path))
	}
	return answers
}

// TestConsole: the printed address leads to the page and to what can be
// started, and Ctrl-C ends it well.
func TestConsole(t *testing.T) {
	address, end := startPage(t, "console", "--no-open", "--harness", "my agent --stdio")
	got := browse(t, address, "/", "/api/localRunner/runs")
	if !strings.Contains(got[0], "/main.js") {
		t.Errorf("the page is %.200q", got[0])
	}
	for _, want := range []string{`"happy-path"`, `"permission-input"`, `"my agent --stdio"`} {
		if !strings.Contains(got[1], want) {
			t.Errorf("%s cannot be started: %s", want, got[1])
		}
	}
	if err := end(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// pageAgent is an agent without a model: it asks, and says what it was told and
// where its home is.
const pageAgent = `#!/bin/sh
say() {
  printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"
}
while read -r line; do
  id=${line#*\"id\":}
  id=${id%%,*}
  case $line in
  *'"method":"initialize"'*) result='{"protocolVersion":1}' ;;
  *'"method":"session/new"'*) result='{"sessionId":"s"}' ;;
  *'"method":"session/prompt"'*)
    printf '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"do it","kind":"execute"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}\n'
    read -r answer
    answer=${answer#*optionId\":\"}
    say "told ${answer%%\"*} home=$HOME"
    result='{"stopReason":"end_turn"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// TestConsoleAgent: an agent that is installed can be started from the page with
// a text and answered there; its private home is gone with the run.
func TestConsoleAgent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the agent is a shell script")
	}
	bin, tmp := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "claude-agent-acp"), []byte(pageAgent), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", tmp)
	t.Setenv("ANTHROPIC_API_KEY", "")
	address, end := startPage(t, "console", "--no-open", "--agent", "claude")
	v := visit(t, address)
	const runs = "/api/localRunner/runs"
	if got := v.get(runs); !strings.Contains(got, `"kind":"agent","name":"claude"`) || !strings.Contains(got, "not set: ANTHROPIC_API_KEY") {
		t.Fatalf("the agent cannot be started: %s", got)
	}
	var started struct{ Run struct{ ID string } }
	if err := json.Unmarshal([]byte(v.post(runs, `{"kind":"agent","name":"claude","text":"Fix it."}`)), &started); err != nil || started.Run.ID == "" {
		t.Fatal(started, err)
	}
	resp, err := v.do("GET", runs+"/"+started.Run.ID+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	request := regexp.MustCompile(`"requestId":"([^"]+)"`)
	lines, told := bufio.NewScanner(resp.Body), ""
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.Contains(line, `"runtime_request.created"`):
			id := request.FindStringSubmatch(line)[1]
			v.post(runs+"/"+started.Run.ID+"/resolve", `{"requestId":"`+id+`","response":{"decision":"allow"}}`)
		case strings.Contains(line, "told "):
			told = line
		}
	}
	if !strings.Contains(told, "told yes home="+tmp) {
		t.Errorf("the agent says %q", told)
	}
	if got := v.get(runs + "/" + started.Run.ID + "/trace"); !strings.Contains(got, `"runTerminalState":"succeeded"`) {
		t.Errorf("the trace is %s", got)
	}
	if err := end(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
		t.Errorf("there is left %q %v", left, err)
	}
}

// TestReplayOpen: a recorded run is there, and nothing can be started.
func TestReplayOpen(t *testing.T) {
	address, end := startPage(t, "replay", "--open", "--no-open", "../../fixtures/happy.jsonl")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	id, ok := strings.CutPrefix(u.Fragment, "/run/")
	if !ok {
		t.Fatalf("the address %q names no run", address)
	}
	got := browse(t, address, "/api/localRunner/runs", "/api/localRunner/runs/"+id+"/trace")
	if !strings.Contains(got[0], `"choices":[]`) || !strings.Contains(got[0], `"happy.jsonl"`) {
		t.Errorf("the list is %s", got[0])
	}
	if !strings.Contains(got[1], `"problemCount":0`) || !strings.Contains(got[1], `"succeeded"`) {
		t.Errorf("the trace is %s", got[1])
	}
	if err := end(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// TestConsoleMisuse: what is wrong is said before anything is served.
func TestConsoleMisuse(t *testing.T) {
	taken, _ := startPage(t, "console", "--no-open")
	u, err := url.Parse(taken)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"console", "more"}, exitUsage, `prp console: expected no arguments, got ["more"]`},
		{[]string{"console", "--harness", "a | b"}, exitUsage, "operators"},
		{[]string{"console", "--script", "/nowhere.json"}, exitUsage, "/nowhere.json"},
		{[]string{"console", "--agent", "clude"}, exitUsage, `prp console: --agent: expected one of claude, codex, gemini, opencode, qwen, got "clude"; did you mean "claude"?`},
		{[]string{"console", "--permissions", "yes"}, exitUsage, "prp console: --permissions: expected one of ask, "},
		{[]string{"console", "--addr", "1:2:3"}, exitUsage, `prp console: --addr: expected HOST:PORT with a port from 0 to 65535, got "1:2:3"`},
		{[]string{"replay", "--open", "--addr", "8080", "../../fixtures/happy.jsonl"}, exitUsage, "prp replay: --addr: expected HOST:PORT"},
		{[]string{"console", "--no-open", "--addr", "192.0.2.1:0"}, exitUsage, "prp console: --addr: expected a loopback address"},
		{[]string{"console", "--no-open", "--addr", u.Host}, exitFailed, "prp console: listen tcp " + u.Host},
	} {
		out, err := exec.Command("prp", tt.args...).CombinedOutput()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != tt.status || !strings.HasPrefix(string(out), "prp ") || !strings.Contains(string(out), tt.want) {
			t.Errorf("prp %q: %v, want status %d and %q, got %s", tt.args, err, tt.status, tt.want, out)
		}
	}
}
