package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNobodyElse is point 3: processes in the runner's group and session, and
// one in a session of its own, live on whatever the ending.
func TestNobodyElse(t *testing.T) {
	others := []*exec.Cmd{
		bystander(t, &syscall.SysProcAttr{}),              // our group
		bystander(t, &syscall.SysProcAttr{Setpgid: true}), // a group in our session
		bystander(t, &syscall.SysProcAttr{Setsid: true}),  // a session, older than the harness
	}
	check := func(t *testing.T, when string) {
		t.Helper()
		for i, c := range others {
			if !alive(c.Process.Pid) {
				t.Fatalf("bystander %d is dead after %s", i, when)
			}
		}
	}
	eachMode(t, func(t *testing.T, o Options) {
		for range times(8) {
			l := newLife(t)
			r := start(t, o, script(l, "setsid sleep 1000 & sleep 1000 & echo ready; read x")...)
			r.expect(t, "ready")
			r.Stop(longGrace)
			r.gone(t)
			check(t, "a stop")
		}
		r := start(t, o, "/bin/sh", "-c", "setsid sleep 1000 & echo ready; read x; exit 42")
		r.expect(t, "ready")
		if r.s.guard != nil {
			unix.Kill(r.s.guard.pid, unix.SIGKILL)
			awaitNote(t, r.s, "guardian: it died")
		}
		r.Stdin.WriteString("go on\n")
		r.exit(t)
		r.Kill()
		r.gone(t)
		check(t, "a take-over")
	})
}

// TestOtherSupervisors: a sweep in this process leaves the guardian and the
// harness of another supervisor alone, also when it pursues a chain through the
// numbers around theirs, among them those of their threads.
func TestOtherSupervisors(t *testing.T) {
	for range times(10) {
		chain := newLife(t)
		direct := start(t, Options{noGuardian: true, noCgroup: true}, script(chain, self(t)+" role:chain & sleep 0.02; kill -9 $$")...)
		direct.expect(t, "ready")
		guarded := start(t, Options{noCgroup: true}, "/bin/sh", "-c", "read x; exit 42")
		direct.exit(t)
		direct.Kill()
		direct.gone(t)
		guarded.Stdin.WriteString("go on\n")
		if e := guarded.exit(t); e != (Exit{Code: 42}) {
			t.Fatalf("exit %+v, want code 42", e)
		}
		guarded.Kill()
		if g := guarded.gone(t); !slices.Contains(g.Means, MeanGuardian) {
			t.Fatalf("means %q, want the guardian: %q", g.Means, guarded.s.Notes())
		}
	}
}

// inNamespace runs a role of this binary as the first process of a new process
// namespace, and gives what it says.
func inNamespace(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(self(t), args...)
	cmd.Env = testEnv
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip("no process namespaces here: ", err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	done := make(chan string, 1)
	go func() {
		var all strings.Builder
		buf := make([]byte, 4<<10)
		for {
			n, err := out.Read(buf)
			all.Write(buf[:n])
			if err != nil || strings.Contains(all.String(), "done\n") {
				done <- all.String()
				return
			}
		}
	}()
	return receive(t, done, "the end of the namespace")
}

// TestFreedNumber: a stranger that is given the harness's number, once that is
// free, is never hit.
func TestFreedNumber(t *testing.T) {
	for _, opts := range helperModes {
		said := inNamespace(t, "role:reuse", opts)
		if strings.HasPrefix(said, "skip") {
			t.Skip(said)
		}
		if !strings.Contains(said, "stranger lives\ndone\n") {
			t.Errorf("%s: %q", opts, said)
		}
	}
}

// reuseRole is the first process of a namespace, and a runner: it has a
// stranger be given the number of its harness, and then ends it once more.
func reuseRole(args []string) int {
	if err := ownProc(); err != nil {
		fmt.Println("skip: no /proc of one's own:", err)
		return 0
	}
	for name, stop := range map[string]func(c *Child){
		"kill": func(c *Child) { c.Kill() },
		"stop": func(c *Child) { c.Stop(time.Minute) },
	} {
		if err := reuse(options(args[0]), stop); err != nil {
			fmt.Println(name, err)
			return 1
		}
	}
	fmt.Println("stranger lives")
	fmt.Println("done")
	return 0
}

func reuse(o Options, stop func(*Child)) error {
	s, err := Open(o)
	if err != nil {
		return err
	}
	c, err := s.Start(Spec{Argv: []string{"/bin/sh", "-c", "setsid sleep 1000 & exit 7"}, Env: testEnv})
	if err != nil {
		return err
	}
	if e := <-c.Exited(); e != (Exit{Code: 7}) {
		return fmt.Errorf("exit %+v, want code 7", e)
	}
	// Not reaped: the number cannot be given to anybody.
	if p := startAs(c.PID()); p != nil {
		return fmt.Errorf("the number %d was free before the end", c.PID())
	}
	stop(c)
	<-c.Gone()
	stranger := startAs(c.PID())
	if stranger == nil {
		fmt.Println("skip: numbers cannot be chosen here")
		os.Exit(0)
	}
	stop(c)
	c.Kill()
	if err := s.Close(); err != nil {
		return err
	}
	if !alive(stranger.Pid) {
		return fmt.Errorf("the stranger with the number %d is dead", stranger.Pid)
	}
	stranger.Kill()
	_, err = stranger.Wait()
	return err
}

// startAs starts a process with the given number, or gives nil.
func startAs(pid int) *os.Process {
	const tries = 20
	for range tries {
		if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0) != nil {
			return nil
		}
		p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}})
		if err != nil {
			return nil
		}
		if p.Pid == pid {
			return p
		}
		p.Kill()
		p.Wait()
	}
	return nil
}

// TestFirstProcess: the runner is the first process of its namespace, which
// adopts every orphan.
func TestFirstProcess(t *testing.T) {
	for _, opts := range helperModes {
		said := inNamespace(t, "role:pidone", opts)
		if strings.HasPrefix(said, "skip") {
			t.Skip(said)
		}
		if said != "good\ndone\n" {
			t.Errorf("%s: %q", opts, said)
		}
	}
}

// TestInitThatNeverReaps: the runner runs under a first process that never
// reaps.
func TestInitThatNeverReaps(t *testing.T) {
	for _, opts := range helperModes {
		said := inNamespace(t, "role:lazyinit", self(t), "role:pidone", opts)
		if strings.HasPrefix(said, "skip") {
			t.Skip(said)
		}
		if said != "good\ndone\n" {
			t.Errorf("%s: %q", opts, said)
		}
	}
}

// pidOneRole runs harnesses and says whether all came out right.
func pidOneRole(args []string) int {
	if os.Getpid() == 1 {
		if err := ownProc(); err != nil {
			fmt.Println("skip: no /proc of one's own:", err)
			return 0
		}
	}
	for _, code := range []int{0, 7, 137} {
		if err := pidOne(options(args[0]), code); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("good")
	fmt.Println("done")
	return 0
}

func pidOne(o Options, code int) error {
	s, err := Open(o)
	if err != nil {
		return err
	}
	body := fmt.Sprintf("(setsid sleep 1000 &); (sleep 1000 &); exit %d", code)
	c, err := s.Start(Spec{Argv: []string{"/bin/sh", "-c", body}, Env: testEnv})
	if err != nil {
		return err
	}
	if e := <-c.Exited(); e != (Exit{Code: code}) {
		return fmt.Errorf("exit %+v, want code %d", e, code)
	}
	c.Stop(longGrace)
	g := <-c.Gone()
	if len(g.Survivors) > 0 {
		return fmt.Errorf("survivors %+v", g.Survivors)
	}
	if err := s.Close(); err != nil {
		return err
	}
	sleepers := 0
	p := openProc()
	defer p.close()
	p.scan(func(st stat) {
		if !st.dead() && p.comm(st.pid) == "sleep" {
			sleepers++
		}
	})
	if sleepers > 0 {
		return fmt.Errorf("%d descendants live", sleepers)
	}
	return nil
}

// TestEnvironmentIsHidden: a harness without privileges can read neither the
// runner's environment nor the guardian's.
func TestEnvironmentIsHidden(t *testing.T) {
	exe := self(t)
	if os.Geteuid() == 0 {
		exe = publicCopy(t)
	}
	runnerArgs := []string{"role:runner", "all", "/bin/sh", "-c", `read pid
		cat /proc/$pid/environ >/dev/null 2>&1 && echo open || echo hidden
		cat /proc/$PPID/environ >/dev/null 2>&1 && echo open || echo hidden`}
	cmd := exec.Command(exe, runnerArgs...)
	cmd.Env = testEnv
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		cmd.Dir = "/"
	}
	h := launchHelper(t, cmd)
	guard, err := strconv.Atoi(h.expect(t, "started")[1])
	if err != nil {
		t.Fatal(err)
	}
	awaitGuardian(t, guard)
	h.say("tell " + strconv.Itoa(cmd.Process.Pid))
	for _, who := range []string{"runner", "guardian"} {
		if out := h.expect(t, "out"); len(out) != 1 || out[0] != "hidden" {
			t.Errorf("the environment of the %s: %q, want it hidden", who, out)
		}
	}
	h.say("close")
	h.expect(t, "closed")
}

// publicCopy is this binary where every user may execute it.
func publicCopy(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "prp-process-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "process.test")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWithoutPrivileges: all of it holds for a runner that is not root.
func TestWithoutPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is the case in all tests: they do not run as root")
	}
	exe := publicCopy(t)
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			l := newLife(t)
			if err := os.Chmod(l.path, 0o666); err != nil {
				t.Fatal(err)
			}
			for dir := filepath.Dir(l.path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			argv := s.argv(t, l, "sleep 1000")
			for i := range argv {
				argv[i] = strings.ReplaceAll(argv[i], self(t), exe)
			}
			for _, how := range []string{"stop 30", "kill -9"} {
				const nobody = 65534
				cmd := exec.Command(exe, append([]string{"role:runner", "all"}, argv...)...)
				cmd.Env, cmd.Dir = testEnv, "/"
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				h := launchHelper(t, cmd)
				h.expect(t, "started")
				h.expect(t, "out")
				if how == "kill -9" {
					h.kill()
					l.await(t, loadedLimit)
					awaitNoStrays(t, loadedLimit)
					continue
				}
				h.say(how)
				if gone := h.expect(t, "gone"); gone[1] != "0" || l.lives() {
					t.Errorf("gone %q, a descendant lives: %v", gone, l.lives())
				}
				h.say("close")
				h.expect(t, "closed")
			}
		})
	}
}
