package main_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// benchStart is the wall time of the script happy-path without delays, from
// the start of the process to its end, beside that of the harness alone.
func benchStart(b *testing.B, bin binaries, t *table) {
	const runs = 20
	script := []string{bin.harness, "fake", "--script", "happy-path", "--delay-ms", "0"}
	var alone, chained []time.Duration
	for b.Loop() {
		for range runs {
			alone = append(alone, happy(b, `{"schema":"paperclip.fake_harness.command.v1","commandId":"c1","type":"session.open","payload":{}}
{"schema":"paperclip.fake_harness.command.v1","commandId":"c2","type":"turn.start","payload":{"turnId":"turn_1","text":"work"}}
`, `"session.closed"`, script...))
			c := &chain{b: b}
			commands := c.line("run.prepare", "{}") + c.line("session.open", "{}") + c.line("turn.start", `{"turnId":"turn_1","text":"work"}`)
			argv := append([]string{bin.runner, "--fake-harness", bin.harness, "--script", "happy-path", "--delay-ms", "0"}, runnerIDs...)
			chained = append(chained, happy(b, commands, `"runTerminalState":"succeeded"`, argv...))
		}
	}
	slices.Sort(alone)
	slices.Sort(chained)
	x, y := float64(alone[len(alone)/2])/1e6, float64(chained[len(chained)/2])/1e6
	metric(b, y, "ms")
	metric(b, x, "harness-ms")
	metric(b, y/x, "of-harness")
	t.add("happy-path, median", "ms", x, y)
	t.add("happy-path, best", "ms", float64(alone[0])/1e6, float64(chained[0])/1e6)
}

// happy runs a program on commands that are written at once.
func happy(b *testing.B, commands, want string, argv ...string) time.Duration {
	b.Helper()
	c := &chain{b: b}
	theirIn, in := pipe(b)
	out, theirOut := pipe(b)
	c.in, c.out = in, newLines(out)
	start := time.Now()
	cmd := c.launch(theirIn, theirOut, argv...)
	c.write(commands)
	c.out.rest(b)
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%v: %v", argv, err)
	}
	took := time.Since(start)
	in.Close()
	out.Close()
	if !bytes.Contains(c.out.kept(), []byte(want)) {
		b.Fatalf("expected %q at the end, got %.2000q", want, c.out.kept())
	}
	return took
}

// benchIdle counts how often runner and guardian wake up while nothing
// happens.
func benchIdle(b *testing.B, bin binaries, t *table) {
	const settle, watch = 500 * time.Millisecond, 4 * time.Second
	var runner, relay float64
	for b.Loop() {
		c, r := startRunner(b, bin, bin.flood, "quiet"), startRelay(b, bin, bin.flood, "quiet")
		c.begin()
		time.Sleep(settle)
		pid := c.middle.Process.Pid
		mine, theirs := wakes(pid, c.guard), wakes(r.middle.Process.Pid)
		if c.guard == 0 || mine == 0 {
			b.Fatalf("expected a guardian and threads that have slept, got pid %d and %d sleeps", c.guard, mine)
		}
		time.Sleep(watch)
		runner = float64(wakes(pid, c.guard)-mine) / watch.Seconds()
		relay = float64(wakes(r.middle.Process.Pid)-theirs) / watch.Seconds()
		c.end()
		r.begin()
		r.end()
	}
	metric(b, runner, "wakes/s")
	t.add("wake-ups while idle, with the guardian", "1/s", relay, runner)
}

// memoryCase is something that may not make the runner grow.
type memoryCase struct {
	name, what string
	harness    []string
	unread     time.Duration // how long the controller does not read
	lines      int           // of the harness, that are awaited
	ends       bool          // the runner ends by itself
}

const gibibyte = "1073741824"

var memoryCases = []memoryCase{
	{"idle", "idle", []string{"quiet"}, time.Second, 0, false},
	{"unread", "of a flood that nobody reads for 5 s", []string{"lines", "200", "400000"}, 5 * time.Second, 400_000, false},
	{"unread60KiB", "of one of long lines", []string{"lines", "61440", "4000"}, 2 * time.Second, 4_000, false},
	{"endless", "of 1 GiB on stdout without a line end", []string{"raw", "stdout", gibibyte, "0"}, 0, 0, true},
	{"stderr", "of 1 GiB on stderr in lines", []string{"raw", "stderr", gibibyte, "200"}, 0, 1, false},
	{"stderr-endless", "of 1 GiB on stderr without a line end", []string{"raw", "stderr", gibibyte, "0"}, 0, 1, false},
}

// executed tells that a guardian has memory of its own.
func executed(guard int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", guard))
	return err == nil && bytes.HasPrefix(line, []byte("prp-guardian"))
}

// benchMemory takes the highest peak that is seen until the runner's end.
func benchMemory(b *testing.B, bin binaries, t *table, m memoryCase) {
	var runner, guard int
	for b.Loop() {
		c := startRunner(b, bin, append([]string{bin.flood}, m.harness...)...)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				if n, ok := peak(c.middle.Process.Pid); ok {
					runner = max(runner, n)
				}
				if n, ok := peak(c.guard); ok && executed(c.guard) {
					guard = max(guard, n)
				}
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
			}
		}()
		c.begin()
		time.Sleep(m.unread)
		if m.lines > 0 && !c.out.to(b, c.out.count+m.lines+c.extra) {
			b.Fatal("the output ended early")
		}
		if m.ends {
			c.out.rest(b)
		}
		c.end()
		close(stop)
		<-stopped
	}
	metric(b, float64(runner), "peak-KiB")
	metric(b, float64(guard), "guardian-peak-KiB")
	t.add("peak memory "+m.what, "KiB", 0, float64(runner))
	t.add("peak memory of its guardian", "KiB", 0, float64(guard))
}
