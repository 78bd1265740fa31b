package runner

import (
	"prp/protocol"
	"prp/runner/lifecycle"
	"prp/runner/process"
)

// perform carries one effect out.
func (l *loop) perform(fx lifecycle.Effect) {
	switch fx.Kind {
	case lifecycle.Emit:
		l.out = protocol.AppendEvent(l.out, fx.Event)
	case lifecycle.Answer:
		l.out = protocol.AppendReceipt(l.out, fx.Receipt)
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
		l.timers.set(l.now.read(), fx.Timer, fx.Gen, fx.Delay)
	case lifecycle.ClearTimer:
		l.timers.clear(l.now.read(), fx.Timer)
	case lifecycle.Finish:
		l.done = true
	}
}

func (l *loop) diagnose(d *protocol.Diagnostic) {
	masked := *d
	masked.Message = string(l.mask.Mask([]byte(d.Message)))
	l.out = protocol.AppendDiagnostic(l.out, &masked)
}

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
	l.harness = readHarness(child, l.cfg.HarnessMaxLineBytes, l.facts)
	l.answer(lifecycle.HarnessStarted{})
	for _, note := range l.sup.Notes() {
		l.answer(noted("containment_degraded", note))
	}
}

func (l *loop) closeHarness() {
	l.harness.close()
	lines, bytes, dropped := l.tail.Snapshot()
	l.answer(lifecycle.HarnessClosed{Logs: protocol.LogTail{
		Lines: lines, RetainedLines: len(lines), RetainedBytes: bytes, DroppedLines: dropped,
	}})
}

// startSettle lets the stdin reader take what is there and no more.
func (l *loop) startSettle() {
	if l.input.ended || !l.input.settle() {
		l.answer(lifecycle.Settled{})
		return
	}
	l.settle = true
}
