package programstest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestOnce: many tests at once get the same programs, which are gone in the end.
func TestOnce(t *testing.T) {
	p := Of("prp-harness")
	p.Remove() // of nothing
	var dirs [3]string
	var all sync.WaitGroup
	for i := range dirs {
		all.Go(func() { dirs[i] = p.Dir(t) })
	}
	all.Wait()
	if dirs[0] != dirs[1] || dirs[1] != dirs[2] {
		t.Errorf("the folders are %q", dirs)
	}
	if list, err := filepath.Glob(filepath.Join(dirs[0], "prp-harness*")); err != nil || len(list) != 1 {
		t.Errorf("there are %q, %v", list, err)
	}
	p.Remove()
	if _, err := os.Lstat(dirs[0]); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}
