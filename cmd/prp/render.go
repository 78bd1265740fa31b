package main

import (
	"context"
	"fmt"
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
	snapshot controller.Snapshot
	events   int
	grown    chan struct{} // closed when a message was shown; nil where nobody waits
	// said is the last diagnostic; a receipt often repeats it.
	said string
}

// message shows one message that came when the run was so old.
func (r *renderer) message(age time.Duration, m *protocol.StreamMessage) {
	r.show(age, m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Kind == protocol.KindEvent {
		r.snapshot.Apply(*m.Event)
		r.events++
	}
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// awaitQuestion waits until the event of a request was shown, so that the
// question stands below it.
func (r *renderer) awaitQuestion(ctx context.Context, id string) {
	for {
		r.mu.Lock()
		seen := slices.ContainsFunc(r.snapshot.Requests, func(q controller.RequestState) bool { return q.ID == id })
		if r.grown == nil {
			r.grown = make(chan struct{})
		}
		grown := r.grown
		r.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return
		}
	}
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
		if c := m.Receipt; c.Status == protocol.ReceiptRejected && c.Detail != r.said {
			r.line(age, "rejected", yellow, withCode(c.Detail, c.Code))
		}
	}
}

// withCode is a message and the stable word for it.
func withCode(text string, code protocol.Code) string {
	if code == "" {
		return controller.OneLine(text)
	}
	return controller.OneLine(text) + " (" + string(code) + ")"
}

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

// progress is the text of the progress line.
func (r *renderer) progress(age time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.snapshot.Phase
	if n := len(r.snapshot.Turns); n > 0 {
		state = "turn " + r.snapshot.Turns[n-1].State
	}
	for i := len(r.snapshot.Items) - 1; i >= 0; i-- {
		if item := r.snapshot.Items[i]; item.Status == "started" {
			state += ": " + item.Title
			break
		}
	}
	return fmt.Sprintf("%.1fs  %s  %s", age.Seconds(), countOf(r.events, "event"), controller.OneLine(strings.ReplaceAll(state, "_", " ")))
}

// end shows the log tail, the result, the terminal and the summary line.
func (r *renderer) end(age time.Duration) {
	if r.quiet {
		return
	}
	r.mu.Lock()
	s := r.snapshot.Clone()
	events := r.events
	r.mu.Unlock()
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
		fmt.Fprintf(&b, "%s %s\n", r.screen.paint(look, "The run "+ended(t.RunTerminalState)+"."), controller.ReasonText(t.Reconciliation.Reason))
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
	parts = append(parts, "session "+string(s.Session), countOf(events, "event"), fmt.Sprintf("%.2fs", age.Seconds()))
	if s.Exit != nil {
		parts = append(parts, "harness "+controller.ExitText(&s.Exit.ProcessExit))
	} else {
		parts = append(parts, "harness "+controller.ExitText(nil))
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
