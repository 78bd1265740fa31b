package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"prp/controller"
	"prp/protocol"
)

// tap writes the lines of a stream to where they are wanted. Where that fails,
// the run is closed.
func tap(outs []io.Writer, stop context.CancelCauseFunc) func([]byte) {
	if len(outs) == 0 {
		return nil
	}
	return func(line []byte) {
		whole := append(append(make([]byte, 0, len(line)+1), line...), '\n')
		for _, f := range outs {
			if _, err := f.Write(whole); err != nil {
				stop(err)
			}
		}
	}
}

// ending is what is known of a run once it is over.
type ending struct {
	name   string // of the command
	trace  *controller.Trace
	err    error // what the controller says
	cause  error // why the run was closed from here
	killed bool  // a person has killed it
	said   error // what was already reported
}

// status says what went wrong beside the run, and gives the exit status.
func (e ending) status(s *streams) int {
	err := e.err
	if err == nil {
		err = e.cause
	}
	if err != nil && !e.killed && (e.said == nil || !errors.Is(err, e.said)) {
		fail(s, e.name, err)
		if e.trace.Stderr != "" {
			fmt.Fprintf(s.err, "the runner's stderr ends with:\n%s\n", strings.TrimSuffix(e.trace.Stderr, "\n"))
		}
	}
	switch {
	case e.cause != nil:
		return exitFailed
	case e.killed:
		return exitCancelled
	case e.trace.Terminal == nil:
		return exitFailed
	}
	switch e.trace.Terminal.RunTerminalState {
	case protocol.RunSucceeded:
		return exitOK
	case protocol.RunCancelled:
		return exitCancelled
	}
	return exitFailed
}
