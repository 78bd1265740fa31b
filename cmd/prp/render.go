package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"prp/controller"
	"prp/protocol"
)

// typeWidth is the width of the column of event types: the longest one,
// runtime_request.cancelled, fits.
const typeWidth = 25

// renderer shows a stream as a person reads it: one line an event.
type renderer struct {
	screen *screen
	quiet  bool // show no lines, only keep the state

	mu       sync.Mutex
	snapshot controller.Snapshot // with the message that is being shown
	showing  bool
	events   int
	// itemsDone counts the items that have ended.
	itemsDone int
	grown     chan struct{} // closed when there is news; nil where nobody waits
	over      bool          // nothing will be shown any more
	// noted, where it is set, is called for each message before it is shown,
	// with the lock held.
	noted func(*protocol.StreamMessage)
	// receipt, where it is set, says what a receipt means to a person; else
	// only a rejection is shown.
	receipt func(*protocol.Receipt) string
	// said is the last diagnostic; a receipt often repeats it.
	said string
}

// follow shows what a client gets until the run is over.
func (r *renderer) follow(client *controller.Client, age func() time.Duration) {
	for m, err := range client.Messages(context.Background()) {
		switch {
		case err == nil:
			r.message(age(), &m)
		case errors.Is(err, controller.ErrLagged):
			r.screen.print("the terminal is too slow: what comes next is not shown")
		} // any other error is what the end of the run says as well
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.wake()
}

// message shows one message that came when the run was so old. What it says is
// known before, for a person who acts on what is seen at once; who awaits it goes on
// after it was shown.
func (r *renderer) message(age time.Duration, m *protocol.StreamMessage) {
	r.note(m)
	r.show(age, m)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.showing = false
	r.wake()
}

// note takes over what a message says, which is about to be shown.
func (r *renderer) note(m *protocol.StreamMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.showing = true
	if m.Kind == protocol.KindEvent {
		r.snapshot.Apply(*m.Event)
		r.events++
		if t := m.Event.EventType; t == protocol.EventItemCompleted || t == protocol.EventItemFailed {
			r.itemsDone++
		}
	}
	if r.noted != nil {
		r.noted(m)
	}
}

// wake wakes everybody who awaits something; the lock is held.
func (r *renderer) wake() {
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// await blocks until test is true of what was shown so far; false is the end
// of the stream or of ctx. The test is called with the lock held.
func (r *renderer) await(ctx context.Context, test func(*controller.Snapshot) bool) bool {
	for {
		r.mu.Lock()
		done, over := !r.showing && test(&r.snapshot), r.over
		if r.grown == nil {
			r.grown = make(chan struct{})
		}
		grown := r.grown
		r.mu.Unlock()
		if done || over {
			return done
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return false
		}
	}
}

// awaitQuestion waits until the event of a request was shown.
func (r *renderer) awaitQuestion(ctx context.Context, id string) {
	r.await(ctx, func(s *controller.Snapshot) bool {
		return slices.ContainsFunc(s.Requests, func(q controller.RequestState) bool { return q.ID == id })
	})
}

// state is a copy of what was shown so far, or is being shown.
func (r *renderer) state() (s *controller.Snapshot, events int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.snapshot.Clone(), r.events
}

func (r *renderer) show(age time.Duration, m *protocol.StreamMessage) {
	if r.quiet {
		return
	}
	switch m.Kind {
	case protocol.KindEvent:
		r.event(age, m.Event)
	case protocol.KindDiagnostic:
		d := m.Diagnostic
		r.said = d.Message
		look := yellow
		if d.Level == protocol.LevelError {
			look = red
		}
		r.line(age, string(d.Level), look, withCode(d.Message, d.Code))
	case protocol.KindReceipt:
		r.receiptLine(age, m.Receipt)
	}
}

func (r *renderer) receiptLine(age time.Duration, c *protocol.Receipt) {
	switch {
	case r.receipt != nil && c.Status != protocol.ReceiptRejected:
		r.line(age, string(c.Status), dim, r.receipt(c))
	case r.receipt != nil:
		r.line(age, "rejected", yellow, r.receipt(c)+": "+withCode(c.Detail, c.Code))
	case c.Status == protocol.ReceiptRejected && c.Detail != r.said:
		r.line(age, "rejected", yellow, withCode(c.Detail, c.Code))
	}
}

// withCode is a message and the stable word for it.
func withCode(text string, code protocol.Code) string {
	text = controller.OneLine(shortQuotes(text))
	if code == "" {
		return text
	}
	return text + " (" + string(code) + ")"
}

// maxQuote bounds what a diagnostic quotes from outside, in characters: of a
// PATH or a command line the beginning tells enough.
const maxQuote = 40

// shortQuotes cuts what stands in long quotes.
func shortQuotes(text string) string {
	return longQuote().ReplaceAllStringFunc(text, func(quote string) string {
		return string([]rune(quote)[:maxQuote]) + `…"`
	})
}

// longQuote is a Go string in quotes that is too long to be shown. Most runs
// need it not, so it is made when it is needed.
var longQuote = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`"(?:[^"\\]|\\.){%d,}"`, maxQuote))
})

func (r *renderer) event(age time.Duration, e *protocol.Event) {
	look := lookOf(e.EventType)
	if e.EventType != protocol.EventItemDelta {
		r.line(age, string(e.EventType), look, controller.Summarize(e))
		return
	}
	for i, text := range strings.Split(strings.TrimSuffix(controller.DeltaText(e), "\n"), "\n") {
		text = "│ " + controller.OneLine(text)
		if i == 0 {
			r.line(age, string(e.EventType), look, text)
			continue
		}
		r.screen.print(strings.Repeat(" ", len("00:00.000")+2+typeWidth+2) + text)
	}
}

// line prints one line of the timeline.
func (r *renderer) line(age time.Duration, what string, look style, text string) {
	label := r.screen.paint(look, fmt.Sprintf("%-*s", typeWidth, what))
	line := r.screen.paint(dim, clockText(age)) + "  " + label + "  " + text
	r.screen.print(strings.TrimRight(line, " "))
}

// clockText is an age as minutes, seconds and milliseconds.
func clockText(age time.Duration) string {
	age = max(age, 0).Round(time.Millisecond)
	return fmt.Sprintf("%02d:%06.3f", int(age/time.Minute), (age % time.Minute).Seconds())
}

// lookOf is the colour of an event type, by what it means to a person.
func lookOf(t protocol.EventType) style {
	name := string(t)
	switch {
	case t == protocol.EventRunTerminal, t == protocol.EventResultProposed:
		return bold
	case t == protocol.EventItemDelta:
		return dim
	case t == protocol.EventHarnessDiag, t == protocol.EventRunnerDiag, t == protocol.EventRequestCreated,
		strings.HasSuffix(name, ".interrupted"):
		return yellow
	case strings.HasSuffix(name, ".failed"), strings.HasSuffix(name, ".cancelled"), strings.HasSuffix(name, ".expired"):
		return red
	case strings.HasSuffix(name, ".completed"), strings.HasSuffix(name, ".resolved"), strings.HasSuffix(name, ".closed"):
		return green
	}
	return cyan
}

// underWay is how many of the last items are looked at for one that is under
// way: the line is drawn often, and a run can have very many.
const underWay = 64

// progress is the text of the progress line.
func (r *renderer) progress(age time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.snapshot.Phase
	if n := len(r.snapshot.Turns); n > 0 {
		state = "turn " + r.snapshot.Turns[n-1].State
	}
	items := r.snapshot.Items
	for i := len(items) - 1; i >= max(0, len(items)-underWay); i-- {
		if items[i].Status == "started" {
			state += ": " + items[i].Title
			break
		}
	}
	counts := countOf(r.events, "event")
	if n := len(items); n > 0 {
		counts += fmt.Sprintf(", %d of %s done", r.itemsDone, countOf(n, "item"))
	}
	return fmt.Sprintf("%.1fs  %s  %s", age.Seconds(), counts, controller.OneLine(words(state)))
}

// end shows the log tail, the result, the terminal and the summary line.
func (r *renderer) end(age time.Duration) {
	if r.quiet {
		return
	}
	s, events := r.state()
	var b strings.Builder
	if s.Exit != nil && len(s.Exit.Logs.Lines) > 0 {
		fmt.Fprintf(&b, "\n%s\n", r.screen.paint(bold, "log "+tailText(&s.Exit.Logs)))
		for _, line := range s.Exit.Logs.Lines {
			fmt.Fprintf(&b, "  %s\n", controller.OneLine(line))
		}
	}
	b.WriteString("\n")
	if t := s.Terminal; t != nil {
		look := map[protocol.RunTerminalState]style{protocol.RunSucceeded: green, protocol.RunFailed: red}[t.RunTerminalState]
		if look == plain {
			look = yellow
		}
		fmt.Fprintf(&b, "%s\n", endText(t, func(text string) string { return r.screen.paint(look, text) }))
		if t.Reconciliation.ProposalContradicted {
			b.WriteString("The harness had proposed another end; the facts decide.\n")
		}
	} else {
		fmt.Fprintf(&b, "%s\n", r.screen.paint(red, "The run has no terminal."))
	}
	b.WriteString(summaryLine(s, events, age))
	r.screen.print(b.String())
}

func tailText(l *protocol.LogTail) string {
	if l.DroppedLines == 0 {
		return "(" + countOf(l.RetainedLines, "line") + ")"
	}
	return fmt.Sprintf("(the last %s, %d before them)", countOf(l.RetainedLines, "line"), l.DroppedLines)
}

// endText says how the run ended and why, once where the reason says both.
func endText(t *protocol.Terminal, paint func(string) string) string {
	reason := controller.ReasonText(t.Reconciliation.Reason)
	state := "The run " + ended(t.RunTerminalState)
	if why, ok := strings.CutPrefix(reason, state); ok {
		return paint(state) + why
	}
	return paint(state+".") + " " + reason
}

func ended(state protocol.RunTerminalState) string {
	if state == protocol.RunCancelled {
		return "was cancelled"
	}
	return string(state)
}

// summaryLine is the last line of a run: states, reason, counts, exit.
func summaryLine(s *controller.Snapshot, events int, age time.Duration) string {
	parts := []string{}
	if t := s.Terminal; t != nil {
		parts = append(parts, "run "+string(t.RunTerminalState), "turn "+string(t.TurnTerminalState),
			"work "+string(t.ReportedWorkDisposition), "reason "+string(t.Reconciliation.Reason))
	}
	session := s.Session
	if session == "" {
		session = protocol.SessionNotStarted // there was not even an event
	}
	parts = append(parts, "session "+string(session), countOf(events, "event"), fmt.Sprintf("%.2fs", age.Seconds()))
	switch {
	case s.Exit != nil:
		parts = append(parts, "harness "+controller.ExitText(&s.Exit.ProcessExit))
	case s.Terminal != nil:
		parts = append(parts, "harness "+controller.ExitText(nil))
	default:
		parts = append(parts, "harness end not seen")
	}
	return strings.Join(parts, ", ")
}

// countOf is a number and its noun.
func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
