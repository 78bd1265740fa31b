//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"prp/protocol"
)

// Slow, dead and flooding peers: F1, F5, F6, F9, F34, F35.

// stubborn is a descendant that only SIGKILL ends and that no group knows.
const stubborn = `{"kind":"spawn_worker","escape":"setsid","ignore_sigterm":true}`

// manyDeltas is a flood of events that does not end before the test does.
const manyDeltas = `{"kind":"repeat","times":100000000,"steps":[` + delta + `]}`

// undelivered waits for the exit of a runner whose stdout is gone.
func (r *run) undelivered() {
	r.t.Helper()
	if status := r.waitExit(); status != 1 {
		r.t.Errorf("exit status %d, want 1", status)
	}
	r.nothingLeft()
	if text := r.complaints(); text != "" {
		r.t.Errorf("the runner wrote to stderr: %.2000s", text)
	}
}

func TestF01ReaderGone(t *testing.T) {
	t.Parallel()
	flags := []string{"--shutdown-grace-ms", "500"}
	for name, last := range map[string]string{"idle": hang, "flooding": manyDeltas} {
		each(t, "stdout, "+name, func(t *testing.T) {
			r := start(t, setup{harness: script(t, stubborn, delta, last), flags: flags})
			r.begin()
			r.event(protocol.EventItemDelta)
			r.stdout.Close()
			r.undelivered()
		})
		each(t, "both, "+name, func(t *testing.T) {
			r := start(t, setup{harness: script(t, stubborn, delta, last), flags: flags})
			r.begin()
			r.event(protocol.EventItemDelta)
			r.stdout.Close()
			r.stdin.Close()
			r.undelivered()
		})
	}
	each(t, "stdout, before prepare", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang)})
		r.rejected(protocol.SessionOpen, "", protocol.CodeNotPrepared)
		r.stdout.Close()
		r.undelivered()
	})
	each(t, "stderr", func(t *testing.T) {
		reader, writer := pipe(t)
		r := start(t, setup{harness: script(t, `{"kind":"stderr","text":"a line\n"}`, result, exit(0)), stderr: writer})
		writer.Close()
		reader.Close()
		r.begin()
		e := r.end().reason(protocol.ReasonSuccess)
		if !e.logged("stderr: a line") {
			t.Errorf("logs %q", e.exited.Logs.Lines)
		}
	})
	each(t, "stdout full device", func(t *testing.T) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("no /dev/full here: ", err)
		}
		r := start(t, setup{harness: script(t, stubborn, hang), stdout: full, flags: flags})
		r.beginUnread()
		r.undelivered()
	})
}

// A reader that goes as soon as it has the terminal has got it: what counts is
// the write, not who is there after it. With a journal the runner learns late
// that its write is done.
func TestReaderGoesWithTheTerminal(t *testing.T) {
	t.Parallel()
	for i := range times(40, 400) {
		r := start(t, setup{
			harness: ready().result().cat(t), unread: true,
			flags: []string{"--on-eof", "finish", "--journal", filepath.Join(t.TempDir(), "journal")},
		})
		r.send(protocol.RunPrepare, "")
		r.hangUp()
		for lines := bufio.NewScanner(r.stdout); lines.Scan(); {
			if strings.Contains(lines.Text(), `"eventType":"run.terminal"`) {
				break
			}
		}
		r.stdout.Close()
		if status := r.waitExit(); status != 0 {
			t.Fatalf("run %d: exit status %d, want 0", i, status)
		}
	}
}

func TestF05StdinNeverRead(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 60_000)
	for name, end := range map[string]func(r *run) protocol.Reason{
		"cancel": func(r *run) protocol.Reason {
			r.accepted(protocol.RunCancel, "")
			return protocol.ReasonRunCancelled
		},
		"end of stdin": func(r *run) protocol.Reason {
			r.hangUp()
			return protocol.ReasonControllerClosed
		},
	} {
		each(t, name, func(t *testing.T) {
			r := start(t, setup{
				harness: bare(t, `{"kind":"ready"}`, hang), watch: true,
				flags: []string{"--shutdown-grace-ms", longGrace, "--cancel-grace-ms", "500"},
			})
			r.begin()
			taken := 0
			for {
				got := r.do(protocol.TurnSteer, fmt.Sprintf(`{"text":%q}`, text))
				if got.Status != protocol.ReceiptAccepted {
					if got.Code != protocol.CodeHarnessBackpressure {
						t.Fatalf("got %+v, want %s", got, protocol.CodeHarnessBackpressure)
					}
					break
				}
				if taken++; taken > 300 {
					t.Fatal("300 commands of 60 kB were accepted and nothing was read")
				}
			}
			for range 40 {
				r.rejected(protocol.TurnSteer, fmt.Sprintf(`{"text":%q}`, text), protocol.CodeHarnessBackpressure)
			}
			r.accepted(protocol.RunnerDrain, "")
			want := end(r)
			r.end().reason(want).killed(15)
			r.checkPeak()
		})
	}
}

func TestF06ControllerStopsReading(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(r *run)
		want protocol.Reason
	}{
		"cancel":       {func(r *run) { r.send(protocol.RunCancel, "") }, protocol.ReasonRunCancelled},
		"end of stdin": {(*run).hangUp, protocol.ReasonControllerClosed},
		"signal":       {func(r *run) { r.signal(unix.SIGTERM) }, protocol.ReasonRunnerTerminated},
	} {
		each(t, name, func(t *testing.T) {
			r := start(t, setup{
				harness: script(t, stubborn, manyDeltas), unread: true, watch: true,
				flags: []string{"--shutdown-grace-ms", "300", "--cancel-grace-ms", "300"},
			})
			r.beginUnread()
			awaitFull(t, r)
			c.end(r)
			for limit := time.Now().Add(patience); len(ofHarness(r.cmd.Process.Pid, r.mark)) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatalf("alive though %s: %v", name, ofHarness(r.cmd.Process.Pid, r.mark))
				}
			}
			r.read()
			r.end().reason(c.want)
			r.checkPeak()
		})
	}
}

// A controller that writes commands and does not read is stopped by its pipe,
// and gets every answer later.
func TestControllerFloodsWithoutReading(t *testing.T) {
	t.Parallel()
	r := start(t, setup{harness: script(t, hang), unread: true, watch: true})
	written := 0
	var chunk strings.Builder
	for {
		_, line := r.next(protocol.RunnerDrain, "")
		chunk.WriteString(line)
		if chunk.Len() < 4000 {
			continue
		}
		if err := r.stdin.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := r.stdin.WriteString(chunk.String())
		written += strings.Count(chunk.String()[:n], "\n")
		if err != nil {
			if n < chunk.Len() {
				chunk.Reset()
			}
			break
		}
		chunk.Reset()
		if written > 1_000_000 {
			t.Fatal("a million commands were taken and no receipt was read")
		}
	}
	t.Logf("%d commands were written before the pipe was full", written)
	r.read()
	r.answer(fmt.Sprintf("c%d", written))
	r.hangUp()
	e := r.end().reason(protocol.ReasonControllerClosed)
	all := e.receipts()
	for i := 1; i <= written; i++ {
		if got := all[fmt.Sprintf("c%d", i)]; len(got) != 1 || got[0].Status != protocol.ReceiptAccepted {
			t.Fatalf("command %d of %d has the receipts %+v", i, written, got)
		}
	}
	r.checkPeak()
}

func TestF09StderrWithoutEnd(t *testing.T) {
	t.Parallel()
	const parts = 32
	bytes := times(256<<20, 2<<30)
	r := start(t, setup{
		harness: script(t,
			fmt.Sprintf(`{"kind":"repeat","times":%d,"steps":[{"kind":"flood","stream":"stderr","bytes":%d},%s]}`, parts, bytes/parts, delta),
			`{"kind":"stderr","text":"\nan ordinary line\n"}`, result, exit(0)),
		watch: true,
	})
	r.begin()
	e := r.end().reason(protocol.ReasonSuccess)
	if n := len(e.of(protocol.EventItemDelta)); n != parts {
		t.Errorf("%d events of %d arrived", n, parts)
	}
	logs := e.exited.Logs
	if len(logs.Lines) != 2 || len(logs.Lines[0]) > 200 || logs.Lines[1] != "stderr: an ordinary line" {
		t.Errorf("log tail %.500q, want one short marker and the ordinary line", logs.Lines)
	}
	r.checkPeak()
}

func TestF34OneSocketpair(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, steps ...string) (*run, *os.File) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		theirs, ours := os.NewFile(uintptr(fds[0]), "theirs"), os.NewFile(uintptr(fds[1]), "ours")
		t.Cleanup(func() { ours.Close() })
		r := start(t, setup{harness: script(t, steps...), stdin: theirs, stdout: theirs, flags: []string{"--shutdown-grace-ms", "300"}})
		r.stdin = ours
		return r, ours
	}
	each(t, "peer gone with unread data", func(t *testing.T) {
		r, ours := open(t, stubborn, delta, hang)
		r.beginUnread()
		for limit := time.Now().Add(patience); readable(t, ours) < 3000; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatal("the runner wrote nothing")
			}
		}
		ours.Close()
		r.undelivered()
	})
	each(t, "peer writes no more", func(t *testing.T) {
		r, ours := open(t, stubborn, delta, hang)
		r.readFrom(ours)
		r.begin()
		r.event(protocol.EventItemDelta)
		if err := unix.Shutdown(int(ours.Fd()), unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		r.end().reason(protocol.ReasonControllerClosed)
	})
}

func TestF35LogTail(t *testing.T) {
	t.Parallel()
	each(t, "lines", func(t *testing.T) {
		r := start(t, setup{harness: script(t,
			`{"kind":"stderr","text":"line {n}\n","times":10000}`,
			`{"kind":"flood","stream":"stderr","bytes":200000}`,
			`{"kind":"stderr","text":"\n\nlast"}`, result, exit(0))})
		r.begin()
		logs := r.end().reason(protocol.ReasonSuccess).exited.Logs
		if logs.RetainedLines != 32 || len(logs.Lines) != 32 || logs.DroppedLines != 10_003-32 {
			t.Errorf("%d lines, %d retained, %d dropped; want 32 of 10003", len(logs.Lines), logs.RetainedLines, logs.DroppedLines)
		}
		for i, line := range logs.Lines[:29] {
			if want := fmt.Sprintf("stderr: line %d", 9972+i); line != want {
				t.Errorf("line %d is %q, want %q", i, line, want)
			}
		}
		if rest := logs.Lines[29:]; len(rest[0]) > 200 || !slices.Equal(rest[1:], []string{"stderr: ", "stderr: last"}) {
			t.Errorf("the last lines are %.500q", rest)
		}
	})
	for limit := 90; limit < 96; limit++ {
		each(t, fmt.Sprintf("%d bytes", limit), func(t *testing.T) {
			r := start(t, setup{
				harness: script(t, `{"kind":"stderr","text":"ééé€€€𝄞𝄞 {n}\n","times":50}`, result, exit(0)),
				flags:   []string{"--log-max-bytes", fmt.Sprint(limit)},
			})
			r.begin()
			logs := r.end().exited.Logs
			n := 0
			for _, line := range logs.Lines {
				n += len(line)
				if !utf8.ValidString(line) || strings.ContainsRune(line, utf8.RuneError) {
					t.Errorf("line %q is cut inside a character", line)
				}
			}
			if n > limit || n != logs.RetainedBytes || logs.RetainedLines != len(logs.Lines) || logs.DroppedLines+int64(logs.RetainedLines) != 50 {
				t.Errorf("%d bytes in %d lines with a limit of %d: %s", n, len(logs.Lines), limit, show(logs))
			}
			if last := logs.Lines[len(logs.Lines)-1]; !strings.HasSuffix(last, " 50") {
				t.Errorf("the last line is %q", last)
			}
		})
	}
}
