package programstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Programs are programs that all tests of a package share.
type Programs struct {
	names []string
	once  sync.Once
	dir   string
	err   error
}

// Of names programs by their folders in cmd.
func Of(names ...string) *Programs { return &Programs{names: names} }

// Dir is the folder that has the programs. The first call builds them, which
// takes seconds, and minutes where nothing is built yet; others wait for it.
func (p *Programs) Dir(t testing.TB) string {
	t.Helper()
	p.once.Do(p.build)
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.dir
}

func (p *Programs) build() {
	if p.dir, p.err = os.MkdirTemp("", "prp-programs-"); p.err != nil {
		return
	}
	// Without what a debugger reads the link takes half of the time.
	args := []string{"build", "-ldflags=-s -w", "-o", p.dir + string(filepath.Separator)}
	for _, name := range p.names {
		args = append(args, "prp/cmd/"+name)
	}
	build := exec.Command("go", args...)
	build.Stderr = os.Stderr
	p.err = build.Run()
}

// Main runs the tests of a package and removes the programs. It returns the exit
// status.
func (p *Programs) Main(m *testing.M) int {
	defer p.Remove()
	return m.Run()
}

// Remove removes the programs, where they were built.
func (p *Programs) Remove() {
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}
