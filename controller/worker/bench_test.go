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
	median := func(b *testing.B, f func(i int)) {
		var took []time.Duration
		for i := 0; b.Loop(); i++ {
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
	b.Run("runner", func(b *testing.B) {
		p := serve(b, devserver.WorkerConfig{})
		w, err := New(p.cfg)
		if err != nil {
			b.Fatal(err)
		}
		defer w.close()
		median(b, func(int) {
			seen := newWatched(w.mask)
			r, err := w.launcher().launch(runSpec{turn: encodeTurn([]string{"true"}, nil), dir: p.config.Root}, func(e *protocol.Event) { seen.apply(e) })
			if err != nil {
				b.Fatal(err)
			}
			if o := seen.ended(r.terminal(), ""); o.status != StatusSuccess {
				b.Fatal(o.err)
			}
		})
	})
	b.Run("worker", func(b *testing.B) {
		p := serve(b, devserver.WorkerConfig{})
		p.start()
		median(b, func(i int) {
			id := fmt.Sprint("c", i)
			p.frame(fmt.Sprintf(`{"command_id":%q,"tool":"command.run","args":{"argv":["true"]}}`, id))
			if r := p.result(id); r.Status != StatusSuccess {
				b.Fatal(string(r.Raw))
			}
		})
	})
}
