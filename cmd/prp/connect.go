package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"prp/controller"
	"prp/controller/artifact"
	"prp/controller/bridge"
	"prp/controller/connector"
	"prp/controller/identity"
	"prp/controller/metrics"
)

const (
	// connectorVersion is what the connector tells the server.
	connectorVersion = "0.1.0"
	// maxConnectFile bounds a configuration, in bytes.
	maxConnectFile = 1 << 20
	// connectEvery is how often the state is written down, and staleAfter when
	// what was written is not believed any more.
	connectEvery = time.Second
	staleAfter   = 5 * time.Second
	// orderWait bounds how long --stop-all waits for the end of every run, and
	// --resume for work to be taken: a cancel takes 15 s at most.
	orderWait        = 30 * time.Second
	connectStateFile = "state.json"
)

// connectOptions are the flags of prp connect.
type connectOptions struct {
	config                                   string
	stopAll, resume, status, showID, fileRef bool
	allowPlain                               bool
	drain                                    time.Duration

	file connector.File
	id   string
}

var connectCommand = &command{
	name: "connect", args: "",
	short: "offer agents of this machine to a server",
	long: `
Connects to a server by an outbound WebSocket, or by HTTPS where that does not
work, and executes its runs with the agents of --config, each under a supervisor
of its own. A lost connection stops nothing: every event is kept until the server
has acknowledged it.

The file says where the server is, who this connector is, and what it offers;
paths in it are relative to its folder. 'prp connect --schema' prints its JSON
Schema. A harness 'prp harness ...' is the one inside this program.

  {"url":"wss://example.com/connector/v1","cert_file":"client.pem",
   "key_file":"client.key","token_file":"token.jwt","dir":"state","agents":[
    {"agent_id":"helper","runtime":"fake","tools":["terminal"],
     "supports":["streaming","cancellation"],
     "harness":"prp harness fake --script happy-path"}]}

The token's "sub" is the connector's id, which --show-id prints. Certificate and
token are read anew when their files change.

SIGTERM or Ctrl-C drains: new work is refused, what runs ends, its events are
delivered. A second one ends every run. --stop-all is for an emergency: every run
of the connector with this configuration ends, with a server or without, and new
work is refused until --resume.

exit status: 0 it was ended, 1 it could not go on, 2 wrong command line.

  prp connect --config connector.json
  prp connect --config connector.json --stop-all`,
	flags: func(fs *flag.FlagSet) runFunc {
		o := &connectOptions{}
		fs.StringVar(&o.config, "config", "", "read server, identity and agents from `file`")
		fs.BoolVar(&o.stopAll, "stop-all", false, "end every run of the connector, and have new work refused")
		fs.BoolVar(&o.resume, "resume", false, "take --stop-all back")
		fs.BoolVar(&o.status, "status", false, "print the state of the connector")
		fs.BoolVar(&o.showID, "show-id", false, "print the id of the connector and end")
		fs.BoolVar(&o.fileRef, "schema", false, "print the JSON Schema of the configuration and end")
		fs.BoolVar(&o.allowPlain, "allow-plain", false, "allow ws to other machines, without encryption")
		fs.DurationVar(&o.drain, "drain", 10*time.Minute, "let runs go on for so `long` after SIGTERM")
		return o.run
	},
}

func (o *connectOptions) run(s *streams, args []string) int {
	if len(args) > 0 {
		return fail(s, "connect", misuse("expected no arguments, got %q", args))
	}
	if o.fileRef {
		s.out.Write(connector.FileSchema())
		return exitOK
	}
	if err := o.read(); err != nil {
		return fail(s, "connect", err)
	}
	switch {
	case o.showID:
		fmt.Fprintln(s.out, o.id)
		return exitOK
	case o.status:
		return o.showState(s)
	case o.stopAll:
		return o.stop(s)
	case o.resume:
		return o.goOn(s)
	}
	cfg, err := o.build(s)
	if err != nil {
		return fail(s, "connect", err)
	}
	return o.serve(s, cfg)
}

// read reads the configuration; paths in it become absolute.
func (o *connectOptions) read() error {
	if o.config == "" {
		return misuse("expected --config, got none")
	}
	info, err := os.Stat(o.config)
	if err != nil {
		return misuse("--config: %s", err)
	}
	if info.Size() > maxConnectFile {
		return misuse("--config: %s: expected at most %d bytes", o.config, maxConnectFile)
	}
	text, err := os.ReadFile(o.config)
	if err == nil {
		o.file, err = connector.ParseFile(text)
	}
	base, err2 := filepath.Abs(filepath.Dir(o.config))
	if err := errors.Join(err, err2); err != nil {
		return misuse("--config: %s: %s", o.config, err)
	}
	f := &o.file
	if f.Dir == "" {
		f.Dir = strings.TrimSuffix(filepath.Base(o.config), ".json") + ".state"
	}
	paths := []*string{&f.CAFile, &f.CertFile, &f.KeyFile, &f.TokenFile, &f.StoreCAFile, &f.Dir}
	for i := range f.Agents {
		if f.Agents[i].Cwd == "" {
			f.Agents[i].Cwd = "."
		}
		paths = append(paths, &f.Agents[i].Cwd)
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(base, *path)
		}
	}
	o.id, err = connector.ID(f.Dir, f.ConnectorID)
	return err
}

// build makes a connector's configuration out of the file.
func (o *connectOptions) build(s *streams) (connector.Config, error) {
	f := o.file
	var report sync.Mutex
	cfg := connector.Config{
		ID: o.id, Version: connectorVersion, Dir: f.Dir, MaxConcurrentRuns: f.MaxConcurrentRuns, MaxQueue: f.MaxQueue,
		Report: func(text string) {
			report.Lock()
			defer report.Unlock()
			fmt.Fprintf(s.err, "prp connect: %s\n", controller.OneLine(text))
		},
	}
	cfg.Host, _ = os.Hostname() // one without a name is told as such
	address, err := bridge.CheckURL(f.URL, o.allowPlain)
	if err != nil {
		return cfg, misuse("url: %s", err)
	}
	cfg.Link.URL = address.String()
	poll := *address
	poll.Scheme = strings.Replace(poll.Scheme, "ws", "http", 1)
	poll.Path, poll.RawQuery = connector.MessagesPath, ""
	cfg.PollURL = poll.String()
	if err := o.identify(&cfg); err != nil {
		return cfg, err
	}
	if cfg.Artifacts, err = artifact.New(artifact.Config{CAFile: f.StoreCAFile, AllowPlain: o.allowPlain}); err != nil {
		return cfg, misuse("store_ca_file: %s", err)
	}
	process := metrics.NewProcess()
	cfg.Figures = func() (cpuPct, memoryMB *float64) {
		now := process.Read()
		return now.CPUPercent, now.MemoryMB
	}
	return cfg, o.programs(&cfg)
}

// identify reads certificate and token (connector.md row 18).
func (o *connectOptions) identify(cfg *connector.Config) error {
	f := o.file
	tell := func(err error) { cfg.Report(err.Error()) }
	secured, err := bridge.TLS{CAFile: f.CAFile}.Config()
	if err != nil {
		return misuse("ca_file: %s", err)
	}
	if (f.CertFile == "") != (f.KeyFile == "") {
		return misuse("cert_file, key_file: expected both or none")
	}
	if f.CertFile != "" {
		cert, err := identity.NewCertificate(identity.CertificateConfig{CertFile: f.CertFile, KeyFile: f.KeyFile, Tell: tell})
		if err != nil {
			return fmt.Errorf("cert_file: %w", err)
		}
		cert.Use(secured)
	}
	cfg.Link.Client = bridge.NewClient(secured)
	if f.TokenFile == "" {
		return nil
	}
	token, err := identity.NewToken(identity.TokenConfig{File: f.TokenFile, Subject: o.id, Tell: tell})
	if err != nil {
		return fmt.Errorf("token_file: %w", err)
	}
	cfg.Link.Token, cfg.Renewed = token.Get, token.Renewed
	text, err := token.Get()
	cfg.Secrets = append(cfg.Secrets, text)
	return err
}

// programs are the runner and the harness inside this program, and what agents
// may see of the environment.
func (o *connectOptions) programs(cfg *connector.Config) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the own executable: %w", err)
	}
	cfg.Runner = []string{self, "runner"}
	usual := controller.SmallEnvNames()
	for _, name := range usual {
		cfg.Runner = append(cfg.Runner, "--env-allow", name)
	}
	var allow []string
	for _, a := range o.file.Agents {
		if rest, ok := strings.CutPrefix(a.Harness, "prp harness "); ok {
			a.Harness = "'" + strings.ReplaceAll(self, "'", `'\''`) + "' harness " + rest
		}
		cfg.Agents = append(cfg.Agents, a)
		for _, name := range a.EnvAllow {
			allow = append(allow, name)
			if !slices.Contains(usual, name) {
				cfg.Secrets = append(cfg.Secrets, os.Getenv(name))
			}
		}
	}
	cfg.Env = controller.SmallEnv(allow...)
	return nil
}

// serve runs the connector until it is told to end.
func (o *connectOptions) serve(s *streams, cfg connector.Config) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	outliveReaders() // else its runs would end with it
	// Before anything is begun: a signal that comes earlier ends all at once.
	signals := make(chan os.Signal, 8) // more than a person can mean
	signal.Notify(signals, endSignals...)
	defer signal.Stop(signals)
	release, err := o.alone()
	if err != nil {
		return fail(s, "connect", err)
	}
	defer release()
	c, err := connector.New(cfg)
	if err != nil {
		return fail(s, "connect", err)
	}
	var side sync.WaitGroup
	if o.file.MetricsAddr != "" {
		server, err := metrics.Listen(o.metrics(c))
		if err != nil {
			return fail(s, "connect", misuse("metrics_addr: %s", err))
		}
		cfg.Report("health and metrics at http://" + server.Address())
		side.Go(func() { _ = server.Serve(ctx) }) // it ends with us
	}
	side.Go(func() { o.keepState(ctx, c) })
	side.Go(func() { o.heedSignals(ctx, stop, c, signals, cfg.Report) })
	err = c.Run(ctx)
	ended := ctx.Err() != nil
	stop()
	side.Wait()
	state := c.State()
	state.Connected, state.Error = false, "the connector has ended"
	o.writeState(state, time.Time{})
	if err != nil && !ended {
		return fail(s, "connect", err)
	}
	return exitOK
}

// heedSignals drains at the first signal and ends at the second, or when the
// drain takes too long.
func (o *connectOptions) heedSignals(ctx context.Context, stop func(), c *connector.Connector, signals <-chan os.Signal, report func(string)) {
	var p presses
	select {
	case sig := <-signals:
		p.again(sig, time.Now())
	case <-ctx.Done():
		return
	}
	report(fmt.Sprintf("draining: new work is refused, and runs have %s to end; once more ends them", o.drain))
	c.Drain()
	limit := time.NewTimer(o.drain)
	defer limit.Stop()
	for more := true; more; {
		select {
		case sig := <-signals:
			more = p.again(sig, time.Now())
		case <-limit.C:
			more = false
		case <-ctx.Done():
			return
		}
	}
	stop()
}
