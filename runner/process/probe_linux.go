package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeName is argv[0] of a process that is started in new namespaces to see
// whether that works, and ends at once.
const probeName = "prp-probe"

// Probe tells which means of containment this host offers and which of them a
// [Supervisor] uses. It makes and removes a cgroup, starts a short-lived copy of
// this program where [Main] was called, and changes nothing else.
func Probe() []Mean {
	return []Mean{
		probeCgroup(), probeGuardian(), probeSubreaper(), probePidfd(), probeProc(),
		{
			Name: MeanProcessGroup, Available: true, Used: true,
			Detail: "The harness leads a session and a process group of its own, which get SIGTERM and SIGKILL.",
		},
		probeNamespace(MeanUserNS, "user", unix.CLONE_NEWUSER,
			"Not used: the harness would see other user numbers."),
		probeNamespace(MeanPidNS, "pid", unix.CLONE_NEWPID,
			"Not used: the harness would see other process numbers than everybody else."),
		probeChildren(),
	}
}

func probeCgroup() Mean {
	m := Mean{Name: MeanCgroup}
	parent, err := ownCgroup()
	var l *leaf
	if err == nil {
		l, err = newLeaf(parent, fmt.Sprintf("prp-probe-%d", unix.Getpid()))
	}
	if err != nil {
		m.Detail = fmt.Sprintf("Not available: %v.", err)
		return m
	}
	m.Available, m.Used = true, true
	m.Detail = fmt.Sprintf("A cgroup v2 with cgroup.kill can be made (tried: %q); the harness is born in one.", l.dir)
	l.remove()
	return m
}

func probeGuardian() Mean {
	m := Mean{Name: MeanGuardian}
	switch _, err := os.Stat("/proc/self/exe"); {
	case err != nil:
		m.Detail = "Not available: /proc is not mounted, so this program cannot start itself."
	case !mainCalled.Load():
		m.Detail = "Not available: this program's main does not begin with process.Main."
	default:
		m.Available, m.Used = true, true
		m.Detail = "A small process of its own is the parent of the harness and ends it when the runner dies."
	}
	return m
}

func probeSubreaper() Mean {
	m := Mean{Name: MeanSubreaper}
	var was int32
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&was)), 0)
	if errno != 0 {
		m.Detail = fmt.Sprintf("Not available: %v.", errno)
		return m
	}
	m.Available, m.Used = true, true
	m.Detail = "Orphans of the harness come to the guardian, and to the runner where that dies."
	return m
}

func probePidfd() Mean {
	m := Mean{Name: MeanPidfd}
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err == nil {
		err = unix.PidfdSendSignal(fd, 0, nil, 0)
		unix.Close(fd)
	}
	if err != nil {
		m.Detail = fmt.Sprintf("Not available (Linux 5.3): %v; only direct children are signalled, level by level.", err)
		return m
	}
	m.Available, m.Used = true, true
	m.Detail = "Descendants that are not direct children are held by a pidfd before they are signalled."
	return m
}

func probeProc() Mean {
	m := Mean{Name: MeanParentLinks}
	p := openProc()
	if p == nil {
		m.Detail = "Not available: /proc is not mounted, descendants outside the group cannot be found."
		return m
	}
	defer p.close()
	m.Available, m.Used = true, true
	m.Detail = "Descendants are found by the parent links in /proc/PID/stat."
	if hidden(p) {
		m.Detail += " /proc is mounted with hidepid: processes of other users cannot be seen."
	}
	return m
}

// hidden tells a /proc that shows only one's own processes.
func hidden(p *procfs) bool {
	_, ok := p.stat(1)
	return !ok
}

func probeChildren() Mean {
	m := Mean{Name: MeanProcChildren}
	pid := unix.Getpid()
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	m.Available = err == nil
	m.Detail = "Not used: the kernel gives children lists without a promise that they are whole."
	if !m.Available {
		m.Detail = "Not available (CONFIG_PROC_CHILDREN), and not needed."
	}
	return m
}

func probeNamespace(name, file string, flag uintptr, unused string) Mean {
	m := Mean{Name: name}
	if _, err := os.Stat("/proc/self/ns/" + file); err != nil {
		m.Detail = "Not available: this kernel has none."
		return m
	}
	if !mainCalled.Load() {
		m.Detail = "Not tried: this program's main does not begin with process.Main."
		return m
	}
	flags := flag
	if flag != unix.CLONE_NEWUSER && os.Geteuid() != 0 {
		flags |= unix.CLONE_NEWUSER
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{probeName}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: flags},
	})
	if err != nil {
		m.Detail = fmt.Sprintf("Not available: %v.", err)
		return m
	}
	waitid(unix.P_PID, pid, unix.WEXITED)
	m.Available = true
	m.Detail = strings.TrimSpace(unused)
	return m
}
