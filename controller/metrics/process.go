package metrics

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	// ticks are clock ticks a second in /proc: fixed for programs on Linux,
	// whatever the kernel uses itself.
	ticks = 100
	// leastSpan is what a percentage is measured over at least: the clock has
	// steps of 10 ms.
	leastSpan = time.Second
	// megabyte is 1,000,000 bytes.
	megabyte = 1e6
)

// Fields of /proc/self/stat after the name, by proc(5).
const (
	fieldUser   = 14
	fieldSystem = 15
	// firstAfterName is the number of the first field after the name.
	firstAfterName = 3
)

// Figures are of this process alone, not of the harnesses that it has started. A
// figure that is not known is nil: the system does not tell it, or not enough
// time has passed.
type Figures struct {
	// CPUPercent is the time on processors since the reading before, in percent
	// of one processor; it can be above 100.
	CPUPercent *float64 `json:"cpu_pct,omitempty"`
	// MemoryMB is resident memory in megabytes of 1,000,000 bytes.
	MemoryMB *float64 `json:"memory_mb,omitempty"`
}

// Process reads figures. Each reader has its own, since a percentage belongs to
// the time between two readings. It is safe for use by many goroutines.
type Process struct {
	dir string // /proc/self, but in tests
	now func() time.Time

	mu   sync.Mutex
	at   time.Time
	cpu  float64
	last *float64
}

// NewProcess begins to measure.
func NewProcess() *Process { return newProcess("/proc/self", time.Now) }

func newProcess(dir string, now func() time.Time) *Process {
	p := &Process{dir: dir, now: now, at: now()}
	if cpu := p.cpuSeconds(); cpu != nil {
		p.cpu = *cpu
	}
	return p
}

// Read tells the figures. Within a second of the reading before, the percentage
// is that of before.
func (p *Process) Read() Figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := Figures{CPUPercent: p.last}
	if bytes := p.memory(); bytes != nil {
		mb := tenth(*bytes / megabyte)
		f.MemoryMB = &mb
	}
	// The span is monotonic: a clock that jumps makes no percentage (rule 9).
	now := p.now()
	span := now.Sub(p.at)
	if span < leastSpan {
		return f
	}
	cpu := p.cpuSeconds()
	if cpu == nil || *cpu < p.cpu {
		p.last = nil
		return Figures{MemoryMB: f.MemoryMB}
	}
	percent := tenth((*cpu - p.cpu) / span.Seconds() * 100)
	p.at, p.cpu, p.last = now, *cpu, &percent
	f.CPUPercent = p.last
	return f
}

// tenth keeps one digit: more would be noise.
func tenth(v float64) float64 { return math.Round(v*10) / 10 }

// cpuSeconds is all time on processors, nil where it is not known.
func (p *Process) cpuSeconds() *float64 {
	stat, err := os.ReadFile(p.dir + "/stat")
	if err != nil {
		return nil
	}
	// The name may have spaces and brackets: fields count from its end.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= fieldSystem-firstAfterName {
		return nil
	}
	user, err1 := strconv.ParseUint(string(fields[fieldUser-firstAfterName]), 10, 63)
	system, err2 := strconv.ParseUint(string(fields[fieldSystem-firstAfterName]), 10, 63)
	if err1 != nil || err2 != nil {
		return nil
	}
	seconds := float64(user+system) / ticks
	return &seconds
}

// memory is what is resident, in bytes, nil where it is not known.
func (p *Process) memory() *float64 {
	statm, err := os.ReadFile(p.dir + "/statm")
	if err != nil {
		return nil
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return nil
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 63)
	if err != nil || pages == 0 {
		return nil
	}
	size := float64(pages) * float64(os.Getpagesize())
	return &size
}

// families are the figures by the names that Prometheus gives them.
func (p *Process) families() []Family {
	return []Family{
		{Name: "process_cpu_seconds_total", Help: "Time on processors of this process.", Kind: Counter, Samples: one(p.cpuSeconds())},
		{Name: "process_resident_memory_bytes", Help: "Resident memory of this process.", Kind: Gauge, Samples: one(p.memory())},
	}
}

// one is a sample without labels, or none.
func one(v *float64) []Sample {
	if v == nil {
		return nil
	}
	return []Sample{{Value: *v}}
}
