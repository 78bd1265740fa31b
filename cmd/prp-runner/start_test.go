//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/protocol"
)

// How a harness is started, and what it finds: F14, F20, F21, F27.

func TestF14CannotBeStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	make := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	busy := make("busy", "#!/bin/sh\n", 0o755)
	held, err := os.OpenFile(busy, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	for name, harness := range map[string]string{
		"missing":             filepath.Join(dir, "missing"),
		"missing bare name":   "prp-no-such-program",
		"directory":           dir,
		"not executable":      make("plain", "#!/bin/sh\n", 0o644),
		"empty":               make("empty", "", 0o755),
		"no format":           make("noformat", "\x7fELF and then nothing\n", 0o755),
		"bad interpreter":     make("badinterpreter", "#!/no/such/interpreter\n", 0o755),
		"text busy":           busy,
		"through a file":      busy + "/x",
		"name in single dots": "./prp-no-such-program",
	} {
		each(t, name, func(t *testing.T) {
			startFails(t, setup{harness: harness}, strings.Fields(harness)[0])
		})
	}
	each(t, "arguments too long", func(t *testing.T) {
		// Above the kernel's bound of one word of the environment, 128 KiB.
		huge := file(t, "env", "HUGE="+strings.Repeat("a", 200_000)+"\n")
		startFails(t, setup{harness: "true", flags: []string{"--env-file", huge}}, "arguments and environment are too long")
	})
	each(t, "missing cwd", func(t *testing.T) {
		startFails(t, setup{harness: "true", flags: []string{"--cwd", filepath.Join(dir, "nowhere")}}, "nowhere")
	})
	each(t, "cwd is a file", func(t *testing.T) {
		startFails(t, setup{harness: "true", flags: []string{"--cwd", make("afile", "", 0o600)}}, "afile")
	})
}

// startFails writes commands in one go and checks that each is answered, that
// the cause is told once, and that no exit was invented.
func startFails(t *testing.T, s setup, named string) {
	r := start(t, s)
	r.beginUnread()
	e := r.end().reason(protocol.ReasonStartFailed)
	if e.exited != nil || e.terminal.Reconciliation.ProcessExit != nil {
		t.Errorf("an exit was invented: %s", show(e.exited))
	}
	detail, ok := e.diagnosed(protocol.CodeHarnessStartFailed)
	if !ok || !strings.Contains(detail, named) {
		t.Errorf("diagnostic %.300q, want one that names %q", detail, named)
	}
	all := e.receipts()
	if got := all["c1"]; len(got) != 1 || got[0].Code != protocol.CodeHarnessStartFailed {
		t.Errorf("run.prepare: %+v, want rejected with %s", got, protocol.CodeHarnessStartFailed)
	}
	for _, id := range []string{"c2", "c3"} {
		if got := all[id]; len(got) != 1 || got[0].Code != protocol.CodeRunEnding {
			t.Errorf("%s: %+v, want rejected with %s", id, got, protocol.CodeRunEnding)
		}
	}
}

// With few descriptors the run either works or fails once with the cause.
func TestF14NoDescriptors(t *testing.T) {
	t.Parallel()
	failed := 0
	for n := 6; n <= 24; n++ {
		r := start(t, setup{
			words:   []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, n), "sh"},
			harness: ready().result().cat(t),
		})
		r.send(protocol.RunPrepare, "")
		if r.waitExit() != 0 {
			// It could not even begin; it says so and starts nothing.
			if r.complaints() == "" {
				t.Errorf("%d descriptors: exit status %d without a word", n, r.waitExit())
			}
			r.nothingLeft()
			continue
		}
		e := r.end()
		if reason := e.terminal.Reconciliation.Reason; reason == protocol.ReasonStartFailed {
			failed++
			if e.exited != nil {
				t.Errorf("%d descriptors: an exit was invented", n)
			}
			if detail, ok := e.diagnosed(protocol.CodeHarnessStartFailed); !ok || !strings.Contains(detail, "descriptor") && !strings.Contains(detail, "open files") {
				t.Errorf("%d descriptors: diagnostic %q", n, detail)
			}
		} else {
			e.reason(protocol.ReasonSuccess)
		}
	}
	if failed == 0 {
		t.Error("no number of descriptors made the start fail")
	}
}

// leader waits for the one process of a harness that executes name.
func (r *run) leader(name string) int {
	r.t.Helper()
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		for _, p := range ofHarness(r.cmd.Process.Pid, r.mark) {
			if strings.HasPrefix(p.args, name) {
				return p.pid
			}
		}
	}
	r.t.Fatalf("no process %q of the harness\n%s", name, r.tail())
	return 0
}

func TestF20Descriptors(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	extra := slices.Repeat([]*os.File{nil}, 61)
	for _, fd := range []int{7, 10, 63} {
		extra[fd-3] = null
	}
	r := start(t, setup{harness: "sleep 600", extra: extra})
	// The control: the runner does have them.
	if got := descriptors(t, r.cmd.Process.Pid); !slices.Contains(got, "63") || !slices.Contains(got, "7") {
		t.Fatalf("the runner was started with the descriptors %q", got)
	}
	r.send(protocol.RunPrepare, "")
	if got := descriptors(t, r.leader("sleep 600")); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("the harness has the descriptors %q, want 0, 1 and 2", got)
	}
	r.accepted(protocol.RunCancel, "")
	r.end().reason(protocol.ReasonRunCancelled)
}

func descriptors(t *testing.T, pid int) []string {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}

// Signals that the launcher ignored are at their default in the harness, and
// none is blocked.
func TestSignalDispositions(t *testing.T) {
	t.Parallel()
	r := start(t, setup{
		words:   []string{"sh", "-c", `trap '' HUP INT QUIT USR1 PIPE TERM; exec "$@"`, "sh"},
		harness: "sleep 600",
	})
	r.send(protocol.RunPrepare, "")
	pid := r.leader("sleep 600")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SigBlk", "SigIgn", "SigCgt"} {
		if !bytes.Contains(status, []byte(name+":\t0000000000000000\n")) {
			t.Errorf("%s of the harness is not empty:\n%s", name, status)
		}
	}
	r.accepted(protocol.RunCancel, "")
	r.end().reason(protocol.ReasonRunCancelled)
}

func TestF21Environment(t *testing.T) {
	t.Parallel()
	env := []string{
		"LD_PRELOAD=", "NODE_OPTIONS=--zz-option", "BASH_ENV=/zz-bash-env", "OPENAI_API_KEY=zz-key", "AWS_SECRET_ACCESS_KEY=zz-aws",
		"ALLOWED=zz \"quoted\" = ü $x", "EMPTY=", "REPLACED=zz-old",
	}
	for i := range 292 {
		env = append(env, fmt.Sprintf("ZZ_%d=zz-value-%d", i, i))
	}
	secrets := file(t, "env", "# comment\n\nTOKEN=zz-token-of-the-file\nREPLACED=zz-new\r\nSPACES= a b \n")
	r := start(t, setup{
		harness: "sleep 600", env: env,
		flags: []string{"--env-allow", "ALLOWED", "--env-allow", "EMPTY", "--env-allow", "REPLACED", "--env-allow", "NOT_SET", "--env-file", secrets},
	})
	r.send(protocol.RunPrepare, "")
	got, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", r.leader("sleep 600")))
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(strings.TrimSuffix(string(got), "\x00"), "\x00")
	want := []string{
		"PATH=" + os.Getenv("PATH"), r.mark, "ALLOWED=zz \"quoted\" = ü $x", "EMPTY=", "REPLACED=zz-new",
		"TOKEN=zz-token-of-the-file", "SPACES= a b ",
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the harness has\n%q\nwant\n%q", have, want)
	}
	for _, p := range append(ofHarness(r.cmd.Process.Pid, r.mark), alive()...) {
		if strings.Contains(p.args, "zz-token") {
			t.Errorf("a secret stands in the arguments of %s", p)
		}
	}
	r.accepted(protocol.RunCancel, "")
	r.end().reason(protocol.ReasonRunCancelled)
	for _, line := range r.lines {
		if bytes.Contains(line, []byte("zz-")) {
			t.Errorf("a value of the environment was written: %s", line)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	secrets := file(t, "env", "TOKEN=hunter2-hunter2\nPATH_LIKE=/hidden/hunter3-hunter3\n")
	s := ready().
		say("log", `{"stream":"stdout","text":"token is hunter2-hunter2!"}`).
		say("diagnostic", `{"token":"hunter2-hunter2"}`).
		// What the runner says about the harness quotes it.
		event("unknown.hunter2-hunter2", `{}`).
		say("result", `{"result":{"schema":"hunter2-hunter2"}}`).
		result()
	r := start(t, setup{
		harness: s.then(t, "echo \"stderr $TOKEN\" >&2"),
		flags:   []string{"--env-file", secrets},
	})
	r.send(protocol.RunPrepare, "")
	e := r.end().reason(protocol.ReasonSuccess)
	for _, line := range r.lines {
		if bytes.Contains(line, []byte("hunter2")) {
			t.Errorf("the secret was written: %s", line)
		}
	}
	if n := len(e.exited.Logs.Lines); n != 3 {
		t.Errorf("%d log lines, want 3: %q", n, e.exited.Logs.Lines)
	}
	if n := len(e.of(protocol.EventHarnessDiag)); n != 2 {
		t.Errorf("%d events harness.diagnostic, want 2", n)
	}
	// A diagnostic of the runner itself that would name it.
	r = start(t, setup{harness: "/hidden/hunter3-hunter3", flags: []string{"--env-file", secrets}})
	r.send(protocol.RunPrepare, "")
	r.end().reason(protocol.ReasonStartFailed)
	for _, line := range r.lines {
		if bytes.Contains(line, []byte("hunter3")) {
			t.Errorf("the secret was written: %s", line)
		}
	}
}

func TestF27NeverReady(t *testing.T) {
	t.Parallel()
	each(t, "never", func(t *testing.T) {
		r := start(t, setup{harness: "sleep 600", flags: []string{"--ready-timeout-ms", "300"}})
		r.beginUnread()
		e := r.end().reason(protocol.ReasonNotReady).killed(15)
		for id, code := range map[string]protocol.Code{"c1": protocol.CodeHarnessNotReady, "c2": protocol.CodeRunEnding, "c3": protocol.CodeRunEnding} {
			if got := e.receipts()[id]; len(got) != 1 || got[0].Code != code {
				t.Errorf("%s: %+v, want %s", id, got, code)
			}
		}
	})
	each(t, "never, cancel", func(t *testing.T) {
		r := start(t, setup{
			harness: "sleep 600",
			flags:   []string{"--ready-timeout-ms", longGrace, "--cancel-grace-ms", longGrace, "--shutdown-grace-ms", longGrace},
		})
		r.beginUnread()
		r.event(protocol.EventHarnessStarting)
		r.accepted(protocol.RunCancel, "")
		e := r.end().reason(protocol.ReasonRunCancelled)
		for _, id := range []string{"c1", "c2", "c3"} {
			if got := e.receipts()[id]; len(got) != 1 || got[0].Status != protocol.ReceiptRejected {
				t.Errorf("%s: %+v, want rejected", id, got)
			}
		}
	})
	each(t, "never, end of stdin", func(t *testing.T) {
		r := start(t, setup{harness: "sleep 600", flags: []string{"--ready-timeout-ms", "500"}})
		r.beginUnread()
		r.hangUp()
		reason := r.end().terminal.Reconciliation.Reason
		if reason != protocol.ReasonNotReady && reason != protocol.ReasonControllerClosed {
			t.Errorf("reason %s", reason)
		}
	})
	each(t, "never, a flood of commands", func(t *testing.T) {
		r := start(t, setup{harness: "sleep 600", watch: true, flags: []string{"--ready-timeout-ms", longGrace}})
		r.send(protocol.RunPrepare, "")
		r.event(protocol.EventHarnessStarting)
		payload := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 50_000))
		for range 100 {
			r.send(protocol.TurnSteer, payload)
		}
		if got := r.answer("c101"); got.Code != protocol.CodeHarnessBackpressure {
			t.Errorf("got %+v, want %s", got, protocol.CodeHarnessBackpressure)
		}
		r.accepted(protocol.RunnerShutdown, "")
		r.end().reason(protocol.ReasonRunnerShutdown)
		r.checkPeak()
	})
}

// A runner that was stopped meanwhile (Ctrl-Z) finds a ready that came in time,
// and takes it before the timeout that has passed as well.
func TestReadyWhileTheRunnerIsStopped(t *testing.T) {
	t.Parallel()
	const timeout = 1500 * time.Millisecond
	for range times(3, 50) {
		said := filepath.Join(t.TempDir(), "said")
		r := start(t, setup{
			harness: shell(t, "sleep 0.3\ncat "+file(t, "ready", ready().text.String())+"\n: >"+said+"\nexec sleep 600"),
			flags:   []string{"--ready-timeout-ms", fmt.Sprint(timeout.Milliseconds())},
		})
		r.send(protocol.RunPrepare, "")
		r.event(protocol.EventHarnessStarting)
		began := time.Now()
		r.signal(syscall.SIGSTOP)
		for _, err := os.Stat(said); err != nil; _, err = os.Stat(said) {
			time.Sleep(10 * time.Millisecond)
		}
		late := time.Since(began) > timeout/2
		time.Sleep(time.Until(began.Add(2 * timeout))) // until the timeout has passed
		r.signal(syscall.SIGCONT)
		if got := r.answer("c1"); got.Status != protocol.ReceiptAccepted && !late {
			t.Errorf("got %+v, want accepted", got)
		}
		r.hangUp()
		r.end()
	}
}

func TestF27ReadyInTheWrongPlace(t *testing.T) {
	t.Parallel()
	each(t, "event before", func(t *testing.T) {
		s := &said{}
		r := start(t, setup{harness: s.event("item.delta", `{}`).then(t, "sleep 600")})
		r.send(protocol.RunPrepare, "")
		e := r.end()
		e.violated(protocol.CodeHarnessBeforeReady)
		if n := len(e.of(protocol.EventItemDelta)); n != 0 {
			t.Errorf("%d events passed", n)
		}
	})
	each(t, "twice", func(t *testing.T) {
		r := start(t, setup{harness: ready().say("ready", `{"version":"2"}`).result().then(t, "sleep 600")})
		r.send(protocol.RunPrepare, "")
		e := r.end()
		e.violated(protocol.CodeHarnessSecondReady)
		if n := len(e.of(protocol.EventHarnessReady)); n != 1 {
			t.Errorf("%d events harness.ready", n)
		}
	})
	each(t, "other family later", func(t *testing.T) {
		line := strings.Replace(message(2, "event", `{"eventType":"item.delta"}`), "fake_harness", "harness", 1)
		r := start(t, setup{harness: ready().raw(line+"\n").then(t, "sleep 600")})
		r.send(protocol.RunPrepare, "")
		r.end().violated(protocol.CodeHarnessSchema)
	})
	each(t, "gap", func(t *testing.T) {
		s := ready()
		s.seq++
		r := start(t, setup{harness: s.event("item.delta", `{}`).then(t, "sleep 600")})
		r.send(protocol.RunPrepare, "")
		r.end().violated(protocol.CodeHarnessMessageGap)
	})
}
