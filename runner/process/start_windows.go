package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/windows"
)

// CheckDir tells whether a child can be started in dir: it is a directory and
// it can be read. "" is the caller's own directory.
func CheckDir(dir string) error {
	if dir == "" {
		dir = "."
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("working directory %q: %w", dir, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("working directory %q: expected a directory", dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("working directory %q: %w", dir, err)
	}
	return f.Close()
}

// resolve checks a spec and finds the program that it names.
func resolve(spec Spec) (string, *StartError) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", &StartError{Reason: "expected a command, found none"}
	}
	name := spec.Argv[0]
	if err := CheckDir(spec.Dir); err != nil {
		return "", &StartError{Name: name, Reason: err.Error(), Err: errors.Unwrap(err)}
	}
	suffixes := []string{"", ".exe", ".com"}
	if filepath.Ext(name) == "" {
		suffixes = suffixes[1:]
	}
	var dirs []string
	switch {
	case filepath.IsAbs(name):
		dirs = []string{""}
	case strings.ContainsAny(name, `/\:`):
		dirs = []string{spec.Dir}
	default:
		for _, dir := range filepath.SplitList(lookPathVariable(spec.Env)) {
			if filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	for _, dir := range dirs {
		for _, suffix := range suffixes {
			full := filepath.Join(dir, name) + suffix
			if info, err := os.Stat(full); err == nil && !info.IsDir() {
				return full, nil
			}
		}
	}
	return "", &StartError{Name: name, Reason: "not found", Err: windows.ERROR_FILE_NOT_FOUND}
}

func lookPathVariable(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && strings.EqualFold(k, "PATH") {
			return v
		}
	}
	return ""
}

// explain turns the error of a failed start of path into its cause.
func explain(err error, spec Spec, path string) *StartError {
	return &StartError{Name: spec.Argv[0], Reason: fmt.Sprintf("%q cannot be started: %v", path, err), Err: err}
}

// pipes are the three pipes of a child. Ours are overlapped, so that they know
// deadlines; the child's are plain and inheritable.
type pipes struct {
	ours   [3]*os.File
	theirs [3]windows.Handle
}

// pipeBytes is the buffer of a pipe, as large as one on Linux.
const pipeBytes = 64 << 10

var pipeCount atomic.Int64

func newPipes() (*pipes, error) {
	p := new(pipes)
	for i := range p.ours {
		if err := p.connect(i); err != nil {
			p.closeOurs()
			p.closeTheirs()
			return nil, err
		}
	}
	return p, nil
}

// connect makes pipe i: a named pipe of one instance, its name used once, closed
// to the network.
func (p *pipes) connect(i int) error {
	name, err := windows.UTF16PtrFromString(fmt.Sprintf(`\\.\pipe\prp-%d-%d`, os.Getpid(), pipeCount.Add(1)))
	if err != nil {
		return err
	}
	mode, access := uint32(windows.PIPE_ACCESS_INBOUND), uint32(windows.GENERIC_WRITE)
	if i == 0 {
		mode, access = windows.PIPE_ACCESS_OUTBOUND, windows.GENERIC_READ
	}
	ours, err := windows.CreateNamedPipe(name,
		mode|windows.FILE_FLAG_OVERLAPPED|windows.FILE_FLAG_FIRST_PIPE_INSTANCE,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, 1, pipeBytes, pipeBytes, 0, nil)
	if err != nil {
		return fmt.Errorf("CreateNamedPipe: %w", err)
	}
	p.ours[i] = os.NewFile(uintptr(ours), [...]string{"harness stdin", "harness stdout", "harness stderr"}[i])
	inherit := windows.SecurityAttributes{InheritHandle: 1}
	inherit.Length = uint32(unsafe.Sizeof(inherit))
	theirs, err := windows.CreateFile(name, access, 0, &inherit, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return fmt.Errorf("open the child's end of a pipe: %w", err)
	}
	p.theirs[i] = theirs
	return nil
}

func (p *pipes) closeOurs() {
	for _, f := range p.ours {
		if f != nil {
			f.Close()
		}
	}
}

func (p *pipes) closeTheirs() {
	for _, h := range p.theirs {
		if h != 0 {
			windows.CloseHandle(h)
		}
	}
}
