package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// proc is a folder as /proc/self, for a process of any history.
type proc struct {
	t   *testing.T
	dir string
	now time.Time
}

func newProc(t *testing.T) *proc { return &proc{t: t, dir: t.TempDir(), now: time.Now()} }

func (p *proc) clock() time.Time { return p.now }

// write sets ticks of user and system time and pages of memory.
func (p *proc) write(user, system, pages int) {
	p.t.Helper()
	stat := fmt.Sprintf("17 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 %d %d 0 0 20 0 9 0 100\n", user, system)
	p.raw(stat, fmt.Sprintf("999 %d 3 4 0 5 0\n", pages))
}

func (p *proc) raw(stat, statm string) {
	p.t.Helper()
	for name, text := range map[string]string{"stat": stat, "statm": statm} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

func text(t *testing.T, f Figures) string {
	t.Helper()
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestFigures: connector.md row 5, "metrics are real or left out, never 0 for
// unknown".
func TestFigures(t *testing.T) {
	p := newProc(t)
	p.write(100, 50, 1000)
	process := newProcess(p.dir, p.clock)
	mb := fmt.Sprintf(`"memory_mb":%v`, tenth(1000*float64(os.Getpagesize())/1e6))
	if got := text(t, process.Read()); got != "{"+mb+"}" {
		t.Errorf("before any time has passed: %s", got)
	}
	p.now = p.now.Add(10 * time.Second)
	p.write(300, 100, 1000) // 2.5 s on processors
	if got, want := text(t, process.Read()), `{"cpu_pct":25,`+mb+`}`; got != want {
		t.Errorf("after 10 s: %s, want %s", got, want)
	}
	p.now = p.now.Add(500 * time.Millisecond)
	p.write(399, 100, 1000)
	if got, want := text(t, process.Read()), `{"cpu_pct":25,`+mb+`}`; got != want {
		t.Errorf("too soon after it: %s, want what was before, %s", got, want)
	}
	p.now = p.now.Add(1500 * time.Millisecond)
	p.write(700, 100, 1000) // 4 s in 2 s: two processors
	if got, want := text(t, process.Read()), `{"cpu_pct":200,`+mb+`}`; got != want {
		t.Errorf("on two processors: %s, want %s", got, want)
	}
	p.now = p.now.Add(10 * time.Second)
	if got, want := text(t, process.Read()), `{"cpu_pct":0,`+mb+`}`; got != want {
		t.Errorf("a process that did nothing, which is known: %s, want %s", got, want)
	}
}

// TestFiguresUnknown: where the system does not tell, nothing is told.
func TestFiguresUnknown(t *testing.T) {
	for name, files := range map[string][2]string{
		"empty": {"", ""}, "another form": {"1 (a) S 1 2", "5"}, "no numbers": {"1 (a) S 1 2 3 4 5 6 7 8 9 10 x y 0", "1 x"},
		"no name": {"1 2 3", "1"}, "no memory": {"", "10 0 0"},
	} {
		p := newProc(t)
		p.raw(files[0], files[1])
		process := newProcess(p.dir, p.clock)
		p.now = p.now.Add(time.Minute)
		if got := text(t, process.Read()); got != "{}" {
			t.Errorf("%s: %s", name, got)
		}
		for _, f := range process.families() {
			if len(f.Samples) != 0 {
				t.Errorf("%s: %s has %v", name, f.Name, f.Samples)
			}
		}
	}
	process := newProcess(filepath.Join(t.TempDir(), "none"), time.Now)
	if got := text(t, process.Read()); got != "{}" {
		t.Errorf("without /proc: %s", got)
	}
}

// TestFiguresReal: this process, on Linux: what it burns is seen, and its memory
// is that of a process.
func TestFiguresReal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("%s tells no figures", runtime.GOOS)
	}
	process := NewProcess()
	at := time.Now().Add(leastSpan + 100*time.Millisecond)
	for n := 0; time.Now().Before(at); n++ {
		_ = strings.Repeat("x", n%100)
	}
	f := process.Read()
	if f.CPUPercent == nil || *f.CPUPercent <= 0 || *f.CPUPercent > 100*float64(runtime.NumCPU())+50 {
		t.Errorf("a second of work is %v", text(t, f))
	}
	if f.MemoryMB == nil || *f.MemoryMB < 1 || *f.MemoryMB > 10_000 {
		t.Errorf("the memory is %v", text(t, f))
	}
}
