package process

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var soak = flag.Bool("soak", false, "repeat the races ten times as often")

// times is how often a race is run.
func times(n int) int {
	switch {
	case *soak:
		return 10 * n
	case testing.Short(), raceBuild:
		return max(n/10, 1)
	}
	return n
}

// TestMain lets this binary be all the processes that the tests need: a
// guardian, a runner, and harnesses that a shell cannot play.
func TestMain(m *testing.M) {
	Main()
	if len(os.Args) > 1 {
		if role, ok := strings.CutPrefix(os.Args[1], "role:"); ok {
			os.Exit(roles[role](os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

var roles map[string]func(args []string) int

func init() {
	roles = map[string]func([]string) int{
		"runner":   runnerRole,
		"launcher": launcherRole,
		"lazyinit": lazyInitRole,
		"reuse":    reuseRole,
		"pidone":   pidOneRole,
		"chain":    chainRole,
		"headless": headlessRole,
		"burn":     burnRole,
		"bare":     bareRole,
	}
}

// options reads switches such as "noguardian,nocgroup".
func options(list string) Options {
	var o Options
	for word := range strings.SplitSeq(list, ",") {
		switch word {
		case "noguardian":
			o.noGuardian = true
		case "nocgroup":
			o.noCgroup = true
		case "nosubreaper":
			o.noSubreaper = true
		case "nosweep":
			o.noSweep = true
		case "unguardable":
			o.guardProgram = "/nonexistent/guardian"
		}
	}
	return o
}

// runnerRole is a runner: OPTIONS ARGV... It says on stdout what happens, and
// obeys "stop MILLISECONDS", "tell LINE" (to the harness) and "close" on stdin. Its stdin's end means
// nothing to it: a runner that is to die is killed.
func runnerRole(args []string) int {
	s, err := Open(options(args[0]))
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	c, err := s.Start(Spec{Argv: args[1:], Env: os.Environ()})
	if err != nil {
		fmt.Println("failed", err)
		s.Close()
		return 0
	}
	guard := 0
	if s.guard != nil {
		guard = s.guard.pid
	}
	fmt.Println("started", c.PID(), guard)
	lines := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	go func() {
		for out := bufio.NewScanner(c.Stdout); out.Scan(); {
			fmt.Println("out", out.Text())
		}
		fmt.Println("eof")
	}()
	for {
		select {
		case e := <-c.Exited():
			if e.Signaled {
				fmt.Println("signal", e.Signal)
			} else {
				fmt.Println("exit", e.Code)
			}
		case g := <-c.Gone():
			fmt.Println("gone", g.Swept, len(g.Survivors), strings.Join(g.Means, ","))
		case line := <-lines:
			word, rest, _ := strings.Cut(line, " ")
			switch word {
			case "stop":
				ms, _ := strconv.Atoi(rest)
				c.Stop(time.Duration(ms) * time.Millisecond)
			case "tell":
				fmt.Fprintln(c.Stdin, rest)
			case "close":
				fmt.Println("closed", s.Close())
				return 0
			}
		}
	}
}

// ignorable are signals that a launcher may have set to be ignored.
var ignorable = []int{1, 2, 3, 10, 12, 13, 14, 15, 17, 18, 20, 21, 22, 23, 32, 33, 34, 40, 64}

// launcherRole ignores and blocks what it can, then becomes ARGV.
func launcherRole(args []string) int {
	runtime.LockOSThread()
	for _, n := range ignorable {
		act := kernelSigaction{handler: sigIgnore}
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&act)), 0, sigsetBytes, 0, 0)
	}
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil)
	fmt.Fprintln(os.Stderr, syscall.Exec(args[0], args, os.Environ()))
	return 1
}

// lazyInitRole is a first process that starts ARGV and never reaps.
func lazyInitRole(args []string) int {
	if err := ownProc(); err != nil {
		fmt.Println("failed", err)
		return 1
	}
	_, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	os.Stdout.Close()
	time.Sleep(time.Minute) // the test ends the namespace long before
	return 0
}

// ownProc mounts the /proc of a new process namespace.
func ownProc() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", 0, "")
}

// chainRole forks and exits for ever, each process in a session of its own,
// with bare system calls: nothing of Go's runtime works after such a fork.
//
//go:norace
func chainRole([]string) int {
	signal.Reset()
	os.Stdout.WriteString("ready\n")
	for {
		unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		if errno == 0 && pid != 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}

// headlessRole lives on without its main thread.
func headlessRole([]string) int {
	os.Stdout.WriteString("ready\n")
	go func() {
		for {
			time.Sleep(time.Hour)
		}
	}()
	unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	return 0
}

// burnRole uses one processor until its stdin ends.
func burnRole([]string) int {
	go func() {
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for n := 0; ; n++ {
		_ = n
	}
}

// bareRole is a runner that has closed 0, 1 and 2, and writes what it sees to
// descriptor 3: OPTIONS ARGV...
func bareRole(args []string) int {
	log := os.NewFile(3, "log")
	for fd := range 3 {
		unix.Close(fd)
	}
	s, err := Open(options(args[0]))
	if err != nil {
		fmt.Fprintln(log, err)
		return 0
	}
	c, err := s.Start(Spec{Argv: args[1:], Env: os.Environ()})
	if err != nil {
		fmt.Fprintln(log, err)
		return 0
	}
	c.Stdin.WriteString("this\n")
	io.Copy(log, c.Stdout)
	io.Copy(log, c.Stderr)
	fmt.Fprintln(log, <-c.Exited())
	c.Kill()
	<-c.Gone()
	fmt.Fprintln(log, s.Close())
	return 0
}
