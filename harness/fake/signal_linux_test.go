package fake

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"prp/protocol"
)

func TestIgnoreSigterm(t *testing.T) {
	p := play(t, scriptOf(`{"kind":"ignore_sigterm"}`, `{"kind":"log","stream":"stdout","text":"set"}`, `{"kind":"await_command","command_type":"turn.steer"}`))
	p.start()
	p.expect("log stdout: set")
	for range 3 {
		if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	p.say(protocol.TurnSteer, `{"text":"x"}`)
	p.end(0)
}

func TestStopsItselfAndAnswersSigterm(t *testing.T) {
	p := play(t, scriptOf(
		`{"kind":"on_sigterm","steps":[{"kind":"event","event_type":"item.failed","payload":{}},{"kind":"exit","code":42}]}`,
		`{"kind":"stop_self"}`, `{"kind":"hang"}`))
	p.start()
	pid := p.process.Process.Pid
	eventually(t, "the fake is stopped", func() bool {
		s, ok := statOf(t, pid)
		return ok && s.state == 'T'
	})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	p.expect("event item.failed turn_1  {}")
	p.end(42)
}

func TestOnSigtermThenGoesOn(t *testing.T) {
	p := play(t, scriptOf(
		`{"kind":"on_sigterm","steps":[{"kind":"log","stream":"stdout","text":"term"}]}`,
		`{"kind":"log","stream":"stdout","text":"ready"}`,
		`{"kind":"await_interrupt"}`))
	p.start()
	p.expect("log stdout: ready")
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.expect("log stdout: term")
	p.say(protocol.TurnStop, `{"reason":"r"}`)
	p.expect(`event turn.interrupted turn_1  {"reason":"r"}`)
	p.end(0)
}

func TestHang(t *testing.T) {
	for name, step := range map[string]string{
		"hang":            `{"kind":"hang"}`,
		"await_interrupt": `{"kind":"await_interrupt","hang_at_end":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, scriptOf(`{"kind":"on_sigterm","steps":[{"kind":"log","stream":"stdout","text":"still here"}]}`, `{"kind":"log","stream":"stdout","text":"set"}`, step))
			p.start()
			p.expect("log stdout: set")
			p.stdin.Close()
			// That nothing happens can only be watched for a while.
			for begin := time.Now(); time.Since(begin) < 200*time.Millisecond; time.Sleep(5 * time.Millisecond) {
				if !alive(t, p.process.Process.Pid) {
					t.Fatalf("the fake ended with its stdin: %s", p.notes())
				}
			}
			if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.expect("log stdout: still here")
			if err := p.process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.wait()
			if notes := p.notes(); notes != "" {
				t.Errorf("stderr is %q", notes)
			}
		})
	}
}

func TestCrash(t *testing.T) {
	for _, sig := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGKILL, syscall.SIGSEGV,
		syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGUSR1, 33, 64,
	} {
		t.Run(sig.String(), func(t *testing.T) {
			p := play(t, scriptOf(`{"kind":"crash","signal":`+strconv.Itoa(int(sig))+`}`))
			p.start()
			if line, _, err := p.lines.Next(); err == nil {
				t.Fatalf("expected the end of stdout, got %q", line)
			}
			p.wait()
			status := p.process.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != sig || status.CoreDump() {
				t.Errorf("ended by %v", p.process.ProcessState)
			}
			if notes := p.notes(); notes != "" {
				t.Errorf("stderr is %q", notes)
			}
		})
	}
}
