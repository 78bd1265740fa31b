package sandbox

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// place has a workspace and what lies around it.
type place struct {
	top, self    string
	policy       Policy
	unprivileged bool // tries run as a user without rights
}

// newPlace makes it. The test is skipped where the host cannot confine.
func newPlace(t *testing.T, network, files string) *place {
	t.Helper()
	if h := Probe(); h.Landlock < abiFiles || !h.Seccomp {
		t.Skipf("this host cannot confine: Landlock ABI %d (%d is needed), seccomp %v", h.Landlock, abiFiles, h.Seccomp)
	}
	self, err := os.Executable()
	check(t, err)
	top := t.TempDir()
	for _, dir := range []string{"workspace/sub", "private", "shared", "external", "outside/sub"} {
		check(t, os.MkdirAll(filepath.Join(top, dir), 0o755))
		check(t, os.WriteFile(filepath.Join(top, dir, "file"), []byte("old content"), 0o644))
	}
	for _, dir := range []string{"workspace", "outside"} {
		check(t, os.WriteFile(filepath.Join(top, dir, "file"), []byte("old content"), 0o644))
	}
	return &place{top: top, self: self, policy: Policy{
		Network: network, Filesystem: files,
		Workspace: top + "/workspace", Private: []string{top + "/private"},
		SharedRead: []string{top + "/shared"}, ExternalWrite: []string{top + "/external"},
	}}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// free tries without a sandbox.
func (p *place) free(t *testing.T, args ...string) outcome {
	t.Helper()
	return start(t, p.prepare, append([]string{p.self, selfTry}, args...)...)
}

// rare are what not every host lets a process do at all.
var rare = []string{
	"/etc/shadow", "/proc/", "io_uring", strconv.Itoa(unix.AF_INET6), strconv.Itoa(unix.AF_PACKET), strconv.Itoa(unix.AF_VSOCK),
	strconv.Itoa(unix.AF_ALG), strconv.Itoa(unix.SOCK_RAW),
}

// works is the control: without a sandbox the try succeeds.
func (p *place) works(t *testing.T, args ...string) {
	t.Helper()
	o := p.free(t, args...)
	for _, word := range rare {
		if o.status != 0 && slices.ContainsFunc(args, func(a string) bool { return a == word || word == "/proc/" && strings.HasPrefix(a, word) }) {
			t.Skipf("without a sandbox it does not work here either: %v", o)
		}
	}
	if o.status != 0 {
		t.Fatalf("without a sandbox: %v, want that it works", o)
	}
}

// confined tries inside.
func (p *place) confined(t *testing.T, args ...string) outcome {
	t.Helper()
	plan, err := p.policy.Plan()
	check(t, err)
	argv := plan.Wrap([]string{p.self, selfConfine}, append([]string{p.self, selfTry}, args...))
	return start(t, p.prepare, argv...)
}

func (p *place) prepare(c *exec.Cmd) {
	c.Dir = p.policy.Workspace
	if p.unprivileged {
		const nobody = 65534
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// snapshot is every file of the place with its content.
func (p *place) snapshot(t *testing.T) string {
	t.Helper()
	var list strings.Builder
	check(t, filepath.WalkDir(p.top, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		list.WriteString(path)
		if d.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			list.WriteString(" " + string(text))
		}
		list.WriteString("\n")
		return nil
	}))
	return list.String()
}

// TestRow10Files: what a harness cannot do to files outside; each with the same
// try without a sandbox, where it can.
func TestRow10Files(t *testing.T) {
	for name, args := range map[string][]string{
		"read":                    {"read", "TOP/outside/file"},
		"read by a relative path": {"read", "../outside/file"},
		"read by /proc":           {"read", "/proc/self/root/TOP/outside/file"},
		"read by /proc/self/cwd":  {"read", "/proc/self/cwd/../outside/file"},
		"read after chdir":        {"chdir", "TOP/outside", "file"},
		"list":                    {"list", "TOP/outside"},
		"list the folder above":   {"list", "TOP"},
		"symlink":                 {"symlink", "TOP/workspace/l", "TOP/outside/file"},
		"relative symlink":        {"symlink", "TOP/workspace/l", "../outside/file"},
		"create":                  {"create", "TOP/outside/new"},
		"overwrite":               {"create", "TOP/outside/file"},
		"append":                  {"append", "TOP/outside/file"},
		"truncate":                {"truncate", "TOP/outside/file"},
		"make a folder":           {"mkdir", "TOP/outside/new"},
		"make a pipe":             {"fifo", "TOP/outside/new"},
		"remove":                  {"remove", "TOP/outside/file"},
		"remove a folder":         {"remove", "TOP/outside/empty"},
		"move out":                {"rename", "TOP/workspace/file", "TOP/outside/new"},
		"move in":                 {"rename", "TOP/outside/file", "TOP/workspace/new"},
		"move a folder in":        {"rename", "TOP/outside/sub", "TOP/workspace/new"},
		"link in":                 {"link", "TOP/outside/file", "TOP/workspace/new"},
		"link out":                {"link", "TOP/workspace/file", "TOP/outside/new"},
		"execute":                 {"exec", "TOP/outside/true"},
		"in a child's child":      {"child", "child", "read", "TOP/outside/file"},
		"write in a child":        {"child", "create", "TOP/outside/new"},
		"read what is shared":     {"read", "TOP/shared/file"},
		"write what is external":  {"create", "TOP/external/new"},
		"environment of another":  {"read", "/proc/PID/environ"},
		"memory of another":       {"read", "/proc/PID/maps"},
		"root of another":         {"list", "/proc/PID/root"},
		"secrets of the system":   {"read", "SECRET"},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := func() (*place, []string) {
				p := newPlace(t, NetworkOpen, FilesWorkspace)
				check(t, os.Mkdir(p.top+"/outside/empty", 0o755))
				copyProgram(t, "true", p.top+"/outside/true")
				return p, p.fill(args)
			}
			control, free := fresh()
			control.works(t, free...)
			p, inside := fresh()
			before := p.snapshot(t)
			o := p.confined(t, inside...)
			if o.status != statusDenied {
				t.Errorf("got %v, want that it is denied", o)
			}
			after := p.snapshot(t)
			if strings.Contains(name, "symlink") {
				check(t, os.Remove(p.top+"/workspace/l")) // a link may be made
				after = p.snapshot(t)
			}
			if after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
}

// fill puts what is known now into a try.
func (p *place) fill(args []string) []string {
	var list []string
	for _, a := range args {
		a = strings.ReplaceAll(a, "/TOP", p.top)
		a = strings.ReplaceAll(a, "TOP", p.top)
		a = strings.ReplaceAll(a, "PID", strconv.Itoa(os.Getpid()))
		a = strings.ReplaceAll(a, "SECRET", "/etc/shadow")
		list = append(list, a)
	}
	return list
}

func copyProgram(t *testing.T, name, to string) {
	t.Helper()
	path, err := exec.LookPath(name)
	check(t, err)
	from, err := os.Open(path)
	check(t, err)
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	check(t, err)
	_, err = io.Copy(f, from)
	check(t, err)
	check(t, f.Close())
}

// TestRow10Allowed: what each tier leaves.
func TestRow10Allowed(t *testing.T) {
	inside := map[string][]string{
		"read": {"read", "TOP/workspace/file"}, "list": {"list", "TOP/workspace"}, "create": {"create", "TOP/workspace/new"},
		"truncate": {"truncate", "TOP/workspace/file"}, "mkdir": {"mkdir", "TOP/workspace/new"},
		"remove": {"remove", "TOP/workspace/file"}, "fifo": {"fifo", "TOP/workspace/new"},
		"rename between folders": {"rename", "TOP/workspace/file", "TOP/workspace/sub/new"},
		"link between folders":   {"link", "TOP/workspace/file", "TOP/workspace/sub/new"},
		"symlink":                {"symlink", "TOP/workspace/l", "file"},
		"private":                {"create", "TOP/private/new"},
		"program of the system":  {"exec", "/bin/sh", "-c", "exec cat /proc/self/status >/dev/null"},
		"pair of sockets":        {"pair"},
	}
	shared := map[string][]string{"read what is shared": {"read", "TOP/shared/file"}}
	external := map[string][]string{"write what is external": {"create", "TOP/external/new"}}
	for _, c := range []struct {
		files         string
		allow, refuse []map[string][]string
	}{
		{FilesWorkspace, []map[string][]string{inside}, []map[string][]string{shared, external}},
		{FilesSharedRead, []map[string][]string{shared}, []map[string][]string{external, {"write what is shared": {"create", "TOP/shared/new"}}}},
		{FilesExternalWrite, []map[string][]string{shared, external}, []map[string][]string{{"read outside": {"read", "TOP/outside/file"}}}},
		{"no such tier", nil, []map[string][]string{shared, external}},
	} {
		for i, list := range [][]map[string][]string{c.allow, c.refuse} {
			for _, tries := range list {
				for name, args := range tries {
					t.Run(c.files+"/"+name, func(t *testing.T) {
						p := newPlace(t, NetworkNone, c.files)
						o := p.confined(t, p.fill(args)...)
						if want := []int{0, statusDenied}[i]; o.status != want {
							t.Errorf("got %v, want status %d", o, want)
						}
					})
				}
			}
		}
	}
}

// servers listen on everything that a harness could reach.
type servers struct{ tcp, udp, unix, datagram, abstract string }

func listen(t *testing.T) servers {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short: the name of a socket has 108 bytes
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	var s servers
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	check(t, err)
	s.unix, s.datagram = dir+"/stream", dir+"/datagram"
	stream, err := net.Listen("unix", s.unix)
	check(t, err)
	datagram, err := net.ListenPacket("unixgram", s.datagram)
	check(t, err)
	s.abstract = "@" + dir
	abstract, err := net.Listen("unix", s.abstract)
	check(t, err)
	s.tcp, s.udp = tcp.Addr().String(), udp.LocalAddr().String()
	t.Cleanup(func() {
		for _, c := range []io.Closer{tcp, udp, stream, datagram, abstract} {
			c.Close()
		}
	})
	return s
}

// TestRow10Sockets: with "none" there is no way to another process, with "open"
// there are IP and nothing else; each with a control without a sandbox.
func TestRow10Sockets(t *testing.T) {
	s := listen(t)
	const none, ip, never = 1, 2, 3 // from which tier on
	number := strconv.Itoa
	for name, c := range map[string]struct {
		tier int
		args []string
	}{
		"tcp":                  {ip, []string{"dial", "tcp", s.tcp}},
		"tcp in a child":       {ip, []string{"child", "child", "dial", "tcp", s.tcp}},
		"udp":                  {ip, []string{"dial", "udp", s.udp}},
		"listen tcp":           {ip, []string{"listen", "tcp", "127.0.0.1:0"}},
		"listen udp":           {ip, []string{"udp-listen", "127.0.0.1:0"}},
		"IPv6 socket":          {ip, []string{"socket", number(unix.AF_INET6), number(unix.SOCK_DGRAM)}},
		"netlink socket":       {ip, []string{"socket", number(unix.AF_NETLINK), number(unix.SOCK_RAW)}},
		"unix":                 {never, []string{"dial", "unix", s.unix}},
		"unix in a child":      {never, []string{"child", "dial", "unix", s.unix}},
		"unix datagram":        {never, []string{"dial", "unixgram", s.datagram}},
		"abstract unix":        {never, []string{"dial", "unix", s.abstract}},
		"listen unix":          {never, []string{"listen", "unix", "TOP/workspace/s"}},
		"raw socket":           {never, []string{"socket", number(unix.AF_INET), number(unix.SOCK_RAW), number(unix.IPPROTO_ICMP)}},
		"packet socket":        {never, []string{"socket", number(unix.AF_PACKET), number(unix.SOCK_DGRAM)}},
		"vsock":                {never, []string{"socket", number(unix.AF_VSOCK), number(unix.SOCK_STREAM)}},
		"crypto socket":        {never, []string{"socket", number(unix.AF_ALG), number(unix.SOCK_SEQPACKET)}},
		"pair of datagrams":    {never, []string{"pair-datagram"}},
		"pair":                 {none, []string{"pair"}},
		"another ring of work": {never, []string{"io_uring"}},
	} {
		t.Run(name, func(t *testing.T) {
			control := newPlace(t, NetworkNone, FilesWorkspace)
			control.works(t, control.fill(c.args)...)
			for tier, network := range map[int]string{none: NetworkNone, ip: NetworkOpen} {
				p := newPlace(t, network, FilesWorkspace)
				want := statusDenied
				if c.tier <= tier {
					want = 0
				}
				if o := p.confined(t, p.fill(c.args)...); o.status != want {
					t.Errorf("with %s: got %v, want status %d", network, o, want)
				}
			}
		})
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
	leaked, err := os.Open(p.top + "/outside/file")
	check(t, err)
	defer leaked.Close()
	inherit := func(c *exec.Cmd) { c.ExtraFiles = []*os.File{leaked} }
	free := start(t, inherit, p.self, selfTry, "descriptors")
	if !strings.Contains(free.out, "outside/file") {
		t.Fatalf("the control does not have it: %v %s", free, free.out)
	}
	plan, err := p.policy.Plan()
	check(t, err)
	o := start(t, inherit, plan.Wrap([]string{p.self, selfConfine}, []string{p.self, selfTry, "descriptors"})...)
	if o.status != 0 || strings.Contains(o.out, "outside/file") {
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
	for name, c := range map[string]struct {
		want int
		args []string
	}{
		"read outside": {statusDenied, []string{"read", "TOP/outside/file"}},
		"tcp":          {statusDenied, []string{"dial", "tcp", s.tcp}},
		"udp":          {statusDenied, []string{"dial", "udp", s.udp}},
		"create":       {0, []string{"create", "TOP/workspace/new"}},
	} {
		if o := p.free(t, p.fill(c.args)...); o.status != 0 {
			t.Errorf("%s, without a sandbox: %v", name, o)
		}
		if o := p.confined(t, p.fill(c.args)...); o.status != c.want {
			t.Errorf("%s: got %v, want status %d", name, o, c.want)
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
		"prp-no-such-program": StatusNotFound, p.top + "/no-such-program": StatusRefused, p.top + "/outside/file": StatusNotExecutable,
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
