package process

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzParseStat: a name may hold anything, and a parser may be given anything.
func FuzzParseStat(f *testing.F) {
	f.Add("sleep", []byte("7 (x) S 1 2 3 0"))
	f.Add(") S 1 1 1 (", []byte(")"))
	f.Add("a b\nc)", []byte(") "))
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		parseStat(1, raw) // must not panic
		line := "42 (" + name + ") Z 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 123456 999 12 1 2 3 4 5 6 7 8 9 10 11 12 13 17 1 0\n"
		got, ok := parseStat(42, []byte(line))
		want := stat{pid: 42, ppid: 7, pgrp: 8, sid: 9, state: 'Z', threads: 3, start: 123456}
		if !ok || got != want {
			t.Errorf("%q gives %+v, %v, want %+v", line, got, ok, want)
		}
	})
}

func TestParseStatOfThisProcess(t *testing.T) {
	p := openProc()
	defer p.close()
	s, ok := p.stat(os.Getpid())
	if !ok || s.ppid != os.Getppid() || s.state != 'R' && s.state != 'S' || s.threads < 1 || s.start == 0 {
		t.Errorf("%+v, %v", s, ok)
	}
	if newest := p.newest(); newest < 1 {
		t.Errorf("newest number %d", newest)
	}
	seen := false
	p.scan(func(s stat) { seen = seen || s.pid == os.Getpid() })
	if !seen {
		t.Error("a scan does not find this process")
	}
}

// TestThreadIsNoProcess: /proc opens the number of a thread as if it were one.
func TestThreadIsNoProcess(t *testing.T) {
	p := openProc()
	defer p.close()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid := int(number([]byte(task.Name())))
		s, ok := p.stat(tid)
		if !ok {
			continue // it has ended
		}
		if want := tid != os.Getpid(); s.thread != want {
			t.Errorf("%+v: thread %v, want %v", s, s.thread, want)
		}
	}
	if len(tasks) < 2 {
		t.Error("this program has one thread, so the test shows little")
	}
}

func TestDeadAndLiving(t *testing.T) {
	for _, row := range []struct {
		s    stat
		dead bool
	}{
		{stat{state: 'Z', threads: 1}, true},
		{stat{state: 'Z', threads: 0}, true},
		{stat{state: 'Z', threads: 2}, false}, // the main thread has exited, another runs
		{stat{state: 'X'}, true},
		{stat{state: 'D', threads: 1}, false},
		{stat{state: 'T', threads: 1}, false},
		{stat{state: 'S', threads: 1}, false},
	} {
		if got := row.s.dead(); got != row.dead {
			t.Errorf("%+v: dead %v, want %v", row.s, got, row.dead)
		}
	}
}

func TestCgroupDir(t *testing.T) {
	for _, row := range []struct{ line, own, want string }{
		{"30 22 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw", "/user.slice/a", "/sys/fs/cgroup/user.slice/a"},
		{"30 22 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "/", "/sys/fs/cgroup"},
		{"30 22 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "/docker/x/y", "/sys/fs/cgroup/y"},
		{"30 22 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "/docker/xy", ""},
		{"30 22 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "/other", ""},
		{`30 22 0:27 / /mnt/a\040b rw - cgroup2 cgroup2 rw`, "/c", "/mnt/a b/c"},
		{"30 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "/", ""},
		{"30 22 - cgroup2 cgroup2 rw", "/", ""},
	} {
		got, ok := cgroupDir(row.line, row.own)
		if got != row.want || ok != (row.want != "") {
			t.Errorf("%q with %q gives %q, %v, want %q", row.line, row.own, got, ok, row.want)
		}
	}
}

func TestWire(t *testing.T) {
	born := birth{pid: 1 << 22, since: 1 << 40, inLeaf: true}
	message := packWatch(born, Options{noSweep: true})
	kind, u, err := readMessage(strings.NewReader(string(message)))
	if err != nil || kind != msgWatch {
		t.Fatalf("%q, %v", kind, err)
	}
	if got, o := unpackWatch(u); u.bad || got != born || o != (Options{noSweep: true}) {
		t.Errorf("%+v, %+v, want %+v", got, o, born)
	}
	for cut := range len(message) - headerBytes {
		u := &unpacker{rest: slices.Clone(message[headerBytes : headerBytes+cut])}
		if unpackWatch(u); !u.bad {
			t.Errorf("a message cut to %d bytes is taken for whole", cut)
		}
	}
	c := Containment{Swept: 3, Survivors: []Survivor{{PID: 7, Name: "a b", State: "D"}}}
	_, u, _ = readMessage(strings.NewReader(string(packGone(c))))
	if got := unpackGone(u); !reflect.DeepEqual(got, c) {
		t.Errorf("%+v, want %+v", got, c)
	}
	for _, e := range []Exit{{}, {Code: 255}, {Signal: 9, Signaled: true}} {
		_, u, _ = readMessage(strings.NewReader(string(packExit(e))))
		if got := unpackExit(u); got != e {
			t.Errorf("%+v, want %+v", got, e)
		}
	}
	if _, _, err := parseHeader([]byte{msgWatch, 0xff, 0xff, 0xff, 0xff}); err == nil {
		t.Error("a header of 4 GiB is taken")
	}
	_, u, _ = readMessage(strings.NewReader(string(packStop(1500 * time.Millisecond))))
	if got := unpackStop(u); got != 1500*time.Millisecond {
		t.Errorf("stop %v, want 1.5 s", got)
	}
}

func TestCheckDir(t *testing.T) {
	dir := t.TempDir()
	for _, good := range []string{"", ".", dir} {
		if err := CheckDir(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	file := dir + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{dir + "/none", file, "a\x00b"} {
		if err := CheckDir(bad); err == nil {
			t.Errorf("%q is taken for a directory", bad)
		}
	}
}

func TestProbe(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Probe() {
		if seen[m.Name] || m.Detail == "" || !strings.HasSuffix(m.Detail, ".") || m.Used && !m.Available {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
	}
	for _, name := range []string{MeanCgroup, MeanGuardian, MeanSubreaper, MeanPidfd, MeanParentLinks, MeanProcessGroup, MeanUserNS, MeanPidNS, MeanProcChildren} {
		if !seen[name] {
			t.Errorf("no word of %s", name)
		}
	}
}

// TestOrderOnlyComesEarlier is the rule of Child.Stop.
func TestOrderOnlyComesEarlier(t *testing.T) {
	o := newOrder()
	if _, given := o.until(); given {
		t.Fatal("a new order is given")
	}
	o.give(time.Hour)
	first, _ := o.until()
	o.give(2 * time.Hour)
	if now, _ := o.until(); !now.Equal(first) {
		t.Errorf("a later order moved the end from %v to %v", first, now)
	}
	o.give(-time.Second)
	if left := o.left(); left != 0 {
		t.Errorf("%v left, want none", left)
	}
}
