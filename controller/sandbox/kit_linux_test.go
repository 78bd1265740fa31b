package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// place has a workspace and what lies around it. Each try has folders of its
// own in it, so that many can be done by one process.
type place struct {
	top, self    string
	policy       Policy
	unprivileged bool // tries run as a user without rights
}

// folders are in a place; a try has a folder of its name in each.
var folders = []string{"workspace", "private", "shared", "external", "outside"}

// newPlace makes it. The test is skipped where the host cannot confine.
func newPlace(t *testing.T, network, files string) *place {
	t.Helper()
	if h := Probe(); h.Landlock < abiFiles || !h.Seccomp {
		t.Skipf("this host cannot confine: Landlock ABI %d (%d is needed), seccomp %v", h.Landlock, abiFiles, h.Seccomp)
	}
	self, err := os.Executable()
	check(t, err)
	top := t.TempDir()
	p := &place{top: top, self: self, policy: Policy{
		Network: network, Filesystem: files,
		Workspace: top + "/workspace", Private: []string{top + "/private"},
		SharedRead: []string{top + "/shared"}, ExternalWrite: []string{top + "/external"},
	}}
	p.furnish(t, "0")
	program, err := os.ReadFile("/bin/true")
	check(t, err)
	check(t, os.WriteFile(top+"/outside/true", program, 0o755))
	check(t, os.Symlink("/bin/true", top+"/workspace/true-of-the-system"))
	return p
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// furnish makes the folders of a try.
func (p *place) furnish(t *testing.T, name string) {
	t.Helper()
	for _, folder := range folders {
		dir := filepath.Join(p.top, folder, name)
		check(t, os.MkdirAll(dir+"/sub", 0o755))
		check(t, os.MkdirAll(dir+"/empty", 0o755))
		for _, file := range []string{"file", "sub/file"} {
			check(t, os.WriteFile(filepath.Join(dir, file), []byte("old content"), 0o644))
		}
	}
}

// fill puts the names of a try's folders into it: IN is in the workspace, OUT
// outside, REL the same from the top, OTHER another process.
func (p *place) fill(name string, args []string) []string {
	var list []string
	for _, a := range args {
		for word, path := range map[string]string{
			"IN": p.top + "/workspace/" + name, "OUT": p.top + "/outside/" + name, "REL": "outside/" + name,
			"PRIVATE": p.top + "/private/" + name, "SHARED": p.top + "/shared/" + name, "EXTERNAL": p.top + "/external/" + name,
			"TOP": p.top, "OTHER": "/proc/" + strconv.Itoa(os.Getpid()),
		} {
			if part := strings.Split(a, "/"); slices.Contains(part, word) {
				for i := range part {
					if part[i] == word {
						part[i] = path
					}
				}
				a = strings.Join(part, "/")
			}
		}
		list = append(list, a)
	}
	return list
}

// many does tries in one process, each in folders of its own.
func (p *place) many(t *testing.T, confined bool, tries map[string][]string) map[string]result {
	t.Helper()
	filled := map[string][]string{}
	for i, name := range slices.Sorted(maps.Keys(tries)) {
		filled[name] = p.fill(strconv.Itoa(i), tries[name])
	}
	text, err := json.Marshal(filled)
	check(t, err)
	argv := []string{p.self, selfTry, "batch"}
	if confined {
		argv = p.wrap(t, argv)
	}
	o := start(t, func(c *exec.Cmd) {
		p.prepare(c)
		c.Stdin = strings.NewReader(string(text))
	}, argv...)
	var results map[string]result
	if err := json.Unmarshal([]byte(o.out), &results); err != nil || o.status != 0 {
		t.Fatalf("%v: %v, %s", err, o, o.out)
	}
	return results
}

// furnishAll makes the folders for many tries.
func (p *place) furnishAll(t *testing.T, n int) {
	t.Helper()
	for i := 1; i < n; i++ {
		p.furnish(t, strconv.Itoa(i))
	}
}

// wrap is the command line of a harness, confined.
func (p *place) wrap(t *testing.T, argv []string) []string {
	t.Helper()
	plan, err := p.policy.Plan()
	check(t, err)
	return plan.Wrap([]string{p.self, selfConfine}, argv)
}

// free tries one thing without a sandbox.
func (p *place) free(t *testing.T, args ...string) outcome {
	t.Helper()
	return start(t, p.prepare, append([]string{p.self, selfTry}, p.fill("0", args)...)...)
}

// confined tries one thing inside.
func (p *place) confined(t *testing.T, args ...string) outcome {
	t.Helper()
	return start(t, p.prepare, p.wrap(t, append([]string{p.self, selfTry}, p.fill("0", args)...))...)
}

func (p *place) prepare(c *exec.Cmd) {
	c.Dir = p.policy.Workspace
	if p.unprivileged {
		const nobody = 65534
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// snapshot is every file of the place with its content, but for symlinks that a
// harness made in its workspace.
func (p *place) snapshot(t *testing.T) string {
	t.Helper()
	var list strings.Builder
	check(t, filepath.WalkDir(p.top, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type() == os.ModeSymlink && strings.HasPrefix(path, p.policy.Workspace) {
			return err
		}
		fmt.Fprintf(&list, "%s %v", path, d.Type())
		if d.Type().IsRegular() && d.Name() != "true" {
			text, err := os.ReadFile(path)
			fmt.Fprintf(&list, " %s %v", text, err)
		}
		list.WriteString("\n")
		return nil
	}))
	return list.String()
}

// servers listen on everything that a harness could reach.
type servers struct{ tcp, udp, unix, datagram, abstract string }

func listen(t *testing.T) servers {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short: the name of a socket has 108 bytes
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	var s servers
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	check(t, err)
	s.unix, s.datagram = dir+"/stream", dir+"/datagram"
	stream, err := net.Listen("unix", s.unix)
	check(t, err)
	datagram, err := net.ListenPacket("unixgram", s.datagram)
	check(t, err)
	s.abstract = "@" + dir
	abstract, err := net.Listen("unix", s.abstract)
	check(t, err)
	s.tcp, s.udp = tcp.Addr().String(), udp.LocalAddr().String()
	t.Cleanup(func() {
		for _, c := range []io.Closer{tcp, udp, stream, datagram, abstract} {
			c.Close()
		}
	})
	return s
}
