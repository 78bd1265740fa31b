//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/awaittest"
	"prp/controller/bridge"
	"prp/controller/devserver"
	"prp/controller/programstest"
)

// hang is far longer than anything here takes, also on a loaded machine.
const hang = 90 * time.Second

// programs are the runner and the harness.
var programs = programstest.Of("prp-runner", "prp-harness")

// role makes the test binary a worker: its configuration as JSON.
const role = "PRP_TEST_WORKER"

func TestMain(m *testing.M) {
	if raw, ok := os.LookupEnv(role); ok {
		os.Unsetenv(role)
		os.Exit(workerMain(raw))
	}
	if len(os.Args) == 2 && os.Args[1] == keeperRole {
		os.Exit(keeperMain())
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(programs.Main(m))
}

// keeperRole, as its one argument, makes the test binary a keeper.
const keeperRole = "be-a-keeper"

func keeperMain() int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	if err := Keep(os.Stdin, os.Stdout, signals); err != nil {
		return 1
	}
	return 0
}

// childConfig is a worker in a process of its own.
type childConfig struct{ URL, Root, Dir, Programs string }

func workerMain(raw string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		panic(err)
	}
	w, err := New(configFor(c))
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, w.Run(context.Background()))
	return 1
}

const token = "token-of-the-test"

// allowAll is a policy that allows every tool.
var allowAll = Policy{Schema: SchemaPolicy, Rules: []PolicyRule{{Class: ClassAllow}}}

func configFor(c childConfig) Config {
	return Config{
		ID: "home_pc", Machine: "TEST-1", Version: "0.1.0", Roots: []string{c.Root}, Dir: c.Dir, Policy: allowAll,
		Runner:  []string{filepath.Join(c.Programs, "prp-runner")},
		Harness: filepath.Join(c.Programs, "prp-harness") + " command --from-turn argv,stdin,cwd,env",
		Keeper:  []string{os.Args[0], keeperRole},
		Env:     controller.SmallEnv("GORACE"), HelloWait: 200 * time.Millisecond, Secrets: []string{token},
		Link: bridge.LinkConfig{
			URL: c.URL, PingEvery: 50 * time.Millisecond, PongWait: 10 * time.Second, MissedPongs: 1,
			Backoff: bridge.Backoff{Steps: []time.Duration{5 * time.Millisecond}},
			Token:   func() (string, error) { return token, nil },
		},
	}
}

// peer is a server, and a worker that talks to it.
type peer struct {
	t      testing.TB
	ctx    context.Context
	server *devserver.Worker
	config childConfig
	cfg    Config
	worker *Worker
	stop   context.CancelFunc
	ended  chan error
	next   int
}

// serve starts a server only.
func serve(t testing.TB, cfg devserver.WorkerConfig) *peer {
	t.Helper()
	dir := programs.Dir(t)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	cfg.Token = token
	p := &peer{t: t, ctx: ctx, server: devserver.NewWorker(cfg)}
	s := httptest.NewServer(p.server)
	t.Cleanup(func() {
		p.server.Close()
		s.Close()
	})
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p.config = childConfig{URL: s.URL + devserver.WorkerPath, Root: root, Dir: t.TempDir(), Programs: dir}
	p.cfg = configFor(p.config)
	return p
}

// start starts a worker in this process.
func (p *peer) start() *peer {
	p.t.Helper()
	w, err := New(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(p.ctx)
	p.worker, p.stop, p.ended = w, stop, make(chan error, 1)
	ended := p.ended
	go func() { ended <- w.Run(ctx) }()
	p.t.Cleanup(p.end)
	return p
}

// end ends the worker and waits for it.
func (p *peer) end() {
	if p.stop == nil {
		return
	}
	p.stop()
	p.stop = nil
	if err := awaittest.Came(p.t, "the end of the worker", p.ended); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		p.t.Errorf("the worker ended with %v", err)
	}
	for p.server.Connected() && p.ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// ready is a server and a worker with defaults.
func ready(t testing.TB) *peer { return serve(t, devserver.WorkerConfig{}).start() }

// apart starts a worker in a process of its own, which can be killed.
func (p *peer) apart() *exec.Cmd {
	p.t.Helper()
	return p.apartAs(os.Args[0], nil)
}

// apartAs is apart with a copy of this program, and attributes of its process.
func (p *peer) apartAs(program string, attr *syscall.SysProcAttr) *exec.Cmd {
	p.t.Helper()
	raw, err := json.Marshal(p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.SysProcAttr = attr
	cmd.Env = append(os.Environ(), role+"="+string(raw))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // was killed long ago, but where the test has failed
		_ = cmd.Wait()
	})
	return cmd
}

// kill kills a worker, and waits until the server has seen that.
func (p *peer) kill(cmd *exec.Cmd) {
	p.t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = cmd.Wait()
	p.until("the end of the link", func() bool { return !p.server.Connected() })
}

// send sends a command and returns its id.
func (p *peer) send(tool, args string, more ...string) string {
	p.t.Helper()
	p.next++
	id := fmt.Sprintf("cmd_%d", p.next)
	p.frame(fmt.Sprintf(`{"command_id":%q,"task_id":"task","tool":%q,"args":%s%s}`, id, tool, args, strings.Join(more, "")))
	return id
}

func (p *peer) frame(text string) {
	p.t.Helper()
	if err := p.server.Send(p.ctx, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// full is a result with its result as a map.
type full struct {
	Result
	Fields map[string]any
	Raw    json.RawMessage
}

// result waits for the result of a command and checks its envelope.
func (p *peer) result(id string) full {
	p.t.Helper()
	f, err := p.server.Result(p.ctx, id)
	if err != nil {
		p.t.Fatalf("%s: %v", id, err)
	}
	return decodeResult(p.t, f.Raw)
}

func decodeResult(t testing.TB, raw json.RawMessage) full {
	t.Helper()
	var members map[string]json.RawMessage
	out := full{Raw: raw}
	if err := errors.Join(json.Unmarshal(raw, &members), json.Unmarshal(raw, &out.Result)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"command_id", "task_id", "tool", "status", "started_at", "finished_at", "duration_ms", "stdout", "stderr", "result", "artifacts", "error"} {
		if members[name] == nil {
			t.Errorf("the result has no %s: %s", name, raw)
		}
	}
	for _, at := range []string{out.StartedAt, out.FinishedAt} {
		if when, err := time.Parse(time.RFC3339, at); err != nil || when.Location() != time.UTC {
			t.Errorf("%q is no time in UTC", at)
		}
	}
	if (out.Error == nil) != (out.Status == StatusSuccess) {
		t.Errorf("status %s with error %v", out.Status, out.Error)
	}
	_ = json.Unmarshal(out.Result.Result, &out.Fields)
	return out
}

// do sends a command and waits for its result.
func (p *peer) do(tool, args string, more ...string) full {
	p.t.Helper()
	return p.result(p.send(tool, args, more...))
}

// refused checks an error result.
func (p *peer) refused(what string, r full, code Code) {
	p.t.Helper()
	if r.Status != StatusError || r.Error == nil || r.Error.Code != code {
		p.t.Errorf("%s: %s, want %s", what, r.Raw, code)
	}
}

// write makes a file in the root.
func (p *peer) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.config.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(p.config.Root, name))
	return string(b)
}

// until waits for a condition of the outside world.
func (p *peer) until(what string, ok func() bool) {
	p.t.Helper()
	for !ok() {
		select {
		case <-p.ctx.Done():
			p.t.Fatalf("waited in vain for %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// results counts the result frames of a command that came.
func (p *peer) results(id string) (n int) {
	for _, f := range p.server.Frames() {
		if f.Kind == devserver.OnResult && f.ID == id {
			n++
		}
	}
	return n
}
