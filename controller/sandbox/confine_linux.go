package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// system is what nearly every program reads: code, and settings without
// secrets. Home folders, /var, /run, /root, keys and password hashes are not
// among it.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies",
	"/etc/debian_version", "/etc/fonts", "/etc/gai.conf", "/etc/gitconfig", "/etc/group", "/etc/host.conf",
	"/etc/hostname", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
	"/etc/locale.alias", "/etc/locale.conf", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release",
	"/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf",
	"/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/shells", "/etc/ssl/cert.pem", "/etc/ssl/certs",
	"/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone",
	"/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
}

// devices are read and written, and keep nothing.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Rights by what is granted.
const (
	fileRead  = ll.AccessFSExecute | ll.AccessFSReadFile
	fileWrite = fileRead | ll.AccessFSWriteFile | ll.AccessFSTruncate
	dirRead   = fileRead | ll.AccessFSReadDir
	dirWrite  = dirRead | fileWrite | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSym | ll.AccessFSMakeFifo | ll.AccessFSMakeSock | ll.AccessFSRefer
)

// confine confines the calling thread, which it binds to the goroutine for
// good: only [become] may follow.
func confine(r Rules, program string) error {
	host := Probe()
	runtime.LockOSThread()
	// What the launcher left open is not the harness's.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close what is open: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if r.Files {
		if host.Landlock < abiFiles {
			return fmt.Errorf("landlock has ABI %d, expected %d or more", host.Landlock, abiFiles)
		}
		if err := restrict(r, host, program); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if !host.Seccomp {
		return errors.New("this kernel and processor have no seccomp filter")
	}
	if err := filterCalls(r.Sockets); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// become replaces this process. The thread is the one that was confined.
func become(program string, argv, env []string) error { return syscall.Exec(program, argv, env) }

// restrict puts the calling thread under a Landlock ruleset.
func restrict(r Rules, host Host, program string) error {
	rules, err := grants(r, program)
	if err != nil {
		return err
	}
	fd, flags, err := handled(r, host).NewRulesetFD(rules...)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return ll.LandlockRestrictSelf(fd, flags)
}

// handled is what is refused where no rule grants it: everything that the
// kernel can refuse.
func handled(r Rules, host Host) landlock.Config {
	c := landlock.Config{HandledAccessFS: dirWrite | ll.AccessFSMakeChar | ll.AccessFSMakeBlock}
	if host.Landlock >= abiIoctl {
		c.HandledAccessFS |= ll.AccessFSIoctlDev
	}
	if host.Landlock >= abiUnix {
		c.HandledAccessFS |= ll.AccessFSResolveUnix
	}
	if host.Landlock >= abiScopes {
		c.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	if r.Sockets == NetworkNone && host.Landlock >= abiTCP {
		c.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if r.Sockets == NetworkNone && host.Landlock >= abiUDP {
		c.HandledAccessNet |= ll.AccessNetBindUDP | ll.AccessNetConnectSendUDP
	}
	return c
}

// grants are the rules for files.
func grants(r Rules, program string) ([]landlock.Rule, error) {
	var list []landlock.Rule
	add := func(path string, dir, file landlock.AccessFSSet) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			file = dir
		}
		list = append(list, landlock.PathAccess(file, path))
		return nil
	}
	for _, path := range system {
		if err := add(path, dirRead, fileRead); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for _, path := range devices {
		if err := add(path, 0, fileWrite&^ll.AccessFSExecute); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	// The program may be a symlink to a file anywhere: the file is meant.
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil, err
	}
	for _, path := range append([]string{real}, r.Read...) {
		if err := add(path, dirRead, fileRead); err != nil {
			return nil, err
		}
	}
	for _, path := range r.Write {
		if err := add(path, dirWrite, fileWrite); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// dropCapabilities takes every capability from the calling thread. With
// no_new_privs none comes back, for root neither: it could undo or go around
// much of the rest.
func dropCapabilities() error {
	// Taking from the bounding set needs a capability itself. Who has none
	// gains none either.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			break
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData // 64 capabilities
	return unix.Capset(&header, &none[0])
}
