package lifecycle_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"prp/protocol"
	"prp/runner/lifecycle"
)

var (
	allCauses = []protocol.Reason{
		"", protocol.ReasonTurnInterrupted, protocol.ReasonRunCancelled, protocol.ReasonRunnerShutdown,
		protocol.ReasonControllerClosed, protocol.ReasonRunnerTerminated, protocol.ReasonStartFailed,
		protocol.ReasonNotReady, protocol.ReasonProtocolViolation, protocol.ReasonRunTimedOut, protocol.ReasonBudgetExceeded,
	}
	allDispositions = []protocol.Disposition{
		protocol.DispositionDone, protocol.DispositionBlocked, protocol.DispositionNeedsReview, protocol.DispositionYielded,
	}
	allTurns = []protocol.TurnTerminalState{
		protocol.TurnCompleted, protocol.TurnFailed, protocol.TurnInterrupted, protocol.TurnCancelled,
	}
	allRuns = []protocol.RunTerminalState{protocol.RunSucceeded, protocol.RunFailed, protocol.RunCancelled}
)

func exits() map[string]*protocol.ExitFact {
	zero, seven, nine := 0, 7, 9
	return map[string]*protocol.ExitFact{
		"none":     nil,
		"exit 0":   {ExitCode: &zero, Success: true},
		"exit 7":   {ExitCode: &seven},
		"signal 9": {Signal: &nine},
	}
}

// TestReconcileSpace holds the whole fact space against a golden file. A row
// is a cause, an exit, a result and a proposed disposition; it names the
// outcome and which proposed states agree with it. The rows cover all
// proposals: their states change nothing but the contradiction, which is
// checked here for each.
func TestReconcileSpace(t *testing.T) {
	const golden = "testdata/reconcile.golden"
	var b strings.Builder
	for _, cause := range allCauses {
		for _, exit := range []string{"none", "exit 0", "exit 7", "signal 9"} {
			for _, result := range append([]protocol.Disposition{""}, allDispositions...) {
				f := lifecycle.Facts{Cause: cause, Exit: exits()[exit], ResultSeen: result != "", Result: result}
				fmt.Fprintf(&b, "cause=%-26s %-8s result=%-12s\n", orDash(string(cause)), exit, orDash(string(result)))
				for _, line := range reconcileRows(t, f) {
					fmt.Fprintf(&b, "    %s\n", line)
				}
			}
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("outcomes differ (-want +got), -update rewrites:\n%s", diff)
	}
}

// reconcileRows is one line for no proposal, one for an invalid one, and one
// for each proposed disposition with the states that agree.
func reconcileRows(t *testing.T, f lifecycle.Facts) []string {
	t.Helper()
	outcome := func(o protocol.Terminal) string {
		return fmt.Sprintf("%s/%s %s %s", o.TurnTerminalState, o.RunTerminalState, o.Reconciliation.Reason, o.ReportedWorkDisposition)
	}
	none := lifecycle.Reconcile(f)
	rows := []string{"proposal=none         -> " + outcome(none)}
	f.Proposed = true
	invalid := lifecycle.Reconcile(f)
	rows = append(rows, "proposal=invalid      -> "+outcome(invalid))
	if invalid.Reconciliation.ProposalValid || invalid.Reconciliation.ProposalContradicted {
		t.Errorf("%+v: an invalid proposal is valid or contradicted", f)
	}
	f.ProposalValid = true
	for _, d := range allDispositions {
		var agree []string
		line := ""
		for _, turn := range allTurns {
			for _, run := range allRuns {
				f.Proposal = protocol.TerminalProposal{TurnTerminalState: turn, RunTerminalState: run, ReportedWorkDisposition: d}
				o := lifecycle.Reconcile(f)
				if line != "" && line != outcome(o) {
					t.Errorf("%+v: the states that were proposed change the outcome from %s to %s", f, line, outcome(o))
				}
				line = outcome(o)
				if o.TurnTerminalState != none.TurnTerminalState || o.RunTerminalState != none.RunTerminalState || o.Reconciliation.Reason != none.Reconciliation.Reason {
					t.Errorf("%+v: a proposal changes the outcome", f)
				}
				if !o.Reconciliation.ProposalContradicted {
					agree = append(agree, string(turn)+"/"+string(run))
				}
			}
		}
		rows = append(rows, fmt.Sprintf("proposal=%-12s -> %s; agrees %s", d, line, strings.Join(agree, " ")))
	}
	return rows
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// TestReconcileTable holds the rows of spec section 5, written out, against
// the rules: the golden file says what is, this says what must be.
func TestReconcileTable(t *testing.T) {
	for _, row := range []struct {
		cause  protocol.Reason
		exit   string
		result protocol.Disposition
		want   string
	}{
		{protocol.ReasonTurnInterrupted, "exit 0", "done", "interrupted cancelled turn_interrupted"},
		{protocol.ReasonRunCancelled, "exit 0", "done", "cancelled cancelled run_cancelled"},
		{protocol.ReasonRunnerShutdown, "signal 9", "", "cancelled cancelled runner_shutdown"},
		{protocol.ReasonControllerClosed, "exit 0", "done", "cancelled cancelled controller_closed"},
		{protocol.ReasonRunnerTerminated, "none", "", "cancelled cancelled runner_terminated"},
		{protocol.ReasonStartFailed, "none", "", "failed failed harness_start_failed"},
		{protocol.ReasonNotReady, "exit 0", "", "failed failed harness_not_ready"},
		{protocol.ReasonProtocolViolation, "exit 0", "done", "failed failed harness_protocol_violation"},
		{protocol.ReasonRunTimedOut, "exit 0", "done", "failed failed run_timed_out"},
		{protocol.ReasonBudgetExceeded, "exit 0", "done", "failed failed event_budget_exceeded"},
		{"", "exit 0", "done", "completed succeeded successful_process_and_result"},
		{"", "exit 0", "yielded", "completed succeeded successful_process_and_result"},
		{"", "exit 7", "done", "failed failed harness_process_failed"},
		{"", "signal 9", "done", "failed failed harness_process_failed"},
		{"", "exit 0", "", "failed failed semantic_result_missing"},
	} {
		o := lifecycle.Reconcile(lifecycle.Facts{Cause: row.cause, Exit: exits()[row.exit], ResultSeen: row.result != "", Result: row.result})
		got := fmt.Sprintf("%s %s %s", o.TurnTerminalState, o.RunTerminalState, o.Reconciliation.Reason)
		if got != row.want {
			t.Errorf("cause %q, %s, result %q: got %s, want %s", row.cause, row.exit, row.result, got, row.want)
		}
	}
}
