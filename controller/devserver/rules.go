package devserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kinds of frames that a rule can mean. A connector's frames are meant by their
// type.
const (
	OnConnect  = "connect"
	OnHello    = "hello"
	OnResult   = "result"
	OnProgress = "progress"
	OnCommand  = "command" // one that the server sends
	OnFrame    = "frame"   // any that comes, before it is known what it is
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

// Deeds of a connector's server that name a number after them: a WebSocket
// status, an HTTP status at the connection, a code of an error instead of the
// answer.
const (
	Close = "close-"
	HTTP  = "http-"
	Fault = "error-"
)

// workerDeeds says what can be done at each kind of frame of a worker.
var workerDeeds = map[string][]string{
	OnConnect:  {Drop, Late},
	OnHello:    {Drop, DropAfter, Hang, Mute, Late},
	OnResult:   {Drop, DropAfter, Hang, Mute, Late},
	OnProgress: {Drop, DropAfter, Hang, Mute, Late},
	OnCommand:  {Drop, DropAfter, Cut, Mute, Twice, Late},
	OnFrame:    {Cut},
}

// taskRunDeeds says what can be done at each kind of call about a task run,
// beside an HTTP status.
var taskRunDeeds = func() map[string][]string {
	deeds := map[string][]string{}
	for _, kind := range []string{OnFetch, OnClaim, OnEnd, OnStream, OnSecrets, OnPlugin, OnBase, OnRestore, OnSeed} {
		deeds[kind] = []string{Drop, DropAfter, Hang, Late}
	}
	return deeds
}()

// connectorDeeds says what can be done at each kind of frame of a connector,
// beside those that name a number.
var connectorDeeds = func() map[string][]string {
	deeds := map[string][]string{}
	for _, kind := range connectorKinds {
		deeds[kind] = []string{Drop, DropAfter, Hang, Mute, Late}
	}
	deeds[OnConnect] = []string{Drop, Hang, Late}
	for _, kind := range []string{"create_run", "cancel_run"} {
		deeds[kind] = []string{Drop, Twice}
	}
	return deeds
}()

// lateBy is how late [Late] is.
const lateBy = 100 * time.Millisecond

// Rule is one misbehaviour: at the Nth frame of a kind, counted from 1 over all
// connections; 0 is every one.
type Rule struct {
	On  string
	Nth int
	Do  string
}

// Kinds lists the kinds of a worker's frames that a rule can mean, and [Deeds]
// what can be done at one of them.
func Kinds() []string { return slices.Sorted(maps.Keys(workerDeeds)) }

// Deeds lists what can be done at a kind of a worker's frames.
func Deeds(kind string) []string { return slices.Clone(workerDeeds[kind]) }

// ParseRule reads a rule of the worker's server as KIND:N:WHAT.
func ParseRule(text string) (Rule, error) {
	return parseRule(text, workerDeeds, "", func(string) bool { return false })
}

// ParseTaskRunRule reads a rule of the server of task runs as KIND:N:WHAT; WHAT
// can also be an HTTP status from 400 to 599, which is answered.
func ParseTaskRunRule(text string) (Rule, error) {
	return parseRule(text, taskRunDeeds, "STATUS", func(do string) bool { return statusRule(do) > 0 })
}

// statusRule is the HTTP status that a rule answers; 0 where it does not.
func statusRule(do string) int {
	if n, err := strconv.Atoi(do); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return 0
}

// parseRule reads a rule of one server. numbered tells a deed with a number of
// its own, which more names for a person.
func parseRule(text string, deeds map[string][]string, more string, numbered func(do string) bool) (Rule, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || deeds[parts[0]] == nil {
		return Rule{}, fmt.Errorf("expected KIND:N:WHAT with a kind of %s, got %q", strings.Join(slices.Sorted(maps.Keys(deeds)), ", "), text)
	}
	can := deeds[parts[0]]
	if !slices.Contains(can, parts[2]) && !numbered(parts[2]) {
		if more != "" {
			can = append(slices.Clone(can), more)
		}
		return Rule{}, fmt.Errorf("expected KIND:N:WHAT with one of %s for %s, got %q", strings.Join(can, ", "), parts[0], text)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 0 {
		return Rule{}, fmt.Errorf("expected KIND:N:WHAT with a number from 0 (every one), got %q", text)
	}
	return Rule{On: parts[0], Nth: n, Do: parts[2]}, nil
}

// numberOf is what follows a deed of a connector's server; 0 where it is another.
func numberOf(do, deed string) int {
	text, ok := strings.CutPrefix(do, deed)
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		return 0
	}
	return n
}

// ParseConnectorRule reads a rule of the connector's server as KIND:N:WHAT; WHAT
// can also be [Close], [HTTP] or [Fault] with a number after it.
func ParseConnectorRule(text string) (Rule, error) {
	return parseRule(text, connectorDeeds, Close+"STATUS, "+HTTP+"STATUS, "+Fault+"CODE", func(do string) bool {
		return numberOf(do, Close)+numberOf(do, HTTP)+numberOf(do, Fault) > 0
	})
}

// ruleBook counts frames and knows what is to be done at each.
type ruleBook struct {
	mu     sync.Mutex
	counts map[string]int
	rules  []Rule
}

func newRuleBook(rules []Rule) *ruleBook { return &ruleBook{counts: map[string]int{}, rules: rules} }

// next counts a frame of a kind and tells what is to be done; empty is nothing.
func (b *ruleBook) next(kind string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[kind]++
	i := slices.IndexFunc(b.rules, func(r Rule) bool { return r.On == kind && (r.Nth == 0 || r.Nth == b.counts[kind]) })
	if i < 0 {
		return ""
	}
	return b.rules[i].Do
}

// counted is how often a kind came.
func (b *ruleBook) counted(kind string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[kind]
}

// set replaces the rules; what was counted stays.
func (b *ruleBook) set(rules []Rule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rules = rules
}
