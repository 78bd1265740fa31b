package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/checkpoint"
	"prp/controller/s3"
	"prp/controller/taskrun"
	"prp/controller/workerclient"
	"prp/harness/acp"
	"prp/runner/process"
)

// runTokenEnv has the token of a run where no flag says otherwise.
const runTokenEnv = "PRP_RUN_TOKEN"

// taskrunOptions are the flags of prp taskrun.
type taskrunOptions struct {
	id, url, tokenFile, tokenEnv   string
	dir, workspace, checkpoints    string
	command                        string
	s3Endpoint, s3Region, s3CAFile string
	target                         target
	programs, sharedRead, external list
	allowPlain, allowUnsandboxed   bool
	tls                            workerclient.TLSClientOptions
}

var taskrunCommand = &command{
	name: "taskrun", args: "[SCRIPT]",
	short: "work on one task run of a server",
	long: `
Fetches a task run from a server, claims it, runs it under the supervisor,
streams its text, and reports its end once. One process works on one run; who
starts it is the server's business.

What works on it is a program that reads the task from its stdin (--command), an
agent (--agent), any harness (--harness), or a script of the fake harness. An
agent's requests are allowed unless --permissions says otherwise; nobody is there
who could answer a question, so one that is asked ends the run as failed, with the
question in its report. Where the server goes away the run goes on, and stderr
says since when, and when it is back.

The run is confined to the tiers that the server names, by Landlock and seccomp;
the strictest are no network, and no files but the workspace, the programs in
PATH and those of the system. Where this host cannot enforce a tier the run
fails, unless --allow-unsandboxed. 'prp doctor' says what this host can.

The token of the run comes from the variable PRP_RUN_TOKEN, and is not passed on.
Secret variables of the run reach the harness, and are masked everywhere else.
A report that cannot be delivered stays in --dir, and is sent at the next start.
SIGTERM ends the run, and it is reported as failed.

exit status: 0 the end was reported, or the run is another worker's; 1 it was not
reported; 2 wrong command line.

  prp taskrun --url https://example.com --task-run-id run_1 --agent claude
  prp taskrun --url http://127.0.0.1:8080 --task-run-id run_1 --command 'wc -w'`,
	operand: operandScript,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &taskrunOptions{}
		fs.StringVar(&o.id, "task-run-id", "", "work on the task run of this `ID`")
		fs.StringVar(&o.url, "url", "", "the server is at this `ADDRESS` (https, or http on loopback)")
		fs.StringVar(&o.tokenFile, "token-file", "", "read the token of the run from `FILE`, which only you can read")
		fs.StringVar(&o.tokenEnv, "token-env", runTokenEnv, "take the token of the run from the environment variable `NAME`")
		fs.StringVar(&o.dir, "dir", "", "keep journals, workspaces and reports in this `DIRECTORY`; else in prp/taskrun of the user's configuration folder")
		fs.StringVar(&o.workspace, "workspace", "", "work in this `DIRECTORY`; else each task has one in --dir")
		fs.StringVar(&o.checkpoints, "checkpoints", "", "keep checkpoints of workspaces in this `PLACE`: a directory, or s3://BUCKET/PREFIX")
		fs.StringVar(&o.s3Endpoint, "s3-endpoint", "", "the bucket is at this `ADDRESS` instead of Amazon's")
		fs.StringVar(&o.s3Region, "s3-region", "us-east-1", "the bucket is in this `REGION`")
		fs.StringVar(&o.s3CAFile, "s3-ca-file", "", "trust the certificates in `FILE` for the bucket instead of the system's")
		fs.StringVar(&o.command, "command", "", "run this `COMMAND`, which gets the task as stdin (shell words, no shell)")
		fs.StringVar(&o.target.harness, "harness", "", "run this `COMMAND` as the harness (shell words, no shell)")
		fs.StringVar(&o.target.agent.name, "agent", "", "run the agent of this `NAME`: "+strings.Join(agentNames(), ", "))
		fs.StringVar(&o.target.agent.permissions, "permissions", "", "who decides about what the agent wants to do, with `POLICY`; allow is the default")
		fs.Var(&o.target.envAllow, "env-allow", "let the harness see the environment variable `NAME`; may be repeated")
		fs.Var(&o.programs, "program", "let the sandbox read and execute this `PATH` too; may be repeated")
		fs.Var(&o.sharedRead, "shared-read", "a `PATH` that the tier workspace_plus_shared_read may read; may be repeated")
		fs.Var(&o.external, "external-write", "a `PATH` that the tier workspace_plus_external_write may change; may be repeated")
		fs.BoolVar(&o.allowUnsandboxed, "allow-unsandboxed", false, "run also where this host cannot enforce a tier")
		fs.BoolVar(&o.allowPlain, "allow-plain", false, "allow http to other machines, without encryption")
		fs.StringVar(&o.tls.CAFile, "ca-file", "", "trust the certificates in `FILE` instead of the system's")
		fs.StringVar(&o.tls.ClientCertFile, "cert-file", "", "show the client certificate in `FILE`")
		fs.StringVar(&o.tls.ClientKeyFile, "key-file", "", "the key of the client certificate is in `FILE`")
		return o.run
	},
}

func (o *taskrunOptions) run(s *streams, args []string) int {
	cfg, err := o.config(s, args)
	if err != nil {
		return fail(s, "taskrun", err)
	}
	o.target.agent.warn(s, "taskrun")
	ctx, stop := untilTold()
	defer stop()
	outliveReaders() // else a run could end without its report
	if _, err := taskrun.Run(ctx, cfg); err != nil {
		return fail(s, "taskrun", err)
	}
	return exitOK
}

func (o *taskrunOptions) config(s *streams, args []string) (taskrun.Config, error) {
	none := taskrun.Config{}
	// First of all, so that nothing that is started below can have it.
	token, err := o.token()
	switch {
	case err != nil:
		return none, err
	case o.id == "":
		return none, misuse("expected --task-run-id, got none")
	case o.url == "":
		return none, misuse("expected --url, got none")
	}
	address, err := bridge.CheckURL(o.url, o.allowPlain)
	if err != nil {
		return none, misuse("--url: %s", err)
	}
	switch {
	case address.Scheme != "https" && address.Scheme != "http":
		return none, misuse("--url: expected https, or http on loopback, got %q", address.Scheme)
	case address.RawQuery != "" || address.Fragment != "":
		// The path of the API is put behind it.
		return none, misuse("--url: expected an address without a query or a fragment")
	}
	client, err := workerclient.NewTLSClient(o.tls)
	if err != nil {
		return none, misuse("%s", err)
	}
	self, err := os.Executable()
	if err != nil {
		return none, fmt.Errorf("find the own executable: %w", err)
	}
	server := workerclient.WorkerAPIClientConfig{BaseURL: address.String(), Token: token, Client: client}
	cfg := taskrun.Config{
		TaskRunID: o.id, Dir: o.dir, Workspace: o.workspace, Secrets: []string{token},
		Updater: workerclient.NewWorkerHTTPUpdater(server), Sender: workerclient.NewWorkerHTTPStreamSender(server),
		Runner: []string{self, "runner"}, Sandboxed: []string{self, sandboxedCommand}, AllowUnsandboxed: o.allowUnsandboxed,
		Report: func(text string) { fmt.Fprintf(s.err, "prp taskrun: %s\n", text) },
	}
	if err := o.store(&cfg); err != nil {
		return none, err
	}
	if err := o.work(&cfg, self, args); err != nil {
		return none, err
	}
	cfg.Env = controller.SmallEnv(o.target.envAllow...)
	return cfg, o.places(&cfg, self)
}

// token takes the token out of its place. The environment does not have it any
// more when a child starts.
func (o *taskrunOptions) token() (string, error) {
	value := os.Getenv(o.tokenEnv)
	// The environment that a process was started with stays readable in /proc.
	if err := process.Hide(); err != nil {
		return "", fmt.Errorf("hide the own environment: %w", err)
	}
	if err := os.Unsetenv(o.tokenEnv); err != nil {
		return "", misuse("--token-env: %s", err)
	}
	if o.tokenFile != "" {
		token, err := bridge.ReadSecret(o.tokenFile)
		if err != nil {
			return "", misuse("--token-file: %s", err)
		}
		return token, nil
	}
	if value == "" {
		return "", misuse("expected the token of the run in the variable %q, or --token-file, got neither", o.tokenEnv)
	}
	return value, nil
}

// store finds the place for checkpoints. The keys of a bucket leave the
// environment in any case.
func (o *taskrunOptions) store(cfg *taskrun.Config) error {
	bucket := s3.Config{Endpoint: o.s3Endpoint, AllowPlain: o.allowPlain, Region: o.s3Region}
	for name, at := range map[string]*string{
		"AWS_ACCESS_KEY_ID": &bucket.AccessKey, "AWS_SECRET_ACCESS_KEY": &bucket.SecretKey, "AWS_SESSION_TOKEN": &bucket.SessionToken,
	} {
		*at = os.Getenv(name)
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	place, isBucket := strings.CutPrefix(o.checkpoints, "s3://")
	switch {
	case o.checkpoints == "":
		return nil
	case !isBucket:
		cfg.Store = checkpoint.DirStore{Dir: o.checkpoints}
		return nil
	}
	if bucket.Endpoint == "" {
		bucket.Endpoint = "https://s3." + o.s3Region + ".amazonaws.com"
	}
	var err error
	if bucket.Client, err = (bridge.TLS{CAFile: o.s3CAFile}).Client(); err != nil {
		return misuse("--s3-ca-file: %s", err)
	}
	bucket.Bucket, bucket.Prefix, _ = strings.Cut(strings.TrimRight(place, "/"), "/")
	if bucket.Prefix != "" {
		bucket.Prefix += "/"
	}
	store, err := s3.New(bucket)
	if err != nil {
		return misuse("--checkpoints: %s", err)
	}
	cfg.Store = store
	cfg.Secrets = append(cfg.Secrets, bucket.SecretKey, bucket.SessionToken)
	return nil
}

// work finds what works on the run.
func (o *taskrunOptions) work(cfg *taskrun.Config, self string, args []string) error {
	t := &o.target
	t.delayMS = -1
	if o.command != "" {
		if t.harness != "" || t.agent.name != "" || len(args) > 0 {
			return misuse("expected one of --command, --harness, --agent and a script, got several")
		}
		words, err := splitWords("--command", "a command line", o.command)
		if err != nil {
			return err
		}
		cfg.Harness = append([]string{self, "harness", "command", "--from-turn", "text", "--"}, words...)
		return nil
	}
	if err := t.check(args); err != nil {
		return err
	}
	switch {
	case t.agent.name != "":
		policy := t.agent.permissions
		if policy == "" {
			policy = "allow"
		}
		cfg.Harness = []string{self, "harness", "acp", "--preset", t.agent.name, "--permissions", policy}
		preset, _ := acp.FindPreset(t.agent.name) // checked
		t.envAllow = append(t.envAllow, preset.Names()...)
		program, err := exec.LookPath(preset.Argv[0])
		if err != nil {
			return err
		}
		// An agent of npm is a link to where its files are.
		if real, err := filepath.EvalSymlinks(program); err == nil {
			o.programs = append(o.programs, filepath.Dir(real))
		}
	case t.harness != "":
		words, err := splitWords("--harness", "a command line", t.harness)
		if err != nil {
			return err
		}
		cfg.Harness = words
	default:
		cfg.Harness = []string{self, "harness", "fake", "--script", t.script}
		if filepath.IsAbs(t.script) {
			o.programs = append(o.programs, t.script)
		}
	}
	return nil
}

// places makes the folder of the state and the lists of the sandbox.
func (o *taskrunOptions) places(cfg *taskrun.Config, self string) error {
	if cfg.Dir == "" {
		base, err := os.UserConfigDir()
		if err != nil {
			return misuse("expected --dir, since there is no place for it: %s", err)
		}
		cfg.Dir = filepath.Join(base, "prp", "taskrun")
	}
	cfg.Programs = []string{self}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		// What does not exist, or is the whole file system, gives no right.
		if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(real) && filepath.Dir(real) != real {
			cfg.Programs = append(cfg.Programs, real)
		}
	}
	for _, l := range []struct {
		name string
		from list
		to   *[]string
	}{
		{"--program", o.programs, &cfg.Programs},
		{"--shared-read", o.sharedRead, &cfg.SharedRead},
		{"--external-write", o.external, &cfg.ExternalWrite},
	} {
		for _, path := range l.from {
			real, err := filepath.Abs(path)
			if err == nil {
				_, err = os.Stat(real)
			}
			if err != nil {
				return misuse("%s: %s", l.name, err)
			}
			*l.to = append(*l.to, real)
		}
	}
	return nil
}
