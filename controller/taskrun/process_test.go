//go:build unix

package taskrun

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/devserver"
	"prp/controller/identity/identitytest"
)

// process is prp taskrun as a process of its own, which works on the run.
func (b *bench) process() (*exec.Cmd, *bytes.Buffer) {
	b.t.Helper()
	dir := programs.Dir(b.t)
	b.offered()
	cmd := exec.CommandContext(b.ctx, filepath.Join(dir, "prp"), "taskrun", "--task-run-id", b.id, "--url", b.http.URL,
		"--dir", b.cfg.Dir, "--workspace", b.cfg.Workspace, "--allow-unsandboxed", "--env-allow", "PRP_RUN_TOKEN", "--harness", quote(b.cfg.Harness))
	cmd.Env = append(controller.SmallEnv(), "PRP_RUN_TOKEN="+b.token)
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	return cmd, said
}

// TestSIGTERM: the run ends as a whole, the report is FAILED, and the exit status
// 0 since the end was reported. The harness never has the token (remote.md rule
// 6).
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shell()
	b.cfg.Harness[2] = "env > env; " + b.cfg.Harness[2]
	cmd, said := b.process()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.running()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, said)
	}
	if st := b.state(); st.Status != "FAILED" || text(st.End.ErrorMessage) != textSignalled {
		t.Errorf("%s: %s", st.Status, text(st.End.ErrorMessage))
	}
	if env := b.read("env"); !strings.Contains(env, "PATH=") || strings.Contains(env, b.token) {
		t.Errorf("the environment of the harness is %s", env)
	}
	b.gone()
	b.clean()
}

// TestSIGKILL: a worker that is killed leaves no process, and the next one leaves
// its run alone: nobody knows how it ended (remote.md rule 4). It removes the
// private folder of that run.
func TestSIGKILL(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shell()
	cmd, _ := b.process()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.running()
	_ = cmd.Process.Kill() // it lives
	_ = cmd.Wait()         // it was killed
	for b.lives() {
		if b.ctx.Err() != nil {
			t.Fatal("the child of the harness lives")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if left, err := os.ReadDir(filepath.Join(b.cfg.Dir, runsDir)); err != nil || len(left) != 1 {
		t.Errorf("the killed worker has left %v, %v", left, err)
	}
	again, said := b.process()
	if err := again.Run(); err != nil {
		t.Errorf("the next one ended with %v: %s", err, said)
	}
	if st := b.state(); st.Status != "RUNNING" || st.Count(devserver.OnClaim) != 1 || st.Count(devserver.OnEnd) != 0 {
		t.Errorf("%s after %d claims and %d ends", st.Status, st.Count(devserver.OnClaim), st.Count(devserver.OnEnd))
	}
	b.clean()
}

// TestSIGPIPE: that nobody reads what the worker says ends no run: its end is
// reported.
func TestSIGPIPE(t *testing.T) {
	t.Parallel()
	b := newBench(t, rule(devserver.OnFetch, 1, "503"), rule(devserver.OnEnd, 1, "503"))
	b.shell()
	b.goOn()
	cmd, _ := b.process()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd.Stdout, cmd.Stderr = w, w // files, which the worker gets as they are
	if err := cmd.Run(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if st := b.state(); st.Status != "SUCCEEDED" || st.Count(devserver.OnFetch) < 2 || st.Count(devserver.OnEnd) != 2 {
		t.Errorf("%s after %d fetches and %d ends", st.Status, st.Count(devserver.OnFetch), st.Count(devserver.OnEnd))
	}
}

// TestTLSProcess: a whole run over TLS with a client certificate, and none without
// its key (workerclient.md row 12, remote.md rule 11).
func TestTLSProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shell()
	b.goOn()
	kit := identitytest.New(t)
	secured := httptest.NewUnstartedServer(b.server)
	secured.TLS = kit.Server()
	secured.Config.ErrorLog = log.New(io.Discard, "", 0) // it is told of each refusal
	secured.StartTLS()
	t.Cleanup(secured.Close)
	certFile, keyFile := kit.Client("worker")
	run := func(more ...string) (string, error) {
		cmd, said := b.process()
		cmd.Args = append(cmd.Args, append([]string{"--url", secured.URL}, more...)...)
		err := cmd.Run()
		return said.String(), err
	}
	ca := []string{"--ca-file", kit.CAFile()}
	if said, err := run(append(ca, "--cert-file", certFile)...); err == nil || !strings.Contains(said, "certificate and its key") {
		t.Errorf("a certificate alone: %v: %s", err, said)
	}
	if said, err := run(append(ca, "--cert-file", certFile, "--key-file", keyFile)...); err != nil {
		t.Fatalf("it ended with %v: %s", err, said)
	}
	if st := b.state(); st.Status != "SUCCEEDED" || text(st.End.Output) != "Done." || st.Count(devserver.OnClaim) != 1 {
		t.Errorf("the end is %s, %+v", st.Status, st.End)
	}
}
