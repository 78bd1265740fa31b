package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
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

// browse goes to the printed address as a browser does, and then to paths.
func browse(t *testing.T, address string, paths ...string) (answers []string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: pageHang}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append([]string{"/?" + u.RawQuery}, paths...) {
		resp, err := client.Get("http://" + u.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v %s", path, resp.Status, err, text)
		}
		answers = append(answers, string(text))
	}
	return answers[1:]
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
