package sandbox

import (
	"bytes"
	"os"
	"strconv"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Probe asks the kernel what it has. It changes nothing.
func Probe() Host {
	var h Host
	if abi, err := ll.LandlockGetABIVersion(); err == nil {
		h.Landlock = abi
	}
	// A filter that is nowhere: a kernel that has filters says so.
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0)
	h.Seccomp = err == unix.EFAULT && nativeArch != 0
	// A file that is not there is a limit that this kernel does not have.
	root := os.Geteuid() == 0
	h.UserNamespaces = setting("/proc/sys/user/max_user_namespaces", 0) > 0 && (root ||
		setting("/proc/sys/kernel/unprivileged_userns_clone", 1) != 0 &&
			setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 0)
	h.NetworkNamespaces = h.UserNamespaces && setting("/proc/sys/user/max_net_namespaces", 0) > 0
	return h
}

func setting(path string, missing int) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return missing
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return missing
	}
	return n
}
