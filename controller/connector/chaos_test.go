//go:build unix

package connector

import (
	"flag"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"prp/controller/devserver"
)

var (
	chaosSteps = flag.Int("chaos-steps", 0, "steps of TestChaos, instead of its own number")
	chaosSeed  = flag.Uint64("chaos-seed", 0, "seed of TestChaos, instead of a new one")
)

// chaosPieces is how many texts a run of the test says, one each few
// milliseconds, and chaosEvents how many events it has with its begin and end:
// nine before them, then the result, the exit and the terminal.
const (
	chaosPieces = 60
	chaosEvents = chaosPieces + 12
)

// chaos is a connector in a process of its own, and what has happened to it.
type chaos struct {
	*world
	rng   *rand.Rand
	child *exec.Cmd
	runs  []string
	hurt  map[string]bool // runs that were going when their connector was killed
}

// TestChaos: whatever happens to the link, the transport and the connector's
// process, in any order, each event of a run comes once, in order; where the
// connector was killed, those that it had not put on disk are told as lost, by
// number (rows 3, 9 and 17, remote.md rules 1 and 4). The counts are exact:
// [world.over] wants each number of the run's events once or told.
//
//	go test ./controller/connector -run TestChaos -chaos-steps 300 -timeout 30m
func TestChaos(t *testing.T) {
	t.Parallel()
	steps, seed := 24, *chaosSeed
	if testing.Short() {
		steps = 8
	}
	if *chaosSteps > 0 {
		steps = *chaosSteps
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	c := &chaos{world: settleFor(t, devserver.ConnectorConfig{}, hang+time.Duration(steps)*5*time.Second), rng: rand.New(rand.NewPCG(seed, 0)), hurt: map[string]bool{}}
	t.Logf("-chaos-seed %d", seed)
	c.agent("talks", strings.Replace(many(chaosPieces), `"steps":[`, `"steps":[{"kind":"delay","milliseconds":5},`, 1), func(a *Agent) {
		a.Harness = strings.Replace(a.Harness, "--delay-ms 0 ", "", 1)
	})
	c.place.Socket = 50 * time.Millisecond
	c.child = c.world.child()
	for range steps {
		c.step()
	}
	c.server.Misbehave()
	c.check()
}

// step is one thing that happens.
func (c *chaos) step() {
	c.t.Helper()
	what := []struct {
		name string
		do   func()
	}{
		{"create", func() { c.runs = append(c.runs, c.insist("talks")) }},
		{"create two", func() { c.runs = append(c.runs, c.insist("talks"), c.insist("talks")) }},
		{"drop", func() { c.server.Quit(0) }},
		{"close", func() { c.server.Quit(1000) }},
		{"drop at an event", func() { c.spoil("run_event", devserver.Drop) }},
		{"drop after an event", func() { c.spoil("run_event", devserver.DropAfter) }},
		{"lose an acknowledgement", func() { c.spoil("run_event", devserver.Mute) }},
		{"https", func() { c.transport("https", rule("connect", 0, "http-503")) }},
		{"https with faults", func() {
			n := c.server.Called("post") + 1 + c.rng.IntN(4)
			m := c.server.Called("poll") + 1 + c.rng.IntN(4)
			c.transport("https", rule("connect", 0, "http-503"), rule("post", n, devserver.DropAfter), rule("poll", m, devserver.DropAfter))
		}},
		{"websocket", func() { c.transport("websocket") }},
		{"kill", c.killed},
		{"drain", c.drained},
	}
	next := what[c.rng.IntN(len(what))]
	c.t.Log(next.name)
	next.do()
	time.Sleep(time.Duration(c.rng.IntN(100)) * time.Millisecond) // so that steps fall anywhere
}

// spoil has one of the next frames of a kind go wrong.
func (c *chaos) spoil(kind, do string) {
	c.server.Misbehave(rule(kind, c.server.Called(kind)+1+c.rng.IntN(20), do))
}

// transport has the connector change to a transport, if it is not there.
func (c *chaos) transport(want string, rules ...devserver.Rule) {
	c.t.Helper()
	c.server.Misbehave(rules...)
	c.until("a session by "+want, func() bool {
		now := c.server.Transport()
		if want == "https" && now == "websocket" { // also one that was accepted before the rules were set
			c.server.Quit(0)
		}
		return now == want
	})
}

// killed kills the connector in the middle of a run and starts another one.
func (c *chaos) killed() {
	c.t.Helper()
	run, some := c.insist("talks"), c.rng.IntN(chaosEvents)
	c.runs = append(c.runs, run)
	c.until("some of the run", func() bool {
		events, over, _ := c.server.Delivered(run)
		return over || len(events) >= some
	})
	for _, run := range c.runs {
		if !c.server.Over(run) {
			c.hurt[run] = true
		}
	}
	c.kill(c.child)
	c.child = c.world.child()
}

// drained ends the connector as an operator does and starts another one.
func (c *chaos) drained() {
	c.t.Helper()
	c.until("a connector", c.server.Registered) // it heeds signals by then
	if err := c.child.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := c.child.Wait(); err != nil {
		c.t.Fatalf("the connector ended with %v", err)
	}
	c.until("nobody", func() bool { return !c.server.Registered() })
	c.child = c.world.child()
}

// check counts what has come of each run.
func (c *chaos) check() {
	c.t.Helper()
	lost := 0
	for _, run := range c.runs {
		events, end := c.over(run)
		if warned(events, "events_lost") {
			lost++
		}
		switch {
		case !c.hurt[run] && (end["status"] != "succeeded" || warned(events, "events_lost")):
			c.t.Errorf("%s: nothing was done to it, and the completion is %v after %s", run, end, kinds(events))
		case !slices.Contains([]any{"succeeded", "cancelled", "unknown"}, end["status"]):
			c.t.Errorf("%s: the completion is %v", run, end)
		case end["status"] == "succeeded" && !warned(events, "events_lost"):
			if n := len(events); n != chaosEvents {
				c.t.Errorf("%s: %d events, want %d: %s", run, n, chaosEvents, kinds(events))
			}
		}
	}
	c.t.Logf("%d runs, %d of them going when their connector was killed, %d with events lost by that", len(c.runs), len(c.hurt), lost)
}
