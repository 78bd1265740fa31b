package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/worker"
	"prp/protocol/secret"
	"prp/runner/process"
)

const (
	// workerVersion is what the worker tells the server.
	workerVersion = "0.1.0"
	// maxWorkerFile bounds a policy and an environment file, in bytes.
	maxWorkerFile = 1 << 20
	// stateEvery is how often the state of the link is written down.
	stateEvery = 5 * time.Second
	stateFile  = "link.json"
	lockName   = "lock"
)

// workerOptions are the flags of prp worker.
type workerOptions struct {
	url, tokenFile, tokenEnv string
	roots, envAllow, envFile list
	policy, dir, id          string
	allowPlain               bool
	tls                      bridge.TLS
	status, policySchema     bool

	token   string
	values  []string // of the environment files
	environ []string
	writing sync.Mutex // of the state
}

var workerCommand = &command{
	name: "worker", args: "",
	short: "execute the commands of a server on this machine",
	long: `
Connects to a server by an outbound WebSocket and executes its commands: reads,
writes, searches and patches files inside --root, and runs commands under the
supervisor. It decides nothing itself.

Without --policy only reading and searching is allowed. A policy says more, by
tool, path and the first words of a command:

  {"schema":"paperclip.worker_policy.v1","rules":[
    {"class":"allow","tools":["file.write","file.apply_patch"],"paths":["src"]},
    {"class":"allow","tools":["command.run"],"argv":["go","test"]},
    {"class":"approve","tools":["command.run"]}]}

A command that sets variables is allowed by its first words only where the rule
names them, as "env":["LANG"]: PATH could make it another program.

The token comes from a file or a variable, never from an argument. A lost
connection is made again, for ever; what was not acknowledged is sent again.
Ctrl-C ends every command and process, and then the worker; only a background
process that was started with keep=true goes on (Linux), and is known to the
next worker with the same --dir.

exit status: 0 it was ended, 1 it could not go on, 2 wrong command line.

  prp worker --url wss://example.com/worker --token-file token --root ~/project
  prp worker --status`,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &workerOptions{}
		fs.StringVar(&o.url, "url", "", "connect to the server at this `address` (wss, or ws on loopback)")
		fs.StringVar(&o.tokenFile, "token-file", "", "read the bearer token from `file`, which only you can read")
		fs.StringVar(&o.tokenEnv, "token-env", "", "take the bearer token from the environment variable `name`")
		fs.Var(&o.roots, "root", "let the server touch files in this `directory`; may be repeated")
		fs.StringVar(&o.policy, "policy", "", "read what is allowed from `file`")
		fs.BoolVar(&o.policySchema, "policy-schema", false, "print the JSON Schema of a policy and end")
		fs.StringVar(&o.dir, "dir", "", "keep results, backups and output in this `directory`")
		fs.StringVar(&o.id, "id", "", "the `name` of this worker at the server; the host's name by default")
		fs.Var(&o.envAllow, "env-allow", "let commands see the environment variable `name`; may be repeated")
		fs.Var(&o.envFile, "env-file", "add NAME=VALUE lines of `file` to the environment of commands; the values are masked")
		fs.BoolVar(&o.allowPlain, "allow-plain", false, "allow ws to other machines, without encryption")
		fs.StringVar(&o.tls.CAFile, "ca-file", "", "trust the certificates in `file` instead of the system's")
		fs.StringVar(&o.tls.CertFile, "cert-file", "", "show the client certificate in `file`")
		fs.StringVar(&o.tls.KeyFile, "key-file", "", "the key of the client certificate is in `file`")
		fs.BoolVar(&o.status, "status", false, "print the state of the connection of the worker that uses --dir")
		return o.run
	},
}

func (o *workerOptions) run(s *streams, args []string) int {
	if len(args) > 0 {
		return fail(s, "worker", misuse("expected no arguments, got %q", args))
	}
	if o.policySchema {
		s.out.Write(worker.PolicySchema())
		return exitOK
	}
	if o.dir == "" {
		base, err := os.UserConfigDir()
		if err != nil {
			return fail(s, "worker", misuse("expected --dir, since there is no place for it: %s", err))
		}
		o.dir = filepath.Join(base, "prp", "worker")
	}
	if o.status {
		return o.showStatus(s)
	}
	hide(s.err)
	cfg, err := o.config(s)
	if err != nil {
		return fail(s, "worker", err)
	}
	return o.serve(s, cfg)
}

// hide keeps secrets from the commands, which could read the environment and
// the memory of a process of the same account.
func hide(stderr io.Writer) {
	if err := process.Hide(); err != nil {
		fmt.Fprintf(stderr, "prp worker: commands could read its secrets in /proc: %s\n", err)
	}
}

// showStatus prints what the worker has written down last.
func (o *workerOptions) showStatus(s *streams) int {
	text, err := os.ReadFile(filepath.Join(o.dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fail(s, "worker", fmt.Errorf("no worker has used %s", o.dir))
	}
	var state bridge.LinkState
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return fail(s, "worker", err)
	}
	word := "not connected"
	if state.Connected {
		word = "connected"
	}
	fmt.Fprintf(s.out, "%s since %s; last contact %s\n", word, stamp(state.Since), stamp(state.LastContact))
	if state.Error != "" {
		fmt.Fprintf(s.out, "%s\n", controller.OneLine(state.Error))
	}
	return exitOK
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

func (o *workerOptions) config(s *streams) (worker.Config, error) {
	if o.url == "" {
		return worker.Config{}, misuse("expected --url, got none")
	}
	address, err := bridge.CheckURL(o.url, o.allowPlain)
	if err != nil {
		return worker.Config{}, misuse("--url: %s", err)
	}
	if err := o.readToken(); err != nil {
		return worker.Config{}, err
	}
	if err := o.readEnvFiles(); err != nil {
		return worker.Config{}, err
	}
	cfg := worker.Config{
		ID: o.id, Version: workerVersion, Roots: o.roots, Dir: o.dir,
		Env: controller.SmallEnv(o.envAllow...), CommandEnv: o.environ,
		Secrets: append([]string{o.token}, o.values...),
	}
	cfg.Machine, _ = os.Hostname() // one without a name is told as such
	if cfg.ID == "" {
		cfg.ID = cfg.Machine
	}
	if o.policy != "" {
		text, err := readBounded(o.policy, maxWorkerFile)
		if err == nil {
			cfg.Policy, err = worker.ParsePolicy(text)
		}
		if err != nil {
			return cfg, misuse("--policy: %s", err)
		}
	}
	client, err := o.tls.Client()
	if err != nil {
		return cfg, misuse("%s", err)
	}
	cfg.Link = bridge.LinkConfig{URL: address.String(), Client: client, Token: o.freshToken, Changed: o.writeState}
	var report sync.Mutex
	cfg.Report = func(text string) {
		report.Lock()
		defer report.Unlock()
		fmt.Fprintf(s.err, "prp worker: %s\n", controller.OneLine(text))
	}
	return cfg, o.programs(&cfg)
}

// readBounded reads a file of at most most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s: expected at most %d bytes", path, most)
	}
	return text, err
}

// keeperMain is the program inside that watches over a process for a worker that
// may end before it.
func keeperMain([]string) int {
	hide(os.Stderr)
	signals := make(chan os.Signal, 5) // one of each
	signal.Notify(signals, append(slices.Clone(endSignals), syscall.SIGPIPE)...)
	if err := worker.Keep(os.Stdin, os.Stdout, signals); err != nil {
		fmt.Fprintf(os.Stderr, "prp keeper: %s\n", err)
		return exitFailed
	}
	return exitOK
}

// programs are the runner, the harness and the keeper: those inside this
// program. Where the small programs stand beside it they are taken instead,
// since they start in half the time.
func (o *workerOptions) programs(cfg *worker.Config) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the own executable: %w", err)
	}
	cfg.Keeper = []string{self, "keeper"}
	cfg.Runner = []string{self, "runner"}
	harness := shellQuoted(self) + " harness"
	smallRunner, smallHarness := beside(self, "prp-runner"), beside(self, "prp-harness")
	if smallRunner != "" && smallHarness != "" {
		cfg.Runner, harness = []string{smallRunner}, shellQuoted(smallHarness)
	}
	for _, name := range append(controller.SmallEnvNames(), o.envAllow...) {
		cfg.Runner = append(cfg.Runner, "--env-allow", name)
	}
	cfg.Harness = harness + " command --from-turn argv,stdin,cwd,env"
	return nil
}

func shellQuoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// beside finds a program in the folder of another; empty where there is none.
func beside(program, name string) string {
	path := filepath.Join(filepath.Dir(program), name+filepath.Ext(program))
	found, err := exec.LookPath(path)
	if err != nil {
		return ""
	}
	return found
}

// readToken takes the token out of its place. The environment does not have it
// any more when a child starts.
func (o *workerOptions) readToken() (err error) {
	switch {
	case (o.tokenFile == "") == (o.tokenEnv == ""):
		return misuse("expected --token-file or --token-env, got both or none")
	case o.tokenFile != "":
		if o.token, err = bridge.ReadSecret(o.tokenFile); err != nil {
			return misuse("--token-file: %s", err)
		}
		return nil
	}
	o.token = os.Getenv(o.tokenEnv)
	if o.token == "" {
		return misuse("--token-env: expected the variable %q to have a value", o.tokenEnv)
	}
	return os.Unsetenv(o.tokenEnv)
}

// freshToken is asked for at each attempt, so that a file with a new token is
// heeded.
func (o *workerOptions) freshToken() (string, error) {
	if o.tokenFile == "" {
		return o.token, nil
	}
	return bridge.ReadSecret(o.tokenFile)
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (o *workerOptions) readEnvFiles() error {
	for _, path := range o.envFile {
		text, err := secret.ReadFile(path, maxWorkerFile)
		if err != nil {
			return misuse("--env-file: %s", err)
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			line = strings.TrimRight(line, "\r\n")
			if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
				continue
			}
			name, value, ok := strings.Cut(line, "=")
			if !ok || !variable.MatchString(name) {
				return misuse("--env-file: %s:%d: expected NAME=VALUE", path, number)
			}
			o.environ = append(o.environ, line)
			o.values = append(o.values, value)
		}
	}
	return nil
}

// alone takes a folder for this worker, connector or server: two would undo each
// other's changes, and execute each other's commands and runs. The lock goes with
// the process, however it ends. Another is the place where another folder is said.
func alone(dir, lock, who, another string) (release func(), err error) {
	if err = os.MkdirAll(dir, 0o700); err == nil {
		release, err = process.Lock(filepath.Join(dir, lock))
	}
	switch {
	case errors.Is(err, process.ErrLocked):
		return nil, fmt.Errorf("another %s uses %q: end it, or give this one another %s", who, dir, another)
	case err != nil:
		return nil, fmt.Errorf("expected a folder that this %s can use: %w; give it another %s", who, err, another)
	}
	return release, nil
}

// serve runs the worker until Ctrl-C or SIGTERM.
func (o *workerOptions) serve(s *streams, cfg worker.Config) int {
	ctx, stop := untilTold()
	defer stop()
	outliveReaders() // else its commands would end with it
	release, err := alone(o.dir, lockName, "worker", "--dir")
	if err != nil {
		return fail(s, "worker", err)
	}
	defer release()
	w, err := worker.New(cfg)
	if err != nil {
		return fail(s, "worker", err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		tick := time.NewTicker(stateEvery)
		defer tick.Stop()
		for {
			o.writeState(w.State())
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	err = w.Run(ctx)
	interrupted := ctx.Err() != nil
	stop()
	<-written
	state := w.State()
	state.Connected, state.Error = false, "the worker has ended"
	o.writeState(state)
	if !interrupted {
		return fail(s, "worker", err)
	}
	return exitOK
}

// writeState writes the state for --status; a reader never sees half of it.
func (o *workerOptions) writeState(state bridge.LinkState) {
	text, err := json.Marshal(state)
	if err != nil {
		return
	}
	o.writing.Lock()
	defer o.writing.Unlock()
	path := filepath.Join(o.dir, stateFile)
	if os.WriteFile(path+".new", text, 0o600) == nil {
		_ = os.Rename(path+".new", path) // the next one tries again
	}
}
