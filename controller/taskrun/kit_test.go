//go:build unix

package taskrun

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/devserver"
	"prp/controller/programstest"
	"prp/controller/workerclient"
)

// hang is far longer than anything here takes, also on a loaded machine.
const hang = 90 * time.Second

// programs are prp and the runner.
var programs = programstest.Of("prp", "prp-runner")

func TestMain(m *testing.M) {
	os.Exit(programs.Main(m))
}

// bench is a server, and the worker of one of its runs.
type bench struct {
	t      testing.TB
	ctx    context.Context
	server *devserver.TaskRuns
	http   *httptest.Server
	client *http.Client // nil is the default
	cfg    Config
	offer  devserver.TaskRun
	id     string
	token  string

	// onRetry is called before a call is made again.
	onRetry func()
	mu      sync.Mutex
	told    []string
}

// newBench has times that are short, and a run that is not yet offered.
func newBench(t testing.TB, rules ...devserver.Rule) *bench {
	t.Helper()
	return newBenchOver(t, link{}, rules...)
}

// newBenchOver is newBench with a server that is reached by a link.
func newBenchOver(t testing.TB, l link, rules ...devserver.Rule) *bench {
	t.Helper()
	dir := programs.Dir(t)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	b := &bench{t: t, ctx: ctx, server: devserver.NewTaskRuns(devserver.TaskRunsConfig{Rules: rules})}
	b.http, b.client = l.serve(t, b.server)
	t.Cleanup(func() {
		b.server.Close()
		b.http.Close()
	})
	b.offer.Bundle.Run.Input = "Fix the greeting."
	b.cfg = Config{
		Dir: t.TempDir(), Runner: []string{filepath.Join(dir, "prp-runner")}, AllowUnsandboxed: true,
		Sandboxed: []string{filepath.Join(dir, "prp"), "sandboxed"}, Programs: []string{dir},
		Env: controller.SmallEnv(), Report: b.tell,
		Times: Times{
			FetchFirst: time.Millisecond, FetchMost: 5 * time.Millisecond, Poll: 20 * time.Millisecond, SlowPoll: 40 * time.Millisecond, LastPoll: hang,
			Retry: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}, Resend: time.Millisecond,
		},
	}
	b.greet()
	return b
}

// greet makes the harness a shell that says a greeting in two pieces and ends
// well. A shell starts in a tenth of the time of the fake harness.
func (b *bench) greet() {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "result")
	b.cfg.Programs = append(b.cfg.Programs, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(resultPayload("A greeting.")), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.cfg.Harness = []string{"sh", "-c", greetHarness, path}
}

// resultPayload is the payload of a result.
func resultPayload(summary string) string {
	_, rest, _ := strings.Cut(result(summary), `"payload":`)
	payload, _, _ := strings.Cut(rest, `},{"kind":"event"`)
	return `{"result":` + payload + `}`
}

// greetHarness has the file with its result as its name.
const greetHarness = sayMessage + `
say ready '{"version":"1"}'
while IFS= read -r line; do
	case $line in
	*turn.start*)
		say event '{"eventType":"item.started","itemId":"m","payload":{"kind":"message"}}'
		say event '{"eventType":"item.delta","itemId":"m","payload":{"delta":"Hello, "}}'
		say event '{"eventType":"item.delta","itemId":"m","payload":{"delta":"world."}}'
		say event '{"eventType":"item.completed","itemId":"m","payload":{"kind":"message"}}'
		IFS= read -r result < "$0"
		say result "$result"
		exit 0;;
	esac
done`

func (b *bench) tell(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, text)
	if b.onRetry != nil && strings.Contains(text, "trying again") {
		b.onRetry()
	}
}

// script makes the harness play these steps, each a JSON object.
func (b *bench) script(steps ...string) {
	b.t.Helper()
	text := fmt.Sprintf(`{"schema":"paperclip.fake_harness.script.v1","name":"test","steps":[%s]}`, strings.Join(steps, ","))
	path := filepath.Join(b.t.TempDir(), "script.json")
	b.cfg.Programs = append(b.cfg.Programs, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	dir := programs.Dir(b.t)
	b.cfg.Harness = []string{filepath.Join(dir, "prp"), "harness", "fake", "--script", path}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// message are steps that say a message in pieces.
func message(pieces ...string) string {
	steps := []string{`{"kind":"event","event_type":"item.started","item_id":"m","payload":{"kind":"message"}}`}
	for _, p := range pieces {
		steps = append(steps, `{"kind":"event","event_type":"item.delta","item_id":"m","payload":{"delta":`+quoted(p)+`}}`)
	}
	return strings.Join(append(steps, `{"kind":"event","event_type":"item.completed","item_id":"m","payload":{"kind":"message"}}`), ",")
}

// result are the steps of a run that ends well; more are further members of the
// result.
func result(summary string, more ...string) string {
	return `{"kind":"result","payload":{"schema":"paperclip.run_result.v1","reportedWorkDisposition":"done","summary":` + quoted(summary) +
		`,"completionClaim":{"contractRevision":"1","objectiveSatisfied":true,"criteria":[],"remainingWork":[]},"evidence":[],"verification":[],"attentionRequests":[],"artifacts":[]` +
		strings.Join(more, "") + `}},{"kind":"event","event_type":"turn.completed","payload":{}},{"kind":"event","event_type":"session.closed","payload":{}},{"kind":"exit","code":0}`
}

// offered offers the run, where it is not yet.
func (b *bench) offered() *bench {
	if b.id == "" {
		b.id, b.token = b.server.Add(b.offer)
		b.cfg.TaskRunID = b.id
		config := workerclient.WorkerAPIClientConfig{BaseURL: b.http.URL, Token: b.token, Client: b.client}
		b.cfg.Updater, b.cfg.Sender = workerclient.NewWorkerHTTPUpdater(config), workerclient.NewWorkerHTTPStreamSender(config)
		b.cfg.Secrets = append(b.cfg.Secrets, b.token)
	}
	return b
}

// work runs the worker to its end.
func (b *bench) work() (Outcome, error) { return b.workUntil(b.ctx) }

func (b *bench) workUntil(ctx context.Context) (Outcome, error) {
	b.t.Helper()
	b.offered()
	outcome, err := Run(ctx, b.cfg)
	if b.ctx.Err() != nil {
		b.t.Fatalf("the worker hung; it told %q", b.told)
	}
	return outcome, err
}

// must is work that ends as reported.
func (b *bench) must() devserver.TaskRunState {
	b.t.Helper()
	if outcome, err := b.work(); outcome != Reported || err != nil {
		b.t.Fatalf("the outcome is %d, %v; told %q", outcome, err, b.told)
	}
	return b.state()
}

func (b *bench) state() devserver.TaskRunState { return b.server.State(b.id) }

// await waits for something at the server.
func (b *bench) await(holds func(devserver.TaskRunState) bool) {
	b.t.Helper()
	if err := b.server.Await(b.ctx, b.id, holds); err != nil {
		b.t.Errorf("waited in vain: %v", err)
	}
}

// journal is the trace that a report names.
func (b *bench) journal(st devserver.TaskRunState) string {
	b.t.Helper()
	if st.End == nil || st.End.TracePath == nil {
		b.t.Fatal("the report names no trace")
	}
	text, err := os.ReadFile(filepath.Join(b.cfg.Dir, filepath.FromSlash(*st.End.TracePath)))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// text is the value of a pointer, or a mark for none.
func text(s *string) string {
	if s == nil {
		return "<none>"
	}
	return *s
}

// clean checks that the folder has nothing but journals and workspaces.
func (b *bench) clean() {
	b.t.Helper()
	for _, sub := range []string{runsDir, reportsDir} {
		if left, err := os.ReadDir(filepath.Join(b.cfg.Dir, sub)); err != nil || len(left) > 0 {
			b.t.Errorf("%s has %v, %v", sub, left, err)
		}
	}
}

// kinds are the kinds of the calls, without polls and repetitions of a kind.
func kinds(st devserver.TaskRunState) string {
	var list []string
	claimed := false
	for _, c := range st.Calls {
		claimed = claimed || c.Kind == devserver.OnClaim
		if c.Kind == devserver.OnFetch && claimed || len(list) > 0 && list[len(list)-1] == c.Kind {
			continue
		}
		list = append(list, c.Kind)
	}
	return strings.Join(list, " ")
}

// rule is a rule of the server.
func rule(on string, nth int, do string) devserver.Rule {
	return devserver.Rule{On: on, Nth: nth, Do: do}
}

// read is a file of the workspace.
func (b *bench) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(b.cfg.Workspace, name))
	return string(text)
}

// sayMessage is a function of a shell that says a message of a harness.
const sayMessage = `say() { n=$((n+1)); printf '{"schema":"paperclip.fake_harness.message.v1","messageSeq":%d,"type":"%s","payload":%s}\n' $n "$1" "$2"; }`

// shellHarness is a harness in a shell, which keeps what it is told and its
// arguments. It leaves a child in a session of its own, and ends when there is a
// file named go.
const shellHarness = sayMessage + `
cat /proc/$$/cmdline | tr '\0' ' ' > args
say ready '{"version":"1"}'
while IFS= read -r line; do
	printf '%s\n' "$line" >> told
	case $line in
	*turn.start*)
		setsid sleep 300 & echo $! > child
		say event '{"eventType":"item.started","itemId":"m","payload":{"kind":"message"}}'
		while [ ! -e go ]; do sleep 0.01; done
		say result "$(cat result)"
		exit 0;;
	esac
done`

// shell makes the shell the harness, in a workspace of the test.
func (b *bench) shell() {
	b.t.Helper()
	b.cfg.Workspace = b.t.TempDir()
	if err := os.WriteFile(filepath.Join(b.cfg.Workspace, "result"), []byte(resultPayload("Done.")), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.cfg.Harness = []string{"sh", "-c", shellHarness}
}

// recordArgs has the arguments of the runner kept in a file, which it returns.
func (b *bench) recordArgs() string {
	path := filepath.Join(b.t.TempDir(), "args")
	b.cfg.Runner = append([]string{"sh", "-c", `printf '%s\n' "$@" > "$0"; exec "$@"`, path}, b.cfg.Runner...)
	return path
}

// goOn ends the shell.
func (b *bench) goOn() {
	if err := os.WriteFile(filepath.Join(b.cfg.Workspace, "go"), nil, 0o600); err != nil {
		b.t.Error(err)
	}
}

// running waits until the shell works on its turn.
func (b *bench) running() {
	for b.read("child") == "" && b.ctx.Err() == nil {
		time.Sleep(2 * time.Millisecond)
	}
}

// lives tells whether the child of the shell lives; a zombie does not.
func (b *bench) lives() bool {
	pid := strings.TrimSpace(b.read("child"))
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return pid == "" || err == nil && !strings.Contains(string(stat), ") Z ")
}

// gone checks that the child of the shell does not live.
func (b *bench) gone() {
	b.t.Helper()
	if b.lives() {
		b.t.Errorf("the child %q of the harness lives", b.read("child"))
	}
}
