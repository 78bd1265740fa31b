package fake

import "encoding/json"

// Limits of a script.
const (
	// MaxScriptBytes is the largest script file: far more than a person
	// writes, and little to hold in memory.
	MaxScriptBytes = 4 << 20
	// MaxRepeatDepth is how deep steps may hold steps (repeat, on_sigterm).
	MaxRepeatDepth = 8
	// MaxRepeatTimes bounds the times of one repeat step; more events than
	// any budget of a runner.
	MaxRepeatTimes = 1_000_000_000
	// MaxMilliseconds is the longest delay, one day.
	MaxMilliseconds = 86_400_000
	// MaxFloodBytes is the largest flood, 1 TiB.
	MaxFloodBytes = 1 << 40
	// MaxExitCode is the largest exit status that Unix keeps whole.
	MaxExitCode = 255
	// MaxSignal is the largest signal number of Linux.
	MaxSignal = 64
)

// Script is a parsed script (spec section 8). Unknown members are errors.
type Script struct {
	Schema      string `json:"schema" jsonschema:"enum=paperclip.fake_harness.script.v1"`
	Name        string `json:"name" jsonschema:"minLength=1,maxLength=160"`
	Description string `json:"description,omitempty"` // one line for a person
	// NoHandshake starts with the steps at once: neither ready nor the
	// events of the start are sent, and no command is awaited.
	NoHandshake bool   `json:"no_handshake,omitempty"`
	Steps       []Step `json:"steps"`
}

// Step is one step of a script: a pointer to one of the structs of [StepTypes].
type Step interface {
	// run does the step. It returns an exit value or an error where the
	// script is not to go on.
	run(d *driver) error
}

// Delay waits.
type Delay struct {
	Kind         string `json:"kind" jsonschema:"enum=delay"`
	Milliseconds int64  `json:"milliseconds" jsonschema:"minimum=0,maximum=86400000"`
}

// Log sends a log message, which stands in the runner's log tail.
type Log struct {
	Kind   string `json:"kind" jsonschema:"enum=log"`
	Stream string `json:"stream" jsonschema:"enum=stdout,enum=stderr"`
	Text   string `json:"text"`
}

// Event sends an event message.
type Event struct {
	Kind      string `json:"kind" jsonschema:"enum=event"`
	EventType string `json:"event_type" jsonschema:"minLength=1,maxLength=160"`
	// TurnID is used as it is. Where it is absent, the event carries the id
	// of the turn that was started last; an event about the session or the
	// runtime carries none.
	TurnID  string          `json:"turn_id,omitempty" jsonschema:"minLength=1,maxLength=160"`
	ItemID  string          `json:"item_id,omitempty" jsonschema:"minLength=1,maxLength=160"`
	Payload json.RawMessage `json:"payload" jsonschema:"type=object"`
}

// Request sends a request message: a question for the controller.
type Request struct {
	Kind string `json:"kind" jsonschema:"enum=request"`
	// Request is sent as it is; a script may ask an invalid question.
	Request json.RawMessage `json:"request" jsonschema:"type=object"`
}

// AwaitResolution waits for the answer to a request and sends
// runtime_request.resolved with it.
type AwaitResolution struct {
	Kind      string `json:"kind" jsonschema:"enum=await_resolution"`
	RequestID string `json:"request_id" jsonschema:"minLength=1,maxLength=160"`
}

// AwaitInterrupt waits for turn.interrupt or turn.stop and sends
// turn.interrupted with its reason.
type AwaitInterrupt struct {
	Kind string `json:"kind" jsonschema:"enum=await_interrupt"`
	// HangAtEnd makes the end of stdin no end of the fake: it hangs, so that
	// only a signal ends it.
	HangAtEnd bool `json:"hang_at_end,omitempty"`
}

// AwaitCommand waits for a command of a type and says nothing. A turn.start
// makes its turn the current one.
type AwaitCommand struct {
	Kind        string `json:"kind" jsonschema:"enum=await_command"`
	CommandType string `json:"command_type" jsonschema:"enum=session.open,enum=turn.start,enum=turn.steer,enum=turn.interrupt,enum=turn.stop,enum=request.resolve,enum=session.close,enum=run.cancel"`
}

// Ready sends a ready message: the first one of a script without handshake, or
// a second one, which is a fault.
type Ready struct {
	Kind string `json:"kind" jsonschema:"enum=ready"`
}

// Result sends a semantic result.
type Result struct {
	Kind string `json:"kind" jsonschema:"enum=result"`
	// Payload is the result itself, sent as it is; it may be invalid.
	Payload json.RawMessage `json:"payload" jsonschema:"type=object"`
}

// Terminal sends a proposal for the terminal.
type Terminal struct {
	Kind string `json:"kind" jsonschema:"enum=terminal"`
	// Payload is the terminal itself, sent as it is; it may be invalid.
	Payload json.RawMessage `json:"payload" jsonschema:"type=object"`
}

// Exit ends the fake with an exit status.
type Exit struct {
	Kind string `json:"kind" jsonschema:"enum=exit"`
	Code int64  `json:"code" jsonschema:"minimum=0,maximum=255"`
}

// Raw writes bytes to stdout as they are, in one write. Exactly one of Text
// and Base64 is given.
type Raw struct {
	Kind   string  `json:"kind" jsonschema:"enum=raw"`
	Text   *string `json:"text,omitempty" jsonschema:"oneof_required=text"`
	Base64 []byte  `json:"base64,omitzero" jsonschema:"oneof_required=base64"`
	// Messages is how many messages the bytes hold: the numbers that the
	// next messages skip. With too many it makes a gap.
	Messages int64 `json:"messages,omitempty" jsonschema:"minimum=0,maximum=1000000000"`
}

// Stderr writes a text to stderr as it is, so with no newline added. Each {n}
// in it becomes the number of the repetition, from 1.
type Stderr struct {
	Kind string `json:"kind" jsonschema:"enum=stderr"`
	Text string `json:"text"`
	// Times is how often; absent is once.
	Times int64 `json:"times,omitempty" jsonschema:"minimum=1,maximum=1000000000"`
}

// Flood writes a number of bytes to a stream, fast.
type Flood struct {
	Kind   string `json:"kind" jsonschema:"enum=flood"`
	Stream string `json:"stream" jsonschema:"enum=stdout,enum=stderr"`
	Bytes  int64  `json:"bytes" jsonschema:"minimum=0,maximum=1099511627776"`
	// Newline makes lines of [FloodLine] bytes, the last one shorter, each
	// with its newline. Without it there is not one newline.
	Newline bool `json:"newline,omitempty"`
}

// FloodLine is the length of the lines of a flood, in bytes with the newline.
const FloodLine = 100

// Repeat runs steps several times.
type Repeat struct {
	Kind  string `json:"kind" jsonschema:"enum=repeat"`
	Times int64  `json:"times" jsonschema:"minimum=0,maximum=1000000000"`
	Steps []Step `json:"steps"`
}

// CloseStdin closes stdin; later commands do not reach the fake.
type CloseStdin struct {
	Kind string `json:"kind" jsonschema:"enum=close_stdin"`
}

// CloseStdout closes stdout and goes on; a later message is an error.
type CloseStdout struct {
	Kind string `json:"kind" jsonschema:"enum=close_stdout"`
}

// IgnoreSigterm makes the fake ignore SIGTERM from here on. Its workers do not
// inherit that.
type IgnoreSigterm struct {
	Kind string `json:"kind" jsonschema:"enum=ignore_sigterm"`
}

// OnSigterm keeps steps for the first SIGTERM: they run between two steps or
// while one waits, and then the script goes on.
type OnSigterm struct {
	Kind  string `json:"kind" jsonschema:"enum=on_sigterm"`
	Steps []Step `json:"steps"`
}

// StopSelf stops the own process with SIGSTOP; it goes on after SIGCONT.
type StopSelf struct {
	Kind string `json:"kind" jsonschema:"enum=stop_self"`
}

// Hang waits for ever and takes no command; only a signal ends it.
type Hang struct {
	Kind string `json:"kind" jsonschema:"enum=hang"`
}

// Crash ends the own process by a signal, with the signal's default action and
// without a core file.
type Crash struct {
	Kind   string `json:"kind" jsonschema:"enum=crash"`
	Signal int64  `json:"signal" jsonschema:"minimum=1,maximum=64"`
}

// Escapes of a worker from the process group of the fake.
const (
	EscapeNone       = "none"        // a child in the fake's group
	EscapeSetpgid    = "setpgid"     // a child in a group of its own
	EscapeSetsid     = "setsid"      // a child in a session of its own
	EscapeDoubleFork = "double_fork" // an orphan in a session that has lost its leader
)

// SpawnWorker starts a worker: a process of the same executable that does
// nothing but stay. Once it is set up its pid goes out as the diagnostic
// {"workerPid":N}. Without further members it is a quiet child in the group
// that obeys SIGTERM and holds no stream.
type SpawnWorker struct {
	Kind          string `json:"kind" jsonschema:"enum=spawn_worker"`
	Escape        string `json:"escape,omitempty" jsonschema:"enum=none,enum=setpgid,enum=setsid,enum=double_fork"`
	IgnoreSigterm bool   `json:"ignore_sigterm,omitempty"`
	HoldStdout    bool   `json:"hold_stdout,omitempty"` // keeps the fake's stdout open
	HoldStderr    bool   `json:"hold_stderr,omitempty"` // keeps the fake's stderr open
	ClearEnv      bool   `json:"clear_env,omitempty"`   // has no environment
	Stopped       bool   `json:"stopped,omitempty"`     // stops itself with SIGSTOP
	// TermForks makes it answer the first SIGTERM with five more workers, two
	// of them in sessions of their own, and stay.
	TermForks bool `json:"term_forks,omitempty"`
	// ForkChain makes it start the next worker in a new session and exit,
	// and so does that one, for ever. The pid is the first one's.
	ForkChain bool `json:"fork_chain,omitempty"`
	// WritesEveryMS makes it write an event message to stdout at this
	// interval, from the moment at which the fake has exited, so that it
	// never takes a message number from the fake. Needs HoldStdout, and an
	// escape other than double_fork, whose parent is gone from the start.
	WritesEveryMS int64 `json:"writes_every_ms,omitempty" jsonschema:"minimum=1,maximum=86400000"`
	// WritesFromSeq is the messageSeq of its first event. Absent, it is the
	// number after the diagnostic with the pid, which is right where the
	// fake says nothing more.
	WritesFromSeq int64 `json:"writes_from_seq,omitempty" jsonschema:"minimum=1,maximum=1000000000"`
	// LifetimeMS is after how long the worker ends by itself, with all that
	// descends from it; absent is ten minutes.
	LifetimeMS int64 `json:"lifetime_ms,omitempty" jsonschema:"minimum=1,maximum=86400000"`
}

// defaultLifetimeMS is longer than any test and short enough that a lost
// worker is gone before it disturbs anybody: ten minutes.
const defaultLifetimeMS = 600_000
