package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"prp/controller"
	"prp/protocol"
)

// player plays one run and shows it.
type player struct {
	options *runOptions
	streams *streams
	screen  *screen
	view    *renderer
	start   time.Time
	client  *controller.Client

	readLines sync.Once
	lines     chan string // what a person types, closed at its end
	noAnswer  error       // what was said about a question without an answer
}

func newPlayer(s *streams, o *runOptions) *player {
	out := s.out
	if o.json {
		out = s.err // stdout is for the stream alone
	}
	p := &player{options: o, streams: s, screen: newScreen(out), lines: make(chan string), start: time.Now()}
	p.view = &renderer{screen: p.screen, quiet: o.json}
	return p
}

func (p *player) age() time.Duration { return time.Since(p.start) }

func (p *player) progress() string { return p.view.progress(p.age()) }

// play runs to the end and returns the exit status.
func (p *player) play(cfg controller.Config) int {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	outs := []io.Writer{}
	if p.options.json {
		outs = append(outs, p.streams.out)
	}
	if p.options.record != "" {
		f, err := os.Create(p.options.record)
		if err != nil {
			return fail(p.streams, "run", err)
		}
		defer f.Close()
		outs = append(outs, f)
	}
	cfg.Tap = tap(outs, stop)
	client, err := controller.Start(ctx, cfg)
	if err != nil {
		return fail(p.streams, "run", err)
	}
	defer client.Close()
	p.client = client

	keys := newInterrupts(client, p.screen.print)
	unhook := keys.hook()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		p.view.follow(client, p.age)
	}()
	if !p.options.json {
		p.screen.resume(p.progress)
	}
	stopSpin := p.screen.spin()
	trace, err := client.Drive(ctx, controller.Scenario{TurnID: "turn_1", Text: p.options.text, Answer: p.answer})
	<-shown
	stopSpin()
	unhook()
	p.view.end(p.age())
	return ending{
		name: "run", trace: trace, err: err, cause: context.Cause(ctx), killed: keys.killed.Load(), said: p.noAnswer,
	}.status(p.streams)
}

// answer answers a request of the harness. Where that cannot be done it says
// so at once: the run is cancelled, and its end can take a moment.
func (p *player) answer(ctx context.Context, r protocol.Request) (json.RawMessage, error) {
	response, err := p.findAnswer(ctx, r)
	if err != nil && ctx.Err() == nil {
		p.noAnswer = err
		p.screen.aside(p.streams.err, fmt.Sprintf("prp run: %s; cancelling the run", err))
	}
	return response, err
}

// findAnswer answers as --answer says, else by asking.
func (p *player) findAnswer(ctx context.Context, r protocol.Request) (json.RawMessage, error) {
	choices := choicesOf(r)
	if value, ok := p.options.given[r.RequestID]; ok {
		response, err := responseTo(r, choices, value)
		if err != nil {
			err = fmt.Errorf("--answer %s: %w", r.RequestID, err)
		}
		return response, err
	}
	if !isTerminal(p.streams.in) {
		return nil, fmt.Errorf("the harness asks %q and nobody can answer, since stdin is no terminal: give --answer %s=VALUE",
			r.Prompt, r.RequestID)
	}
	p.view.awaitQuestion(ctx, r.RequestID) // so that it stands below its event
	for blank := false; ; {
		p.screen.ask(p.question(r, choices), "> ")
		line, err := p.readLine(ctx)
		if err != nil {
			p.screen.print("")
			p.screen.resume(p.progress)
			return nil, err
		}
		line = strings.TrimSpace(line)
		response, err := responseTo(r, choices, numbered(choices, line))
		p.screen.resume(p.progress)
		if err == nil && line == "" && !blank {
			// Mostly a slip, and it could not be taken back.
			blank = true
			p.screen.print("nothing was typed; Enter again answers with an empty text")
			continue
		}
		if err == nil {
			return response, nil
		}
		if len(choices) > 0 {
			err = fmt.Errorf("%w; a key or its number answers", err)
		}
		p.screen.print(err.Error())
	}
}

// choicesOf are the answers that a request offers; a permission without any
// can be allowed or denied.
func choicesOf(r protocol.Request) []controller.Choice {
	choices := controller.Choices(r)
	if r.Type == protocol.RequestPermission && len(choices) == 0 {
		choices = []controller.Choice{{Key: "allow", Label: "Allow"}, {Key: "deny", Label: "Deny"}}
	}
	return choices
}

// question is what a person is asked.
func (p *player) question(r protocol.Request, choices []controller.Choice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", p.screen.paint(bold, controller.Readable(r.Prompt)))
	for i, c := range choices {
		fmt.Fprintf(&b, "  %d  %s (%s)\n", i+1, controller.OneLine(c.Label), controller.OneLine(c.Key))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// numbered is the key of the choice whose number a person has typed, else what
// was typed. The numbers are what stands first on the screen: a key of the
// harness that looks like one does not come before them.
func numbered(choices []controller.Choice, typed string) string {
	for i, c := range choices {
		if typed == strconv.Itoa(i+1) {
			return c.Key
		}
	}
	return typed
}

// responseTo is the response that a value means: for a permission the key of a
// choice, else its number, else its label; for an input the text itself. What a
// key says comes before what any label says, since the harness makes both.
func responseTo(r protocol.Request, choices []controller.Choice, value string) (json.RawMessage, error) {
	if r.Type != protocol.RequestPermission {
		return controller.InputResponse(value), nil
	}
	var keys []string
	for _, c := range choices {
		keys = append(keys, strconv.Quote(c.Key))
	}
	for _, means := range []func(i int, c controller.Choice) bool{
		func(_ int, c controller.Choice) bool { return value == c.Key },
		func(i int, _ controller.Choice) bool { return value == strconv.Itoa(i+1) },
		func(_ int, c controller.Choice) bool { return strings.EqualFold(value, c.Label) },
	} {
		for i, c := range choices {
			if means(i, c) {
				return controller.PermissionResponse(c.Key), nil
			}
		}
	}
	return nil, fmt.Errorf("expected one of %s, got %q", strings.Join(keys, ", "), value)
}

// errNoAnswer is the end of what a person types.
var errNoAnswer = errors.New("stdin ended without an answer")

// readLine waits for a line that a person types. The goroutine that reads stdin
// stays in its read until the process ends.
func (p *player) readLine(ctx context.Context) (string, error) {
	p.readLines.Do(func() {
		go func() {
			defer close(p.lines)
			in := bufio.NewReader(p.streams.in)
			for {
				line, err := in.ReadString('\n')
				if line != "" {
					p.lines <- line
				}
				if err != nil {
					return
				}
			}
		}()
	})
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", errNoAnswer
		}
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
