//go:build unix

package worker

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"prp/controller/devserver"
	"prp/protocol"
)

// BenchmarkCommand measures what a command costs beside a bare start of the
// same program: under its runner, and with the way through server and worker.
//
//	go test -run '^$' -bench Command ./controller/worker
func BenchmarkCommand(b *testing.B) {
	median := func(b *testing.B, f func(i int), pause ...time.Duration) {
		var took []time.Duration
		for i := 0; b.Loop(); i++ {
			for _, d := range pause {
				time.Sleep(d)
			}
			begun := time.Now()
			f(i)
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	}
	b.Run("bare", func(b *testing.B) {
		median(b, func(int) {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		})
	})
	for _, spares := range []int{0, maxSpares} {
		name := map[int]string{0: "runner", maxSpares: "ready-runner"}[spares]
		b.Run(name, func(b *testing.B) {
			p := serve(b, devserver.WorkerConfig{})
			w, err := New(p.cfg)
			if err != nil {
				b.Fatal(err)
			}
			w.runs.most = spares
			median(b, func(int) {
				seen := newWatched(w.mask)
				turn := encodeTurn([]string{"true"}, p.config.Root, nil, nil)
				r, err := w.runs.start(runSpec{turn: turn}, func(e *protocol.Event) { seen.apply(e) })
				if err != nil {
					b.Fatal(err)
				}
				if o := seen.ended(r.terminal()); o.status != StatusSuccess {
					b.Fatal(o.err)
				}
			})
			w.runs.close()
			w.jobs.Wait()
			w.close()
		})
	}
	for _, pause := range []time.Duration{0, time.Second} {
		b.Run(fmt.Sprint("worker-every-", pause), func(b *testing.B) {
			p := serve(b, devserver.WorkerConfig{})
			p.start()
			p.do(ToolRun, `{"argv":["true"]}`)
			median(b, func(i int) {
				id := fmt.Sprint("c", i)
				p.frame(fmt.Sprintf(`{"command_id":%q,"tool":"command.run","args":{"argv":["true"]}}`, id))
				if r := p.result(id); r.Status != StatusSuccess {
					b.Fatal(string(r.Raw))
				}
			}, pause)
		})
	}
	b.Run("worker-second-of-two", func(b *testing.B) {
		p := serve(b, devserver.WorkerConfig{})
		p.start()
		run := func(id string) time.Duration {
			begun := time.Now()
			p.frame(fmt.Sprintf(`{"command_id":%q,"tool":"command.run","args":{"argv":["true"]}}`, id))
			if r := p.result(id); r.Status != StatusSuccess {
				b.Fatal(string(r.Raw))
			}
			return time.Since(begun)
		}
		run("before")
		var took []time.Duration
		for i := 0; b.Loop(); i++ {
			time.Sleep(time.Second)
			run(fmt.Sprint("first", i))
			took = append(took, run(fmt.Sprint("second", i)))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	})
}
