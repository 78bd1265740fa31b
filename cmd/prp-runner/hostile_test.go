//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prp/protocol"
)

// What no row of the table names: odd files, odd moments, odd content.

// wide is an object with as many members as fit into n bytes.
func wide(n int) string {
	var b strings.Builder
	b.WriteString(`{"x":0`)
	for i := 0; b.Len() < n-16; i++ {
		fmt.Fprintf(&b, `,"%x":1`, i)
	}
	b.WriteByte('}')
	return b.String()
}

// The memory of the runner does not depend on what a line is made of.
func TestMemoryOfOddLines(t *testing.T) {
	t.Parallel()
	const line = 64<<10 - 300
	deep := `{"x":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`
	for name, payload := range map[string]string{
		"wide":    wide(line),
		"deep":    deep,
		"escapes": `{"x":"` + strings.Repeat(`\u00e9`, line/6) + `"}`,
		"array":   `{"x":[` + strings.Repeat("0,", line/2) + `0]}`,
		"objects": `{"x":[` + strings.Repeat(`{"a":{}},`, line/9) + `0]}`,
	} {
		each(t, "events, "+name, func(t *testing.T) {
			s := ready()
			const n = 30
			for range n {
				s.event("item.delta", payload)
			}
			r := start(t, setup{harness: s.result().cat(t), watch: true})
			r.send(protocol.RunPrepare, "")
			e := r.end().reason(protocol.ReasonSuccess)
			if got := len(e.of(protocol.EventItemDelta)); got != n {
				t.Errorf("%d events of %d arrived", got, n)
			}
			r.checkPeak()
		})
	}
}

// Commands of the largest size, one after the other, stay within the memory
// that is bounded for them.
func TestMemoryOfLargeCommands(t *testing.T) {
	t.Parallel()
	const size = 1<<20 - 300
	for name, payload := range map[string]string{
		"text": `{"text":"` + strings.Repeat("x", size) + `"}`,
		"wide": wide(size),
	} {
		each(t, name, func(t *testing.T) {
			r := start(t, setup{harness: script(t, hang), watch: true})
			for range 3 {
				r.accepted(protocol.RunnerDrain, payload)
			}
			r.hangUp()
			r.end().reason(protocol.ReasonControllerClosed)
			const bound = 64 << 10 // KiB: a command of 1 MiB is decoded and hashed in a few copies
			t.Logf("peak memory of the runner: %d KiB", r.peak.Load())
			if r.peak.Load() > bound && !*raceRunner {
				t.Errorf("the runner took %d KiB, want at most %d", r.peak.Load(), bound)
			}
		})
	}
}

// A parent may hand over files that do not block.
func TestNonBlockingFiles(t *testing.T) {
	t.Parallel()
	inRead, inWrite := pipe(t)
	outRead, outWrite := pipe(t)
	for _, f := range []*os.File{inRead, outWrite} {
		// Fd makes a file blocking; the description is shared with the runner.
		if err := unix.SetNonblock(int(f.Fd()), true); err != nil {
			t.Fatal(err)
		}
	}
	const n = 5000
	r := start(t, setup{
		harness: script(t, fmt.Sprintf(`{"kind":"repeat","times":%d,"steps":[%s]}`, n, delta), result, exit(0)),
		stdin:   inRead, stdout: outWrite,
	})
	r.stdin, r.stdout = inWrite, outRead
	r.beginUnread()
	awaitFull(t, r)
	r.read()
	e := r.end().reason(protocol.ReasonSuccess)
	if got := len(e.of(protocol.EventItemDelta)); got != n {
		t.Errorf("%d events of %d arrived", got, n)
	}
}

// A signal ends the run cleanly at whatever moment it comes.
func TestSignalAtAnyMoment(t *testing.T) {
	t.Parallel()
	harness := script(t, `{"kind":"spawn_worker","escape":"double_fork","ignore_sigterm":true}`, result, turnDone)
	for i := range times(24, 1000) {
		r := start(t, setup{harness: harness, flags: []string{"--shutdown-grace-ms", "200"}})
		r.beginUnread()
		time.Sleep(time.Duration(i%24) * 4 * time.Millisecond) // spreads the moments
		_ = r.cmd.Process.Signal(syscall.SIGTERM)              // it may have ended
		<-r.exited
		if ws := r.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
			// Before it could catch it: then it has not begun either.
			r.until("the end of stdout", func() bool { return r.ended })
			if ws.Signal() != syscall.SIGTERM || len(r.lines) > 0 {
				t.Errorf("killed by %v after %d lines", ws.Signal(), len(r.lines))
			}
			r.nothingLeft()
			continue
		}
		reason := r.end().terminal.Reconciliation.Reason
		if reason != protocol.ReasonRunnerTerminated && reason != protocol.ReasonSuccess {
			t.Errorf("reason %s", reason)
		}
	}
}

func TestWorkingDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, setup{harness: "sleep 600", flags: []string{"--cwd", dir}})
	r.send(protocol.RunPrepare, "")
	pid := r.leader("sleep 600")
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || got != dir {
		t.Errorf("the harness is in %q (%v), want %q", got, err, dir)
	}
	if got := string(r.event(protocol.EventWorkspaceReady).Payload); got != fmt.Sprintf(`{"workingDirectory":%q}`, dir) {
		t.Errorf("workspace.ready %s, want %s as it was given", got, dir)
	}
	r.accepted(protocol.RunnerShutdown, "")
	r.end().reason(protocol.ReasonRunnerShutdown)
}

// Every rejection of the command table, in a run that goes on.
func TestRejections(t *testing.T) {
	t.Parallel()
	r := start(t, setup{harness: script(t, `{"kind":"await_interrupt"}`, request("q"), hang), flags: []string{"--cancel-grace-ms", "0"}})
	for _, c := range []protocol.CommandType{protocol.SessionOpen, protocol.TurnInterrupt, protocol.SessionClose} {
		r.rejected(c, "", protocol.CodeNotPrepared)
	}
	r.rejected("no.such.type", "", protocol.CodeUnsupportedType)
	r.accepted(protocol.RunPrepare, "")
	r.rejected(protocol.RunPrepare, "", protocol.CodeAlreadyPrepared)
	r.rejected(protocol.TurnStart, turn, protocol.CodeSessionNotOpen)
	r.accepted(protocol.SessionOpen, "")
	r.rejected(protocol.SessionOpen, "", protocol.CodeSessionAlreadyOpen)
	r.rejected(protocol.TurnSteer, `{"text":"x"}`, protocol.CodeNoActiveTurn)
	r.accepted(protocol.TurnStart, turn)
	r.rejected(protocol.TurnStart, `{"turnId":"turn_2","text":"x"}`, protocol.CodeTurnActive)
	r.rejected(protocol.TurnSteer, `{"turnId":"turn_2","text":"x"}`, protocol.CodeTurnMismatch)
	r.accepted(protocol.TurnInterrupt, "")
	r.event(protocol.EventTurnInterrupted)
	r.rejected(protocol.TurnInterrupt, "", protocol.CodeNoActiveTurn)
	r.accepted(protocol.RunnerDrain, "")
	r.rejected(protocol.TurnStart, `{"turnId":"turn_2","text":"x"}`, protocol.CodeDraining)
	r.rejected(protocol.RequestResolve, resolve("nobody"), protocol.CodeUnknownRequest)
	// Neither of these consumes its number.
	for code, line := range map[protocol.Code]string{
		protocol.CodeSequenceGap:       commandLine("gap", r.seq+2, protocol.RunnerDrain, "", ""),
		protocol.CodeUnsupportedSchema: strings.Replace(commandLine("schema", r.seq+1, protocol.RunnerDrain, "", ""), "command.v1", "command.v2", 1),
		protocol.CodeInvalidCommand:    strings.Replace(commandLine("shape", r.seq+1, protocol.RunnerDrain, "", ""), `"payload":{}`, `"payload":[]`, 1),
	} {
		r.write(line + "\n")
		got := r.await("receipt "+string(code), func(m protocol.StreamMessage) bool { return m.Receipt != nil && m.Receipt.Code == code }).Receipt
		if code == protocol.CodeSequenceGap && !strings.Contains(got.Detail, fmt.Sprint(r.seq+1)) {
			t.Errorf("%+v does not name the expected number %d", got, r.seq+1)
		}
	}
	r.accepted(protocol.RunnerDrain, "")
	r.accepted(protocol.RunCancel, "")
	r.end()
}

// What is repeated while the harness is being prepared is answered after the
// command that it repeats.
func TestRepeatedWhilePreparing(t *testing.T) {
	t.Parallel()
	s := &said{}
	r := start(t, setup{harness: shell(t, "read -r nothing\nsleep 0.3\ncat "+file(t, "said", s.say("ready", `{"version":"1"}`).text.String())+"\nsleep 600")})
	_, prepare := r.next(protocol.RunPrepare, "")
	_, open := r.next(protocol.SessionOpen, "")
	r.write(prepare + prepare + open + open)
	r.accepted(protocol.RunCancel, "")
	e := r.end().reason(protocol.ReasonRunCancelled)
	for _, id := range []string{"c1", "c2"} {
		got := e.receipts()[id]
		if len(got) != 2 {
			t.Errorf("%s has the receipts %+v, want two", id, got)
		}
		for _, g := range got {
			if g.Status != protocol.ReceiptRejected {
				t.Errorf("%s has the receipts %+v, want rejected ones", id, got)
			}
		}
	}
}

// Many short runs at a time do not disturb each other.
func TestManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	harness := script(t, `{"kind":"spawn_worker","escape":"setsid"}`, result, turnDone)
	runs := make([]*run, 12)
	for i := range runs {
		runs[i] = start(t, setup{harness: harness})
		runs[i].beginUnread()
	}
	for _, r := range runs {
		r.end().reason(protocol.ReasonSuccess)
	}
}
