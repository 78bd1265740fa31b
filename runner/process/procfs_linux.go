package process

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat says of a process.
type stat struct {
	pid, ppid, pgrp, sid int
	state                byte
	threads              int
	start                uint64 // clock ticks since boot
	// thread says that the number is that of a thread and of no process.
	// /proc does not list those, but opens them, and kill(2) takes them.
	thread bool
}

// dead tells a zombie that only waits to be reaped. One whose main thread has
// exited while other threads run shows Z as well, and lives.
func (s *stat) dead() bool {
	return s.state == 'X' || s.state == 'Z' && s.threads <= 1
}

// procfs reads /proc without allocating: a sweep is a race against whoever
// forks, and its garbage would be the guardian's memory. It is for one
// goroutine.
type procfs struct {
	dir   int
	names [8 << 10]byte
	path  [32]byte
	text  [1 << 10]byte // a line of stat is at most about 600 bytes
}

// openProc opens /proc; nil where it is not mounted.
func openProc() *procfs {
	dir, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	p := &procfs{dir: dir}
	if _, ok := p.stat(unix.Getpid()); !ok {
		p.close()
		return nil
	}
	return p
}

func (p *procfs) close() { unix.Close(p.dir) }

// read gives the content of a file below /proc, cut at the size of the buffer.
// The bytes are good until the next call.
func (p *procfs) read(name []byte) ([]byte, bool) {
	// The bytes are in p.path, which the garbage collector does not move.
	var fd uintptr
	var errno unix.Errno
	for {
		fd, _, errno = unix.Syscall6(unix.SYS_OPENAT, uintptr(p.dir), uintptr(unsafe.Pointer(&name[0])),
			unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno != unix.EINTR {
			break
		}
	}
	if errno != 0 {
		return nil, false
	}
	n, err := unix.Read(int(fd), p.text[:])
	unix.Close(int(fd))
	if err != nil {
		return nil, false
	}
	return p.text[:max(n, 0)], true
}

// stat reads one process; false where there is none of that number.
func (p *procfs) stat(pid int) (stat, bool) {
	name := strconv.AppendInt(p.path[:0], int64(pid), 10)
	name = append(name, "/stat\x00"...)
	text, ok := p.read(name)
	if !ok {
		return stat{}, false
	}
	return parseStat(pid, text)
}

// parseStat reads a line "PID (NAME) S PPID PGRP SID ...". The name may hold
// anything, also blanks and brackets: the last bracket ends it.
func parseStat(pid int, text []byte) (stat, bool) {
	const threadsField, startField, exitSignalField = 17, 19, 35 // counted from the state on
	s := stat{pid: pid}
	i := bytes.LastIndexByte(text, ')')
	if i < 0 || i+2 >= len(text) {
		return s, false
	}
	rest := text[i+2:]
	s.state = rest[0]
	for field := 0; len(rest) > 0; field++ {
		end := bytes.IndexByte(rest, ' ')
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		switch field {
		case 1:
			s.ppid = int(number(word))
		case 2:
			s.pgrp = int(number(word))
		case 3:
			s.sid = int(number(word))
		case threadsField:
			s.threads = int(number(word))
		case startField:
			s.start = number(word)
		case exitSignalField:
			s.thread = string(word) == "-1" // proc_pid_stat(5); a process has one from 0 on
			return s, true
		}
		rest = rest[min(end+1, len(rest)):]
	}
	return s, false
}

func number(word []byte) uint64 {
	var n uint64
	for _, c := range word {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// comm is a process's name as the kernel shows it.
func (p *procfs) comm(pid int) string {
	name := strconv.AppendInt(p.path[:0], int64(pid), 10)
	name = append(name, "/comm\x00"...)
	text, ok := p.read(name)
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimRight(string(text), "\n"), "\uFFFD")
}

// newest is the number that was given last; 0 where it is not known.
func (p *procfs) newest() int {
	text, ok := p.read(append(p.path[:0], "loadavg\x00"...))
	if !ok {
		return 0
	}
	text = bytes.TrimRight(text, "\n")
	return int(number(text[bytes.LastIndexByte(text, ' ')+1:]))
}

// onlyChild tells that the kernel's children lists of this process hold child
// and nothing else; false where there are no such lists. They may miss one
// that comes or goes while they are read, so it is a hint.
func (p *procfs) onlyChild(child int) bool {
	const fixed = "self/task/"
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	for _, task := range tasks {
		name := append(p.path[:0], fixed...)
		name = append(name, task.Name()...)
		text, ok := p.read(append(name, "/children\x00"...))
		if !ok {
			return false
		}
		for word := range bytes.FieldsSeq(text) {
			if int(number(word)) != child {
				return false
			}
		}
	}
	return true
}

// scan visits every process, in ascending order of the numbers, each as it is
// at the time of the visit. visit may call p's other methods.
func (p *procfs) scan(visit func(stat)) {
	const reclenAt, nameAt = 16, 19 // in struct linux_dirent64
	if _, err := unix.Seek(p.dir, 0, 0); err != nil {
		return
	}
	for {
		n, err := unix.ReadDirent(p.dir, p.names[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for buf := p.names[:n]; len(buf) > nameAt; {
			size := int(binary.NativeEndian.Uint16(buf[reclenAt:]))
			if size <= nameAt || size > len(buf) {
				break
			}
			name := buf[nameAt:size]
			if end := bytes.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			buf = buf[size:]
			if pid := number(name); pid != 0 {
				if s, ok := p.stat(int(pid)); ok {
					visit(s)
				}
			}
		}
	}
}
