package main_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"text/tabwriter"
	"time"
)

// BenchmarkChain measures prp-runner between a harness and a controller beside
// a relay that only copies the harness's bytes, with real processes and pipes,
// and prints a table at the end:
//
//	go test -run '^$' -bench . ./cmd/prp-runner
//
// The figures are of the machine that it runs on; only the two columns and
// their ratio say something. With -benchtime 1x every case runs once.
func BenchmarkChain(b *testing.B) {
	bin := build(b)
	t := &table{}
	for _, size := range []struct {
		name         string
		bytes, count int
	}{
		{"200B", 200, 400_000}, {"2KiB", 2 << 10, 80_000}, {"60KiB", 60 << 10, 5_000},
	} {
		b.Run("lines/"+size.name, func(b *testing.B) { benchLines(b, bin, t, size.name, size.bytes, size.count) })
	}
	b.Run("million", func(b *testing.B) { benchMillion(b, bin, t) })
	b.Run("latency", func(b *testing.B) { benchLatency(b, bin, t) })
	b.Run("receipt", func(b *testing.B) { benchReceipt(b, bin, t) })
	b.Run("start", func(b *testing.B) { benchStart(b, bin, t) })
	b.Run("idle", func(b *testing.B) { benchIdle(b, bin, t) })
	for _, m := range memoryCases {
		b.Run("memory/"+m.name, func(b *testing.B) { benchMemory(b, bin, t, m) })
	}
	t.print()
}

// table is what a person reads at the end.
type table struct{ rows [][4]string }

// add adds a row in the unit that both values have; a relay of 0 is none.
func (t *table) add(what, unit string, relay, runner float64) {
	row := [4]string{what + ", " + unit, "", number(runner), ""}
	if relay != 0 {
		row[1], row[3] = number(relay), fmt.Sprintf("%.2f", runner/relay)
	}
	t.rows = append(t.rows, row)
}

func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func (t *table) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nwhat\trelay or harness alone\trunner\tratio\t")
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", r[0], r[1], r[2], r[3])
	}
	w.Flush()
}

// metric reports a figure and leaves out the time of the whole case, which
// says nothing.
func metric(b *testing.B, v float64, unit string) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(v, unit)
}

// rounds is how often the relay and the runner take turns. The best of each is
// taken: what disturbs a round only makes it slower.
const rounds = 3

// flow is what one flood has shown.
type flow struct {
	rate            float64 // lines a second
	cpu, guard      float64 // ns a line, of the runner or relay and of the guardian
	first           float64 // lines a second of the first firstLines
	peak, firstPeak int     // KiB
}

// firstLines is the beginning that a long run is compared with.
const firstLines = 10_000

// startEvents is how many events come before those of the harness.
const startEvents = 5

// flood lets count lines through a chain.
func (c *chain) flood(count int) flow {
	c.b.Helper()
	pid := c.middle.Process.Pid
	before, guardBefore := cpu(c.b, pid), c.guardCPU()
	from := c.out.count
	var f flow
	start := time.Now()
	c.begin()
	if count > firstLines {
		c.out.to(c.b, from+firstLines)
		f.first = firstLines / time.Since(start).Seconds()
		f.firstPeak, _ = peak(pid)
	}
	if !c.out.to(c.b, from+count+c.extra) {
		c.b.Fatalf("the output ended after %d of %d lines", c.out.count-from, count)
	}
	took := time.Since(start)
	f.rate = float64(count) / took.Seconds()
	f.cpu = float64(cpu(c.b, pid)-before) / float64(count)
	f.guard = float64(c.guardCPU()-guardBefore) / float64(count)
	f.peak, _ = peak(pid)
	if c.harness == nil {
		if got := c.out.lastNumber(`"sourceSeq"`); got != count+startEvents {
			c.b.Fatalf("the last event is number %d, want %d", got, count+startEvents)
		}
	} else if got := c.out.lastNumber(`"messageSeq"`); got != count+1 {
		c.b.Fatalf("the last message is number %d, want %d", got, count+1)
	}
	return f
}

func (c *chain) guardCPU() time.Duration {
	if c.guard == 0 {
		return 0
	}
	return cpu(c.b, c.guard)
}

func (f *flow) better(g flow) {
	if f.rate == 0 {
		*f = g
		return
	}
	f.rate, f.cpu, f.first = max(f.rate, g.rate), min(f.cpu, g.cpu), max(f.first, g.first)
	f.guard, f.peak, f.firstPeak = min(f.guard, g.guard), max(f.peak, g.peak), max(f.firstPeak, g.firstPeak)
}

func benchLines(b *testing.B, bin binaries, t *table, name string, size, count int) {
	harness := []string{bin.flood, "lines", strconv.Itoa(size), strconv.Itoa(count)}
	var relay, runner flow
	for b.Loop() {
		for range rounds {
			c := startRelay(b, bin, harness...)
			relay.better(c.flood(count))
			c.end()
			c = startRunner(b, bin, harness...)
			runner.better(c.flood(count))
			c.end()
		}
	}
	metric(b, runner.rate, "lines/s")
	metric(b, relay.rate, "relay-lines/s")
	metric(b, runner.rate/relay.rate, "of-relay")
	metric(b, runner.cpu, "cpu-ns/line")
	metric(b, relay.cpu, "relay-cpu-ns/line")
	t.add("events of "+name, "lines/s", relay.rate, runner.rate)
	t.add("CPU at "+name, "ns/line", relay.cpu, runner.cpu)
	t.add("guardian's CPU at "+name, "ns/line", 0, runner.guard)
	t.add("peak memory at "+name, "KiB", float64(relay.peak), float64(runner.peak))
}

// benchMillion compares a long run with its own beginning.
func benchMillion(b *testing.B, bin binaries, t *table) {
	const size, count = 200, 1_000_000
	var f flow
	for b.Loop() {
		c := startRunner(b, bin, bin.flood, "lines", strconv.Itoa(size), strconv.Itoa(count))
		f.better(c.flood(count))
		c.end()
	}
	metric(b, f.rate, "lines/s")
	metric(b, f.first, "first-10k-lines/s")
	metric(b, float64(f.peak), "peak-KiB")
	metric(b, float64(f.firstPeak), "first-10k-peak-KiB")
	t.add("first 10,000 of a million events", "lines/s", 0, f.first)
	t.add("a million events", "lines/s", 0, f.rate)
	t.add("peak memory after 10,000 events", "KiB", 0, float64(f.firstPeak))
	t.add("peak memory after a million events", "KiB", 0, float64(f.peak))
}
