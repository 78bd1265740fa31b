package main

import (
	"fmt"
	"strconv"
	"strings"

	"prp/controller"
	"prp/protocol"
)

// status shows the state of the run in a few lines.
func (sh *shell) status(string) error {
	s, events := sh.view.state()
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, controller.OneLine(fmt.Sprintf(format, args...)))
	}
	phase, session := s.Phase, string(s.Session)
	if s.RunID == "" {
		phase, session = "not prepared", string(protocol.SessionNotStarted)
	}
	row("run", "%s, %s, session %s", sh.client.RunID(), words(phase), words(session))
	for _, t := range s.Turns {
		row("turn", "%s %s: %s", t.ID, t.State, t.Text)
	}
	for _, item := range s.Items {
		row("item", "%s %s %s %s", item.ID, item.Status, words(item.Kind), item.Title)
	}
	for _, r := range s.Requests {
		if choices := sh.choiceText(r); r.Status == protocol.RequestStatusPending {
			// Whole: the answer depends on all of it.
			fmt.Fprintf(&b, "  %-9s %s\n", "question", indented(controller.Readable(fmt.Sprintf("%s %s: %s%s", r.ID, r.Status, r.Prompt, choices))))
			continue
		}
		row("question", "%s %s: %s", r.ID, r.Status, r.Prompt)
	}
	if s.Result != nil {
		row("result", "%s", s.Result)
	}
	if s.Exit != nil {
		row("harness", "%s", controller.ExitText(&s.Exit.ProcessExit))
	}
	if t := s.Terminal; t != nil {
		row("end", "run %s, turn %s: %s", t.RunTerminalState, t.TurnTerminalState, controller.ReasonText(t.Reconciliation.Reason))
	}
	row("stream", "%s", streamText(s, events))
	sh.screen.print(b.String())
	return nil
}

// indented puts the further lines of a text below its first one.
func indented(text string) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len("  question  ")))
}

// words is a word of the wire as a person reads it.
func words(s string) string { return strings.ReplaceAll(s, "_", " ") }

// choiceText are the keys of a question that is open.
func (sh *shell) choiceText(r controller.RequestState) string {
	if r.Status != protocol.RequestStatusPending {
		return "" // nobody can choose any more
	}
	sh.view.mu.Lock()
	defer sh.view.mu.Unlock()
	var keys []string
	for _, c := range choicesOf(sh.requests[r.ID]) {
		keys = append(keys, c.Key)
	}
	if len(keys) == 0 {
		return ""
	}
	return " [" + strings.Join(keys, ", ") + "]"
}

// streamText says how far the events are, and what is wrong with them.
func streamText(s *controller.Snapshot, events int) string {
	i := &s.Integrity
	parts := []string{countOf(events, "event")}
	for _, wrong := range []struct {
		n    int
		noun string
	}{
		{len(i.Gaps), "gap"},
		{len(i.Duplicates), "duplicate"},
		{len(i.OutOfOrder), "late event"},
		{len(i.Unreadable), "unreadable event"},
		{len(i.Foreign), "foreign event"},
	} {
		if wrong.n > 0 {
			parts = append(parts, countOf(wrong.n, wrong.noun))
		}
	}
	if i.Complete {
		parts = append(parts, "complete")
	}
	return strings.Join(parts, ", ")
}

// events shows the last events.
func (sh *shell) events(rest string) error {
	n := recentEvents
	if rest != "" {
		var err error
		if n, err = strconv.Atoi(rest); err != nil || n < 1 {
			return misuse("events: expected a number from 1, got %q", rest)
		}
	}
	s, _ := sh.view.state()
	list := s.Timeline[max(0, len(s.Timeline)-n):]
	if len(list) == 0 {
		sh.screen.print("  no events yet")
	}
	for _, e := range list {
		sh.screen.print(strings.TrimRight(fmt.Sprintf("  %4d  %s  %-*s  %s", e.Seq, e.At, typeWidth, e.EventType, e.Summary), " "))
	}
	return nil
}
