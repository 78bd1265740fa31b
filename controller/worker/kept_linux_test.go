package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"prp/controller/devserver"
	"prp/protocol"
)

// endKept ends what a test that has failed leaves.
func (p *peer) endKept() {
	records, _ := filepath.Glob(filepath.Join(p.config.Dir, processesDir, "*", recordFile))
	for _, path := range records {
		var r processRecord
		text, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(text, &r) != nil {
			continue
		}
		for _, owner := range r.Owners {
			owner.signal(syscall.SIGKILL)
		}
	}
}

// keptPeer has a worker that can be killed.
func keptPeer(t *testing.T) *peer {
	t.Helper()
	p := serve(t, devserver.WorkerConfig{})
	t.Cleanup(p.endKept)
	return p
}

// keep starts a process that outlives the worker.
func (p *peer) keep(script string) full {
	p.t.Helper()
	argv, _ := json.Marshal([]string{"sh", "-c", script})
	r := p.do(ToolRun, fmt.Sprintf(`{"argv":%s,"background":true,"keep":true}`, argv))
	if r.Status != StatusSuccess {
		p.t.Fatalf("the answer is %s", r.Raw)
	}
	return r
}

func (p *peer) statusOf(r full, more string) full {
	p.t.Helper()
	return p.do(ToolStatus, fmt.Sprintf(`{"process_id":%q%s}`, r.Fields["process_id"], more))
}

// TestKept: issue point 3, row 9, remote.md rule 5. A background process that
// was told to outlives a worker that is killed. The next worker finds it by pid
// and start, reads its output by offset, and ends its whole tree.
func TestKept(t *testing.T) {
	t.Parallel()
	p := keptPeer(t)
	worker := p.apart()
	r := p.keep("echo one; setsid sleep 300 & echo $! > child; while [ ! -e go ]; do sleep 0.01; done; echo two; exec sleep 300")
	p.until("the child", func() bool { return p.read("child") != "" })
	before := p.statusOf(r, "")
	p.kill(worker)
	p.start()
	after := p.statusOf(r, "")
	for _, name := range []string{"state", "pid", "start_time", "process_id", "command_id"} {
		if after.Fields[name] != before.Fields[name] || after.Fields[name] == nil {
			t.Errorf("%s is %v, was %v", name, after.Fields[name], before.Fields[name])
		}
	}
	if after.Fields["state"] != "running" || after.Fields["pid"] != r.Fields["pid"] {
		t.Errorf("after the restart: %s", after.Raw)
	}
	p.write("go", "")
	p.until("the output", func() bool {
		out, _ := p.statusOf(r, `,"max_bytes":100,"offset":4`).Fields["output"].(map[string]any)
		return out["content"] == "two\n" && out["next_offset"] == 8.0
	})
	reply := p.do(ToolCancel, fmt.Sprintf(`{"task_id":"task","command_id":%q}`, r.CommandID))
	if reply.Fields["outcome"] != "cancelled" {
		t.Errorf("the reply is %s", reply.Raw)
	}
	for _, pid := range []string{fmt.Sprint(r.Fields["pid"]), strings.TrimSpace(p.read("child"))} {
		if alive(pid) {
			t.Errorf("process %s lives when the reply is here", pid)
		}
	}
	if s := p.statusOf(r, ""); s.Fields["state"] != "exited" || s.Fields["signal"] != 15.0 {
		t.Errorf("after the end: %s", s.Raw)
	}
}

// TestKeptEndsAlone: a process that ends while there is no worker has its
// status and output told by the next one; a forced cancel ends one that heeds
// no SIGTERM.
func TestKeptEndsAlone(t *testing.T) {
	t.Parallel()
	p := keptPeer(t).start()
	r := p.keep("while [ ! -e go ]; do sleep 0.01; done; echo end; exit 3")
	stubborn := p.keep("trap '' TERM; echo > ready; while :; do sleep 0.1; done")
	p.until("the trap", func() bool { return p.read("ready") != "" })
	p.end()
	for _, one := range []full{r, stubborn} {
		if !alive(fmt.Sprint(one.Fields["pid"])) {
			t.Errorf("process %v has ended with the worker", one.Fields["pid"])
		}
	}
	p.write("go", "")
	p.until("its end", func() bool { return !alive(fmt.Sprint(r.Fields["pid"])) })
	p.start()
	p.until("the state", func() bool { return p.statusOf(r, "").Fields["state"] == "exited" })
	s := p.statusOf(r, `,"max_bytes":100`)
	if s.Fields["exit_code"] != 3.0 || s.Fields["output"].(map[string]any)["content"] != "end\n" {
		t.Errorf("the status is %s", s.Raw)
	}
	reply := p.do(ToolCancel, fmt.Sprintf(`{"task_id":"task","command_id":%q,"mode":"force"}`, stubborn.CommandID))
	if reply.Fields["outcome"] != "cancelled" || alive(fmt.Sprint(stubborn.Fields["pid"])) {
		t.Errorf("the reply is %s", reply.Raw)
	}
}

// TestKeeperKilled: where the keeper is killed, its runner ends the process,
// and nobody knows how it ended.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	p := keptPeer(t).start()
	r := p.keep("echo x; exec sleep 300")
	var record processRecord
	text, err := os.ReadFile(filepath.Join(p.config.Dir, processesDir, fmt.Sprint(r.Fields["process_id"]), recordFile))
	if err := errors.Join(err, json.Unmarshal(text, &record)); err != nil || len(record.Owners) != 2 {
		t.Fatalf("%d owners: %v", len(record.Owners), err)
	}
	record.Owners[0].signal(syscall.SIGKILL)
	p.until("the end", func() bool { return p.statusOf(r, "").Fields["state"] == "unknown" })
	if alive(fmt.Sprint(r.Fields["pid"])) {
		t.Error("the process lives")
	}
}

// TestKeptRefused: what cannot be kept is told, and leaves nothing.
func TestKeptRefused(t *testing.T) {
	t.Parallel()
	p := keptPeer(t).start()
	p.refused("in the foreground", p.do(ToolRun, `{"argv":["ls"],"keep":true}`), CodeInvalidRequest)
	p.refused("no program", p.do(ToolRun, `{"argv":["no-such-program"],"background":true,"keep":true}`), CodeNotStarted)
	if left, _ := os.ReadDir(filepath.Join(p.config.Dir, processesDir)); len(left) != 0 {
		t.Errorf("%d folders are left", len(left))
	}
	command := `{"argv":["ls"],"background":true,"keep":true}`
	p.end()
	p.cfg.Keeper = []string{"/bin/sh", "-c", "exit 0"}
	p.start()
	p.refused("a keeper that dies", p.do(ToolRun, command), CodeOutcomeUnknown)
	p.end()
	p.cfg.Keeper = []string{"/bin/sh", "-c", "echo $$ > " + p.config.Root + "/keeper; exec sleep 300"}
	p.start()
	if r := p.do(ToolRun, command, `,"timeout_ms":1000`); r.Status != StatusTimeout || alive(strings.TrimSpace(p.read("keeper"))) {
		t.Errorf("a keeper that hangs: %s", r.Raw)
	}
	id := p.send(ToolRun, strings.Replace(command, "ls", "id", 1))
	p.until("the hang", func() bool { return alive(strings.TrimSpace(p.read("keeper"))) })
	p.do(ToolCancel, `{"task_id":"task"}`)
	if r := p.result(id); r.Status != StatusCancelled || alive(strings.TrimSpace(p.read("keeper"))) {
		t.Errorf("a cancelled start: %s", r.Raw)
	}
	p.end()
	p.cfg.Keeper = nil
	p.start()
	p.refused("without a keeper", p.do(ToolRun, `{"argv":["ls"],"background":true,"keep":true}`), CodeUnsupported)
}

// TestKeptSecrets: remote.md rules 6 and 7. The values of a kept process are
// masked before they are on disk, and no file with them is left.
func TestKeptSecrets(t *testing.T) {
	t.Parallel()
	const secret = "a secret value"
	p := keptPeer(t)
	p.cfg.Secrets, p.cfg.CommandEnv = append(p.cfg.Secrets, secret), []string{"SECRET=" + secret}
	p.start()
	r := p.keep(`echo "<$SECRET>"; exec sleep 300`)
	p.until("the output", func() bool {
		out, _ := p.statusOf(r, `,"max_bytes":100`).Fields["output"].(map[string]any)
		return out["content"] == "<[masked]>\n"
	})
	files, _ := filepath.Glob(filepath.Join(p.config.Dir, processesDir, "*", "*"))
	for _, path := range files {
		if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), secret) {
			t.Errorf("%s has the secret: %v", path, err)
		}
	}
	if len(files) != 3 {
		t.Errorf("expected the record and two outputs, got %q", files)
	}
}

// TestRenewedToken: remote.md rule 7. A token that was renewed after a process had
// begun is masked in its output, whatever part is read; one that was renewed
// before is known to the keeper of the next process.
func TestRenewedToken(t *testing.T) {
	t.Parallel()
	const renewed = "the-renewed-token"
	p := keptPeer(t)
	current := p.cfg.Link.Token
	p.cfg.Link.Token = func() (string, error) { return current() }
	p.start()
	r := p.keep("echo before " + renewed + " behind; exec sleep 300")
	all := func() string {
		out, _ := p.statusOf(r, `,"max_bytes":100`).Fields["output"].(map[string]any)
		return fmt.Sprint(out["content"])
	}
	p.until("the output", func() bool { return strings.Contains(all(), renewed) })
	current = func() (string, error) { return renewed, nil }
	if _, err := p.worker.linkConfig().Token(); err != nil { // as at a connection
		t.Fatal(err)
	}
	if got := all(); got != "before [masked] behind\n" {
		t.Errorf("the output is %q", got)
	}
	for offset := range 30 {
		out, _ := p.statusOf(r, fmt.Sprintf(`,"offset":%d,"max_bytes":3`, offset)).Fields["output"].(map[string]any)
		text := strings.ReplaceAll(fmt.Sprint(out["content"]), "[masked]", "")
		if strings.ContainsAny(text, "-twkag") {
			t.Errorf("at %d: %q", offset, text)
		}
	}
	if list := p.worker.secrets(); list[len(list)-1] != renewed {
		t.Error("the next keeper does not know the token")
	}
}

// gone is the answer's way to a worker that was killed.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }
func (gone) Close() error              { return nil }

// TestKeptUntold: a worker that is gone before it is told of a start would call
// the command unknown: the keeper ends it.
func TestKeptUntold(t *testing.T) {
	t.Parallel()
	p := keptPeer(t)
	dir := t.TempDir()
	order, err := json.Marshal(keepOrder{
		Dir: dir, Status: processStatus{ProcessID: "p", State: stateRunning}, Turn: encodeTurn([]string{"sh", "-c", "echo $$ > pid; exec sleep 300"}, p.config.Root, nil, nil),
		Cwd: p.config.Root, Runner: p.cfg.Runner, Harness: p.cfg.Harness, Env: p.cfg.Env,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Keep(strings.NewReader(string(order)), gone{}, nil); err != nil {
		t.Fatal(err)
	}
	b := &background{dir: dir}
	if err := b.load(); err != nil || b.record.Reason != protocol.ReasonRunnerShutdown || alive(strconv.FormatInt(b.record.PID, 10)) {
		t.Errorf("the record is %+v, %v", b.record, err)
	}
}

// TestIdentity: remote.md rule 5. A number alone is nobody: neither another
// start nor a zombie is the process.
func TestIdentity(t *testing.T) {
	me := identify(os.Getpid())
	if me.Start == "" || !me.alive() {
		t.Fatalf("this process is %+v", me)
	}
	other := identity{PID: me.PID, Start: me.Start + "1"}
	if other.alive() {
		t.Error("another start of the same number lives")
	}
	other.signal(syscall.SIGKILL) // this test goes on
	if (identity{PID: me.PID}).alive() {
		t.Error("a number without a start lives")
	}
	child, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exit 0"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	stat := fmt.Sprintf("/proc/%d/stat", child.Pid)
	for zombie := false; !zombie; {
		text, err := os.ReadFile(stat)
		if err != nil {
			t.Fatal(err)
		}
		zombie = strings.Contains(string(text), ") Z ")
	}
	if id := identify(child.Pid); id.Start != "" || id.alive() {
		t.Errorf("a zombie is %+v", id)
	}
	if _, err := child.Wait(); err != nil {
		t.Error(err)
	}
}
