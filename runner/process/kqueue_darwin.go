package process

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// canList says that this platform gives a list of processes.
const canList = true

// stateZombie is SZOMB of sys/proc.h.
const stateZombie = 5

// awaitExit tells the child's exit without reaping it: the kqueue event carries
// the status. A child that is a zombie before it could be watched, or a system
// without a kqueue left, means a plain wait, which reaps.
func awaitExit(pid int) <-chan notice {
	done := make(chan notice, 1)
	go func() {
		status, err := watchExit(pid)
		if err != nil {
			done <- reapNow(pid)
			return
		}
		done <- notice{exit: exitOf(status), known: true}
	}()
	return done
}

func watchExit(pid int) (syscall.WaitStatus, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return 0, err
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	change := []unix.Kevent_t{{
		Ident: uint64(pid), Filter: unix.EVFILT_PROC,
		Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT | unix.NOTE_EXITSTATUS,
	}}
	events := make([]unix.Kevent_t, 1)
	for {
		n, err := unix.Kevent(queue, change, events, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 1 && events[0].Flags&unix.EV_ERROR != 0:
			return 0, syscall.Errno(events[0].Data)
		case n == 1:
			return syscall.WaitStatus(events[0].Data), nil
		}
	}
}

// listProcesses is the system's list; empty where it cannot be had.
func listProcesses() []link {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	all := make([]link, 0, len(list))
	for i := range list {
		k := &list[i]
		name, _, _ := strings.Cut(string(k.Proc.P_comm[:]), "\x00")
		all = append(all, link{
			pid: int(k.Proc.P_pid), ppid: int(k.Eproc.Ppid), pgrp: int(k.Eproc.Pgid),
			start: k.Proc.P_starttime.Sec*1e6 + int64(k.Proc.P_starttime.Usec),
			dead:  k.Proc.P_stat == stateZombie,
			name:  strings.ToValidUTF8(name, "\uFFFD"),
		})
	}
	return all
}
