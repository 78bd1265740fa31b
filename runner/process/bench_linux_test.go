package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkStart is the time from Open until a harness has been started, with
// a guardian and without: the difference is what a guardian costs at the worst,
// where nothing else is done meanwhile. Its private memory is reported too.
func BenchmarkStart(b *testing.B) {
	for _, m := range modes {
		b.Run(strings.ReplaceAll(m.name, " ", "_"), func(b *testing.B) {
			memory := 0
			for b.Loop() {
				s, err := Open(m.o)
				if err != nil {
					b.Fatal(err)
				}
				c, err := s.Start(Spec{Argv: []string{"/bin/sh", "-c", "read x"}})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if s.guard != nil && memory == 0 {
					memory = private(b, s.guard.pid)
				}
				closeAll([]*os.File{c.Stdin, c.Stdout, c.Stderr})
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			if memory > 0 {
				b.ReportMetric(float64(memory), "guardian-KiB")
			}
		})
	}
}

// BenchmarkEnd is the time from a harness's natural exit until nothing is left,
// when there was nothing but the harness, and when a daemon was.
func BenchmarkEnd(b *testing.B) {
	for _, m := range modes {
		for name, body := range map[string]string{"alone": "exit 0", "daemon": "setsid sleep 1000 & exit 0"} {
			b.Run(strings.ReplaceAll(m.name, " ", "_")+"/"+name, func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					s, err := Open(m.o)
					if err != nil {
						b.Fatal(err)
					}
					c, err := s.Start(Spec{Argv: []string{"/bin/sh", "-c", body}, Env: testEnv})
					if err != nil {
						b.Fatal(err)
					}
					<-c.Exited()
					b.StartTimer()
					c.Kill()
					<-c.Gone()
					b.StopTimer()
					closeAll([]*os.File{c.Stdin, c.Stdout, c.Stderr})
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
		}
	}
}

// private is what a process has in memory that it shares with nobody, in KiB.
func private(b *testing.B, pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "Private_Dirty:" || f[0] == "Private_Clean:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				b.Fatal(err)
			}
			total += n
		}
	}
	return total
}
