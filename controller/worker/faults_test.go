//go:build unix

package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller/devserver"
)

// checkDelivered: every numbered frame is there once, in order.
func checkDelivered(t *testing.T, p *peer) {
	t.Helper()
	for i, f := range p.server.Delivered() {
		if f.Seq != int64(i)+1 {
			t.Fatalf("frame %d has number %d", i+1, f.Seq)
		}
	}
}

// TestDroppedAtEveryFrame: issue point 4, worker.md row 19. The link is lost
// once at every kind of frame: nothing is lost or doubled, and each command
// runs once.
func TestDroppedAtEveryFrame(t *testing.T) {
	for _, on := range []string{devserver.OnConnect, devserver.OnHello, devserver.OnResult, devserver.OnProgress, devserver.OnCommand} {
		for _, do := range []string{devserver.Drop, devserver.DropAfter, devserver.Late} {
			t.Run(on+" "+do, func(t *testing.T) {
				p := serve(t, devserver.WorkerConfig{Rules: []devserver.Rule{{On: on, Nth: 1, Do: do}}}).start()
				frames := []string{}
				for i := range 3 {
					frames = append(frames, fmt.Sprintf(`{"command_id":"c%d","tool":"command.run","args":{"argv":["sh","-c","echo >> log%d"]}}`, i, i))
				}
				for i, frame := range frames {
					id := fmt.Sprintf("c%d", i)
					// A server that has had no answer sends its command again.
					p.until("the result", func() bool {
						if p.results(id) == 0 && p.server.Connected() {
							_ = p.server.Send(p.ctx, []byte(frame)) // a link that is just lost
							time.Sleep(20 * time.Millisecond)
						}
						return p.results(id) > 0
					})
					if i == 0 {
						p.worker.report(&execution{command: Command{CommandID: id}}, nil, "halfway")
					}
				}
				p.do(ToolPing, "{}")
				for i := range 3 {
					if got := p.read(fmt.Sprintf("log%d", i)); got != "\n" {
						t.Errorf("command %d ran %d times", i, len(got))
					}
				}
				checkDelivered(t, p)
			})
		}
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
// the ping, and what it did not take goes over the next link.
func TestHalfOpen(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{Rules: []devserver.Rule{{On: devserver.OnResult, Nth: 1, Do: devserver.Hang}}})
	p.cfg.Link.PongWait = 500 * time.Millisecond
	p.start()
	r := p.do(ToolPing, "{}")
	if p.until("a second link", func() bool { return hellos(p) >= 2 }); r.Status != StatusSuccess {
		t.Errorf("the result is %s", r.Raw)
	}
	checkDelivered(t, p)
}

// TestOffline: issue point 4. 10,000 progress and result frames wait while
// there is no server, and are there once, in order.
func TestOffline(t *testing.T) {
	const frames = 10_000
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
		if err := <-failure; err != nil {
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

// TestWorkerEnds: a command that runs when the worker is ended is told as
// cancelled at the next start, and nothing of it lives.
func TestWorkerEnds(t *testing.T) {
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
	for range 3 {
		if text := <-told; !strings.Contains(text, "HTTP status 401") {
			t.Errorf("told: %q", text)
		}
	}
}
