package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// BenchmarkTree captures and restores 100,000 files of 2 GiB, half of it text
// and half holes, beside tar and zstd where they are in PATH. It is no part of
// the tests; it needs 4 GiB in TMPDIR and some minutes:
//
//	go test -run '^$' -bench Tree -benchtime 1x ./controller/checkpoint
//
// With -short the tree has a hundredth of it.
func BenchmarkTree(b *testing.B) {
	files, total := 100_000, int64(2<<30)
	if testing.Short() {
		files, total = files/100, total/100
	}
	top := b.TempDir()
	dir, payload := filepath.Join(top, "tree"), filepath.Join(top, "payload")
	many(b, dir, files, total)
	var p Payload
	b.Run("capture", func(b *testing.B) {
		measure(b, total, func() {
			f, err := os.Create(payload)
			check(b, err)
			p, err = Capture(ctx, dir, f)
			check(b, err)
			check(b, f.Close())
		})
		b.ReportMetric(float64(p.SizeBytes)/(1<<20), "packed-MiB")
		b.ReportMetric(float64(p.EntryCount), "entries")
	})
	b.Run("restore", func(b *testing.B) {
		to := filepath.Join(top, "restored")
		measure(b, total, func() {
			check(b, os.RemoveAll(to))
			f, err := os.Open(payload)
			check(b, err)
			defer f.Close()
			check(b, Restore(ctx, f, p, to))
		})
		check(b, os.RemoveAll(to))
	})
	b.Run("tar-zstd", func(b *testing.B) {
		beside(b, total, fmt.Sprintf("tar --sort=name -C %s -cf - . | zstd -q -3 --single-thread >%s/other", dir, top))
		if info, err := os.Stat(top + "/other"); err == nil {
			b.ReportMetric(float64(info.Size())/(1<<20), "packed-MiB")
		}
	})
	b.Run("zstd-tar", func(b *testing.B) {
		beside(b, total, fmt.Sprintf("rm -rf %[1]s/restored && mkdir %[1]s/restored && zstd -q -dc %[1]s/other | tar -C %[1]s/restored -xf -", top))
	})
}

// many makes a tree: folders of 100 files with text, and holes for the other
// half of the bytes.
func many(b *testing.B, dir string, files int, total int64) {
	b.Helper()
	const perFolder, holes = 100, 8
	each := int(total/2) / files
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("%03d", i/perFolder/10), fmt.Sprintf("%d", i/perFolder))
		if i%perFolder == 0 {
			check(b, os.MkdirAll(sub, 0o755))
		}
		check(b, os.WriteFile(filepath.Join(sub, fmt.Sprintf("file%d.go", i)), text(i, each), 0o644))
	}
	for i := range holes {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("hole%d", i)))
		check(b, err)
		check(b, f.Truncate(total/2/holes))
		check(b, f.Close())
	}
}

// text is the same for the same seed, and about as compressible as source code.
func text(seed, size int) []byte {
	const words = 4096
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	out := make([]byte, 0, size+32)
	for len(out) < size {
		// The product makes small numbers more frequent.
		out = fmt.Appendf(out, "word%x ", random.IntN(words)*random.IntN(words)/words)
		if random.IntN(8) == 0 {
			out = append(out, "\n\t"...)
		}
	}
	return out[:size]
}

// measure runs do with the largest memory of the Go runtime meanwhile.
func measure(b *testing.B, total int64, do func()) {
	b.Helper()
	const often = 10 * time.Millisecond
	b.SetBytes(total)
	stop := make(chan struct{})
	var most uint64
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			most = max(most, memory())
			select {
			case <-stop:
				return
			case <-time.After(often):
			}
		}
	})
	for b.Loop() {
		do()
	}
	close(stop)
	watch.Wait()
	b.ReportMetric(float64(most)/(1<<20), "memory-MiB")
}

// memory is what the Go runtime has from the system and did not give back, in
// bytes.
func memory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// beside runs a line of the shell, if its programs are there.
func beside(b *testing.B, total int64, line string) {
	b.Helper()
	for _, name := range []string{"sh", "tar", "zstd"} {
		if _, err := exec.LookPath(name); err != nil {
			b.Skip(err)
		}
	}
	b.SetBytes(total)
	for b.Loop() {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			b.Fatalf("%s: %v %s", line, err, out)
		}
	}
}
