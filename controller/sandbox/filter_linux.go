package sandbox

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Parts of struct seccomp_data, by their offset in bytes. Both processors are
// little-endian: the low half of an argument comes first, and the kernel takes
// no more of an int.
const (
	dataNumber = 0
	dataArch   = 4
	dataFirst  = 16
	dataSecond = 24
	dataThird  = 32
)

const (
	// x32 is the bit of a third system call table on amd64, with other numbers
	// for the same calls. The number space of arm64 does not reach it.
	x32 = 0x40000000
	// kindMask is the part of a socket's type without its flags.
	kindMask = 0xf
	refused  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// missing is the answer of a kernel that does not know a call.
	missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// nativeArch is the system call table that the filter is for; 0 is none.
var nativeArch = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64,
}[runtime.GOARCH]

// openFamilies are those of the network tier "open". Of netlink there is what
// lists interfaces and addresses, and nothing that leads to daemons.
var openFamilies = []uint32{unix.AF_INET, unix.AF_INET6}

// unless jumps over the next n instructions where the accumulator is not k.
func unless(k uint32, n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(n), K: k}
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func answer(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

// call is what a filter does with one call: its number has to be loaded, and
// do ends with an answer.
func call(number uint32, do ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{unless(number, len(do))}, do...)
}

// noFlag refuses a first argument with a flag.
func noFlag(flag uint32) []unix.SockFilter {
	return []unix.SockFilter{
		load(dataFirst),
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: flag},
		answer(refused),
		answer(unix.SECCOMP_RET_ALLOW),
	}
}

// around refuses the ways around the rest of the rules, in every tier.
func around() []unix.SockFilter {
	return slices.Concat(
		call(unix.SYS_IO_URING_SETUP, answer(refused)),
		// The keys of the user, and what the kernel starts outside to find one,
		// such as a look-up in the DNS.
		call(unix.SYS_ADD_KEY, answer(refused)),
		call(unix.SYS_REQUEST_KEY, answer(refused)),
		call(unix.SYS_KEYCTL, answer(refused)),
		// Landlock refuses to open a queue, when it was made already.
		call(unix.SYS_MQ_OPEN, answer(refused)),
		// A user namespace gives capabilities back, and with them parts of the
		// kernel that nobody else gets to. The flags of clone3 are in memory,
		// where a filter does not see them; everybody knows kernels without it.
		call(unix.SYS_CLONE3, answer(missing)),
		call(unix.SYS_CLONE, noFlag(unix.CLONE_NEWUSER)...),
		call(unix.SYS_UNSHARE, noFlag(unix.CLONE_NEWUSER)...),
		// Limits of another process: a second of processor time would end the
		// runner.
		call(
			unix.SYS_PRLIMIT64, load(dataFirst), unless(0, 1), answer(unix.SECCOMP_RET_ALLOW), answer(refused)),
		// Typing into a terminal that was inherited.
		call(
			unix.SYS_IOCTL, load(dataSecond), unless(unix.TIOCSTI, 1), answer(refused),
			unless(unix.TIOCLINUX, 1), answer(refused), answer(unix.SECCOMP_RET_ALLOW)),
	)
}

// sockets refuses those that are not of a network tier.
func sockets(tier string) []unix.SockFilter {
	if tier != NetworkOpen {
		return call(unix.SYS_SOCKET, answer(refused))
	}
	do := []unix.SockFilter{load(dataFirst)}
	for _, family := range openFamilies {
		do = append(do, unless(family, 1), answer(unix.SECCOMP_RET_ALLOW))
	}
	do = append(do,
		unless(unix.AF_NETLINK, 3), load(dataThird), unless(unix.NETLINK_ROUTE, 1), answer(unix.SECCOMP_RET_ALLOW),
		answer(refused))
	return call(unix.SYS_SOCKET, do...)
}

// filterOf is the program for a network tier.
func filterOf(tier string) []unix.SockFilter {
	p := []unix.SockFilter{
		load(dataArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: nativeArch},
		answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(dataNumber),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: x32},
		answer(unix.SECCOMP_RET_KILL_PROCESS),
	}
	p = slices.Concat(p, around(), sockets(tier))
	// A pair of datagram sockets could be connected anew, to a path. The other
	// kinds cannot.
	p = append(p, call(unix.SYS_SOCKETPAIR,
		load(dataFirst),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.AF_UNIX},
		answer(refused),
		load(dataSecond),
		unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kindMask},
		unless(unix.SOCK_STREAM, 1),
		answer(unix.SECCOMP_RET_ALLOW),
		unless(unix.SOCK_SEQPACKET, 1),
		answer(unix.SECCOMP_RET_ALLOW),
		answer(refused),
	)...)
	return append(p, answer(unix.SECCOMP_RET_ALLOW))
}

// filterCalls puts the calling thread under the filter.
func filterCalls(tier string) error {
	filter := filterOf(tier)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	runtime.KeepAlive(&program)
	return err
}
