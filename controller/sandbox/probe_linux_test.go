package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test binary is also the program that confines itself and the harness that
// tries to get out.
const (
	selfConfine = "sandboxed"
	selfTry     = "try"
	// Exit statuses of a harness: 0 is done.
	statusDenied = 3
	statusOther  = 4
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case selfConfine:
			err := Exec(os.Args[2], os.Args[3:], os.Environ())
			fmt.Fprintln(os.Stderr, err)
			var e *Error
			errors.As(err, &e)
			os.Exit(e.Status)
		case selfTry:
			os.Exit(try(os.Args[2], os.Args[3:]))
		}
	}
	// With the race detector each of the many children would sleep for a second
	// at its end.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// try does one thing and tells how it went. "batch" does many, by name, as JSON
// on stdin, and gives their outcomes on stdout.
func try(what string, args []string) int {
	if what != "batch" {
		status, text := once(what, args)
		fmt.Fprint(os.Stderr, text)
		return status
	}
	var many map[string][]string
	if err := json.NewDecoder(os.Stdin).Decode(&many); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return statusOther
	}
	outcomes := map[string]result{}
	for name, args := range many {
		status, text := once(args[0], args[1:])
		outcomes[name] = result{status, text}
	}
	if err := json.NewEncoder(os.Stdout).Encode(outcomes); err != nil {
		return statusOther
	}
	return 0
}

// result is how one of many tries went.
type result struct {
	Status int
	Text   string
}

func once(what string, args []string) (int, string) {
	err := tries[what](args)
	if err == nil {
		return 0, ""
	}
	// EPERM and EACCES; and EXDEV, by which Landlock tells a program to copy
	// instead of moving.
	if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EXDEV) {
		return statusDenied, err.Error()
	}
	return statusOther, err.Error()
}

// tries are what a harness may want to do.
var tries map[string]func(args []string) error

func init() {
	tries = map[string]func(args []string) error{
		"read":     func(a []string) error { _, err := os.ReadFile(a[0]); return err },
		"list":     func(a []string) error { _, err := os.ReadDir(a[0]); return err },
		"create":   func(a []string) error { return os.WriteFile(a[0], []byte("new"), 0o644) },
		"append":   func(a []string) error { return open(a[0], os.O_WRONLY|os.O_APPEND) },
		"truncate": func(a []string) error { return os.Truncate(a[0], 1) },
		"mkdir":    func(a []string) error { return os.Mkdir(a[0], 0o755) },
		"remove":   func(a []string) error { return os.Remove(a[0]) },
		"rename":   func(a []string) error { return os.Rename(a[0], a[1]) },
		"link":     func(a []string) error { return os.Link(a[0], a[1]) },
		"fifo":     func(a []string) error { return unix.Mkfifo(a[0], 0o600) },
		// Reading through a symlink that the harness makes.
		"symlink": func(a []string) error {
			if err := os.Symlink(a[1], a[0]); err != nil {
				return fmt.Errorf("make the symlink: %s", err)
			}
			_, err := os.ReadFile(a[0])
			return err
		},
		"exec":  func(a []string) error { return exec.Command(a[0], a[1:]...).Run() },
		"child": tryChild,
		"chdir": func(a []string) error {
			defer os.Chdir(a[2])
			return errors.Join(os.Chdir(a[0]), open(a[1], os.O_RDONLY))
		},

		"dial":       tryDial,
		"listen":     tryListen,
		"udp-listen": func(a []string) error { c, err := net.ListenPacket("udp", a[0]); return closed(c, err) },
		"socket":     trySocket,
		"pair":       tryPair,
		"pair-datagram": func(a []string) error {
			_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			return err
		},
		"io_uring": func([]string) error {
			var params [30]uint32 // struct io_uring_params has 120 bytes
			fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
			if errno != 0 {
				return errno
			}
			return unix.Close(int(fd))
		},
		"x32": func([]string) error {
			if _, _, errno := unix.RawSyscall(x32|unix.SYS_GETPID, 0, 0, 0); errno != 0 && errno != unix.ENOSYS {
				return errno
			}
			return nil
		},
		"signal": func(a []string) error {
			pid, err := strconv.Atoi(a[0])
			return errors.Join(err, syscall.Kill(pid, 0))
		},
		"ptrace": func(a []string) error {
			pid, err := strconv.Atoi(a[0])
			return errors.Join(err, unix.PtraceSeize(pid))
		},
		"status": func(a []string) error {
			text, err := os.ReadFile("/proc/self/status")
			os.Stdout.Write(text)
			return err
		},
		"descriptors": func(a []string) error {
			list, err := os.ReadDir("/proc/self/fd")
			for _, d := range list {
				target, _ := os.Readlink("/proc/self/fd/" + d.Name())
				fmt.Println(target)
			}
			return err
		},
	}
}

func open(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func closed(c interface{ Close() error }, err error) error {
	if err != nil {
		return err
	}
	return c.Close()
}

// tryChild does the same in a child of a child.
func tryChild(a []string) error {
	c := exec.Command(os.Args[0], append([]string{selfTry}, a...)...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == statusDenied {
		return fmt.Errorf("in the child: %w", os.ErrPermission)
	}
	return err
}

// tryDial connects and sends a byte: dial NETWORK ADDRESS.
func tryDial(a []string) error {
	const patience = 5 * time.Second
	c, err := net.DialTimeout(a[0], a[1], patience)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("x"))
	return err
}

func tryListen(a []string) error {
	l, err := net.Listen(a[0], a[1])
	return closed(l, err)
}

// trySocket makes a socket by its numbers: socket FAMILY TYPE [PROTOCOL].
func trySocket(a []string) error {
	numbers := [3]int{}
	for i, text := range a {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	fd, err := unix.Socket(numbers[0], numbers[1], numbers[2])
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// tryPair sends a byte through a connected pair.
func tryPair([]string) error {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC} {
		pair, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
		if err != nil {
			return err
		}
		if _, err := unix.Write(pair[0], []byte("x")); err != nil {
			return err
		}
		var b [1]byte
		if n, err := unix.Read(pair[1], b[:]); n != 1 || err != nil {
			return fmt.Errorf("read %d bytes: %w", n, err)
		}
	}
	return nil
}

// outcome is how a try ended.
type outcome struct {
	status   int
	signal   syscall.Signal
	out, err string
}

func (o outcome) String() string {
	return fmt.Sprintf("status %d signal %d %s", o.status, o.signal, strings.TrimSpace(o.err))
}

// start runs a command line to its end.
func start(t *testing.T, change func(*exec.Cmd), argv ...string) outcome {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if change != nil {
		change(c)
	}
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status := c.ProcessState.Sys().(syscall.WaitStatus)
	o := outcome{status: status.ExitStatus(), out: out.String(), err: errs.String()}
	if status.Signaled() {
		o.signal = status.Signal()
	}
	return o
}
