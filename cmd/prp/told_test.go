//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/controller/devserver"
	"prp/controller/workerclient"
)

// toldPatience bounds what a test here waits for, on a loaded machine.
const toldPatience = time.Minute

// TestTold: each signal that asks for the end ends a command in its own way,
// with a status of its own and not by the signal, and without a dump of
// goroutines (SIGQUIT, which is Ctrl-\).
func TestTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		argv   []string // ADDRESS and DIR are filled in
		status int
		says   string
	}{
		"worker":              {[]string{"worker", "--url", "ws://ADDRESS/", "--token-file", "DIR/token", "--root", "DIR", "--dir", "DIR/state"}, exitOK, ""},
		"connect":             {[]string{"connect", "--config", "DIR/connect.json"}, exitOK, ""},
		"taskrun":             {[]string{"taskrun", "--url", "http://ADDRESS", "--token-file", "DIR/token", "--task-run-id", "r", "--dir", "DIR/state", "happy-path"}, exitFailed, ""},
		"devserver worker":    {[]string{"devserver", "worker", "--dir", "DIR/dev"}, exitOK, ""},
		"devserver connector": {[]string{"devserver", "connector", "--dir", "DIR/dev"}, exitOK, ""},
		"devserver taskrun":   {[]string{"devserver", "taskrun", "--dir", "DIR/dev"}, exitOK, ""},
		"devserver send":      {[]string{"devserver", "send", "--dir", "DIR", "--wait", "1h", "file.read"}, exitFailed, "it is not watched any more, and goes on"},
		"devserver create":    {[]string{"devserver", "create", "--dir", "DIR", "--wait", "1h", "a", "b"}, exitFailed, "it is not watched any more, and goes on"},
		"devserver submit":    {[]string{"devserver", "submit", "--dir", "DIR", "--wait", "1h", "a"}, exitFailed, "it is not watched any more, and goes on"},
		"console":             {[]string{"console", "--no-open"}, exitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sig := range endSignals {
				status, said := tell(t, c.argv, sig)
				if status != c.status || strings.Contains(said, "goroutine ") || !strings.Contains(said, c.says) {
					t.Errorf("%v: exit status %d, want %d, and %q: %s", sig, status, c.status, c.says, said)
				}
			}
		})
	}
}

// tell starts prp, and sends a signal once it works: it has called a server, or
// has printed where it can be called itself.
func tell(t *testing.T, argv []string, sig os.Signal) (status int, said string) {
	t.Helper()
	works := make(chan struct{}, 1)
	work := func() {
		select {
		case works <- struct{}{}:
		default:
		}
	}
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		work()
		<-over // there is no answer
	}))
	defer server.Close()
	defer close(over)
	token := "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxMTExMTExMS0xMTExLTQxMTEtODExMS0xMTExMTExMTExMTEifQ." + strings.Repeat("A", 86) // ES256, the connector, 64 bytes
	dir := t.TempDir()
	address := server.Listener.Addr().String()
	text := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, place := range []string{"", "connector", "taskrun"} { // as a server on loopback leaves them
		text(filepath.Join(place, "token"), token+"\n")
		text(filepath.Join(place, "address"), address+"\n")
	}
	text("connect.json", `{"url":"ws://`+address+`/","connector_id":"11111111-1111-4111-8111-111111111111","token_file":"token","dir":"state","agents":[
		{"agent_id":"a","runtime":"fake","harness":"prp harness fake --script happy-path"}]}`)
	cmd := exec.Command("prp")
	for _, a := range argv {
		cmd.Args = append(cmd.Args, strings.NewReplacer("ADDRESS", address, "DIR", dir).Replace(a))
	}
	printed := &printer{wrote: work}
	cmd.Stdout, cmd.Stderr = printed, &printed.rest
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(toldPatience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its state says it
	}()
	select {
	case <-works:
		cmd.Process.Signal(sig)
	case <-ended:
	}
	<-ended
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		t.Errorf("%q was ended by %v", cmd.Args, s.Signal())
	}
	return cmd.ProcessState.ExitCode(), printed.rest.String()
}

// printer is the stdout of a command that prints an address once it works.
type printer struct {
	wrote func()
	rest  bytes.Buffer // stderr
}

func (p *printer) Write(b []byte) (int, error) {
	p.wrote()
	return len(b), nil
}

// TestSubmittedText: what stands on stderr begins a line of its own on a
// terminal, and the text is what the run has written, with an end of its line.
func TestSubmittedText(t *testing.T) {
	t.Parallel()
	end := &workerclient.PatchTaskRunRequest{Status: "SUCCEEDED"}
	for name, c := range map[string]struct {
		steps []devserver.Progress
		want  string
	}{
		"no end of the line": {[]devserver.Progress{{Status: "RUNNING"}, {Delta: "a"}, {Delta: "b"}, {Status: "SUCCEEDED", End: end}}, "r: RUNNING\nab\nr: SUCCEEDED\n"},
		"an end of the line": {[]devserver.Progress{{Delta: "a\n"}, {Status: "SUCCEEDED", End: end}}, "a\nr: SUCCEEDED\n"},
		"no text":            {[]devserver.Progress{{Status: "SUCCEEDED", End: end}}, "r: SUCCEEDED\n"},
		"at the end only": {[]devserver.Progress{{Status: "SUCCEEDED", End: &workerclient.PatchTaskRunRequest{
			Status: "SUCCEEDED", Output: new("whole"),
		}}}, "r: SUCCEEDED\nwhole\n"},
	} {
		screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
		if err != nil {
			t.Fatal(err)
		}
		defer screen.Close()
		both := &output{File: screen}
		w := &watching{o: &devserverOptions{}, s: &streams{out: both, err: both}, run: make(chan string, 1)}
		var answer bytes.Buffer
		for _, step := range append([]devserver.Progress{{ID: "r"}}, c.steps...) {
			line, err := json.Marshal(step)
			if err != nil {
				t.Fatal(err)
			}
			answer.Write(append(line, '\n'))
		}
		if err := w.watch(t.Context(), &answer); err != nil {
			t.Fatal(err)
		}
		status := w.showEnd()
		text, err := os.ReadFile(screen.Name())
		if err != nil || string(text) != c.want || status != exitOK {
			t.Errorf("%s: status %d, %q, %v, want %q", name, status, text, err, c.want)
		}
	}
}
