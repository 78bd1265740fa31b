package worker

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"prp/controller/devserver"
	"prp/controller/files/disktest"
)

// fill leaves no room in a file system.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
}

// TestStateDiskFull: remote.md rule 4. A worker whose state cannot be written
// ends and says why; with room again the outcome is told as unknown, and the
// command is not run again.
func TestStateDiskFull(t *testing.T) {
	if !disktest.Apart(t) {
		return
	}
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Dir = disktest.Mount(t, "size=1m")
	p.start()
	const frame = `{"command_id":"c","task_id":"task","tool":"command.run","args":{"argv":["sh","-c","echo >> runs; while [ ! -e go ]; do sleep 0.02; done; head -c 200000 /dev/zero | tr '\\0' x"]}}`
	p.frame(frame)
	p.until("the start", func() bool { return p.read("runs") != "" })
	fill(t, p.cfg.Dir)
	p.write("go", "")
	select {
	case err := <-p.ended:
		if err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("the worker ended with %v", err)
		}
		p.stop()
		p.stop = nil
	case <-p.ctx.Done():
		t.Fatal("the worker goes on without its state")
	}
	if err := os.Remove(filepath.Join(p.cfg.Dir, "filler")); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.refused("after the restart", p.result("c"), CodeOutcomeUnknown)
	if p.read("runs") != "\n" {
		t.Errorf("it ran %d times", len(p.read("runs")))
	}
}

// TestFilesDiskFull: row 12. Over the wire: without room a write or a patch
// changes nothing and says so, also on a file system that is read-only.
func TestFilesDiskFull(t *testing.T) {
	if !disktest.Apart(t) {
		return
	}
	p := serve(t, devserver.WorkerConfig{})
	p.config.Root = disktest.Mount(t, "size=64k")
	p.cfg.Roots = []string{p.config.Root}
	p.write("f", "old\n")
	fill(t, p.config.Root)
	p.start()
	tools := map[string]string{
		ToolWrite: `{"path":"f","mode":"overwrite","content":"` + strings.Repeat("n", 9000) + `"}`,
		ToolPatch: `{"patch":"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+made\n"}`,
	}
	check := func(what string, code Code, text string) {
		for tool, args := range tools {
			r := p.do(tool, args)
			p.refused(tool+" "+what, r, code)
			if r.Error != nil && !strings.Contains(r.Error.Message, text) {
				t.Errorf("%s %s: %s", tool, what, r.Error.Message)
			}
		}
		entries, err := os.ReadDir(p.config.Root)
		if err != nil || len(entries) != 2 || p.read("f") != "old\n" {
			t.Errorf("%s: %v, %v, %q", what, entries, err, p.read("f"))
		}
	}
	check("on a full disk", CodeInternal, "no space left on device")
	if err := unix.Mount("", p.config.Root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	check("on a read-only disk", "PERMISSION_DENIED", `"f"`)
}

// unprivileged starts a worker that may not do everything: in a process of
// another user where this one is root.
func (p *peer) unprivileged() {
	p.t.Helper()
	if os.Getuid() != 0 {
		p.start()
		return
	}
	const nobody = 65534
	// Its program and its state stand where it may go.
	program := filepath.Join(p.config.Dir, "program")
	text, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	p.config.Dir = filepath.Join(p.config.Dir, "state")
	err = errors.Join(err, os.Mkdir(p.config.Dir, 0o700), os.Chown(p.config.Dir, nobody, nobody))
	for _, dir := range []string{p.config.Root, filepath.Dir(p.config.Root), filepath.Dir(p.config.Dir), filepath.Dir(filepath.Dir(p.config.Dir))} {
		err = errors.Join(err, os.Chmod(dir, 0o755))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	probe := exec.Command(program, "-test.run", "^$")
	probe.SysProcAttr = attr
	if err := probe.Run(); err != nil {
		p.t.Skipf("root may not start a process of another user in %q: %s", filepath.Dir(program), err)
	}
	p.apartAs(program, attr)
}

// TestNoPermission: row 17. Over the wire: what the account of the worker may
// not do is PERMISSION_DENIED.
func TestNoPermission(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.write("secret", "x")
	p.write("locked/f", "old\n")
	for path, mode := range map[string]os.FileMode{"secret": 0, "locked": 0o555} {
		if err := os.Chmod(filepath.Join(p.config.Root, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(p.config.Root, "locked"), 0o755) }) // to be removed
	p.unprivileged()
	for args, path := range map[string]string{
		ToolRead + ` {"path":"secret"}`:                                                                "secret",
		ToolWrite + ` {"path":"locked/new","content":""}`:                                              "locked/new",
		ToolWrite + ` {"path":"locked/f","content":"","mode":"overwrite"}`:                             "locked/f",
		ToolPatch + ` {"patch":"--- a/locked/f\n+++ b/locked/f\n@@ -1 +1 @@\n-old\n+new\n"}`:           "locked/f",
		ToolPatch + ` {"patch":"*** Begin Patch\n*** Delete File: locked/f\n*** End Patch"}`:           "locked/f",
		ToolPatch + ` {"patch":"*** Begin Patch\n*** Add File: locked/d/new\n+text\n*** End Patch\n"}`: "locked/d/new",
	} {
		tool, args, _ := strings.Cut(args, " ")
		r := p.do(tool, args)
		p.refused(tool+" "+args, r, "PERMISSION_DENIED")
		if r.Error != nil && r.Error.Details["path"] != path {
			t.Errorf("%s: the details are %v", args, r.Error.Details)
		}
	}
	if got := p.read("locked/f"); got != "old\n" {
		t.Errorf("the file is %q", got)
	}
}
