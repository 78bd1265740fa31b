package sandbox

import (
	"runtime"
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
)

const (
	// x32 is the bit of a third system call table on amd64, with other numbers
	// for the same calls. The number space of arm64 does not reach it.
	x32 = 0x40000000
	// kindMask is the part of a socket's type without its flags.
	kindMask = 0xf
	refused  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
)

// nativeArch is the system call table that the filter is for; 0 is none.
var nativeArch = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64,
}[runtime.GOARCH]

// openFamilies are those of the network tier "open". Netlink is how programs
// list interfaces and addresses.
var openFamilies = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

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

// socketFilter is the program for a network tier.
func socketFilter(tier string) []unix.SockFilter {
	p := []unix.SockFilter{
		load(dataArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: nativeArch},
		answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(dataNumber),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: x32},
		answer(unix.SECCOMP_RET_KILL_PROCESS),
		unless(unix.SYS_IO_URING_SETUP, 1),
		answer(refused),
	}
	socket := []unix.SockFilter{}
	if tier == NetworkOpen {
		socket = append(socket, load(dataFirst))
		for _, family := range openFamilies {
			socket = append(socket, unless(family, 1), answer(unix.SECCOMP_RET_ALLOW))
		}
	}
	socket = append(socket, answer(refused))
	p = append(p, unless(unix.SYS_SOCKET, len(socket)))
	p = append(p, socket...)
	// A pair of datagram sockets could be connected anew, to a path. The other
	// kinds cannot.
	pair := []unix.SockFilter{
		load(dataFirst),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.AF_UNIX},
		answer(refused),
		load(dataSecond),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kindMask},
		unless(unix.SOCK_STREAM, 1),
		answer(unix.SECCOMP_RET_ALLOW),
		unless(unix.SOCK_SEQPACKET, 1),
		answer(unix.SECCOMP_RET_ALLOW),
		answer(refused),
	}
	p = append(p, unless(unix.SYS_SOCKETPAIR, len(pair)))
	p = append(p, pair...)
	return append(p, answer(unix.SECCOMP_RET_ALLOW))
}

// filterSockets puts the calling thread under the filter.
func filterSockets(tier string) error {
	filter := socketFilter(tier)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	runtime.KeepAlive(&program)
	return err
}
