package lifecycle

import (
	"time"

	"prp/protocol"
)

// Kind is what an effect orders.
type Kind uint8

const (
	// Emit writes an event to stdout.
	Emit Kind = iota + 1
	// Answer writes a receipt to stdout.
	Answer
	// Diagnose writes a diagnostic to stdout.
	Diagnose
	// Log adds to the log tail: Text with the prefix Stream.
	Log
	// CheckWorkspace finds out whether the working directory can be used.
	CheckWorkspace
	// StartHarness starts the process.
	StartHarness
	// SendHarness queues Command for the harness's stdin.
	SendHarness
	// CloseHarnessInput closes the harness's stdin: after what is queued
	// where Flush is set, else at once.
	CloseHarnessInput
	// StopTree begins the ladder: SIGTERM and SIGCONT, Grace, SIGKILL, sweep,
	// reap. A second order only shortens the grace.
	StopTree
	// CutOutput ends the reading of the harness's stdout and stderr once
	// what is in the pipes now is read.
	CutOutput
	// CloseHarness lets go of the pipes and takes the log tail.
	CloseHarness
	// Settle reads what the controller has written so far.
	Settle
	// SetTimer arms Timer with generation Gen to fire after Delay.
	SetTimer
	// ClearTimer disarms Timer.
	ClearTimer
	// Finish ends the runner once everything is written.
	Finish
)

var kindNames = map[Kind]string{
	Emit: "Emit", Answer: "Answer", Diagnose: "Diagnose", Log: "Log",
	CheckWorkspace: "CheckWorkspace", StartHarness: "StartHarness", SendHarness: "SendHarness",
	CloseHarnessInput: "CloseHarnessInput", StopTree: "StopTree", CutOutput: "CutOutput",
	CloseHarness: "CloseHarness", Settle: "Settle", SetTimer: "SetTimer", ClearTimer: "ClearTimer", Finish: "Finish",
}

// String returns the name of the kind.
func (k Kind) String() string { return kindNames[k] }

// Effect is one order. Which members are set depends on Kind.
type Effect struct {
	Kind       Kind
	Event      *protocol.Event      // Emit
	Receipt    *protocol.Receipt    // Answer
	Diagnostic *protocol.Diagnostic // Diagnose
	Command    *protocol.Command    // SendHarness
	Family     protocol.Family      // SendHarness
	Size       int                  // SendHarness: what it counts in the queue
	Stream     string               // Log
	Text       string               // Log
	Flush      bool                 // CloseHarnessInput
	Timer      Timer                // SetTimer, ClearTimer
	Gen        int                  // SetTimer
	Delay      time.Duration        // SetTimer, StopTree (the grace)
}
