//go:build unix

package files

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// benchFolders folders of benchFiles files each are the 100,000 files of
	// the issue.
	benchFolders = 1000
	benchFiles   = 100
	// benchEvery is in which of the files the rare word stands.
	benchEvery = 2000
)

// benchTree makes a tree such as a large checkout: nested folders, source-like
// files of 1.5 KiB on average, ignore files, some binaries.
func benchTree(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("func return if err nil range string int the of value request server result name path for switch case struct type const import package error context handler buffer length offset")
	var text bytes.Buffer
	for i := range benchFolders {
		folder := filepath.Join(dir, fmt.Sprintf("a%d", i%10), fmt.Sprintf("b%d", i/10%10), fmt.Sprintf("c%d", i/100))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			b.Fatal(err)
		}
		if i%50 == 0 {
			write(b, filepath.Join(folder, gitIgnore), "*.log\n/skipped/\n")
			write(b, filepath.Join(folder, "skipped", "f.go"), "needleInHay\n")
		}
		for j := range benchFiles {
			text.Reset()
			for range 1 + r.IntN(60) {
				text.WriteByte('\t')
				for range 1 + r.IntN(12) {
					text.WriteString(words[r.IntN(len(words))])
					text.WriteByte(" (.,"[r.IntN(4)])
				}
				text.WriteByte('\n')
			}
			n := i*benchFiles + j
			if n%benchEvery == 0 {
				text.WriteString("\tneedleInHay(42)\n")
			}
			if n%500 == 1 {
				text.WriteString("\x00\x01")
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("file%d.go", j)), text.Bytes(), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	return dir
}

// BenchmarkSearch searches a tree of 100,000 files, and has ripgrep search the
// same where it is on the PATH (rg). Of what each takes the median is told, on
// the wall and of the processors; the second is to be compared on a machine
// that does other work too.
//
//	go test -run '^$' -bench Search -benchtime 10x ./controller/files
func BenchmarkSearch(b *testing.B) {
	dir := benchTree(b)
	s, err := Open(Config{Roots: []string{dir}, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	no := false
	rg, noRipgrep := exec.LookPath("rg")
	for _, bench := range []struct {
		name string
		r    SearchRequest
		rg   []string
	}{
		{"literal", SearchRequest{Query: "needleInHay"}, []string{"-F", "needleInHay"}},
		{"nothing", SearchRequest{Query: "noSuchWord"}, []string{"-F", "noSuchWord"}},
		{"anycase", SearchRequest{Query: "NEEDLEINHAY", CaseSensitive: &no}, []string{"-F", "-i", "NEEDLEINHAY"}},
		{"regex", SearchRequest{Query: `needle\w+\(\d+\)`, Kind: KindRegex}, []string{`needle\w+\(\d+\)`}},
		{"no-literal", SearchRequest{Query: `[A-Z]\w+\(\d+\)`, Kind: KindRegex}, []string{`[A-Z]\w+\(\d+\)`}},
		{"glob", SearchRequest{Query: "needleInHay", Glob: "file0*.go"}, []string{"-F", "-g", "file0*.go", "needleInHay"}},
		{"name", SearchRequest{Query: "file99.", Kind: KindName, MaxResults: MaxResults}, []string{"--files", "-g", "*file99.*"}},
	} {
		b.Run(bench.name+"/here", func(b *testing.B) {
			median(b, syscall.RUSAGE_SELF, func() int {
				found, err := s.Search(b.Context(), bench.r, 16<<20, nil)
				if err != nil || found.Truncated {
					b.Fatal(found, err)
				}
				return len(found.Matches)
			})
		})
		b.Run(bench.name+"/ripgrep", func(b *testing.B) {
			if noRipgrep != nil {
				b.Skip(noRipgrep)
			}
			argv := append([]string{"--no-config", "--no-require-git", "--hidden", "--no-messages"}, bench.rg...)
			if bench.r.Kind != KindName {
				argv = append(argv, "-n", "--column", "--no-heading")
			}
			median(b, syscall.RUSAGE_CHILDREN, func() int {
				cmd := exec.Command(rg, append(argv, dir)...)
				out, err := cmd.Output()
				if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing found
					b.Fatal(err)
				}
				return bytes.Count(out, []byte("\n"))
			})
		})
	}
}

// median measures f, which tells how much it has found; who says whose time of
// the processors counts.
func median(b *testing.B, who int, f func() int) {
	b.Helper()
	found := f() // what is read once is in memory
	var took, used []time.Duration
	for b.Loop() {
		begun, before := time.Now(), processors(b, who)
		if n := f(); n != found {
			b.Fatalf("found %d, and before %d", n, found)
		}
		took, used = append(took, time.Since(begun)), append(used, processors(b, who)-before)
	}
	slices.Sort(took)
	slices.Sort(used)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(used[len(used)/2].Microseconds())/1000, "cpu-ms")
	b.ReportMetric(float64(found), "found")
}

func processors(b *testing.B, who int) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(who, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
