package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"prp/controller"
	"prp/controller/console"
	"prp/harness/acp"
	"prp/harness/fake"
	"prp/scripts"
)

// maxConsoleEvents bounds the events of a run that the console starts: beyond
// it no person watches, and the page holds every one of them.
const maxConsoleEvents = 400_000

// defaultAddr takes a free port, so that two consoles never meet.
const defaultAddr = "127.0.0.1:0"

// consoleOptions are the flags of prp console.
type consoleOptions struct {
	addr, text, cwd string
	harnesses       list
	scripts         list
	agents          list
	permissions     string
	envAllow        list
	delayMS         int
	noOpen          bool
	streams         *streams
}

var consoleCommand = &command{
	name: "console", args: "",
	short: "start, watch and steer runs in a browser",
	long: `
Serves a page on this machine's loopback and prints its address. There you start
runs of the built-in scripts, of script files of your own (--script), of
harnesses that you name here (--harness) or of the agents that are installed
('prp doctor' lists them), watch them live, answer their questions, interrupt
them, and look at those that are over.

The address holds a token: whoever has it can act. Requests from anywhere but
this machine are refused, also where --addr is a broad address.

Ctrl-C ends every run and then the console; a second one kills the runs.

exit status: 0 it was ended, 1 it could not serve, 2 wrong command line.

  prp console
  prp console --agent claude --permissions allow-reads --cwd ~/project
  prp console --harness 'my-agent --stdio'`,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &consoleOptions{}
		fs.StringVar(&o.addr, "addr", defaultAddr, "listen on `HOST:PORT` ("+defaultAddr+"); port 0 takes a free one")
		fs.Var(&o.harnesses, "harness", "offer this `COMMAND` as a harness (shell words, no shell); may be repeated")
		fs.Var(&o.scripts, "script", "offer the script in `FILE`; may be repeated")
		fs.Var(&o.agents, "agent", "offer the agent of this `NAME`, and no other: "+strings.Join(agentNames(), ", ")+"; may be repeated")
		fs.StringVar(&o.permissions, "permissions", "", permissionsUsage)
		fs.Var(&o.envAllow, "env-allow", "let harnesses see the environment variable `NAME`; may be repeated")
		fs.StringVar(&o.text, "text", "Do what there is to do.", "the `TEXT` that is proposed for a turn")
		fs.StringVar(&o.cwd, "cwd", "", "working `DIRECTORY` of the harnesses")
		fs.IntVar(&o.delayMS, "delay-ms", -1, "replace every delay of the scripts by this `NUMBER` of milliseconds")
		fs.BoolVar(&o.noOpen, "no-open", false, "do not open a browser")
		return o.run
	},
}

func (o *consoleOptions) run(s *streams, args []string) int {
	if len(args) > 0 {
		return fail(s, "console", misuse("expected no arguments, got %q", args))
	}
	if err := console.CheckAddress(o.addr); err != nil {
		return fail(s, "console", misuse("--addr: %s", err))
	}
	o.streams = s
	choices, err := o.choices()
	if err != nil {
		return fail(s, "console", err)
	}
	server, err := console.New(console.Config{Choices: choices, Start: o.start, Text: o.text})
	if err != nil {
		return fail(s, "console", err)
	}
	return serveConsole(s, "console", server, o.addr, "", !o.noOpen)
}

// choices are what the page can start. Everything is checked here, so that a
// mistake is shown before a browser is.
func (o *consoleOptions) choices() ([]console.Choice, error) {
	var choices []console.Choice
	for _, name := range scripts.Names() {
		text, err := scripts.Read(name)
		if err != nil {
			return nil, err
		}
		script, err := fake.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		choices = append(choices, console.Choice{Kind: console.KindScript, Name: name, Description: script.Description})
	}
	for _, file := range o.scripts {
		script, err := fake.Load(file)
		if err != nil {
			return nil, misuse("--script: %s", err)
		}
		path, err := filepath.Abs(file) // the harness has another working directory
		if err != nil {
			return nil, err
		}
		choices = append(choices, console.Choice{Kind: console.KindScript, Name: path, Description: script.Description})
	}
	for _, line := range o.harnesses {
		c := console.Choice{Kind: console.KindHarness, Name: line, Description: "a harness of yours"}
		if _, err := o.target(c); err != nil {
			return nil, err
		}
		choices = append(choices, c)
	}
	agents, err := o.agentChoices()
	return append(choices, agents...), err
}

// agentChoices are the agents that are named, which have to be there, else
// those that are.
func (o *consoleOptions) agentChoices() ([]console.Choice, error) {
	if err := checkPermissions(o.permissions); err != nil {
		return nil, err
	}
	var choices []console.Choice
	for _, p := range acp.Presets() {
		path, err := exec.LookPath(p.Argv[0])
		if err != nil || (len(o.agents) > 0 && !slices.Contains(o.agents, p.Name)) {
			continue
		}
		about := "the agent " + path
		if lacks := unset(p.Needs); len(lacks) > 0 {
			about += "; not set: " + strings.Join(lacks, " ")
		}
		choices = append(choices, console.Choice{Kind: console.KindAgent, Name: p.Name, Description: about})
	}
	for _, name := range o.agents {
		if _, err := o.target(console.Choice{Kind: console.KindAgent, Name: name}); err != nil {
			return nil, err
		}
	}
	return choices, nil
}

// target is what a choice stands for.
func (o *consoleOptions) target(c console.Choice) (*target, error) {
	t := &target{cwd: o.cwd, envAllow: o.envAllow, delayMS: -1}
	t.runnerFlags = "--max-events " + strconv.Itoa(maxConsoleEvents)
	switch c.Kind {
	case console.KindHarness:
		t.harness = c.Name
		return t, t.check(nil)
	case console.KindAgent:
		t.agent.name, t.agent.permissions = c.Name, o.permissions
		return t, t.check(nil)
	}
	t.delayMS = o.delayMS
	return t, t.check([]string{c.Name})
}

// start is the runner for a choice; over removes an agent's private home.
func (o *consoleOptions) start(c console.Choice) (cfg controller.Config, over func(), err error) {
	t, err := o.target(c)
	if err != nil {
		return controller.Config{}, nil, err
	}
	cfg, err = t.config()
	return cfg, func() { t.agent.close(o.streams) }, err
}

// serveConsole serves until Ctrl-C or SIGTERM; a second one kills the runs.
func serveConsole(s *streams, name string, server *console.Server, addr, fragment string, open bool) int {
	url, err := server.Listen(addr)
	if err != nil {
		return fail(s, name, err)
	}
	url += fragment
	ctx, end := context.WithCancel(context.Background())
	defer end()
	ch := make(chan os.Signal, 8) // more than a person can mean
	signal.Notify(ch, endSignals...)
	defer signal.Stop(ch)
	go func() {
		var p presses
		p.again(<-ch, time.Now())
		fmt.Fprintf(s.err, "prp %s: ending the runs; Ctrl-C again kills them\n", name)
		end()
		for p.again(<-ch, time.Now()) {
		}
		server.Kill()
	}()
	fmt.Fprintln(s.out, url)
	if open {
		defer openBrowser(s, name, url)()
	}
	if err := server.Serve(ctx); err != nil {
		return fail(s, name, err)
	}
	return exitOK
}

// openBrowser asks the desktop to open the page; the result takes back what
// that needed. Where there is no desktop, the printed address has to do. The
// address is a secret and every user of the machine sees the arguments of a
// process: the browser gets it from a file that only its user may read.
func openBrowser(s *streams, name, url string) (tidy func()) {
	opener := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		opener = "open"
	case runtime.GOOS == "windows":
		opener = "explorer"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return func() {}
	}
	dir, err := os.MkdirTemp("", "prp-console-") // for its owner alone
	if err != nil {
		fmt.Fprintf(s.err, "prp %s: open a browser: %s\n", name, err)
		return func() {}
	}
	tidy = func() { os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	text := fmt.Sprintf("<!doctype html><meta charset=utf-8><title>prp console</title><meta http-equiv=refresh content=\"0;url=%s\">\n", url)
	if err = os.WriteFile(file, []byte(text), 0o600); err == nil {
		run := exec.Command(opener, file)
		if err = run.Start(); err == nil {
			go run.Wait()
			return tidy
		}
	}
	if !errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintf(s.err, "prp %s: open a browser: %s\n", name, err)
	}
	return tidy
}

// pageOptions are the flags of prp replay that show a recorded run in a page.
type pageOptions struct {
	open, noOpen bool
	addr         string
}

func (o *pageOptions) flags(fs *flag.FlagSet) {
	fs.BoolVar(&o.open, "open", false, "show the run in a browser, in the page of prp console")
	fs.StringVar(&o.addr, "addr", defaultAddr, "with --open, listen on `HOST:PORT` ("+defaultAddr+")")
	fs.BoolVar(&o.noOpen, "no-open", false, "with --open, print the address and do not open a browser")
}

// show shows a recorded run in the page, until Ctrl-C.
func (o *pageOptions) show(s *streams, file string) int {
	if err := console.CheckAddress(o.addr); err != nil {
		return fail(s, "replay", misuse("--addr: %s", err))
	}
	in, err := open(s, file)
	if err != nil {
		return fail(s, "replay", err)
	}
	defer in.Close()
	server, err := console.New(console.Config{HistoryBytes: maxRecorded})
	if err != nil {
		return fail(s, "replay", err)
	}
	fragment, err := server.Load(filepath.Base(file), in)
	if err != nil {
		return fail(s, "replay", err)
	}
	return serveConsole(s, "replay", server, o.addr, fragment, !o.noOpen)
}

// maxRecorded bounds what is kept of a recorded run, in bytes.
const maxRecorded = 512 << 20
