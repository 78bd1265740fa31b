package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"prp/controller"
	"prp/protocol"
)

// shellWord is a command of the shell.
type shellWord struct {
	name, args, short string
	do                func(sh *shell, rest string) error
	// complete lists what the next word can be after the words that are
	// there; nil is a command that takes text.
	complete func(sh *shell, words []string) []string
}

// shellWords is the table of the commands of the shell.
func shellWords() []shellWord {
	return []shellWord{
		{"prepare", "", "start the harness", plainWord(protocol.RunPrepare), nil},
		{"open", "", "open the session", plainWord(protocol.SessionOpen), nil},
		{"start", "TEXT", "start a turn", (*shell).startTurn, nil},
		{"steer", "TEXT", "say something to the turn that is active", (*shell).steer, nil},
		{"answer", "ID KEY|TEXT", "answer a question of the harness", (*shell).answer, (*shell).completeAnswer},
		{"interrupt", "[REASON]", "interrupt the turn", reasonWord(protocol.TurnInterrupt), nil},
		{"stop", "[REASON]", "stop the turn", reasonWord(protocol.TurnStop), nil},
		{"close", "", "close the session; the harness's stdin ends", plainWord(protocol.SessionClose), nil},
		{"cancel", "", "cancel the run", plainWord(protocol.RunCancel), nil},
		{"drain", "", "let no further turn start", plainWord(protocol.RunnerDrain), nil},
		{"shutdown", "", "shut the runner down", plainWord(protocol.RunnerShutdown), nil},
		{"raw", "JSON", "send a line; an object gets what it lacks of a command", (*shell).raw, nil},
		{"wait", "EVENT", "wait for the next event of this type", (*shell).wait, completeEvent},
		{"status", "", "show the state of the run", (*shell).status, nil},
		{"events", "[N]", "show the last N events (" + strconv.Itoa(recentEvents) + ")", (*shell).events, nil},
		{"help", "", "show this list", (*shell).help, nil},
		{"quit", "", "end the shell; a run that is not over is cancelled", (*shell).quit, nil},
	}
}

// recentEvents is how many events are shown where no number is given.
const recentEvents = 10

// shellTable is the list of the commands as a text.
func shellTable() string {
	var b strings.Builder
	for _, w := range shellWords() {
		fmt.Fprintf(&b, "  %-19s %s\n", strings.TrimSpace(w.name+" "+w.args), w.short)
	}
	return b.String()
}

func shellNames() []string {
	var names []string
	for _, w := range shellWords() {
		names = append(names, w.name)
	}
	return names
}

// line carries out one line.
func (sh *shell) line(text string) error {
	text = strings.TrimSpace(text)
	if text == "" || text[0] == '#' {
		return nil
	}
	name, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	words := shellWords()
	i := slices.IndexFunc(words, func(w shellWord) bool { return w.name == name })
	if i < 0 {
		return misuse("expected a command, got %q%s; help lists them", name, didYouMean(name, shellNames()))
	}
	w := words[i]
	if rest == "" && w.args != "" && w.args[0] != '[' {
		return misuse("%s: expected %s, got nothing", name, w.args)
	}
	if rest != "" && w.args == "" {
		return misuse("%s: expected nothing after it, got %q", name, rest)
	}
	return w.do(sh, rest)
}

// complete lists what the next word can be.
func (sh *shell) complete(words []string) []string {
	if len(words) == 0 {
		return shellNames()
	}
	for _, w := range shellWords() {
		if w.name == words[0] && w.complete != nil {
			return w.complete(sh, words[1:])
		}
	}
	return nil
}

// errOver is a command to a run that is over.
var errOver = errors.New("the run is over")

// send sends a command. From a pipe, it waits until its receipt was shown, so
// that the next line finds everything that came of this one.
func (sh *shell) send(kind protocol.CommandType, payload any) error {
	if sh.over() {
		return errOver
	}
	id := sh.newID(string(kind))
	_, err := sh.client.Submit(context.Background(), controller.Command{Type: kind, Payload: payload, ID: id})
	if err != nil {
		return overOr(err)
	}
	if !sh.typed {
		sh.view.await(context.Background(), func(*controller.Snapshot) bool { return sh.answered[id] })
	}
	return nil
}

// over tells that run.terminal was shown: the runner may live on for a moment.
func (sh *shell) over() bool {
	s, _ := sh.view.state()
	return s.Terminal != nil
}

// overOr says it plainly where a run is over.
func overOr(err error) error {
	if errors.Is(err, controller.ErrRunnerGone) || errors.Is(err, controller.ErrClosed) {
		return errOver
	}
	return err
}

func plainWord(kind protocol.CommandType) func(*shell, string) error {
	return func(sh *shell, _ string) error { return sh.send(kind, nil) }
}

func reasonWord(kind protocol.CommandType) func(*shell, string) error {
	return func(sh *shell, reason string) error {
		if reason == "" {
			return sh.send(kind, nil)
		}
		return sh.send(kind, map[string]string{"reason": reason})
	}
}

func (sh *shell) startTurn(text string) error {
	sh.keys.count.Store(0) // a new turn: Ctrl-C begins anew
	sh.turns++
	return sh.send(protocol.TurnStart, map[string]string{"turnId": fmt.Sprintf("turn_%d", sh.turns), "text": text})
}

func (sh *shell) steer(text string) error {
	return sh.send(protocol.TurnSteer, map[string]string{"text": text})
}

// answer answers a question. One that is not known is answered all the same:
// what the runner says to that is worth seeing.
func (sh *shell) answer(rest string) error {
	id, value, ok := strings.Cut(rest, " ")
	if !ok {
		return misuse("answer: expected ID KEY|TEXT, got only %q", id)
	}
	sh.view.mu.Lock()
	r := sh.requests[id]
	sh.view.mu.Unlock()
	response, err := responseTo(r, choicesOf(r), strings.TrimSpace(value))
	if err != nil {
		return misuse("answer %s: %s", id, err)
	}
	sh.replied[id] = true
	return sh.send(protocol.RequestResolve, map[string]any{"requestId": id, "response": response})
}

// completeAnswer lists the questions that are open, then the keys of one.
func (sh *shell) completeAnswer(words []string) []string {
	s, _ := sh.view.state()
	var list []string
	switch len(words) {
	case 0:
		for _, r := range s.Pending() {
			list = append(list, r.ID)
		}
	case 1:
		sh.view.mu.Lock()
		defer sh.view.mu.Unlock()
		for _, c := range choicesOf(sh.requests[words[0]]) {
			list = append(list, c.Key)
		}
	}
	return list
}

// raw sends a line that may be wrong, and waits for what the runner says.
func (sh *shell) raw(text string) error {
	if sh.over() {
		return errOver
	}
	id := sh.newID("raw")
	sh.view.mu.Lock()
	before := sh.answers
	sh.view.mu.Unlock()
	err := sh.client.SendLine(context.Background(), func(next int64) []byte { return complement(text, id, next) })
	if err != nil {
		return overOr(err)
	}
	sh.view.await(context.Background(), func(*controller.Snapshot) bool { return sh.answers > before })
	return nil
}

// complement adds the members of a command that an object has not; any other
// text stays as it is.
func complement(text, id string, next int64) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil || members == nil {
		return []byte(text)
	}
	var b []byte
	for _, m := range []struct{ name, value string }{
		{"schema", strconv.Quote(protocol.SchemaCommand)},
		{"commandId", strconv.Quote(id)},
		{"controllerSeq", strconv.FormatInt(next, 10)},
		{"issuedAt", strconv.Quote(time.Now().UTC().Format(protocol.TimeLayout))},
	} {
		if _, has := members[m.name]; !has {
			b = append(b, fmt.Sprintf("%q:%s,", m.name, m.value)...)
		}
	}
	rest := strings.TrimPrefix(text, "{")
	if len(members) == 0 {
		b = b[:max(len(b)-1, 0)] // no member follows the last comma
	}
	return append(append([]byte{'{'}, b...), rest...)
}

// wait waits for an event. It is not waited for what the run cannot bring any
// more, nor, by a person, after a Ctrl-C.
func (sh *shell) wait(name string) error {
	want := protocol.EventType(name)
	if want.Origin() == protocol.OriginUnknown {
		return misuse("wait: expected an event type, got %q%s", name, didYouMean(name, eventNames()))
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if sh.typed {
		sh.waitLock.Lock()
		sh.stopWait = stop
		sh.waitLock.Unlock()
		defer func() {
			sh.waitLock.Lock()
			sh.stopWait = nil
			sh.waitLock.Unlock()
		}()
	}
	met := sh.view.await(ctx, func(s *controller.Snapshot) bool {
		for ; sh.waited < len(s.Timeline); sh.waited++ {
			if s.Timeline[sh.waited].EventType == want {
				sh.waited++
				return true
			}
		}
		return false
	})
	switch {
	case met:
		return nil
	case ctx.Err() != nil:
		return errors.New("wait: given up")
	}
	return fmt.Errorf("wait: the run is over and %s did not come", name)
}

func eventNames() []string {
	var names []string
	for _, t := range protocol.EventTypes() {
		names = append(names, string(t))
	}
	return names
}

func completeEvent(_ *shell, words []string) []string {
	if len(words) > 0 {
		return nil
	}
	return eventNames()
}

func (sh *shell) help(string) error {
	sh.screen.print(shellTable())
	return nil
}

func (sh *shell) quit(string) error { return errQuit }
