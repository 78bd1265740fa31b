package sandbox

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// TestRow10Handled: for each version of Landlock from the least on, exactly what
// its kernel can refuse is refused; a later one has what this program knows.
func TestRow10Handled(t *testing.T) {
	const base = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSReadDir | ll.AccessFSRemoveDir |
		ll.AccessFSRemoveFile | ll.AccessFSMakeChar | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock |
		ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym | ll.AccessFSRefer | ll.AccessFSTruncate
	const tcp = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	const scopes = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	const udp = ll.AccessNetBindUDP | ll.AccessNetConnectSendUDP
	last := landlock.Config{HandledAccessFS: base | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix, HandledAccessNet: tcp | udp, Scoped: scopes}
	for abi, want := range map[int]landlock.Config{
		3:  {HandledAccessFS: base},
		4:  {HandledAccessFS: base, HandledAccessNet: tcp},
		5:  {HandledAccessFS: base | ll.AccessFSIoctlDev, HandledAccessNet: tcp},
		6:  {HandledAccessFS: base | ll.AccessFSIoctlDev, HandledAccessNet: tcp, Scoped: scopes},
		7:  {HandledAccessFS: base | ll.AccessFSIoctlDev, HandledAccessNet: tcp, Scoped: scopes},
		8:  {HandledAccessFS: base | ll.AccessFSIoctlDev, HandledAccessNet: tcp, Scoped: scopes},
		9:  {HandledAccessFS: base | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix, HandledAccessNet: tcp, Scoped: scopes},
		10: last, 11: last, 1000: last,
	} {
		if got := handled(Rules{Files: true, Sockets: NetworkNone}, Host{Landlock: abi}); got != want {
			t.Errorf("ABI %d, none: %+v, want %+v", abi, got, want)
		}
		want.HandledAccessNet = 0 // with "open" the network is not asked about
		if got := handled(Rules{Files: true, Sockets: NetworkOpen}, Host{Landlock: abi}); got != want {
			t.Errorf("ABI %d, open: %+v, want %+v", abi, got, want)
		}
	}
}

// judge is what a filter answers to one call: the kernel's rules for a filter,
// as far as this package uses them.
func judge(t *testing.T, program []unix.SockFilter, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	var a uint32
	for i := 0; i < len(program); i++ {
		f := program[i]
		jump := func(holds bool) {
			if holds {
				i += int(f.Jt)
			} else {
				i += int(f.Jf)
			}
		}
		switch f.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			switch at := f.K; {
			case at == dataNumber:
				a = number
			case at == dataArch:
				a = arch
			case (at-dataFirst)%8 == 0 && int(at-dataFirst)/8 < len(args):
				a = uint32(args[(at-dataFirst)/8]) // the low half
			default:
				a = 0
			}
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= f.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == f.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= f.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&f.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return f.K
		default:
			t.Fatalf("instruction %d has the code %#x, which is not known here", i, f.Code)
		}
	}
	t.Fatal("the filter ends without an answer")
	return 0
}

// TestRow10Filter: what the filter of each tier answers, on this processor, call
// by call; the upper half of an argument hides nothing.
func TestRow10Filter(t *testing.T) {
	const allow, kill = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS
	for _, c := range []struct {
		name       string
		number     uint32
		args       []uint64
		none, open uint32
	}{
		{"read", unix.SYS_READ, nil, allow, allow},
		{"IPv4", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM}, refused, allow},
		{"IPv6", unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM}, refused, allow},
		{"unix", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, refused, refused},
		{"unix, upper half", unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_UNIX, unix.SOCK_STREAM}, refused, refused},
		{"packet", unix.SYS_SOCKET, []uint64{unix.AF_PACKET, unix.SOCK_RAW}, refused, refused},
		{"vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, refused, refused},
		{"netlink of routes", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, refused, allow},
		{"netlink of the audit", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, refused, refused},
		{"pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, allow, allow},
		{"pair of packets", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, allow, allow},
		{"pair of datagrams", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, refused, refused},
		{"pair of another family", unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM}, refused, refused},
		{"io_uring", unix.SYS_IO_URING_SETUP, nil, refused, refused},
		{"add_key", unix.SYS_ADD_KEY, nil, refused, refused},
		{"request_key", unix.SYS_REQUEST_KEY, nil, refused, refused},
		{"keyctl", unix.SYS_KEYCTL, nil, refused, refused},
		{"mq_open", unix.SYS_MQ_OPEN, nil, refused, refused},
		{"clone3", unix.SYS_CLONE3, nil, missing, missing},
		{"clone", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_VFORK}, allow, allow},
		{"clone of a user", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, refused, refused},
		{"unshare", unix.SYS_UNSHARE, []uint64{unix.CLONE_FS}, allow, allow},
		{"unshare of a user", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUSER}, refused, refused},
		{"own limits", unix.SYS_PRLIMIT64, []uint64{0}, allow, allow},
		{"limits of another", unix.SYS_PRLIMIT64, []uint64{7}, refused, refused},
		{"size of a terminal", unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, allow, allow},
		{"typing", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, refused, refused},
		{"typing, upper half", unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, refused, refused},
		{"pasting", unix.SYS_IOCTL, []uint64{0, unix.TIOCLINUX}, refused, refused},
		{"other table", x32 | unix.SYS_READ, nil, kill, kill},
	} {
		for tier, want := range map[string]uint32{NetworkNone: c.none, NetworkOpen: c.open, "no such tier": c.none} {
			if got := judge(t, filterOf(tier), nativeArch, c.number, c.args...); got != want {
				t.Errorf("%s, tier %q: %#x, want %#x", c.name, tier, got, want)
			}
		}
	}
	for _, arch := range []uint32{unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
		if got := judge(t, filterOf(NetworkOpen), arch, unix.SYS_READ); (got == kill) != (arch != nativeArch) {
			t.Errorf("a call of the processor %#x: %#x", arch, got)
		}
	}
}

// TestNumbers: each call that the filter names exists on both processors, has a
// number of its own there, and none that is taken for another table's.
func TestNumbers(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := parser.ParseFile(token.NewFileSet(), "filter_linux.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	ast.Inspect(source, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "SYS_") {
			named[s.Sel.Name] = true
		}
		return true
	})
	if len(named) < 12 {
		t.Errorf("the filter names %v, want 12 calls or more", named)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		path := filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go")
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		numbers, taken := map[string]uint64{}, map[uint64]string{}
		ast.Inspect(file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || !named[v.Names[0].Name] {
				return true
			}
			number, err := strconv.ParseUint(v.Values[0].(*ast.BasicLit).Value, 0, 32)
			if err != nil {
				t.Fatal(err)
			}
			name := v.Names[0].Name
			if other := taken[number]; other != "" || number >= x32 {
				t.Errorf("%s: %s has the number %d, which %q has too, or another table", arch, name, number, other)
			}
			numbers[name], taken[number] = number, name
			return true
		})
		for name := range named {
			if _, ok := numbers[name]; !ok {
				t.Errorf("%s has no %s", arch, name)
			}
		}
		if arch == runtime.GOARCH && numbers["SYS_SOCKET"] != unix.SYS_SOCKET {
			t.Errorf("%s: the number of socket is %d, want %d", arch, numbers["SYS_SOCKET"], unix.SYS_SOCKET)
		}
	}
}
