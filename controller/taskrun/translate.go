package taskrun

import (
	"fmt"
	"time"

	"prp/controller"
	"prp/controller/workerclient"
	"prp/controller/workerclient/coretask"
	"prp/protocol"
)

// maxErrorMessage bounds the text of a failure, in bytes.
const maxErrorMessage = 4096

// Texts of failures that a reader of reports may look for.
const (
	textSignalled = "The worker was told to end (SIGTERM) before the run had ended."
	textNoWords   = "The run failed."
)

// facts is what is known of a run when its report is made.
type facts struct {
	// taken: the server has an end that is not ours, so none is reported.
	taken bool
	// cancelled: the server asked for the end. signalled: this machine did.
	cancelled, signalled bool
	// fault is the step before or around the run that failed, empty for none.
	fault string
	// terminal is the end of the run, nil where it has none. ran tells that a
	// runner was started.
	terminal *protocol.Terminal
	ran      bool
	seen     *watched

	ended      time.Time
	trace      string
	checkpoint *workerclient.WorkspaceCheckpointDescriptor
}

// report is what a run's end is told as (workerclient.md, the worker's order).
// False is a run of which nothing is told.
func (f *facts) report() (workerclient.PatchTaskRunRequest, bool) {
	ended := f.ended.UTC()
	r := workerclient.PatchTaskRunRequest{EndedAt: &ended, WorkspaceCheckpoint: f.checkpoint}
	if f.trace != "" {
		r.TracePath = &f.trace
	}
	f.said(&r)
	switch {
	case f.taken:
		return r, false
	case f.cancelled:
		r.Status = coretask.StatusCanceled
	case f.succeeded():
		r.Status = coretask.StatusSucceeded
		f.result(&r)
	case f.signalled:
		f.fail(&r, textSignalled)
	case f.fault != "":
		f.fail(&r, f.fault)
	case f.terminal == nil:
		f.fail(&r, "The runner ended without saying how the run ended.")
	default:
		f.fail(&r, f.why())
	}
	return r, true
}

// succeeded is said by the runner alone, and only where every step went well.
func (f *facts) succeeded() bool {
	return f.fault == "" && f.terminal != nil && f.terminal.RunTerminalState == protocol.RunSucceeded
}

// said adds what the run said, whatever its end.
func (f *facts) said(r *workerclient.PatchTaskRunRequest) {
	if f.seen == nil {
		return
	}
	r.PromptTokens, r.CompletionTokens = f.seen.prompt, f.seen.completion
	if text := f.seen.output; text != nil && *text != "" {
		r.Output = text
	}
}

func (f *facts) result(r *workerclient.PatchTaskRunRequest) {
	output := f.seen.answer()
	r.Output = &output
	if f.seen.structured != "" {
		r.Structured = &f.seen.structured
	}
}

func (f *facts) fail(r *workerclient.PatchTaskRunRequest, text string) {
	r.Status = coretask.StatusFailed
	if text == "" {
		text = textNoWords
	}
	if n := cut(text, maxErrorMessage); n < len(text) {
		text = fmt.Sprintf("%s [%d more bytes]", text[:n], len(text)-n)
	}
	r.ErrorMessage = &text
}

// why says why a run that has a terminal failed.
func (f *facts) why() string {
	reason := f.terminal.Reconciliation.Reason
	text := controller.ReasonText(reason)
	if exit := f.terminal.Reconciliation.ProcessExit; exit != nil && !exit.Success {
		text += " " + exitSentence(exit)
	}
	if f.seen != nil && f.seen.complaint != "" {
		text += " " + f.seen.complaint
	}
	return text
}

// exitSentence says how the harness ended.
func exitSentence(exit *protocol.ExitFact) string {
	if exit.Signal != nil {
		return fmt.Sprintf("It was ended by signal %d.", *exit.Signal)
	}
	return fmt.Sprintf("It ended with %s.", controller.ExitText(exit))
}
