//go:build unix

package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"prp/controller/awaittest"
	"prp/controller/bridge"
	"prp/controller/devserver"
)

// checkDelivered checks the numbered frames that the server took: each once, in
// order, and where they are given, which.
func checkDelivered(t *testing.T, p *peer, want ...string) {
	t.Helper()
	var got []string
	for i, f := range p.server.Delivered() {
		if f.Seq != int64(i)+1 {
			t.Fatalf("frame %d has number %d", i+1, f.Seq)
		}
		got = append(got, f.Kind+" "+f.ID)
	}
	if want != nil && !slices.Equal(got, want) {
		t.Errorf("the server has %q, want %q", got, want)
	}
}

// misbehaviours are all that a server can do once, with what it then sees:
// how many connections, and whether its first command has to be sent again.
var misbehaviours = []struct {
	rule        devserver.Rule
	connections int
	lost        bool
}{
	{devserver.Rule{On: devserver.OnConnect, Do: devserver.Drop}, 1, false},
	{devserver.Rule{On: devserver.OnConnect, Do: devserver.Late}, 1, false},
	{devserver.Rule{On: devserver.OnHello, Do: devserver.Drop}, 2, false},
	{devserver.Rule{On: devserver.OnHello, Do: devserver.DropAfter}, 2, false},
	{devserver.Rule{On: devserver.OnHello, Do: devserver.Mute}, 1, false},
	{devserver.Rule{On: devserver.OnHello, Do: devserver.Late}, 1, false},
	{devserver.Rule{On: devserver.OnResult, Do: devserver.Drop}, 2, false},
	{devserver.Rule{On: devserver.OnResult, Do: devserver.DropAfter}, 2, false},
	{devserver.Rule{On: devserver.OnResult, Do: devserver.Mute}, 1, false},
	{devserver.Rule{On: devserver.OnResult, Do: devserver.Late}, 1, false},
	{devserver.Rule{On: devserver.OnProgress, Do: devserver.Drop}, 2, false},
	{devserver.Rule{On: devserver.OnProgress, Do: devserver.DropAfter}, 2, false},
	{devserver.Rule{On: devserver.OnProgress, Do: devserver.Mute}, 1, false},
	{devserver.Rule{On: devserver.OnProgress, Do: devserver.Late}, 1, false},
	{devserver.Rule{On: devserver.OnCommand, Do: devserver.Drop}, 2, true},
	{devserver.Rule{On: devserver.OnCommand, Do: devserver.Cut}, 2, true},
	{devserver.Rule{On: devserver.OnCommand, Do: devserver.Mute}, 1, true},
	{devserver.Rule{On: devserver.OnCommand, Do: devserver.Late}, 1, false},
	// The frames that come: a hello, a result, progress, a result.
	{devserver.Rule{On: devserver.OnFrame, Do: devserver.Cut}, 2, false},
	{devserver.Rule{On: devserver.OnFrame, Do: devserver.Cut, Nth: 2}, 2, false},
	{devserver.Rule{On: devserver.OnFrame, Do: devserver.Cut, Nth: 3}, 2, false},
	{devserver.Rule{On: devserver.OnFrame, Do: devserver.Cut, Nth: 4}, 2, false},
}

// TestDroppedAtEveryFrame: issue point 4, worker.md row 19. Once at every kind
// of frame the link is lost, before it, after it or in its middle, or the server
// is mute or late. Each command takes effect once, and each frame is delivered
// once, in order.
func TestDroppedAtEveryFrame(t *testing.T) {
	for _, m := range misbehaviours {
		m.rule.Nth = max(m.rule.Nth, 1)
		t.Run(fmt.Sprintf("%s %d %s", m.rule.On, m.rule.Nth, m.rule.Do), func(t *testing.T) {
			p := serve(t, devserver.WorkerConfig{Rules: []devserver.Rule{m.rule}}).start()
			p.write("log", "")
			for i := range 3 {
				id := fmt.Sprint("c", i)
				frame := fmt.Sprintf(`{"command_id":%q,"tool":"file.write","args":{"path":"log","mode":"append","content":"%s\n"}}`, id, id)
				p.frame(frame)
				if i == 0 && m.lost {
					p.until("the next link", func() bool { return hellos(p) == m.connections })
					p.frame(frame)
				}
				p.result(id)
				if i == 0 {
					p.worker.report(&execution{command: Command{CommandID: id}}, nil, "halfway")
					p.until("progress", func() bool { return len(p.server.Delivered()) == 2 })
				}
			}
			if got := p.read("log"); got != "c0\nc1\nc2\n" {
				t.Errorf("the effects are %q", got)
			}
			if n := p.server.Connections(); n != m.connections {
				t.Errorf("%d connections, want %d", n, m.connections)
			}
			checkDelivered(t, p, "result c0", "progress c0", "result c1", "result c2")
		})
	}
}

// TestCommandTwice: row 3. A command that comes twice at once, or again over the
// next link because nobody knows whether it arrived, takes effect once.
func TestCommandTwice(t *testing.T) {
	frame := `{"command_id":"c","tool":"file.write","args":{"path":"log","mode":"append","content":"x"}}`
	for do, connections := range map[string]int{devserver.Twice: 1, devserver.DropAfter: 2} {
		t.Run(do, func(t *testing.T) {
			p := serve(t, devserver.WorkerConfig{Rules: []devserver.Rule{{On: devserver.OnCommand, Nth: 1, Do: do}}}).start()
			p.write("log", "")
			p.frame(frame)
			p.until("the last link", func() bool { return hellos(p) == connections })
			if connections > 1 {
				p.frame(frame)
			}
			p.result("c")
			p.do(ToolPing, "{}")
			if got := p.read("log"); got != "x" {
				t.Errorf("the effect is %q", got)
			}
			// One that came after the end of the first has the stored answer.
			n := p.results("c")
			if n > 2 {
				t.Errorf("%d results", n)
			}
			want := append(slices.Repeat([]string{"result c"}, n), "result cmd_1")
			checkDelivered(t, p, want...)
		})
	}
}

// TestAckedOnce: with exact counts. What was acknowledged before the link was
// lost does not come again; what was not comes once more.
func TestAckedOnce(t *testing.T) {
	for ack, want := range map[devserver.Ack][3]int{
		devserver.AckSeq: {1, 1, 1}, devserver.AckID: {1, 1, 1}, devserver.AckNone: {3, 2, 1},
	} {
		t.Run(string(ack), func(t *testing.T) {
			p := serve(t, devserver.WorkerConfig{Ack: ack}).start()
			var ids []string
			for i := range 3 {
				ids = append(ids, p.send(ToolPing, "{}"))
				p.result(ids[i])
				if ack != devserver.AckNone {
					p.until("the ack", func() bool { _, waits, err := p.worker.outbox.Next(0); return err == nil && !waits })
				}
				if i < 2 {
					p.server.DropLink()
					p.until("a new link", func() bool { return hellos(p) == i+2 })
				}
			}
			if ack == devserver.AckNone {
				p.until("the frames again", func() bool { return p.results(ids[0]) == 3 && p.results(ids[1]) == 2 })
			}
			p.do(ToolPing, "{}")
			for i, id := range ids {
				if n := p.results(id); n != want[i] {
					t.Errorf("result %d came %d times, want %d", i, n, want[i])
				}
			}
		})
	}
}

func hellos(p *peer) (n int) {
	for _, f := range p.server.Frames() {
		if f.Kind == devserver.OnHello {
			n++
		}
	}
	return n
}

// TestHalfOpen: issue point 4. A server that hangs without a word is noticed by
// the ping, also where so much is on its way that nothing more can be written;
// what it did not take goes over the next link, once.
func TestHalfOpen(t *testing.T) {
	for name, tt := range map[string]struct {
		on       string
		size     int // of a result, in bytes
		pongWait time.Duration
	}{
		"hello":    {devserver.OnHello, 10, time.Second},
		"result":   {devserver.OnResult, 10, time.Second},
		"progress": {devserver.OnProgress, 10, time.Second},
		// More than the buffers of loopback hold; to read it takes a while.
		"full pipe": {devserver.OnHello, 900 << 10, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.size > 1<<10 && testing.Short() {
				t.Skip("much to read")
			}
			t.Parallel() // it waits
			p := serve(t, devserver.WorkerConfig{Rules: []devserver.Rule{{On: tt.on, Nth: 1, Do: devserver.Hang}}})
			p.cfg.Link.PongWait = tt.pongWait
			outbox, err := bridge.OpenOutbox(filepath.Join(p.config.Dir, outboxFile), bridge.OutboxConfig{})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			add := func(kind string, body []byte) {
				if _, err := outbox.Put("c", false, func(seq int64) []byte { return withSeq(body, seq) }); err != nil {
					t.Fatal(err)
				}
				want = append(want, kind+" c")
			}
			add("progress", encodeProgress("c", nil, "halfway"))
			for range 12 {
				add("result", fmt.Appendf(nil, `{"command_id":"c","status":"success","stdout":%q}`, strings.Repeat("x", tt.size)))
			}
			outbox.Close()
			p.start()
			p.until("all over the next link", func() bool { return len(p.server.Delivered()) == len(want) })
			checkDelivered(t, p, want...)
			if n := p.server.Connections(); n < 2 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestOffline: issue point 4. 10,000 progress and result frames wait while
// there is no server, and are there once, in order.
func TestOffline(t *testing.T) {
	frames := 10_000
	if testing.Short() {
		frames = 1000
	}
	p := ready(t)
	p.do(ToolPing, "{}")
	url := p.cfg.Link.URL
	p.end()
	p.cfg.Link.URL = "http://127.0.0.1:1/worker" // nobody is there
	p.start()
	for i := range frames {
		x := &execution{command: Command{CommandID: fmt.Sprint("off_", i), Tool: ToolPing, digest: fmt.Sprint(i)}, begun: time.Now()}
		if i%2 == 0 {
			p.worker.report(x, nil, "frame %d", i)
			continue
		}
		failure := make(chan error, 1)
		p.worker.call(func() { failure <- p.worker.answer(x, succeeded(nil)) })
		if err := awaittest.Came(t, "the answer", failure); err != nil {
			t.Fatal(err)
		}
	}
	p.end()
	p.cfg.Link.URL = url
	p.start()
	last := fmt.Sprint("off_", frames-1)
	p.result(last)
	checkDelivered(t, p)
	seen := 0
	for _, f := range p.server.Frames() {
		if strings.HasPrefix(f.ID, "off_") {
			if want := fmt.Sprint("off_", seen); f.ID != want {
				t.Fatalf("%s came in the place of %s", f.ID, want)
			}
			seen++
		}
	}
	if seen != frames {
		t.Errorf("%d frames came, want %d", seen, frames)
	}
}

// TestKilled: issue point 4. The worker is killed while a command runs: nothing
// of it lives, a restart says OUTCOME_UNKNOWN and does not run it again.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := serve(t, devserver.WorkerConfig{})
	worker := p.apart()
	frame := `{"command_id":"c","task_id":"t","tool":"command.run","args":{"argv":["sh","-c","echo $$ >> log; exec setsid sleep 300"]},"timeout_ms":80000}`
	back := `{"command_id":"b","task_id":"t","tool":"command.run","args":{"argv":["sh","-c","echo x; echo $$ >> back; exec sleep 300"],"background":true}}`
	p.frame(frame)
	p.frame(back)
	p.until("the start", func() bool { return p.read("log") != "" && p.read("back") != "" && p.results("b") == 1 })
	p.kill(worker)
	for _, name := range []string{"log", "back"} {
		p.until("the end of "+name, func() bool { return !alive(strings.TrimSpace(p.read(name))) })
	}
	p.start()
	r := p.result("c")
	p.refused("after the restart", r, CodeOutcomeUnknown)
	p.frame(frame)
	p.until("the same answer", func() bool { return p.results("c") == 2 })
	b := p.result("b")
	if s := p.do(ToolStatus, fmt.Sprintf(`{"process_id":%q,"max_bytes":10}`, b.Fields["process_id"])); s.Fields["state"] != "unknown" {
		t.Errorf("the background process: %s", s.Raw)
	}
	if n := strings.Count(p.read("log"), "\n"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

// TestStoredNotQueued: a worker that ended between storing a result and queuing
// it sends it at the next start.
func TestStoredNotQueued(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{Ack: devserver.AckNone}).start()
	id := p.send(ToolPing, "{}")
	p.result(id)
	p.end()
	outbox := filepath.Join(p.config.Dir, outboxFile)
	if err := os.Remove(outbox); err != nil { // as if nothing was queued
		t.Fatal(err)
	}
	p.start()
	p.until("the result", func() bool { return p.results(id) == 2 })
}

// TestStoredBehindUnknown: remote.md rule 3. A result that was stored and not
// queued is sent at the next start, also where a command that came before it
// had begun and gets its answer then.
func TestStoredBehindUnknown(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	begin(t, p, `{"command_id":"first","task_id":"task","tool":"command.run","args":{"argv":["true"]}}`)
	store, err := bridge.OpenStore(filepath.Join(p.config.Dir, commandsFile), bridge.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(Result{CommandID: "second", Tool: ToolPing, StartedAt: "2026-01-02T03:04:05.000Z", FinishedAt: "2026-01-02T03:04:05.000Z", Status: StatusSuccess, Artifacts: []any{}, Result: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Finish(bridge.Remembered{ID: "second", Tool: ToolPing, Digest: "d", Status: string(StatusSuccess), Seq: 1}, body); err != nil {
		t.Fatal(err)
	}
	store.Close()
	p.start()
	p.refused("the first", p.result("first"), CodeOutcomeUnknown)
	if r := p.result("second"); r.Status != StatusSuccess {
		t.Errorf("the second: %s", r.Raw)
	}
}

// TestWorkerEnds: a command that runs when the worker is ended is told as
// cancelled at the next start, and nothing of it lives.
func TestWorkerEnds(t *testing.T) {
	t.Parallel()
	p := ready(t)
	id := p.send(ToolRun, `{"argv":["sh","-c","echo said; echo $$ > pid; exec setsid sleep 300"]}`)
	p.until("the start", func() bool { return p.read("pid") != "" })
	p.end()
	if pid := strings.TrimSpace(p.read("pid")); alive(pid) {
		t.Errorf("process %s lives without its worker", pid)
	}
	p.start()
	if r := p.result(id); r.Status != StatusCancelled || r.Stdout != "said\n" {
		t.Errorf("the result is %s", r.Raw)
	}
}

// TestLinkLostWhileRunning: remote.md rule 1. A lost link stops no command.
func TestLinkLostWhileRunning(t *testing.T) {
	p := ready(t)
	id := p.send(ToolRun, `{"argv":["sh","-c","echo > began; while [ ! -e go ]; do sleep 0.01; done; echo done"]}`)
	p.until("the start", func() bool { return p.read("began") != "" })
	p.server.DropLink()
	p.until("a new link", func() bool { return hellos(p) == 2 })
	p.write("go", "")
	if r := p.result(id); r.Status != StatusSuccess || r.Stdout != "done\n" {
		t.Errorf("the result is %s", r.Raw)
	}
}

// TestWrongToken: a server that refuses the token is asked again and again, and
// nothing of the token is told.
func TestWrongToken(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Link.Token = nil
	told := make(chan string, 100)
	p.cfg.Report = func(text string) {
		select {
		case told <- text:
		default:
		}
	}
	p.start()
	p.until("attempts", func() bool { return p.worker.State().Attempts > 3 })
	if text := awaittest.Came(t, "a report", told); !strings.Contains(text, "HTTP status 401") {
		t.Errorf("told: %q", text)
	}
}
