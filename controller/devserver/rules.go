package devserver

import (
	"fmt"
	"maps"
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
	OnFrame    = "frame"   // any that comes, before it is known what it is
)

// What a rule can do.
const (
	// Drop ends the connection instead of handling the frame.
	Drop = "drop"
	// DropAfter handles the frame and ends the connection.
	DropAfter = "drop-after"
	// Cut resets the connection in the middle of the frame.
	Cut = "cut"
	// Hang stops reading and writing and leaves the connection open.
	Hang = "hang"
	// Mute handles the frame and never answers it.
	Mute = "mute"
	// Twice sends a command two times.
	Twice = "twice"
	// Late waits before it goes on.
	Late = "late"
)

// deeds says what can be done at each kind of frame.
var deeds = map[string][]string{
	OnConnect:  {Drop, Late},
	OnHello:    {Drop, DropAfter, Hang, Mute, Late},
	OnResult:   {Drop, DropAfter, Hang, Mute, Late},
	OnProgress: {Drop, DropAfter, Hang, Mute, Late},
	OnCommand:  {Drop, DropAfter, Cut, Mute, Twice, Late},
	OnFrame:    {Cut},
}

// lateBy is how late [Late] is.
const lateBy = 100 * time.Millisecond

// Rule is one misbehaviour: at the Nth frame of a kind, counted from 1 over all
// connections; 0 is every one.
type Rule struct {
	On  string
	Nth int
	Do  string
}

// Kinds lists the kinds of frames that a rule can mean, and Deeds what can be
// done at one of them.
func Kinds() []string { return slices.Sorted(maps.Keys(deeds)) }

// Deeds lists what can be done at a kind of frame.
func Deeds(kind string) []string { return slices.Clone(deeds[kind]) }

// ParseRule reads a rule as KIND:N:WHAT.
func ParseRule(text string) (Rule, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || deeds[parts[0]] == nil {
		return Rule{}, fmt.Errorf("expected KIND:N:WHAT with a kind of %s, got %q", strings.Join(Kinds(), ", "), text)
	}
	if !slices.Contains(deeds[parts[0]], parts[2]) {
		return Rule{}, fmt.Errorf("expected KIND:N:WHAT with one of %s for %s, got %q", strings.Join(deeds[parts[0]], ", "), parts[0], text)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 0 {
		return Rule{}, fmt.Errorf("expected KIND:N:WHAT with a number from 0 (every one), got %q", text)
	}
	return Rule{On: parts[0], Nth: n, Do: parts[2]}, nil
}
