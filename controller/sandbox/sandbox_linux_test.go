package sandbox

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// filesOutside are what a harness cannot do in the tier "workspace".
var filesOutside = map[string][]string{
	"read":                    {"read", "OUT/file"},
	"read by a relative path": {"read", "../REL/file"},
	"read by /proc":           {"read", "/proc/self/root/OUT/file"},
	"read by /proc/self/cwd":  {"read", "/proc/self/cwd/../REL/file"},
	"read after chdir":        {"chdir", "OUT", "file", "TOP/workspace"},
	"list":                    {"list", "OUT"},
	"list the folder above":   {"list", "TOP"},
	"symlink":                 {"symlink", "IN/l", "OUT/file"},
	"relative symlink":        {"symlink", "IN/l", "../../REL/file"},
	"create":                  {"create", "OUT/new"},
	"overwrite":               {"create", "OUT/file"},
	"append":                  {"append", "OUT/file"},
	"truncate":                {"truncate", "OUT/file"},
	"make a folder":           {"mkdir", "OUT/new"},
	"make a pipe":             {"fifo", "OUT/new"},
	"remove":                  {"remove", "OUT/file"},
	"remove a folder":         {"remove", "OUT/empty"},
	"move out":                {"rename", "IN/file", "OUT/new"},
	"move in":                 {"rename", "OUT/file", "IN/new"},
	"move a folder in":        {"rename", "OUT/sub", "IN/new"},
	"link in":                 {"link", "OUT/file", "IN/new"},
	"link out":                {"link", "IN/file", "OUT/new"},
	"execute":                 {"exec", "TOP/outside/true"},
	"in a child's child":      {"child", "child", "read", "OUT/file"},
	"write in a child":        {"child", "create", "OUT/new"},
	"read what is shared":     {"read", "SHARED/file"},
	"write what is external":  {"create", "EXTERNAL/new"},
}

// secrets are what a harness cannot read in any tier. Not every host lets
// another process read them.
var secrets = map[string][]string{
	"environment of another":      {"read", "OTHER/environ"},
	"memory of another":           {"read", "OTHER/maps"},
	"root of another":             {"list", "OTHER/root"},
	"password hashes":             {"read", "/etc/shadow"},
	"the environment of the init": {"read", "/proc/1/environ"},
}

// TestRow10Files: what a harness cannot do to files outside; each with the same
// try without a sandbox, where it can.
func TestRow10Files(t *testing.T) {
	control, p := newPlace(t, NetworkOpen, FilesWorkspace), newPlace(t, NetworkOpen, FilesWorkspace)
	control.furnishAll(t, len(filesOutside))
	p.furnishAll(t, len(filesOutside))
	free := control.many(t, false, filesOutside)
	before := p.snapshot(t)
	inside := p.many(t, true, filesOutside)
	if after := p.snapshot(t); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	for name := range filesOutside {
		if free[name].Status != 0 {
			t.Errorf("%s, without a sandbox: %+v, want that it works", name, free[name])
		}
		if inside[name].Status != statusDenied {
			t.Errorf("%s: %+v, want that it is denied", name, inside[name])
		}
	}
}

// TestRow10Secrets: what other processes and the system keep for themselves.
func TestRow10Secrets(t *testing.T) {
	p := newPlace(t, NetworkOpen, FilesExternalWrite)
	free, inside := p.many(t, false, secrets), p.many(t, true, secrets)
	tried := 0
	for name := range secrets {
		if free[name].Status != 0 {
			t.Logf("%s is not tried: without a sandbox it does not work either: %s", name, free[name].Text)
			continue
		}
		if tried++; inside[name].Status != statusDenied {
			t.Errorf("%s: %+v, want that it is denied", name, inside[name])
		}
	}
	if tried == 0 {
		t.Error("nothing could be tried")
	}
}

// TestRow10Allowed: what each tier leaves, and what the next one adds.
func TestRow10Allowed(t *testing.T) {
	inside := map[string][]string{
		"read": {"read", "IN/file"}, "list": {"list", "IN"}, "create": {"create", "IN/new"}, "truncate": {"truncate", "IN/file"},
		"mkdir": {"mkdir", "IN/new"}, "remove": {"remove", "IN/file"}, "fifo": {"fifo", "IN/new"},
		"rename between folders": {"rename", "IN/file", "IN/sub/new"}, "link between folders": {"link", "IN/file", "IN/sub/new"},
		"symlink": {"symlink", "IN/l", "file"}, "private": {"create", "PRIVATE/new"}, "null": {"append", "/dev/null"},
		"program of the system": {"exec", "/bin/sh", "-c", "exec cat /proc/self/status >/dev/null"},
		"program by a symlink":  {"exec", "TOP/workspace/true-of-the-system"}, "pair of sockets": {"pair"}, "child": {"child", "read", "IN/file"},
	}
	shared := map[string][]string{"read shared": {"read", "SHARED/file"}, "list shared": {"list", "SHARED"}}
	sharedWrite := map[string][]string{"write shared": {"create", "SHARED/new"}, "remove shared": {"remove", "SHARED/file"}}
	external := map[string][]string{"write external": {"create", "EXTERNAL/new"}, "read external": {"read", "EXTERNAL/file"}}
	outside := map[string][]string{"read outside": {"read", "OUT/file"}, "write outside": {"create", "OUT/new"}}
	for _, c := range []struct {
		tier          string
		allow, refuse []map[string][]string
	}{
		{FilesWorkspace, sets(inside), sets(shared, sharedWrite, external, outside)},
		{FilesSharedRead, sets(inside, shared), sets(sharedWrite, external, outside)},
		{FilesExternalWrite, sets(inside, shared, external), sets(sharedWrite, outside)},
		{"no such tier", nil, sets(shared, external, outside)},
		{"", nil, sets(shared, external, outside)},
	} {
		t.Run("tier "+c.tier, func(t *testing.T) {
			p := newPlace(t, NetworkNone, c.tier)
			want, tries := map[string]int{}, map[string][]string{}
			for status, list := range map[int][]map[string][]string{0: c.allow, statusDenied: c.refuse} {
				for _, set := range list {
					maps.Copy(tries, set)
					for name := range set {
						want[name] = status
					}
				}
			}
			p.furnishAll(t, len(tries))
			for name, got := range p.many(t, true, tries) {
				if got.Status != want[name] {
					t.Errorf("%s: %+v, want status %d", name, got, want[name])
				}
			}
		})
	}
}

func sets(list ...map[string][]string) []map[string][]string { return list }

// TestRow10Sockets: with "none" there is no way to another process, with "open"
// there is IP and nothing else; each with a control without a sandbox.
func TestRow10Sockets(t *testing.T) {
	s := listen(t)
	number := strconv.Itoa
	ip := map[string][]string{ // only with "open"
		"tcp": {"dial", "tcp", s.tcp}, "tcp in a child": {"child", "child", "dial", "tcp", s.tcp},
		"udp": {"dial", "udp", s.udp}, "udp in a child": {"child", "dial", "udp", s.udp},
		"listen tcp": {"listen", "tcp", "127.0.0.1:0"}, "listen udp": {"udp-listen", "127.0.0.1:0"},
		"netlink socket": {"socket", number(unix.AF_NETLINK), number(unix.SOCK_RAW)},
	}
	never := map[string][]string{
		"unix": {"dial", "unix", s.unix}, "unix in a child": {"child", "dial", "unix", s.unix},
		"unix datagram": {"dial", "unixgram", s.datagram}, "abstract unix": {"dial", "unix", s.abstract},
		"listen unix": {"listen", "unix", "/proc/self/cwd/s"}, "pair of datagrams": {"pair-datagram"},
	}
	rare := map[string][]string{ // not every host has them, or lets them be made
		"raw socket":    {"socket", number(unix.AF_INET), number(unix.SOCK_RAW), number(unix.IPPROTO_ICMP)},
		"packet socket": {"socket", number(unix.AF_PACKET), number(unix.SOCK_DGRAM)},
		"vsock":         {"socket", number(unix.AF_VSOCK), number(unix.SOCK_STREAM)},
		"crypto socket": {"socket", number(unix.AF_ALG), number(unix.SOCK_SEQPACKET)},
		"IPv6 socket":   {"socket", number(unix.AF_INET6), number(unix.SOCK_DGRAM)},
		"io_uring":      {"io_uring"},
	}
	always := map[string][]string{"pair": {"pair"}}
	tries := map[string][]string{}
	for _, set := range sets(ip, never, rare, always) {
		maps.Copy(tries, set)
	}
	free := newPlace(t, NetworkNone, FilesWorkspace).many(t, false, tries)
	for _, network := range []string{NetworkNone, NetworkOpen, "", "no such tier"} {
		for name, got := range newPlace(t, network, FilesWorkspace).many(t, true, tries) {
			want := statusDenied
			if _, isIP := ip[name]; always[name] != nil || network == NetworkOpen && (isIP || name == "IPv6 socket") {
				want = 0
			}
			switch {
			case free[name].Status != 0 && rare[name] != nil:
				t.Logf("%s is not tried: without a sandbox it does not work either: %s", name, free[name].Text)
			case free[name].Status != 0:
				t.Errorf("%s, without a sandbox: %+v, want that it works", name, free[name])
			case got.Status != want:
				t.Errorf("network %q, %s: %+v, want status %d", network, name, got, want)
			}
		}
	}
}

// TestOtherCalls: another table of system calls, with its own numbers for
// sockets, ends the process.
func TestOtherCalls(t *testing.T) {
	if nativeArch != unix.AUDIT_ARCH_X86_64 {
		t.Skip("this processor has one table")
	}
	p := newPlace(t, NetworkNone, FilesWorkspace)
	if o := p.free(t, "x32"); o.status != 0 || o.signal != 0 {
		t.Skipf("without a sandbox it ends otherwise: %v", o)
	}
	if o := p.confined(t, "x32"); o.signal != syscall.SIGSYS {
		t.Errorf("got %v, want the signal SIGSYS", o)
	}
}

// TestOtherProcesses: a harness does not signal or trace a process outside.
func TestOtherProcesses(t *testing.T) {
	p := newPlace(t, NetworkOpen, FilesExternalWrite)
	other := exec.Command("sleep", "600")
	check(t, other.Start())
	defer other.Wait()
	defer other.Process.Kill()
	pid := strconv.Itoa(other.Process.Pid)
	for _, what := range []string{"signal", "ptrace"} {
		if what == "signal" && Probe().Landlock < abiScopes {
			t.Logf("signals are not tried: Landlock has ABI %d, expected %d", Probe().Landlock, abiScopes)
			continue
		}
		if o := p.free(t, what, pid); o.status != 0 {
			t.Logf("%s is not tried: without a sandbox it does not work either: %v", what, o)
			continue
		}
		if o := p.confined(t, what, pid); o.status != statusDenied {
			t.Errorf("%s: got %v, want that it is denied", what, o)
		}
	}
	if o := p.confined(t, "exec", "/bin/sh", "-c", "sleep 600 & kill $! && wait $!; [ $? -gt 128 ]"); o.status != 0 {
		t.Errorf("a child of its own: %v", o)
	}
}

// TestPrivileges: no capability is left, for root neither, and none comes back.
func TestPrivileges(t *testing.T) {
	p := newPlace(t, NetworkOpen, FilesWorkspace)
	o := p.confined(t, "child", "status")
	for _, line := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if !strings.Contains(o.out, line+":\t0000000000000000\n") {
			t.Errorf("%s is not empty:\n%s", line, o.out)
		}
	}
	if !strings.Contains(o.out, "NoNewPrivs:\t1\n") {
		t.Errorf("new privileges can be had:\n%s", o.out)
	}
}

// TestDescriptors: what the launcher left open is not the harness's.
func TestDescriptors(t *testing.T) {
	p := newPlace(t, NetworkOpen, FilesWorkspace)
	leaked, err := os.Open(p.top + "/outside/0/file")
	check(t, err)
	defer leaked.Close()
	inherit := func(c *exec.Cmd) { c.ExtraFiles = []*os.File{leaked} }
	free := start(t, inherit, p.self, selfTry, "descriptors")
	if !strings.Contains(free.out, "outside/0/file") {
		t.Fatalf("the control does not have it: %v %s", free, free.out)
	}
	o := start(t, inherit, p.wrap(t, []string{p.self, selfTry, "descriptors"})...)
	if o.status != 0 || strings.Contains(o.out, "outside/0/file") {
		t.Errorf("got %v with\n%s", o, o.out)
	}
}

// TestUnprivileged: nothing of this needs root.
func TestUnprivileged(t *testing.T) {
	p := newPlace(t, NetworkNone, FilesWorkspace)
	if os.Geteuid() != 0 {
		t.Skip("the other tests are without rights already")
	}
	p.unprivileged = true
	// The test binary's folder is for its owner alone.
	self := p.top + "/self"
	program, err := os.ReadFile(p.self)
	check(t, err)
	check(t, os.WriteFile(self, program, 0o755))
	p.self = self
	check(t, os.Chmod(filepath.Dir(p.top), 0o755))
	for dir := p.top; dir != filepath.Dir(os.TempDir()) && len(dir) > 1; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o005 != 0o005 {
			t.Skipf("%s is not for everybody", dir)
		}
	}
	check(t, os.Chmod(p.top+"/workspace", 0o777))
	s := listen(t)
	tries := map[string][]string{
		"read outside": {"read", "OUT/file"}, "tcp": {"dial", "tcp", s.tcp}, "udp": {"dial", "udp", s.udp},
		"create": {"create", "TOP/workspace/new"},
	}
	p.furnishAll(t, len(tries))
	free, inside := p.many(t, false, tries), p.many(t, true, tries)
	for name := range tries {
		want := statusDenied
		if name == "create" {
			want = 0
		}
		if free[name].Status != 0 || inside[name].Status != want {
			t.Errorf("%s: without a sandbox %+v, with it %+v, want status %d", name, free[name], inside[name], want)
		}
	}
}

// TestNotStarted: where one part cannot be had nothing is started.
func TestNotStarted(t *testing.T) {
	p := newPlace(t, NetworkNone, FilesWorkspace)
	missing := p.policy
	missing.Private = []string{p.top + "/no-such-folder"}
	plan, err := missing.Plan()
	check(t, err)
	started := p.top + "/workspace/started"
	argv := plan.Wrap([]string{p.self, selfConfine}, []string{p.self, selfTry, "create", started})
	if o := start(t, nil, argv...); o.status != StatusRefused {
		t.Errorf("got %v, want status %d", o, StatusRefused)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the harness was started")
	}
	plan, err = p.policy.Plan()
	check(t, err)
	for argv0, want := range map[string]int{
		"prp-no-such-program": StatusNotFound, p.top + "/no-such-program": StatusRefused, p.top + "/outside/0/file": StatusNotExecutable,
	} {
		if o := start(t, nil, plan.Wrap([]string{p.self, selfConfine}, []string{argv0})...); o.status != want {
			t.Errorf("%s: got %v, want status %d", argv0, o, want)
		}
	}
	// By its name, as a shell finds it, also through a symlink from elsewhere.
	check(t, os.Mkdir(p.top+"/bin", 0o755))
	check(t, os.Symlink(p.self, p.top+"/bin/agent"))
	path := func(c *exec.Cmd) { c.Env = []string{"PATH=" + p.top + "/bin"} }
	argv = plan.Wrap([]string{p.self, selfConfine}, []string{"agent", selfTry, "create", started})
	if o := start(t, path, argv...); o.status != 0 {
		t.Errorf("by its name: %v", o)
	}
}
