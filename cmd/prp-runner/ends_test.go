//go:build linux

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/protocol"
)

// How a run ends: F15 to F19, F25, F28 to F30, F32, F33.

// longGrace is a grace that no test waits out: a run that does not end long
// before it has waited for it.
const longGrace = "300000"

func TestF15SigtermIgnored(t *testing.T) {
	t.Parallel()
	const grace = 3 * time.Second
	flags := []string{"--shutdown-grace-ms", "3000", "--cancel-grace-ms", "0", "--drain-grace-ms", longGrace}
	for name, steps := range map[string][]string{
		"leader ignores": {`{"kind":"ignore_sigterm"}`, delta, hang},
		"child ignores":  {`{"kind":"spawn_worker","ignore_sigterm":true}`, delta, hang},
	} {
		each(t, name, func(t *testing.T) {
			r := start(t, setup{harness: script(t, steps...), flags: flags})
			r.begin()
			r.event(protocol.EventItemDelta)
			began := time.Now()
			r.accepted(protocol.RunCancel, "")
			e := r.end().reason(protocol.ReasonRunCancelled)
			took := time.Since(began)
			if name == "leader ignores" {
				e.killed(9)
			} else {
				e.killed(15)
			}
			if took < grace-100*time.Millisecond {
				t.Errorf("killed after %s, before the grace of %s", took, grace)
			}
			if took >= 2*grace {
				t.Errorf("the end took %s with a grace of %s: it was waited for twice", took, grace)
			}
		})
	}
	each(t, "all obey", func(t *testing.T) {
		r := start(t, setup{
			harness: script(t, `{"kind":"spawn_worker"}`, delta, hang),
			flags:   []string{"--shutdown-grace-ms", longGrace, "--cancel-grace-ms", "0"},
		})
		r.begin()
		r.event(protocol.EventItemDelta)
		r.accepted(protocol.RunCancel, "")
		r.end().reason(protocol.ReasonRunCancelled).killed(15)
	})
}

func TestF16FactsDecide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, harness string
		want          protocol.Reason
		code          int
		seen          bool
		disposition   protocol.Disposition
	}{
		{"nothing", "true", protocol.ReasonNotReady, 0, false, protocol.DispositionYielded},
		{"ready", ready().cat(t), protocol.ReasonResultMissing, 0, false, protocol.DispositionYielded},
		{"proposal", ready().terminal().cat(t), protocol.ReasonResultMissing, 0, false, protocol.DispositionYielded},
		{"result", ready().result().cat(t), protocol.ReasonSuccess, 0, true, protocol.DispositionDone},
		{"result, exit 7", ready().result().then(t, "exit 7"), protocol.ReasonProcessFailed, 7, true, protocol.DispositionYielded},
		{"exit 137", ready().result().then(t, "exit 137"), protocol.ReasonProcessFailed, 137, true, protocol.DispositionYielded},
	} {
		each(t, c.name, func(t *testing.T) {
			r := start(t, setup{harness: c.harness})
			r.send(protocol.RunPrepare, "")
			e := r.end().reason(c.want).code(c.code)
			if got := e.terminal.Reconciliation.SemanticResultObserved; got != c.seen || len(e.of(protocol.EventResultProposed)) == 1 != c.seen {
				t.Errorf("result observed %v with %d events, want %v", got, len(e.of(protocol.EventResultProposed)), c.seen)
			}
			if e.terminal.ReportedWorkDisposition != c.disposition {
				t.Errorf("disposition %s, want %s", e.terminal.ReportedWorkDisposition, c.disposition)
			}
		})
	}
}

func TestF17LastLine(t *testing.T) {
	t.Parallel()
	whole := message(2, "result", `{"result":`+doneResult+`}`)
	half := whole[:len(whole)/2]
	each(t, "whole", func(t *testing.T) {
		r := start(t, setup{harness: ready().raw(whole).cat(t)})
		r.send(protocol.RunPrepare, "")
		r.end().reason(protocol.ReasonSuccess)
	})
	each(t, "half", func(t *testing.T) {
		r := start(t, setup{harness: ready().raw(half).cat(t)})
		r.send(protocol.RunPrepare, "")
		r.end().code(0).violated(protocol.CodeHarnessTornLastLine)
	})
	// The same where the controller reads so slowly that the drain grace has
	// passed long before the line is read.
	each(t, "half, slow controller", func(t *testing.T) {
		s := ready()
		const n = 5000
		payload := `{"delta":"` + strings.Repeat("x", 1000) + `"}`
		for range n {
			s.event("item.delta", payload)
		}
		r := start(t, setup{harness: s.raw(half).cat(t), flags: []string{"--drain-grace-ms", "1"}, unread: true})
		r.send(protocol.RunPrepare, "")
		awaitFull(t, r)
		r.read()
		e := r.end()
		e.code(0).violated(protocol.CodeHarnessTornLastLine)
		if got := len(e.of(protocol.EventItemDelta)); got != n {
			t.Errorf("%d of %d events arrived", got, n)
		}
	})
}

func TestF18LastWordOfTheHarness(t *testing.T) {
	t.Parallel()
	last := `{"kind":"event","event_type":"item.completed","item_id":"last","payload":{}}`
	r := start(t, setup{
		harness: script(t, fmt.Sprintf(`{"kind":"on_sigterm","steps":[%s,%s]}`, last, exit(42)), delta, `{"kind":"stop_self"}`, hang),
		flags:   []string{"--shutdown-grace-ms", longGrace, "--cancel-grace-ms", "100"},
	})
	r.begin()
	r.event(protocol.EventItemDelta)
	r.accepted(protocol.RunCancel, "")
	e := r.end().reason(protocol.ReasonRunCancelled).code(42)
	if n := len(e.of(protocol.EventItemCompleted)); n != 1 {
		t.Errorf("%d events item.completed, want the one of the handler", n)
	}
}

func TestF19Signals(t *testing.T) {
	t.Parallel()
	running := func(t *testing.T, s setup) *run {
		s.harness = script(t, `{"kind":"spawn_worker","escape":"setsid"}`, delta, hang)
		s.flags = []string{"--shutdown-grace-ms", longGrace}
		r := start(t, s)
		r.begin()
		r.event(protocol.EventItemDelta)
		return r
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		each(t, sig.String(), func(t *testing.T) {
			r := running(t, setup{})
			r.signal(sig)
			r.end().reason(protocol.ReasonRunnerTerminated)
		})
	}
	each(t, "foreground group", func(t *testing.T) {
		r := running(t, setup{group: true})
		if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		r.end().reason(protocol.ReasonRunnerTerminated).killed(15)
	})
	each(t, "twice", func(t *testing.T) {
		r := start(t, setup{
			harness: script(t, `{"kind":"ignore_sigterm"}`, `{"kind":"spawn_worker","ignore_sigterm":true}`, delta, hang),
			flags:   []string{"--shutdown-grace-ms", "1000"},
		})
		r.begin()
		r.event(protocol.EventItemDelta)
		r.signal(syscall.SIGTERM)
		time.Sleep(50 * time.Millisecond) // the row gives the distance
		r.signal(syscall.SIGTERM)
		r.end().reason(protocol.ReasonRunnerTerminated).killed(9)
	})
	each(t, "before prepare", func(t *testing.T) {
		r := start(t, setup{harness: script(t, hang)})
		r.rejected(protocol.SessionOpen, "", protocol.CodeNotPrepared)
		r.signal(syscall.SIGTERM)
		e := r.end().reason(protocol.ReasonRunnerTerminated)
		if e.exited != nil || len(e.events) != 1 {
			t.Errorf("events %v, want the terminal only", e.types())
		}
	})
}

// TestAbort: SIGABRT is a dump for whoever debugs the runner. There is no
// terminal then, and nothing of the harness either.
func TestAbort(t *testing.T) {
	t.Parallel()
	r := start(t, setup{harness: script(t, `{"kind":"spawn_worker","escape":"setsid"}`, delta, hang)})
	r.begin()
	r.event(protocol.EventItemDelta)
	r.signal(syscall.SIGABRT)
	const goDump = 2 // the exit status of package runtime
	if status := r.waitExit(); status != goDump {
		t.Errorf("exit status %d, want %d", status, goDump)
	}
	r.nothingLeft()
	r.until("the end of stdout", func() bool { return r.ended })
	for _, m := range r.msgs {
		if m.Kind == protocol.KindEvent && m.Event.EventType == protocol.EventRunTerminal {
			t.Error("a terminal was written")
		}
	}
}

func TestF25RequestNobodyAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps []string
		end   func(r *run)
		want  protocol.Reason
	}{
		"cancel":       {[]string{request("q"), hang}, func(r *run) { r.accepted(protocol.RunCancel, "") }, protocol.ReasonRunCancelled},
		"end of stdin": {[]string{request("q"), hang}, (*run).hangUp, protocol.ReasonControllerClosed},
		"harness dies": {[]string{request("q"), `{"kind":"crash","signal":9}`}, func(*run) {}, protocol.ReasonProcessFailed},
	} {
		each(t, name, func(t *testing.T) {
			r := start(t, setup{harness: script(t, c.steps...), flags: []string{"--cancel-grace-ms", "50"}})
			r.begin()
			r.event(protocol.EventRequestCreated)
			c.end(r)
			e := r.end().reason(c.want)
			closed := e.of(protocol.EventRequestCancelled)
			if len(closed) != 1 || !strings.Contains(string(closed[0].Payload), `"requestId":"q"`) {
				t.Errorf("the request was not closed before the terminal: %v", e.types())
			}
		})
	}
}

func TestF28Lingering(t *testing.T) {
	t.Parallel()
	each(t, "stdout closed", func(t *testing.T) {
		r := start(t, setup{
			harness: script(t, result, terminal, `{"kind":"close_stdout"}`, hang),
			flags:   []string{"--exit-grace-ms", "300", "--shutdown-grace-ms", longGrace},
		})
		r.begin()
		r.end().reason(protocol.ReasonProcessFailed).killed(15)
	})
	each(t, "stdout open", func(t *testing.T) {
		r := start(t, setup{
			harness: script(t, result, terminal, delta, hang),
			flags:   []string{"--run-timeout-ms", "1500", "--exit-grace-ms", "1"},
		})
		r.begin()
		r.event(protocol.EventItemDelta)
		r.end().reason(protocol.ReasonRunTimedOut).killed(15)
	})
	waits := ready().event("session.started", `{}`).event("turn.completed", `{}`).result().terminal().then(t, "cat >/dev/null")
	each(t, "session.close", func(t *testing.T) {
		r := start(t, setup{harness: waits})
		r.accepted(protocol.RunPrepare, "")
		r.accepted(protocol.SessionOpen, "")
		r.accepted(protocol.SessionClose, "")
		r.end().reason(protocol.ReasonSuccess).code(0)
	})
	each(t, "end of stdin", func(t *testing.T) {
		r := start(t, setup{harness: waits, flags: []string{"--on-eof", "finish"}})
		r.accepted(protocol.RunPrepare, "")
		r.hangUp()
		r.end().reason(protocol.ReasonSuccess).code(0)
	})
	each(t, "end of stdin, cancel", func(t *testing.T) {
		r := start(t, setup{harness: waits, flags: []string{"--shutdown-grace-ms", longGrace}})
		r.accepted(protocol.RunPrepare, "")
		r.hangUp()
		r.end().reason(protocol.ReasonControllerClosed)
	})
}

func TestF29WritesAfterTheExit(t *testing.T) {
	t.Parallel()
	for _, escape := range []string{"none", "setpgid", "setsid"} {
		each(t, escape, func(t *testing.T) {
			worker := fmt.Sprintf(`{"kind":"spawn_worker","escape":%q,"hold_stdout":true,"writes_every_ms":5,"lifetime_ms":2000,"ignore_sigterm":true}`, escape)
			r := start(t, setup{harness: script(t, result, worker, worker, exit(0))})
			r.begin()
			r.end().code(0)
		})
	}
}

func TestF30ExitIsTheLeaders(t *testing.T) {
	t.Parallel()
	good := ready().result()
	each(t, "stderr held, exit 0", func(t *testing.T) {
		r := start(t, setup{harness: good.then(t, "sleep 60 >/dev/null & exit 0")})
		r.send(protocol.RunPrepare, "")
		r.end().reason(protocol.ReasonSuccess).code(0)
	})
	each(t, "stderr held, exit 3", func(t *testing.T) {
		r := start(t, setup{harness: good.then(t, "sleep 60 >/dev/null & exit 3")})
		r.send(protocol.RunPrepare, "")
		r.end().reason(protocol.ReasonProcessFailed).code(3)
	})
	each(t, "child exits about then", func(t *testing.T) {
		for i := range times(12, 300) {
			r := start(t, setup{harness: good.then(t, fmt.Sprintf("sleep 0.00%d & exit 0", i%6))})
			r.send(protocol.RunPrepare, "")
			r.end().reason(protocol.ReasonSuccess).code(0)
		}
	})
}

func TestF32PrepareAndEndAtOnce(t *testing.T) {
	t.Parallel()
	harness := script(t, hang)
	for name, end := range map[string]func(r *run, prepare string){
		"cancel": func(r *run, prepare string) {
			_, cancel := r.next(protocol.RunCancel, "")
			r.write(prepare + cancel)
		},
		"end of stdin": func(r *run, prepare string) {
			r.write(prepare)
			r.hangUp()
		},
	} {
		each(t, name, func(t *testing.T) {
			for range times(24, 1000) {
				r := start(t, setup{harness: harness, group: true})
				bystander := startBystander(t, r.cmd.Process.Pid)
				_, prepare := r.next(protocol.RunPrepare, "")
				end(r, prepare)
				e := r.end()
				if name == "cancel" {
					e.reason(protocol.ReasonRunCancelled)
				} else {
					e.reason(protocol.ReasonControllerClosed)
				}
				bystander.livesOn(t)
			}
		})
	}
}

func TestF33WaitingCostsNothing(t *testing.T) {
	t.Parallel()
	r := start(t, setup{
		harness: script(t, `{"kind":"on_sigterm","steps":[{"kind":"delay","milliseconds":5000},{"kind":"exit","code":0}]}`, delta, hang),
		flags:   []string{"--shutdown-grace-ms", longGrace},
	})
	r.begin()
	r.event(protocol.EventItemDelta)
	r.hangUp()
	before, err := cpuTicks(r.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second) // of the five that the harness takes
	after, err := cpuTicks(r.cmd.Process.Pid)
	if err != nil {
		t.Fatalf("the runner is gone: %v", err)
	}
	if used := after - before; used >= 10 {
		t.Errorf("%d ticks of 10 ms of processor time while waiting, want less than 10", used)
	}
	r.end().reason(protocol.ReasonControllerClosed).code(0)
}
