package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	// Ways to another process, to its descriptors and limits, and to what the
	// kernel keeps or does for others.
	for name, do := range map[string]func(a []string) error{
		"user-namespace":       func([]string) error { return spawnIn(unix.CLONE_NEWUSER) },
		"user-namespace-mixed": func([]string) error { return spawnIn(unix.CLONE_NEWUSER | unix.CLONE_NEWNET) },
		"unshare-user":         func([]string) error { return onThread(func() error { return unix.Unshare(unix.CLONE_NEWUSER) }) },
		"clone3-user":          clone3,
		"mount": func(a []string) error {
			if err := unix.Mount("none", a[0], "tmpfs", 0, ""); err != nil {
				return err
			}
			return unix.Unmount(a[0], unix.MNT_DETACH)
		},
		"fsopen":     func([]string) error { return made(unix.Fsopen("tmpfs", 0)) },
		"limits":     tryLimits,
		"own-limits": func([]string) error { return unix.Prlimit(0, unix.RLIMIT_CORE, nil, new(unix.Rlimit)) },
		"descriptor": tryDescriptor,
		"memory":     tryMemory,
		"handle":     tryHandle,
		"session-key": func([]string) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
			return err
		},
		"add-key": func([]string) error {
			_, err := unix.AddKey("user", "prp-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		},
		"request-key": func([]string) error {
			_, err := unix.RequestKey("user", "prp-test-missing", "", 0)
			if errors.Is(err, unix.ENOKEY) {
				return nil // it was looked for
			}
			return err
		},
		"type-for-others": func([]string) error { return tryIoctl(unix.TIOCSTI) },
		"paste":           func([]string) error { return tryIoctl(unix.TIOCLINUX) },
		"own-terminal":    func([]string) error { return tryIoctl(unix.TIOCGWINSZ) },
		"netlink":         trySocket,
		"memory-file":     tryMemoryFile,
		"queue":           tryQueue,
	} {
		tries[name] = do
	}
}

// TestRow10Ways: there is no way around the rules through other processes, the
// kernel's own stores, new namespaces or files without a path, in any tier; and
// what programs need of the same calls is there.
func TestRow10Ways(t *testing.T) {
	other := exec.Command("sleep", "600")
	check(t, other.Start())
	defer other.Wait()
	defer other.Process.Kill()
	pid := strconv.Itoa(other.Process.Pid)
	netlink, raw := strconv.Itoa(unix.AF_NETLINK), strconv.Itoa(unix.SOCK_RAW)
	refuse := map[string][]string{
		"user namespace": {"user-namespace"}, "user and network namespace": {"user-namespace-mixed"},
		"leave the user namespace": {"unshare-user"}, "hidden flags": {"clone3-user"},
		"mount": {"mount", "IN"}, "mount in the new way": {"fsopen"},
		"limits of another": {"limits", pid}, "descriptor of another": {"descriptor", pid}, "memory of another": {"memory", pid},
		"own memory as a file": {"append", "/proc/self/mem"}, "handle": {"handle", "OUT/file", "IN"},
		"keys of the session": {"session-key"}, "new key": {"add-key"}, "key from outside": {"request-key"},
		"type": {"type-for-others"}, "paste": {"paste"}, "message queue": {"queue"},
		"netlink to users":    {"netlink", netlink, raw, strconv.Itoa(unix.NETLINK_USERSOCK)},
		"netlink to a filter": {"netlink", netlink, raw, strconv.Itoa(unix.NETLINK_NETFILTER)},
		"program in memory":   {"memory-file", "read", "OUT/file"},
	}
	allow := map[string][]string{"own limits": {"own-limits"}, "own terminal": {"own-terminal"}, "own program in memory": {"memory-file", "read", "IN/file"}}
	all := maps.Clone(refuse)
	maps.Copy(all, allow)
	control := newPlace(t, NetworkOpen, FilesExternalWrite)
	control.furnishAll(t, len(all))
	free := control.many(t, false, all)
	p := newPlace(t, NetworkOpen, FilesExternalWrite)
	p.furnishAll(t, len(all))
	for name, got := range p.many(t, true, all) {
		want := statusDenied
		if allow[name] != nil {
			want = 0
		}
		// A try that is refused here without a sandbox shows nothing. One that
		// ends otherwise does: it got past where it is refused.
		if want == statusDenied && free[name].Status == statusDenied {
			t.Logf("%s is not tried: without a sandbox it does not work either: %s", name, free[name].Text)
			continue
		}
		if got.Status != want {
			t.Errorf("%s: %+v, want status %d; without a sandbox %+v", name, got, want, free[name])
		}
	}
}

// spawnIn starts a child in new namespaces.
func spawnIn(flags uintptr) error {
	c := exec.Command("/proc/self/exe", selfTry, "own-limits")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return c.Run()
}

// onThread does something to a thread that ends.
func onThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- do()
	}()
	return <-done
}

// clone3 makes a child by the call whose flags no filter can see. A wrong size
// tells that it is there, and starts nothing.
func clone3([]string) error {
	_, _, errno := unix.Syscall(unix.SYS_CLONE3, 0, 1, 0)
	switch errno {
	case unix.ENOSYS:
		return fmt.Errorf("%w: %w", os.ErrPermission, errno)
	case unix.EINVAL, unix.E2BIG:
		return nil
	}
	return errno
}

func made(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// tryLimits sets a limit of another process to what it is.
func tryLimits(a []string) error {
	pid, err := strconv.Atoi(a[0])
	if err != nil {
		return err
	}
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &now); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_CPU, &now, nil)
}

// tryDescriptor takes a descriptor of another process.
func tryDescriptor(a []string) error {
	pid, err := strconv.Atoi(a[0])
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return made(unix.PidfdGetfd(fd, 0, 0))
}

// tryMemory reads at an address that is never there: the right is asked for
// before.
func tryMemory(a []string) error {
	pid, err := strconv.Atoi(a[0])
	if err != nil {
		return err
	}
	var b [1]byte
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, err = unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 16, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

// tryHandle opens a file outside without its path.
func tryHandle(a []string) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open(a[1], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return made(unix.OpenByHandleAt(dir, handle, unix.O_RDONLY))
}

// tryIoctl asks stdin, which is no terminal, and is told so where nobody refuses.
func tryIoctl(request uint) error {
	var b [64]byte
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, uintptr(request), uintptr(unsafe.Pointer(&b)))
	if errno == unix.ENOTTY {
		return nil
	}
	return errno
}

// tryMemoryFile executes what is in no folder: what it does is confined too.
func tryMemoryFile(a []string) error {
	fd, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "program")
	defer f.Close()
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	c := exec.Command(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), append([]string{selfTry}, a...)...)
	err = c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == statusDenied {
		return fmt.Errorf("in the child: %w", os.ErrPermission)
	}
	return err
}

// tryQueue makes a message queue that other processes find by its name. One
// that was made and could not be opened was made all the same.
func tryQueue([]string) error {
	name := append([]byte("prp-test-"+strconv.Itoa(os.Getpid())), 0)
	at := uintptr(unsafe.Pointer(&name[0]))
	fd, _, failed := unix.Syscall6(unix.SYS_MQ_OPEN, at, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600, 0, 0, 0)
	if failed == 0 {
		unix.Close(int(fd))
	}
	if _, _, errno := unix.Syscall(unix.SYS_MQ_UNLINK, at, 0, 0); errno == 0 {
		return nil
	}
	return failed
}
