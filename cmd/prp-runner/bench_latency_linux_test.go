package main_test

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"
)

// paceRate is lines or commands a second where latency is measured.
const paceRate = 500

// benchLatency is the time from just before the harness's write to just after
// the controller's read.
func benchLatency(b *testing.B, bin binaries, t *table) {
	// In turns, so that a moment in which the machine is slow is in both.
	const size, count, turns = 200, 250, 10
	harness := []string{bin.flood, "paced", strconv.Itoa(size), strconv.Itoa(count), strconv.Itoa(paceRate)}
	var relay, runner []time.Duration
	for b.Loop() {
		for range turns {
			c := startRelay(b, bin, harness...)
			relay = append(relay, c.latencies(count)...)
			c.end()
			c = startRunner(b, bin, harness...)
			runner = append(runner, c.latencies(count)...)
			c.end()
		}
	}
	report(b, t, "latency", relay, runner)
}

// stepped is how far the wall clock may move against the monotonic one while
// latencies are measured by it: two processes share only the wall clock.
const stepped = time.Millisecond

func (c *chain) latencies(count int) []time.Duration {
	c.b.Helper()
	const member = `"payload":{"at":`
	out := make([]time.Duration, 0, count)
	start := time.Now()
	c.begin()
	for len(out) < count {
		chunk := c.out.read(c.b)
		now := time.Now().UnixNano()
		if len(chunk) == 0 {
			c.b.Fatalf("the output ended after %d of %d lines", len(out), count)
		}
		for {
			_, rest, ok := bytes.Cut(chunk, []byte(member))
			if !ok {
				break
			}
			digits, _, _ := bytes.Cut(rest, []byte(","))
			at, err := strconv.ParseInt(string(digits), 10, 64)
			if err != nil {
				c.b.Fatal(err)
			}
			out = append(out, time.Duration(now-at))
			chunk = rest
		}
	}
	end := time.Now()
	if moved := end.Round(0).Sub(start.Round(0)) - end.Sub(start); moved.Abs() > stepped {
		c.b.Fatalf("the wall clock was set by %v meanwhile; run it again", moved)
	}
	return out
}

// benchReceipt is the time from a command's write to the read of its receipt;
// for the relay that of the same line there and back.
func benchReceipt(b *testing.B, bin binaries, t *table) {
	const count = 1_000
	var relay, runner []time.Duration
	for b.Loop() {
		c := startRunner(b, bin, bin.flood, "quiet")
		c.begin()
		c.command("turn.start", `{"turnId":"turn_1","text":"work"}`)
		c.out.to(b, c.out.count+4) // two events, two receipts
		runner = append(runner, c.answers(count)...)
		c.end()
		relay = append(relay, startEcho(b, bin).answers(count)...)
	}
	report(b, t, "receipt", relay, runner)
}

// startEcho is a relay between the controller and itself.
func startEcho(b *testing.B, bin binaries) *chain {
	b.Helper()
	c := &chain{b: b}
	theirIn, in := pipe(b)
	out, theirOut := pipe(b)
	c.in, c.out = in, newLines(out)
	c.middle = c.launch(theirIn, theirOut, bin.flood, "relay")
	b.Cleanup(func() { in.Close() })
	return c
}

func (c *chain) answers(count int) []time.Duration {
	c.b.Helper()
	out := make([]time.Duration, 0, count)
	for range count {
		line := c.line("turn.steer", `{"turnId":"turn_1","text":"a little to the left"}`)
		start := time.Now()
		c.write(line)
		if !c.out.to(c.b, c.out.count+1) {
			c.b.Fatal("the output ended")
		}
		out = append(out, time.Since(start))
		time.Sleep(time.Second / paceRate)
	}
	return out
}

// report tells the quantiles of two sets of times in microseconds.
func report(b *testing.B, t *table, what string, relay, runner []time.Duration) {
	slices.Sort(relay)
	slices.Sort(runner)
	for _, q := range []struct {
		name string
		part float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} {
		at := func(sorted []time.Duration) float64 {
			return float64(sorted[int(q.part*float64(len(sorted)-1))]) / 1e3
		}
		metric(b, at(runner), q.name+"-us")
		metric(b, at(relay), "relay-"+q.name+"-us")
		t.add(what+" "+q.name, "us", at(relay), at(runner))
	}
}
