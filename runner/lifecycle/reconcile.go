package lifecycle

import "prp/protocol"

// Facts are what decides how a run ended (spec section 5).
type Facts struct {
	// Cause is the first cause that happened, empty where the harness ended
	// by itself.
	Cause protocol.Reason
	// Exit is nil where no process was started, or where even SIGKILL did
	// not end it.
	Exit *protocol.ExitFact
	// ResultSeen tells that a valid result came; Result is what it reported.
	ResultSeen bool
	Result     protocol.Disposition
	// Proposed tells that the harness proposed a terminal. It decides
	// nothing; it is only held against what was decided.
	Proposed      bool
	ProposalValid bool
	Proposal      protocol.TerminalProposal
}

type outcome struct {
	turn   protocol.TurnTerminalState
	run    protocol.RunTerminalState
	reason protocol.Reason
}

// outcomes is the table of spec section 5: the first row that holds decides.
var outcomes = []struct {
	holds func(Facts) bool
	outcome
}{
	{caused(protocol.ReasonTurnInterrupted), outcome{protocol.TurnInterrupted, protocol.RunCancelled, protocol.ReasonTurnInterrupted}},
	{caused(protocol.ReasonRunCancelled), cancelled(protocol.ReasonRunCancelled)},
	{caused(protocol.ReasonRunnerShutdown), cancelled(protocol.ReasonRunnerShutdown)},
	{caused(protocol.ReasonControllerClosed), cancelled(protocol.ReasonControllerClosed)},
	{caused(protocol.ReasonRunnerTerminated), cancelled(protocol.ReasonRunnerTerminated)},
	{caused(protocol.ReasonStartFailed), failed(protocol.ReasonStartFailed)},
	{caused(protocol.ReasonNotReady), failed(protocol.ReasonNotReady)},
	{caused(protocol.ReasonProtocolViolation), failed(protocol.ReasonProtocolViolation)},
	{caused(protocol.ReasonRunTimedOut), failed(protocol.ReasonRunTimedOut)},
	{caused(protocol.ReasonBudgetExceeded), failed(protocol.ReasonBudgetExceeded)},
	{
		func(f Facts) bool { return exitedWell(f) && f.ResultSeen },
		outcome{protocol.TurnCompleted, protocol.RunSucceeded, protocol.ReasonSuccess},
	},
	{func(f Facts) bool { return !exitedWell(f) }, failed(protocol.ReasonProcessFailed)},
	{func(Facts) bool { return true }, failed(protocol.ReasonResultMissing)},
}

func caused(r protocol.Reason) func(Facts) bool {
	return func(f Facts) bool { return f.Cause == r }
}

func exitedWell(f Facts) bool { return f.Exit != nil && f.Exit.Success }

func cancelled(r protocol.Reason) outcome {
	return outcome{protocol.TurnCancelled, protocol.RunCancelled, r}
}

func failed(r protocol.Reason) outcome {
	return outcome{protocol.TurnFailed, protocol.RunFailed, r}
}

// Reconcile derives the one terminal from the facts. It is pure and total; the
// proposal itself (the harness's bytes) is added by the caller.
func Reconcile(f Facts) protocol.Terminal {
	var o outcome
	for _, row := range outcomes {
		if row.holds(f) {
			o = row.outcome
			break
		}
	}
	return protocol.Terminal{
		TerminalProposal: protocol.TerminalProposal{
			Schema:                  protocol.SchemaTerminal,
			TurnTerminalState:       o.turn,
			RunTerminalState:        o.run,
			ReportedWorkDisposition: disposition(f, o.run),
		},
		Reconciliation: protocol.Reconciliation{
			Authority:     protocol.AuthorityRunner,
			Reason:        o.reason,
			ProposalValid: f.Proposed && f.ProposalValid,
			ProposalContradicted: f.Proposed && f.ProposalValid &&
				(f.Proposal.TurnTerminalState != o.turn || f.Proposal.RunTerminalState != o.run),
			ProcessExit:            f.Exit,
			SemanticResultObserved: f.ResultSeen,
		},
	}
}

// disposition is the result's, else the proposal's, else done for a run that
// succeeded; any other run is never done.
func disposition(f Facts, run protocol.RunTerminalState) protocol.Disposition {
	succeeded := run == protocol.RunSucceeded
	if f.ResultSeen && (succeeded || f.Result != protocol.DispositionDone) {
		return f.Result
	}
	if f.Proposed && f.ProposalValid && (succeeded || f.Proposal.ReportedWorkDisposition != protocol.DispositionDone) {
		return f.Proposal.ReportedWorkDisposition
	}
	if succeeded {
		return protocol.DispositionDone
	}
	return protocol.DispositionYielded
}
