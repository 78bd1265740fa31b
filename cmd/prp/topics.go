package main

import (
	"fmt"
	"reflect"
	"strings"

	"prp/controller"
	"prp/harness/fake"
	"prp/scripts"
)

// topic is a page of help that belongs to no one command.
type topic struct {
	name, short string
	page        func() string
}

// topics lists the pages in the order of the help.
func topics() []topic {
	return []topic{
		{"protocol", "streams, commands, events, codes and reasons", protocolPage},
		{"scripts", "what a script of the fake harness is made of", scriptsPage},
		{"journal", "recorded runs: how they are made, checked and shown", func() string { return journalPage }},
		{"environment", "which variables are read, and which are passed on", environmentPage},
		{"exit-status", "what the exit status of each command says", exitStatusPage},
	}
}

// exitStatusPage collects what the help of each command says.
func exitStatusPage() string {
	var b strings.Builder
	b.WriteString("Exit statuses\n\n")
	for _, c := range commands() {
		text := "0 done, 1 something went wrong, 2 wrong command line."
		if _, after, ok := strings.Cut(c.long, "\nexit status: "); ok {
			text, _, _ = strings.Cut(after, "\n\n")
		}
		fmt.Fprintf(&b, "  %-12s %s\n", c.name, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 15)))
	}
	b.WriteString(`
The programs inside have their own:

  runner       0 the one run.terminal was delivered, whatever it says; 1 it could
               not be delivered, or something inside failed; 2 wrong flags.
  harness      what the script says; 1 where it could not go on; 2 for a wrong
               command line or script.

A signal that ends a harness is never shown as 128 plus its number: harness.exited
has either an exit code or a signal.
`)
	return b.String()
}

func environmentPage() string {
	return fmt.Sprintf(`The environment

Read by prp:

  NO_COLOR     not empty: no colours, also on a terminal
  TERM         dumb: no colours, and a shell without a line editor
  PATH         where a harness or a runner is looked up that is a bare name
  PRP_RUN_TOKEN
               the token of a task run, for prp taskrun; it is passed on to nobody
  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
               the keys of a bucket, for prp taskrun --checkpoints s3://...; the same

Passed on to the runner, and nothing else but what --env-allow names:

  %s

Passed on to the harness: PATH, and what --env-allow and --env-file of the
runner name. The values of an --env-file are masked in the log tail and in
diagnostics. The file must not be readable by others:

  prp run --runner-flags '--env-file secrets.env' --harness './my-agent'
`, wrap(strings.Join(controller.SmallEnvNames(), " "), "  "))
}

// pageWidth is how wide a page is, in characters.
const pageWidth = 78

// wrap breaks a list of words into lines.
func wrap(text, indent string) string {
	var b strings.Builder
	column := len(indent)
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > pageWidth:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

const journalPage = `Recorded runs

A record is the runner's stdout as it was: one JSON object a line, events,
receipts and diagnostics. 'prp schema stream' prints its schema.

  prp run happy-path --record run.jsonl          what the controller has received
  prp-runner ... --journal run.jsonl             what the runner has written, each
                                                 line before it goes to stdout
  prp run happy-path --json >run.jsonl           the same, by hand

  prp replay run.jsonl                           checks it and shows it as prp run
  prp replay --follow run.jsonl                  the same while it is being written
  prp replay --snapshot run.jsonl                the state that its events give
  prp validate <run.jsonl                        checks it and prints what is wrong

A journal is appended to and never shortened. It is one run: give each run a
file of its own. Only the last line can be torn, where the runner was killed.

What is wrong is shown as: line NUMBER: MEMBER: expected ..., got ... (RULE)

  line         the line is no message of the stream
  binding      the event is of another run, session or source
  sequence     the event is not the next one: it came again, or some are missing
  payload      the payload is not what the event's type asks for
  terminal     the stream does not end with run.terminal, or goes on behind it
`

func scriptsPage() string {
	var b strings.Builder
	b.WriteString(`Scripts of the fake harness

A script is a JSON object with the members schema ("paperclip.fake_harness.script.v1"),
name, steps, and optionally description and no_handshake. The fake harness says
ready, waits for the session and for a turn, then takes one step after the other.
'prp schema script' prints the whole schema.

Steps, by their kind, with their other members (those in brackets are optional):

`)
	types := fake.StepTypes()
	for _, kind := range fake.StepKinds() {
		members := wrap(strings.Join(stepMembers(types[kind]), " "), strings.Repeat(" ", len("  ")+17+1))
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-17s %s", kind, members), " ") + "\n")
	}
	fmt.Fprintf(&b, "\nBuilt in are:\n\n  %s\n\nMake your own from one of them:\n\n"+
		"  prp scripts happy-path >mine.json\n  prp run mine.json\n", wrap(strings.Join(scripts.Names(), " "), "  "))
	return b.String()
}

// stepMembers lists the members of a step beside its kind.
func stepMembers(step any) []string {
	var list []string
	t := reflect.TypeOf(step)
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		switch {
		case name == "kind", name == "", name == "-":
		case strings.Contains(options, "omit"):
			list = append(list, "["+name+"]")
		default:
			list = append(list, name)
		}
	}
	return list
}
