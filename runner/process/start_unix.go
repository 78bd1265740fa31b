//go:build unix

package process

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// busyPatience is how long a start is tried again while the program's file is
// open for writing: another thread of whoever wrote it may hold a copy of the
// descriptor between its own fork and exec. busyPause lies between two tries.
const (
	busyPatience = 250 * time.Millisecond
	busyPause    = 10 * time.Millisecond
)

// interpreterMax bounds what is read of a script's first line, in bytes. Linux
// itself reads 256.
const interpreterMax = 256

// CheckDir tells whether a child can be started in dir: it is a directory, and
// it can be searched and read. "" is the caller's own directory.
func CheckDir(dir string) error {
	if dir == "" {
		dir = "."
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("working directory %q: %w", dir, bare(err))
	}
	if !info.IsDir() {
		return fmt.Errorf("working directory %q: expected a directory, found a %s", dir, kindOf(info.Mode()))
	}
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.R_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("working directory %q: expected it to be readable and searchable: %w", dir, err)
	}
	return nil
}

// bare takes the path off an error whose message names it already.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func kindOf(m fs.FileMode) string {
	switch m.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeNamedPipe:
		return "named pipe"
	case fs.ModeSocket:
		return "socket"
	default:
		return "device"
	}
}

// resolve checks a spec and finds the program that it names.
func resolve(spec Spec) (string, *StartError) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", &StartError{Reason: "expected a command, found none"}
	}
	name := spec.Argv[0]
	for i, a := range spec.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return "", &StartError{Name: name, Reason: fmt.Sprintf("argument %d holds a NUL byte", i)}
		}
	}
	for i, e := range spec.Env {
		if strings.IndexByte(e, 0) >= 0 {
			return "", &StartError{Name: name, Reason: fmt.Sprintf("entry %d of the environment holds a NUL byte", i)}
		}
	}
	if err := CheckDir(spec.Dir); err != nil {
		return "", &StartError{Name: name, Reason: err.Error(), Err: errors.Unwrap(err)}
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	return lookPath(name, spec.Env)
}

// lookPath finds a bare name in the PATH of env. An entry that is not absolute
// would mean another program in another directory: it is skipped.
func lookPath(name string, env []string) (string, *StartError) {
	path, ok := lookEnv(env, "PATH")
	if !ok || path == "" {
		return "", &StartError{Name: name, Reason: "expected a PATH to look it up in, found none", Err: syscall.ENOENT}
	}
	var seen string
	for dir := range strings.SplitSeq(path, ":") {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, name)
		info, err := os.Stat(full)
		if err != nil {
			continue
		}
		if info.Mode().IsRegular() && unix.Faccessat(unix.AT_FDCWD, full, unix.X_OK, unix.AT_EACCESS) == nil {
			return full, nil
		}
		if seen == "" {
			seen = full
		}
	}
	if seen != "" {
		return seen, nil // starting it fails, and explain says why
	}
	return "", &StartError{Name: name, Reason: fmt.Sprintf("not found in PATH %q", path), Err: syscall.ENOENT}
}

// lookEnv gives the last value of key in env, as a shell would see it.
func lookEnv(env []string, key string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && k == key {
			return v, true
		}
	}
	return "", false
}

// explain turns the error of a failed start of path into its cause.
func explain(err error, spec Spec, path string) *StartError {
	e := &StartError{Name: spec.Argv[0], Err: err}
	errno, _ := errors.AsType[syscall.Errno](err)
	file := path
	if !filepath.IsAbs(file) {
		file = filepath.Join(spec.Dir, file)
	}
	info, statErr := os.Stat(file)
	switch errno {
	case syscall.ENOENT:
		e.Reason = missing(file, statErr)
	case syscall.EACCES:
		e.Reason = denied(file, info, statErr)
	case syscall.ENOEXEC:
		e.Reason = fmt.Sprintf("%q is not a program: %s", file, format(info))
	case syscall.ETXTBSY:
		e.Reason = fmt.Sprintf("%q is open for writing elsewhere (text file busy)", file)
	case syscall.E2BIG:
		e.Reason = "arguments and environment are too long for the system"
	case syscall.EMFILE, syscall.ENFILE:
		e.Reason = fmt.Sprintf("no file descriptors left: %v", errno)
	case syscall.EAGAIN:
		e.Reason = "no processes left: the limit of the user or of the cgroup is reached"
	case syscall.ENOMEM:
		e.Reason = "no memory left to start a process"
	default:
		e.Reason = fmt.Sprintf("%q cannot be started: %v", file, err)
	}
	return e
}

func missing(file string, statErr error) string {
	if statErr != nil {
		return fmt.Sprintf("%q does not exist", file)
	}
	if interp := interpreter(file); interp != "" {
		return fmt.Sprintf("%q has a bad interpreter %q", file, interp)
	}
	return fmt.Sprintf("%q needs a loader that does not exist", file)
}

func denied(file string, info fs.FileInfo, statErr error) string {
	switch {
	case statErr != nil:
		return fmt.Sprintf("%q cannot be reached: %v", file, bare(statErr))
	case info.IsDir():
		return fmt.Sprintf("%q is a directory", file)
	case !info.Mode().IsRegular():
		return fmt.Sprintf("%q is a %s, expected a file", file, kindOf(info.Mode()))
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Sprintf("%q is not executable: mode %#o", file, info.Mode().Perm())
	}
	if interp := interpreter(file); interp != "" {
		return fmt.Sprintf("%q has a bad interpreter %q, or may not be executed here", file, interp)
	}
	return fmt.Sprintf("%q may not be executed: permission denied", file)
}

func format(info fs.FileInfo) string {
	if info != nil && info.Size() == 0 {
		return "the file is empty"
	}
	return "its format is unknown to this system"
}

// interpreter is the program named in the first line of a script, or "".
func interpreter(file string) string {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, interpreterMax).ReadSlice('\n')
	rest, ok := strings.CutPrefix(string(line), "#!")
	if !ok {
		return ""
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// explainPipes is the cause where not even the pipes could be made.
func explainPipes(err error, spec Spec) *StartError {
	e := explain(err, spec, "/")
	if errno, _ := errors.AsType[syscall.Errno](err); errno != syscall.EMFILE && errno != syscall.ENFILE {
		e.Reason = fmt.Sprintf("no pipes: %v", err)
	}
	return e
}
