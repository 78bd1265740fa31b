package devserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds of frames that a rule can mean.
const (
	OnConnect  = "connect"
	OnHello    = "hello"
	OnResult   = "result"
	OnProgress = "progress"
	OnCommand  = "command" // one that the server sends
)

// Kinds of calls to the server of task runs that a rule can mean.
const (
	OnFetch   = "fetch"
	OnClaim   = "claim"
	OnEnd     = "end" // a terminal report
	OnStream  = "stream"
	OnSecrets = "secrets"
	OnPlugin  = "plugin"
	OnBase    = "base"
	OnRestore = "restore"
	OnSeed    = "seed"
)

// What a rule can do.
const (
	// Drop ends the connection instead of handling the frame.
	Drop = "drop"
	// DropAfter handles the frame and ends the connection.
	DropAfter = "drop-after"
	// Hang stops reading and writing and leaves the connection open.
	Hang = "hang"
	// Mute handles the frame and never answers it.
	Mute = "mute"
	// Twice sends a command two times.
	Twice = "twice"
	// Late waits before it goes on.
	Late = "late"
)

// lateBy is how late [Late] is.
const lateBy = 100 * time.Millisecond

// Rule is one misbehaviour: at the Nth frame of a kind, counted from 1 over all
// connections; 0 is every one.
type Rule struct {
	On  string
	Nth int
	Do  string
}

// ParseRule reads a rule as KIND:N:WHAT.
func ParseRule(text string) (Rule, error) {
	parts := strings.Split(text, ":")
	kinds := []string{OnConnect, OnHello, OnResult, OnProgress, OnCommand}
	deeds := []string{Drop, DropAfter, Hang, Mute, Twice, Late}
	return parseRule(text, parts, kinds, deeds)
}

// ParseTaskRunRule reads a rule of the server of task runs as KIND:N:WHAT; WHAT
// can also be an HTTP status from 400 to 599, which is answered.
func ParseTaskRunRule(text string) (Rule, error) {
	parts := strings.Split(text, ":")
	kinds := []string{OnFetch, OnClaim, OnEnd, OnStream, OnSecrets, OnPlugin, OnBase, OnRestore, OnSeed}
	deeds := []string{Drop, DropAfter, Hang, Late}
	if len(parts) == 3 && statusRule(parts[2]) > 0 {
		deeds = append(deeds, parts[2])
	}
	return parseRule(text, parts, kinds, deeds)
}

// statusRule is the HTTP status that a rule answers; 0 where it does not.
func statusRule(do string) int {
	if n, err := strconv.Atoi(do); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return 0
}

func parseRule(text string, parts, kinds, deeds []string) (Rule, error) {
	if len(parts) == 3 && slices.Contains(kinds, parts[0]) && slices.Contains(deeds, parts[2]) {
		if n, err := strconv.Atoi(parts[1]); err == nil && n >= 0 {
			return Rule{On: parts[0], Nth: n, Do: parts[2]}, nil
		}
	}
	return Rule{}, fmt.Errorf("expected KIND:N:WHAT with a kind of %s and one of %s, got %q",
		strings.Join(kinds, ", "), strings.Join(deeds, ", "), text)
}
