package devserver

import (
	"fmt"
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

// Deeds of a connector's server that name a number after them: a WebSocket
// status, an HTTP status at the connection, a code of an error instead of the
// answer.
const (
	Close = "close-"
	HTTP  = "http-"
	Fault = "error-"
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

// number is what follows a deed of a connector's server; 0 where it is another.
func (r Rule) number(deed string) int { return numberOf(r.Do, deed) }

func numberOf(do, deed string) int {
	text, ok := strings.CutPrefix(do, deed)
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		return 0
	}
	return n
}

// ParseRule reads a rule as KIND:N:WHAT.
func ParseRule(text string) (Rule, error) {
	parts := strings.Split(text, ":")
	kinds := append([]string{OnConnect, OnHello, OnResult, OnProgress, OnCommand}, connectorKinds...)
	deeds := []string{Drop, DropAfter, Hang, Mute, Twice, Late}
	if len(parts) == 3 && slices.Contains(kinds, parts[0]) {
		r := Rule{On: parts[0], Do: parts[2]}
		n, err := strconv.Atoi(parts[1])
		r.Nth = n
		known := slices.Contains(deeds, r.Do) || r.number(Close)+r.number(HTTP)+r.number(Fault) > 0
		if err == nil && n >= 0 && known {
			return r, nil
		}
	}
	return Rule{}, fmt.Errorf("expected KIND:N:WHAT with a kind of %s and one of %s, %sSTATUS, %sSTATUS, %sCODE, got %q",
		strings.Join(kinds, ", "), strings.Join(deeds, ", "), Close, HTTP, Fault, text)
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

// set replaces the rules; what was counted stays.
func (b *ruleBook) set(rules []Rule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rules = rules
}
