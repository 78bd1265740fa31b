package runner

import (
	"time"

	"prp/protocol"
	"prp/runner/lifecycle"
	"prp/runner/process"
)

// perform carries one effect out.
func (l *loop) perform(fx *lifecycle.Effect) {
	switch fx.Kind {
	case lifecycle.Emit:
		l.keepTerminal(fx.Event)
		l.out = l.printer.Append(l.out, fx.Event)
	case lifecycle.Answer:
		l.receipt(fx.Receipt)
	case lifecycle.Diagnose:
		l.diagnose(fx.Diagnostic)
	case lifecycle.Log:
		l.tail.Add(fx.Stream+": ", l.mask.Mask([]byte(fx.Text)))
	case lifecycle.CheckWorkspace:
		l.checkWorkspace()
	case lifecycle.StartHarness:
		l.startHarness()
	case lifecycle.SendHarness:
		l.harness.send(fx)
	case lifecycle.CloseHarnessInput:
		l.harness.closeInput(fx.Flush)
	case lifecycle.StopTree:
		l.child.Stop(fx.Delay)
	case lifecycle.CutOutput:
		l.harness.cut()
	case lifecycle.CloseHarness:
		l.closeHarness()
	case lifecycle.Settle:
		l.startSettle()
	case lifecycle.SetTimer:
		l.timers.set(time.Now(), fx.Timer, fx.Gen, fx.Delay)
	case lifecycle.ClearTimer:
		l.timers.clear(time.Now(), fx.Timer)
	case lifecycle.Finish:
		l.done = true
	}
}

func (l *loop) diagnose(d *protocol.Diagnostic) {
	masked := *d
	masked.Message = l.masked(d.Message)
	l.out = protocol.AppendDiagnostic(l.out, &masked)
}

// receipt masks the detail: that of a failed start is a diagnostic's text.
func (l *loop) receipt(r *protocol.Receipt) {
	masked := *r
	if r.Detail != "" {
		masked.Detail = l.masked(r.Detail)
	}
	l.out = protocol.AppendReceipt(l.out, &masked)
}

func (l *loop) masked(text string) string { return string(l.mask.Mask([]byte(text))) }

func (l *loop) checkWorkspace() {
	detail := ""
	if err := process.CheckDir(l.cfg.Dir); err != nil {
		detail = err.Error()
	}
	l.answer(lifecycle.WorkspaceChecked{Detail: detail})
}

func (l *loop) startHarness() {
	child, err := l.sup.Start(process.Spec{Argv: l.cfg.Argv, Dir: l.cfg.Dir, Env: l.cfg.Env})
	if err != nil {
		l.answer(lifecycle.HarnessStartFailed{Detail: err.Error()})
		return
	}
	l.child = child
	l.harness = readHarness(l.spawn, child, l.cfg.HarnessMaxLineBytes, l.facts)
	l.answer(lifecycle.HarnessStarted{})
	for _, note := range l.sup.Notes() {
		l.answer(noted("containment_degraded", note))
	}
}

func (l *loop) closeHarness() {
	l.harness.close()
	l.awaitWriter()
	lines, bytes, dropped := l.tail.Snapshot()
	l.answer(lifecycle.HarnessClosed{Logs: protocol.LogTail{
		Lines: lines, RetainedLines: len(lines), RetainedBytes: bytes, DroppedLines: dropped,
	}})
}

// awaitWriter waits for the writer of the harness's stdin, which can no longer
// block, and takes what it has to tell: the commands that were not delivered
// are named before the run ends.
func (l *loop) awaitWriter() {
	for {
		select {
		case in := <-l.facts:
			l.answer(in)
		case <-l.harness.stdin.ended:
			for len(l.facts) > 0 {
				l.answer(<-l.facts)
			}
			return
		}
	}
}

// startSettle lets the stdin reader take what is there and no more.
func (l *loop) startSettle() {
	if l.input.ended || !l.input.settle() {
		l.answer(lifecycle.Settled{})
		return
	}
	l.settle = true
}
