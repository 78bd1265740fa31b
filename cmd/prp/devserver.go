package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/devserver"
)

// maxAnswer bounds a line of an answer, in bytes.
const maxAnswer = 4 << 20

// devserverOptions are the flags of prp devserver.
type devserverOptions struct {
	dir, addr string
	misbehave list
	wait      time.Duration
	timeoutMS int
	approve   bool
	json      bool
	submit    submitOptions
	usual     bool // dir was not given
	agents    string
}

// devserverWords are the servers, each before what is said to it.
var devserverWords = []string{
	"worker", "send", "connector", "create", "watch", "approve", "deny", "cancel", "taskrun", "submit",
}

var devserverCommand = &command{
	name: "devserver", args: "SERVER | WORD...",
	short: "a small server to try the doors with",
	long: `
Serves on this machine's loopback, so that a door can be tried without a real
server, until Ctrl-C.

'prp devserver worker' is a server for prp worker. It writes a token and its
address into --dir, and prints how a worker connects.

'prp devserver send TOOL NAME=VALUE...' sends a command to the worker that is
connected there and prints the result. A value that is a JSON list, object,
number, true or false is taken as such, anything else as text. The tools, with
what each needs:

  worker.ping, worker.capabilities
  file.read path=          file.search query=       file.write path= content=
  file.apply_patch patch=  command.run argv=        process.status process_id=
  task.cancel task_id=devserver, which is the task of every command sent here

'prp devserver connector' is a server for prp connect. It writes a certificate,
a token and a configuration with agents that play scripts (or those of --agents)
below --dir, and prints how a connector connects. While one is connected:

  create AGENT GOAL...   starts a run and shows its events
  watch [RUN]            shows the events of a run, or of all
  approve [REQUEST]      grants the question that waits, or the one of this id;
                         where there is none yet, when it comes (--wait)
  deny [REQUEST]         denies it
  cancel RUN             ends a run and waits for its end

'prp devserver taskrun' is a server for prp taskrun. It starts one for each task
that is submitted, with the FLAGS behind --; without them the program cat works
on it, so that the text comes back. Meanwhile:

  submit TEXT            submits a task, shows its text, and ends with it;
                         Ctrl-C cancels it

--misbehave KIND:N:WHAT makes the server err at the Nth frame or call of a kind;
N 0 is every one. The worker's server:

  connect                   drop, late
  hello, result, progress   drop, drop-after, hang, mute, late
  command                   drop, drop-after, cut, mute, twice, late
  frame (any that comes)    cut, which is in the middle of the frame

The connector's: connect, get, put, post, poll: drop, hang, late, http-STATUS, all
but connect drop-after; create_run, cancel_run: drop, twice; any other type of a
frame: drop, drop-after, hang, mute, late, close-STATUS, error-CODE.

The task runs': fetch, claim, end, stream, secrets, plugin, base, restore, seed:
drop, drop-after, hang, late, or an HTTP status.

exit status: 0 the server was ended, or the command, run or task succeeded; 1 it
failed; 2 wrong command line; 130 the task was cancelled.

  prp devserver worker
  prp devserver send file.read path=README.md limit=100
  prp devserver send --approve command.run 'argv=["go","version"]'
  prp devserver connector
  prp devserver create happy Fix the greeting.
  prp devserver taskrun -- --agent claude
  prp devserver submit 'Say hello.'`,
	operand: operand{words: func() []string { return devserverWords }},
	flags: func(fs *flag.FlagSet) runFunc {
		o := &devserverOptions{}
		fs.StringVar(&o.dir, "dir", "", "keep token and address in this `directory`")
		fs.StringVar(&o.addr, "addr", defaultAddr, "listen on `host:port` of loopback; port 0 takes a free one")
		fs.Var(&o.misbehave, "misbehave", "err as this `rule` says; may be repeated")
		fs.DurationVar(&o.wait, "wait", 10*time.Second, "with all but the servers, wait so `long` for a server and its client")
		fs.IntVar(&o.timeoutMS, "timeout-ms", 0, "with send, the `number` of milliseconds that the command may take")
		fs.BoolVar(&o.approve, "approve", false, "with send, approve the command, where the policy of the worker asks for that")
		fs.BoolVar(&o.json, "json", false, "with send, create, watch, cancel and submit, print every line as it is")
		fs.StringVar(&o.agents, "agents", "", "with connector, take the agents of the configuration from the JSON list in `file`")
		fs.BoolVar(&o.submit.noDispatch, "no-dispatch", false, "with taskrun, print how a worker is started instead")
		fs.StringVar(&o.submit.instructions, "instructions", "", "with submit, the instructions of the agent are this `text`")
		fs.Var(&o.submit.secretEnv, "secret-env", "with submit, give the task the environment variable `name` as a secret; may be repeated")
		fs.StringVar(&o.submit.networkTier, "network-tier", "", "with submit, the `tier` of the network: none, registries, open")
		fs.StringVar(&o.submit.filesTier, "filesystem-tier", "", "with submit, the `tier` of the files: workspace, workspace_plus_shared_read,\nworkspace_plus_external_write")
		return o.run
	},
}

func (o *devserverOptions) run(s *streams, args []string) int {
	if o.dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return fail(s, "devserver", misuse("expected --dir, since there is no place for it: %s", err))
		}
		o.dir, o.usual = filepath.Join(base, "prp", "devserver"), true
	}
	switch {
	case len(args) == 1 && args[0] == "worker":
		return o.serve(s)
	case len(args) >= 2 && args[0] == "send":
		return o.send(s, args[1], args[2:])
	case len(args) > 0 && args[0] == "send":
		return fail(s, "devserver", misuse("expected a tool after send, got none"))
	case len(args) > 0 && args[0] == "taskrun":
		return o.below("taskrun").serveTaskRuns(s, args[1:])
	case len(args) == 2 && args[0] == "submit" && args[1] != "":
		return o.below("taskrun").submitTask(s, args[1])
	case len(args) > 0 && args[0] == "submit":
		return fail(s, "devserver", misuse("expected the text of a task after submit, got %q", args[1:]))
	case len(args) > 0 && slices.Contains(devserverWords, args[0]):
		return o.below("connector").connector(s, args[0], args[1:])
	}
	got := "nothing"
	if len(args) > 0 {
		got = strconv.Quote(args[0])
	}
	return fail(s, "devserver", misuse("expected one of %s, got %s", strings.Join(devserverWords, ", "), got))
}

// below gives a server a folder of its own: all of them can be there at once.
func (o *devserverOptions) below(name string) *devserverOptions {
	o.dir = filepath.Join(o.dir, name)
	return o
}

// serverLock is the lock in the folder of a server; a client may use the folder too.
const serverLock = "server.lock"

// alone takes the folder for this server: another would take its token and its
// address away, and leave nothing behind that leads to it.
func (o *devserverOptions) alone() (release func(), err error) {
	return alone(o.dir, serverLock, "server", "--dir")
}

// sayServing says on stderr what a server waits for; stdout has the command line
// of its client alone.
func sayServing(s *streams) { fmt.Fprintln(s.err, "prp devserver: serving; Ctrl-C ends it") }

func (o *devserverOptions) serve(s *streams) int {
	rules, err := o.rules(devserver.ParseRule)
	if err != nil {
		return fail(s, "devserver", err)
	}
	release, err := o.alone()
	if err != nil {
		return fail(s, "devserver", err)
	}
	defer release()
	host, err := devserver.Listen(o.dir, o.addr)
	if err != nil {
		return fail(s, "devserver", err)
	}
	ctx, stop := untilTold()
	defer stop()
	fmt.Fprintf(s.out, "prp worker --url ws://%s%s --token-file %s --root .\n", host.Address(), devserver.WorkerPath, shellQuoted(host.TokenFile()))
	sayServing(s)
	if err := host.Serve(ctx, devserver.WorkerConfig{Rules: rules}); err != nil {
		return fail(s, "devserver", err)
	}
	return exitOK
}

// rules reads --misbehave with the reader of one server.
func (o *devserverOptions) rules(parse func(text string) (devserver.Rule, error)) ([]devserver.Rule, error) {
	var rules []devserver.Rule
	for _, text := range o.misbehave {
		r, err := parse(text)
		if err != nil {
			return nil, misuse("--misbehave: %s", err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// send sends a command and prints what comes back.
func (o *devserverOptions) send(s *streams, tool string, words []string) int {
	if o.timeoutMS < 0 {
		return fail(s, "devserver", misuse("--timeout-ms: expected a number from 0 (the worker's default), got %d", o.timeoutMS))
	}
	command, err := o.commandOf(tool, words)
	if err != nil {
		return fail(s, "devserver", err)
	}
	ctx, stop := untilTold()
	defer stop()
	answer, err := devserver.Post(ctx, o.dir, command, o.wait, o.sayWaiting(s))
	if err != nil {
		return fail(s, "devserver", unwatched(ctx, err))
	}
	defer answer.Close()
	return o.show(ctx, s, answer)
}

// sayWaiting says on stderr what is waited for, and how long.
func (o *devserverOptions) sayWaiting(s *streams) func(why string) {
	return func(why string) { fmt.Fprintf(s.err, "waiting up to %s: %s\n", o.wait, controller.OneLine(why)) }
}

// errUnwatched is the end of a program that shows what it has asked a server for,
// and no end of that.
var errUnwatched = errors.New("it is not watched any more, and goes on")

// unwatched is a fault of an answer, or that it was not waited for.
func unwatched(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, devserver.ErrNotYet) {
		return errUnwatched
	}
	return err
}

// commandOf makes a command out of words.
func (o *devserverOptions) commandOf(tool string, words []string) ([]byte, error) {
	args := map[string]any{}
	for _, word := range words {
		name, text, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, misuse("expected NAME=VALUE, got %q", word)
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			value = text
		} else if _, isText := value.(string); isText || value == nil {
			value = text
		} else {
			value = json.RawMessage(text) // digit for digit
		}
		args[name] = value
	}
	command := map[string]any{"tool": tool, "task_id": "devserver", "args": args}
	if o.timeoutMS > 0 {
		command["timeout_ms"] = o.timeoutMS
	}
	if o.approve {
		command["policy_context"] = map[string]any{"approved": true, "approval_id": "devserver_" + rand.Text()}
	}
	return json.Marshal(command)
}

// show prints the frames of a command up to its result.
func (o *devserverOptions) show(ctx context.Context, s *streams, answer io.Reader) int {
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var frame struct {
			Status   string `json:"status"`
			Progress *struct {
				Message string `json:"message"`
			} `json:"progress"`
		}
		if err := bridge.Decode(lines.Bytes(), &frame); err != nil {
			return fail(s, "devserver", err)
		}
		switch {
		case o.json:
			fmt.Fprintf(s.out, "%s\n", lines.Bytes())
		case frame.Progress != nil:
			fmt.Fprintln(s.err, controller.OneLine(frame.Progress.Message))
		default:
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, lines.Bytes(), "", "  "); err != nil {
				return fail(s, "devserver", err)
			}
			fmt.Fprintf(s.out, "%s\n", escaped(pretty.String()))
		}
		if frame.Status == "success" {
			return exitOK
		}
		if frame.Status != "" {
			return exitFailed
		}
	}
	err := lines.Err()
	if err == nil {
		err = errors.New("the server has ended before the result")
	}
	return fail(s, "devserver", unwatched(ctx, err))
}

// escaped is a JSON text of the same value in which nothing moves a cursor or turns
// the writing direction: such characters are escaped.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= math.MaxUint16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}
