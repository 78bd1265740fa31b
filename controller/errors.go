package controller

import (
	"errors"
	"fmt"

	"prp/protocol"
)

var (
	// ErrRunnerGone says that the runner, or its stdin, has ended before it
	// answered. The command may or may not have had an effect.
	ErrRunnerGone = errors.New("the runner is gone")
	// ErrClosed says that Close was called before the command.
	ErrClosed = errors.New("the controller has closed the run")
	// ErrLagged says that a reader of the stream was so slow that what it
	// would have read next is no longer kept ([Config.MaxRetainedBytes]).
	ErrLagged = errors.New("the reader lags: what comes next is no longer kept")
	// ErrNoTerminal says that the runner ended without run.terminal.
	ErrNoTerminal = errors.New("the runner ended without a run.terminal event")
	// ErrNotSent says that a command was not sent, since the runner could not
	// even read it: its shape, its length, its id.
	ErrNotSent = errors.New("the command was not sent")
	// ErrCommandIDUsed says that the client has sent a command of this id.
	ErrCommandIDUsed = errors.New("the command id was used before")
)

// RejectedError is the answer to a command that the runner did not take.
type RejectedError struct {
	// Type is the type of the command.
	Type protocol.CommandType
	// Receipt is the runner's answer; its Code says why.
	Receipt protocol.Receipt
}

// Code is the stable word for the reason (spec section 2).
func (e *RejectedError) Code() protocol.Code { return e.Receipt.Code }

// Error implements error.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("%s was rejected: %s: %s", e.Type, e.Receipt.Code, e.Receipt.Detail)
}

// BindingError is a line of the stream that this run cannot have: of another
// run, session or source, out of sequence, after the terminal, or no line of
// the protocol at all.
type BindingError struct {
	// Line is the number of the line in the stream, from 1.
	Line int64
	// Path is the member, for example "message.event.sourceSeq"; empty for the line.
	Path string
	// Detail says what was expected and what was seen.
	Detail string
}

// Error implements error.
func (e *BindingError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Detail)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Path, e.Detail)
}
