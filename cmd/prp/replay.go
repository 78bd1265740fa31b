package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"prp/controller"
	"prp/protocol"
	"prp/protocol/jsonl"
)

// maxLine bounds a recorded line, in bytes, as a live controller does.
const maxLine = 4 << 20

var replayCommand = &command{
	name: "replay", args: "FILE", operand: operand{files: anyFile},
	short: "check a recorded run and show it",
	long: `
Reads a recorded run, a trace of 'prp run --record' or a journal of
'prp-runner --journal', and shows it as 'prp run' does. Each line is checked;
what is wrong is shown with its line, member and rule, the first 20 of it. Of a
file without any line of a run, one line says so. "-" is stdin.

exit status: 0 the record is valid, 1 it is not, 2 wrong command line.`,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &replayOptions{}
		fs.BoolVar(&o.snapshot, "snapshot", false, "print the state that the events give, as JSON, instead of the events")
		fs.BoolVar(&o.follow, "follow", false, "wait for more at the end of the file, until the run's end or Ctrl-C")
		o.page.flags(fs)
		return o.replay
	},
}

var validateCommand = &command{
	name: "validate", args: "[FILE]", operand: operand{files: anyFile},
	short: "check a stream of a runner, from stdin or a file",
	long: `
Checks each line of a runner's stream: its form, that it belongs to the same
run, its place in the sequence, and that the stream ends with one run.terminal.
Prints a line for each mistake and a verdict.

  prp run happy-path --json | prp validate

exit status: 0 the stream is valid, 1 it is not, 2 wrong command line.`,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &replayOptions{}
		fs.BoolVar(&o.pass, "pass", false, "pass every line on to stdout, and report to stderr")
		return o.validate
	},
}

// maxShown bounds the problems that prp replay shows: a record can be wrong in
// every line. 'prp validate' shows all.
const maxShown = 20

type replayOptions struct {
	page                   pageOptions
	snapshot, follow, pass bool
	problems               int
	most                   int // problems that are shown; 0 is all
}

// each hands the lines of in to the replayer one by one, and what comes of
// them to see, until the end of the stream.
func each(in io.Reader, see func(line []byte, m *protocol.StreamMessage, found []controller.Problem), over func(*controller.Replayer) bool) (*controller.Replayer, error) {
	r := controller.NewReplayer()
	lines := jsonl.NewReader(in, maxLine)
	for {
		line, flags, err := lines.Next()
		if errors.Is(err, io.EOF) {
			see(nil, nil, r.End())
			return r, nil
		}
		if err != nil {
			return r, err
		}
		m, found := r.Message(lines.LineNumber(), line, flags)
		see(line, &m, found)
		if over(r) {
			return r, nil
		}
	}
}

func (o *replayOptions) replay(s *streams, args []string) int {
	if len(args) != 1 {
		return fail(s, "replay", misuse("expected one file, got %d", len(args)))
	}
	o.most = maxShown
	if o.page.open {
		return o.page.show(s, args[0])
	}
	in, err := open(s, args[0])
	if err != nil {
		return fail(s, "replay", err)
	}
	defer in.Close()
	var from io.Reader = in
	over := func(*controller.Replayer) bool { return false }
	if o.follow {
		f, stop := follow(in)
		defer stop()
		from = f
		over = func(r *controller.Replayer) bool { return r.Snapshot.Terminal != nil }
	}
	return o.play(s, args[0], from, over)
}

// play shows a record and what is wrong with it.
func (o *replayOptions) play(s *streams, name string, from io.Reader, over func(*controller.Replayer) bool) int {
	screen := newScreen(s.out)
	view := &renderer{screen: screen, quiet: o.snapshot}
	clock := recordedClock{}
	// What is wrong waits for the first message: of a file without any, one line
	// says all. A file that grows has no such end.
	var waits bytes.Buffer
	problems := io.Writer(&waits)
	if o.follow {
		problems = s.err
	}
	r, err := each(from, func(_ []byte, m *protocol.StreamMessage, found []controller.Problem) {
		if m != nil && m.Kind != "" {
			waits.WriteTo(s.err)
			problems = s.err
			view.message(clock.age(m), m)
		}
		o.report(problems, found)
	}, over)
	if err == nil {
		if err = r.NoRecord(); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	if err != nil {
		return fail(s, "replay", err)
	}
	waits.WriteTo(s.err)
	if more := o.problems - o.most; more > 0 {
		fmt.Fprintf(s.err, "%s more; 'prp validate' shows all\n", countOf(more, "problem"))
	}
	if o.snapshot {
		out, err := json.MarshalIndent(&r.Snapshot, "", "  ")
		if err != nil {
			return fail(s, "replay", err)
		}
		fmt.Fprintf(s.out, "%s\n", out)
		return o.status()
	}
	view.end(clock.last)
	screen.print("verdict: " + r.Verdict(o.problems))
	return o.status()
}

func (o *replayOptions) validate(s *streams, args []string) int {
	name := "-"
	switch len(args) {
	case 0:
	case 1:
		name = args[0]
	default:
		return fail(s, "validate", misuse("expected at most one file, got %d", len(args)))
	}
	in, err := open(s, name)
	if err != nil {
		return fail(s, "validate", err)
	}
	defer in.Close()
	reports := s.out
	if o.pass {
		reports = s.err
	}
	var writeErr error
	r, err := each(in, func(line []byte, m *protocol.StreamMessage, found []controller.Problem) {
		if o.pass && m != nil && writeErr == nil {
			_, writeErr = s.out.Write(append(append(make([]byte, 0, len(line)+1), line...), '\n'))
		}
		o.report(reports, found)
	}, func(*controller.Replayer) bool { return writeErr != nil })
	if err == nil {
		err = writeErr
	}
	if err != nil {
		return fail(s, "validate", err)
	}
	fmt.Fprintln(reports, r.Verdict(o.problems))
	return o.status()
}

// report prints what is wrong.
func (o *replayOptions) report(w io.Writer, found []controller.Problem) {
	for _, p := range found {
		if o.problems++; o.most == 0 || o.problems <= o.most {
			fmt.Fprintln(w, p)
		}
	}
}

func (o *replayOptions) status() int {
	if o.problems > 0 {
		return exitFailed
	}
	return exitOK
}

func open(s *streams, name string) (*os.File, error) {
	if name == "-" {
		return s.in, nil
	}
	return os.Open(name)
}

// recordedClock tells the age of a run from the times of its events.
type recordedClock struct {
	first time.Time
	last  time.Duration
}

func (c *recordedClock) age(m *protocol.StreamMessage) time.Duration {
	if m.Kind != protocol.KindEvent {
		return c.last
	}
	at, err := time.Parse(protocol.TimeLayout, m.Event.EmittedAt)
	if err != nil {
		return c.last
	}
	if c.first.IsZero() {
		c.first = at
	}
	c.last = at.Sub(c.first)
	return c.last
}

// followPause is the time between two looks at the end of a growing file.
const followPause = 100 * time.Millisecond

// growing reads a file that somebody else is writing: at its end it waits.
type growing struct {
	file *os.File
	over chan os.Signal
}

// follow makes a reader that ends at Ctrl-C. Only a file grows behind its end:
// that of a pipe is the end.
func follow(f *os.File) (in io.Reader, stop func()) {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return f, func() {}
	}
	g := growing{file: f, over: make(chan os.Signal, 1)}
	signal.Notify(g.over, endSignals...)
	return g, func() { signal.Stop(g.over) }
}

// Read implements io.Reader.
func (g growing) Read(p []byte) (int, error) {
	for {
		n, err := g.file.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		select {
		case <-g.over:
			return 0, io.EOF
		case <-time.After(followPause):
		}
	}
}
