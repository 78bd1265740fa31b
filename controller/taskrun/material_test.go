//go:build unix

package taskrun

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prp/controller/checkpoint"
	"prp/controller/devserver"
	"prp/controller/sandbox"
	"prp/controller/workerclient"
)

// sh makes the harness a shell that runs a script with the text as its stdin.
func (b *bench) sh(script string) {
	dir := programs.Dir(b.t)
	b.cfg.Harness = []string{dir + "/prp", "harness", "command", "--from-turn", "text", "--", "sh", "-c", script}
}

// TestPlugins: row 9. The pinned release is unpacked, told to the harness, and
// gone after the run.
func TestPlugins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.plugin("bin/tool", "")
	b.shell()
	b.cfg.Harness[2] = strings.Replace(shellHarness, "while [ ! -e go ]", `path=$(printf %s "$line" | sed 's/.*"path":"\([^"]*\)".*/\1/'); cp "$path/bin/tool" got; echo x > "$path/bin/tool"; while false`, 1)
	if st := b.must(); st.Status != "SUCCEEDED" {
		t.Fatalf("%s: %s", st.Status, text(st.End.ErrorMessage))
	}
	if told := b.read("told"); !strings.Contains(told, `"plugins":[{"name":"tools","version":"1.0","path":"`) {
		t.Errorf("the harness was told %s", told)
	}
	if b.read("got") != "a tool" {
		t.Errorf("the plugin has %q", b.read("got"))
	}
	b.clean()
}

// tree is what a checkpoint of the store holds, by names.
func tree(t *testing.T, b *bench, p checkpoint.Payload) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	if err := checkpoint.Load(b.ctx, b.cfg.Store, p, dir); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		out[e.Name()] = string(text)
	}
	return out
}

// TestWorkspace: row 11. Without a base the workspace is the first checkpoint;
// with one the run begins with it; after the run it is captured.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	t.Run("seed", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.store()
		b.cfg.Workspace = t.TempDir()
		if err := os.WriteFile(filepath.Join(b.cfg.Workspace, "before"), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.sh("echo 2 > after")
		st := b.must()
		if st.Status != "SUCCEEDED" || len(st.Seeds) != 1 || len(st.Restores) != 0 || st.End.WorkspaceCheckpoint == nil {
			t.Fatalf("%s, %d seeds, checkpoint %+v", st.Status, len(st.Seeds), st.End.WorkspaceCheckpoint)
		}
		if got := tree(t, b, payload(workerclient.WorkspaceCheckpointDescriptor(st.Seeds[0]))); len(got) != 1 || got["before"] != "1" {
			t.Errorf("the seed has %v", got)
		}
		if got := tree(t, b, payload(*st.End.WorkspaceCheckpoint)); len(got) != 2 || got["after"] != "2\n" {
			t.Errorf("the result has %v", got)
		}
	})
	t.Run("base", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.base(false)
		b.sh("cat file; echo more >> file")
		// What an earlier run of the task has left is replaced.
		b.offer.Bundle.Run.TaskID = "task_1"
		old := filepath.Join(b.cfg.Dir, workspacesDir, "task_1")
		if err := errors.Join(os.MkdirAll(old, 0o700), os.WriteFile(filepath.Join(old, "old"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		st := b.must()
		if st.Text != "of the base" || len(st.Restores) != 1 || st.Restores[0] != (workerclient.WorkspaceRestoreRequest{Status: "restored"}) || len(st.Seeds) != 0 {
			t.Errorf("the text is %q, the restores %v", st.Text, st.Restores)
		}
		if got := tree(t, b, payload(*st.End.WorkspaceCheckpoint)); len(got) != 1 || got["file"] != "of the basemore\n" {
			t.Errorf("the result has %v", got)
		}
		b.clean()
	})
}

// TestWorkspaceFailures: nothing that was there is lost, and a capture that fails
// changes no end.
func TestWorkspaceFailures(t *testing.T) {
	t.Parallel()
	t.Run("a failed restore", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.base(true)
		b.offer.Bundle.Run.TaskID = "task_1"
		old := filepath.Join(b.cfg.Dir, workspacesDir, "task_1")
		if err := errors.Join(os.MkdirAll(old, 0o700), os.WriteFile(filepath.Join(old, "old"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		st := b.must()
		if st.Status != "FAILED" || len(st.Restores) != 1 || st.Restores[0].Status != "failed" || st.Restores[0].Error == "" || st.End.WorkspaceCheckpoint != nil {
			t.Errorf("%s, restores %v", st.Status, st.Restores)
		}
		if _, err := os.Stat(filepath.Join(old, "old")); err != nil {
			t.Errorf("what was there is gone: %v", err)
		}
	})
	t.Run("a folder of a person", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.base(false)
		b.cfg.Workspace = t.TempDir()
		if err := os.WriteFile(filepath.Join(b.cfg.Workspace, "mine"), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		if st := b.must(); st.Status != "FAILED" || b.read("mine") != "1" {
			t.Errorf("%s, and the file has %q", st.Status, b.read("mine"))
		}
	})
	t.Run("a capture that fails", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.store()
		b.sh("ln -s /etc/passwd out")
		st := b.must()
		if st.Status != "SUCCEEDED" || st.End.WorkspaceCheckpoint != nil || !strings.Contains(strings.Join(b.told, "\n"), "not captured") {
			t.Errorf("%s, checkpoint %v, told %q", st.Status, st.End.WorkspaceCheckpoint, b.told)
		}
	})
}

// payload is what a report says of a checkpoint.
func payload(d workerclient.WorkspaceCheckpointDescriptor) checkpoint.Payload {
	return checkpoint.Payload{
		Format: d.PayloadFormat, SHA256: d.PayloadSHA256, SizeBytes: d.SizeBytes,
		UncompressedBytes: d.UncompressedBytes, EntryCount: d.EntryCount,
	}
}

// TestSandbox: row 10. A run is held to its tiers; where that is not possible it
// fails, and runs only with AllowUnsandboxed.
func TestSandbox(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("of somebody else"), 0o644); err != nil {
		t.Fatal(err)
	}
	look := "cat " + outside + " 2>/dev/null || echo hidden; echo x > " + outside + " 2>/dev/null || echo kept; echo mine > file && cat file"
	_, refused := sandbox.Policy{Workspace: t.TempDir()}.Plan()
	for name, tt := range map[string]struct {
		tiers *workerclient.TaskRunSandbox
		allow bool
		read  bool
	}{
		"none named": {nil, false, false},
		"unknown":    {&workerclient.TaskRunSandbox{NetworkTier: "wide", FilesystemTier: "all"}, false, false},
		"strictest":  {&workerclient.TaskRunSandbox{NetworkTier: "none", FilesystemTier: "workspace"}, false, false},
		"read":       {&workerclient.TaskRunSandbox{NetworkTier: "open", FilesystemTier: "workspace_plus_shared_read"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if refused != nil {
				t.Skip(refused)
			}
			b := newBench(t)
			b.cfg.AllowUnsandboxed = tt.allow
			b.cfg.SharedRead = []string{outside}
			b.offer.Bundle.Sandbox = tt.tiers
			b.sh(look)
			want := "hidden\nkept\nmine\n"
			if tt.read {
				want = "of somebody elsekept\nmine\n"
			}
			if st := b.must(); st.Text != want {
				t.Errorf("%s, the text is %q, want %q", text(st.End.ErrorMessage), st.Text, want)
			}
		})
	}
	// Names of hosts are known to no sandbox here.
	registries := &workerclient.TaskRunSandbox{NetworkTier: "registries"}
	b := newBench(t)
	b.cfg.AllowUnsandboxed, b.offer.Bundle.Sandbox = false, registries
	st := b.must()
	if st.Status != "FAILED" || !strings.Contains(text(st.End.ErrorMessage), `network tier "registries" cannot be enforced here`) || st.Count(devserver.OnStream) > 0 {
		t.Errorf("%s: %s", st.Status, text(st.End.ErrorMessage))
	}
	b = newBench(t)
	b.offer.Bundle.Sandbox = registries
	if st := b.must(); st.Status != "SUCCEEDED" || !strings.Contains(strings.Join(b.told, "\n"), "network tier registries, NOT enforced") {
		t.Errorf("%s: %s; told %q", st.Status, text(st.End.ErrorMessage), b.told)
	}
}
