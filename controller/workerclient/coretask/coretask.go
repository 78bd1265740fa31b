// Package coretask has the task and the run of a task as package workerclient
// hands them on: what the server stores of them, without what is resolved per
// run.
//
// # Duties of the caller
//
// None: both are plain values.
//
// # Invariants
//
// The fields are those of the wire (seed workerclient-package, TaskRunRun and
// TaskRunTask); an absent text is empty, an absent pointer nil.
package coretask

import "time"

// Statuses of a run (workerclient.md, wire).
const (
	StatusPending   = "PENDING"
	StatusScheduled = "SCHEDULED"
	StatusRunning   = "RUNNING"
	StatusSucceeded = "SUCCEEDED"
	StatusFailed    = "FAILED"
	StatusCanceled  = "CANCELED"
)

// IsTerminal reports whether a run with this status has ended.
func IsTerminal(status string) bool {
	return status == StatusSucceeded || status == StatusFailed || status == StatusCanceled
}

// Run is one run of a task.
type Run struct {
	ID     string
	TaskID string
	// PreviousTaskRunID is the run before this one, nil for the first.
	PreviousTaskRunID *string
	// Input is what the run is asked to do.
	Input string
	// Status is one of the statuses above.
	Status    string
	CreatedAt time.Time
}

// Task is what runs belong to.
type Task struct {
	ID             string
	ConversationID string
	SpaceID        string
	UserID         string
	// SessionID is the session of the last run that was claimed, nil before.
	SessionID *string
}
