package process

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDeadLeaves: the empty cgroup of a runner that died together with its
// guardian goes at the next start, and no other one.
func TestDeadLeaves(t *testing.T) {
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	proc := openProc()
	defer proc.close()
	self := unix.Getpid()
	mine := leafOwner{pidNamespace(), self, startOf(proc, self)}
	const distant = 1 << 30
	rows := []struct {
		what string
		name string
		full bool
		goes bool
	}{
		{"a dead owner", leafOwner{mine.namespace, gone.Process.Pid, mine.start}.name(distant), false, true},
		{"a number that is another's now", leafOwner{mine.namespace, self, mine.start - 1}.name(distant), false, true},
		{"a living owner", mine.name(distant), false, false},
		{"a dead owner, a process inside", leafOwner{mine.namespace, gone.Process.Pid, mine.start}.name(distant + 1), true, false},
		{"another namespace", leafOwner{mine.namespace + 1, gone.Process.Pid, mine.start}.name(distant), false, false},
		{"no leaf", leafPrefix + "test-others", false, false},
	}
	parent, err := ownCgroup()
	if err != nil {
		t.Skip("no cgroup can be made here: ", err)
	}
	for _, row := range rows {
		l, err := newLeaf(parent, row.name)
		if err != nil {
			t.Skip("no cgroup can be made here: ", err)
		}
		t.Cleanup(l.remove)
		if row.full {
			pid, inLeaf, err := spawn(launch{path: "/bin/sleep", argv: []string{"sleep", "1000"}, leaf: l, fds: [3]int{0, 1, 2}})
			if err != nil || !inLeaf {
				t.Fatalf("%d, in the leaf: %v, %v", pid, inLeaf, err)
			}
			t.Cleanup(func() {
				unix.Kill(pid, unix.SIGKILL)
				reapWithin(pid, hang)
			})
		}
	}
	removeDeadLeaves(parent, mine.name(0))
	for _, row := range rows {
		_, err := os.Stat(parent + "/" + row.name)
		if os.IsNotExist(err) != row.goes {
			t.Errorf("%s: %q is gone: %v, want %v (%v)", row.what, row.name, os.IsNotExist(err), row.goes, err)
		}
	}
}
