package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
	signals   int         // how many a person has sent
	record    *os.File
	killed    bool
	noAnswer  error // what was said about a question without an answer
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
	if p.options.record != "" {
		f, err := os.Create(p.options.record)
		if err != nil {
			return fail(p.streams, "run", err)
		}
		defer f.Close()
		p.record = f
	}
	cfg.Tap = p.tap(stop)
	client, err := controller.Start(ctx, cfg)
	if err != nil {
		return fail(p.streams, "run", err)
	}
	defer client.Close()
	p.client = client

	unhook := p.hookSignals()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for m, err := range client.Messages(context.Background()) {
			switch {
			case err == nil:
				p.view.message(p.age(), &m)
			case errors.Is(err, controller.ErrLagged):
				p.screen.print("the terminal is too slow: what comes next is not shown")
			} // any other error is what Drive returns as well
		}
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
	return p.status(ctx, trace, err)
}

// tap writes the lines of the stream to where they are wanted. Where that
// fails, the run is closed.
func (p *player) tap(stop context.CancelCauseFunc) func([]byte) {
	var outs []*os.File
	if p.options.json {
		outs = append(outs, p.streams.out)
	}
	if p.record != nil {
		outs = append(outs, p.record)
	}
	if len(outs) == 0 {
		return nil
	}
	return func(line []byte) {
		whole := append(append(make([]byte, 0, len(line)+1), line...), '\n')
		for _, f := range outs {
			if _, err := f.Write(whole); err != nil {
				stop(err)
			}
		}
	}
}

// status says what went wrong beside the run, and gives the exit status.
func (p *player) status(ctx context.Context, trace *controller.Trace, err error) int {
	cause := context.Cause(ctx)
	if err == nil {
		err = cause
	}
	if err != nil && !p.killed && (p.noAnswer == nil || !errors.Is(err, p.noAnswer)) {
		fail(p.streams, "run", err)
		if trace.Stderr != "" {
			fmt.Fprintf(p.streams.err, "the runner's stderr ends with:\n%s\n", strings.TrimSuffix(trace.Stderr, "\n"))
		}
	}
	switch {
	case cause != nil:
		return exitFailed
	case p.killed:
		return exitCancelled
	case trace.Terminal == nil:
		return exitFailed
	}
	switch trace.Terminal.RunTerminalState {
	case protocol.RunSucceeded:
		return exitOK
	case protocol.RunCancelled:
		return exitCancelled
	}
	return exitFailed
}

// hookSignals gives Ctrl-C its three meanings until stop is called. The runner
// is in a process group of its own and does not see it.
func (p *player) hookSignals() (stop func()) {
	ch := make(chan os.Signal, 8) // more than a person can mean
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-over:
				return
			case sig := <-ch:
				p.signals++
				if sig != os.Interrupt && p.signals == 1 {
					p.signals = 2 // the end was asked for, not a pause
				}
				p.interrupt(&wg, p.signals)
			}
		}
	})
	return func() {
		signal.Stop(ch)
		close(over)
		wg.Wait()
	}
}

// interrupt does what the n-th Ctrl-C means. It does not wait for the runner,
// but the commands go out in the order of the keys.
func (p *player) interrupt(wg *sync.WaitGroup, n int) {
	switch n {
	case 1:
		p.screen.print("interrupting the turn; Ctrl-C again cancels the run")
		p.order(wg, protocol.TurnInterrupt, func() {
			p.order(wg, protocol.RunCancel, p.close) // there is no turn to interrupt
		})
	case 2:
		p.screen.print("cancelling the run; Ctrl-C again kills it")
		p.order(wg, protocol.RunCancel, p.close)
	default:
		p.screen.print("killing the run")
		p.killed = true
		wg.Go(p.client.Kill)
	}
}

// order sends a command; where it is not taken, instead is called.
func (p *player) order(wg *sync.WaitGroup, kind protocol.CommandType, instead func()) {
	ctx := context.Background() // a command ends with the run at the latest
	wait, err := p.client.Submit(ctx, controller.Command{Type: kind, Payload: map[string]string{"reason": "asked for at the terminal"}})
	if err != nil {
		instead()
		return
	}
	wg.Go(func() {
		if _, err := wait(ctx); err != nil {
			instead()
		}
	})
}

// close ends the run by the end of the runner's stdin; it does not block.
func (p *player) close() { go p.client.Close() }

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
	choices := controller.Choices(r)
	if r.Type == protocol.RequestPermission && len(choices) == 0 {
		choices = []controller.Choice{{Key: "allow", Label: "Allow"}, {Key: "deny", Label: "Deny"}}
	}
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
	p.view.awaitQuestion(ctx, r.RequestID)
	for {
		p.screen.ask(p.question(r, choices), "> ")
		line, err := p.readLine(ctx)
		if err != nil {
			p.screen.print("")
			p.screen.resume(p.progress)
			return nil, err
		}
		response, err := responseTo(r, choices, strings.TrimSpace(line))
		p.screen.resume(p.progress)
		if err == nil {
			return response, nil
		}
		p.screen.print(err.Error())
	}
}

// question is what a person is asked.
func (p *player) question(r protocol.Request, choices []controller.Choice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", p.screen.paint(bold, controller.OneLine(r.Prompt)))
	for i, c := range choices {
		fmt.Fprintf(&b, "  %d  %s (%s)\n", i+1, controller.OneLine(c.Label), controller.OneLine(c.Key))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// responseTo is the response that a typed value means: for a permission the
// key, the number or the label of a choice, for an input the text itself.
func responseTo(r protocol.Request, choices []controller.Choice, value string) (json.RawMessage, error) {
	if r.Type != protocol.RequestPermission {
		return controller.InputResponse(value), nil
	}
	var keys []string
	for i, c := range choices {
		if value == c.Key || value == strconv.Itoa(i+1) || strings.EqualFold(value, c.Label) {
			return controller.PermissionResponse(c.Key), nil
		}
		keys = append(keys, strconv.Quote(c.Key))
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
