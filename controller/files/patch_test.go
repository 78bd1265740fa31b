package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

// TestPatch: what applies, and what it makes.
func TestPatch(t *testing.T) {
	for name, tt := range map[string]struct {
		before map[string]string
		patch  string
		after  map[string]string
	}{
		"git": {
			map[string]string{"d/f": ten},
			"diff --git a/d/f b/d/f\nindex 1..2 100644\n--- a/d/f\n+++ b/d/f\n@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n",
			map[string]string{"d/": "", "d/f": strings.Replace(ten, "3\n", "three\n", 1)},
		},
		"plain with prefixes": {
			map[string]string{"f": ten},
			"--- a/f\n+++ b/f\n@@ -10 +10 @@\n-10\n+ten\n",
			map[string]string{"f": strings.Replace(ten, "10\n", "ten\n", 1)},
		},
		"plain without prefixes": {
			map[string]string{"f": ten},
			"--- f\t2026-01-01 00:00:00\n+++ f\t2026-01-01 00:00:01\n@@ -1 +1 @@\n-1\n+one\n",
			map[string]string{"f": strings.Replace(ten, "1\n", "one\n", 1)},
		},
		"a folder named b": {
			map[string]string{"b/f": "x\n"},
			"diff --git a/b/f b/b/f\n--- a/b/f\n+++ b/b/f\n@@ -1 +1 @@\n-x\n+y\n",
			map[string]string{"b/": "", "b/f": "y\n"},
		},
		"offset": {
			map[string]string{"f": "a\nb\nc\n" + ten},
			"--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n 2\n-3\n+three\n@@ -8,2 +8,2 @@\n 8\n-9\n+nine\n",
			map[string]string{"f": "a\nb\nc\n1\n2\nthree\n4\n5\n6\n7\n8\nnine\n10\n"},
		},
		"the nearest of several": {
			map[string]string{"f": "x\n-\n-\n-\nx\n-\nx\n"},
			"--- a/f\n+++ b/f\n@@ -6 +6 @@\n-x\n+y\n",
			map[string]string{"f": "x\n-\n-\n-\ny\n-\nx\n"},
		},
		"create, delete, rename": {
			map[string]string{"old": "x\n", "from": "a\nb\n", "stay": "s"},
			"diff --git a/new/f b/new/f\nnew file mode 100755\n--- /dev/null\n+++ b/new/f\n@@ -0,0 +1 @@\n+n\n" +
				"diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" +
				"diff --git a/from b/to\nsimilarity index 50%\nrename from from\nrename to to\n--- a/from\n+++ b/to\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
			map[string]string{"new/": "", "new/f": "n\n", "to": "a\nc\n", "stay": "s"},
		},
		"no newline at the end": {
			map[string]string{"f": "a\nb"},
			"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
			map[string]string{"f": "a\nc"},
		},
		"CRLF": {
			map[string]string{"f": "a\r\nb\r\n"},
			"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n",
			map[string]string{"f": "a\r\nc\r\n"},
		},
		"insertion without context": {
			map[string]string{"f": ten},
			"--- a/f\n+++ b/f\n@@ -3,0 +4 @@\n+new\n",
			map[string]string{"f": "1\n2\n3\nnew\n4\n5\n6\n7\n8\n9\n10\n"},
		},
		"envelope": {
			map[string]string{"f": ten, "gone": "g", "from": "a\nb\n"},
			"*** Begin Patch\n*** Add File: n/f\n+one\n+two\n*** Update File: f\n@@\n 2\n-3\n+three\n@@ 7\n 8\n-9\n+nine\n*** Delete File: gone\n" +
				"*** Update File: from\n*** Move to: to\n@@\n-b\n+c\n*** End of File\n*** End Patch",
			map[string]string{"f": "1\n2\nthree\n4\n5\n6\n7\n8\nnine\n10\n", "n/": "", "n/f": "one\ntwo\n", "to": "a\nc\n"},
		},
		"envelope keeps a bare end": {
			map[string]string{"f": "a\nb"}, "*** Begin Patch\n*** Update File: f\n-a\n+A\n*** End Patch\n", map[string]string{"f": "A\nb"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := space(t, tt.before)
			r, err := s.Patch(t.Context(), PatchRequest{Patch: tt.patch, DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range tree(t, dir) {
				if !strings.HasSuffix(name, "/") && tt.before[name] != text {
					t.Errorf("a dry run has changed %s", name)
				}
			}
			dry := r.Files
			if r, err = s.Patch(t.Context(), PatchRequest{Patch: tt.patch}); err != nil {
				t.Fatal(err)
			}
			if got := tree(t, dir); !maps.Equal(got, tt.after) {
				t.Errorf("the files are %q, want %q", got, tt.after)
			}
			for i, f := range r.Files {
				rel, _ := filepath.Rel(dir, f.Path)
				if dry[i].SHA256After != f.SHA256After || dry[i].Action != f.Action {
					t.Errorf("the dry run said %+v, then %+v", dry[i], f)
				}
				if old, ok := tt.before[rel]; ok {
					if b, _ := os.ReadFile(f.Backup); string(b) != old || f.SHA256Before != hashOf([]byte(old)) {
						t.Errorf("%s: backup %q of %q", rel, b, old)
					}
				}
			}
		})
	}
}

// TestPatchRefused: what does not apply changes nothing, and says where.
func TestPatchRefused(t *testing.T) {
	before := map[string]string{"f": ten, "g": ten, "d/x": "x\n", "exists": "e\n"}
	good := "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\n"
	for name, tt := range map[string]struct {
		patch string
		code  Code
		file  string
		hunk  int
	}{
		"context":           {good + "--- a/g\n+++ b/g\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n@@ -5,2 +5,2 @@\n 5\n-seven\n+7\n", PatchFailed, "g", 2},
		"blanks":            {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1 \n+one\n", PatchFailed, "f", 1},
		"CRLF":              {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\r\n+one\r\n", PatchFailed, "f", 1},
		"before the last":   {"--- a/f\n+++ b/f\n@@ -5 +5 @@\n-5\n+five\n@@ -6 +6 @@\n-2\n+two\n", PatchFailed, "f", 2},
		"no file":           {good + "--- a/no\n+++ b/no\n@@ -1 +1 @@\n-1\n+one\n", NotFound, "", 0},
		"exists":            {good + "--- /dev/null\n+++ b/exists\n@@ -0,0 +1 @@\n+n\n", Conflict, "", 0},
		"outside":           {good + "--- a/../f\n+++ b/../f\n@@ -1 +1 @@\n-1\n+one\n", PathNotAllowed, "", 0},
		"absolute":          {"--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-1\n+one\n", PathNotAllowed, "", 0},
		"outside, envelope": {"*** Begin Patch\n*** Add File: ../f\n+x\n*** End Patch", PathNotAllowed, "", 0},
		"a folder":          {"*** Begin Patch\n*** Delete File: d\n*** End Patch", NotAFile, "", 0},
		"twice":             {good + "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-2\n+two\n", PatchFailed, "f", 0},
		"half deleted":      {"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n", PatchFailed, "f", 0},
		"nothing":           {"hello\n", PatchFailed, "", 0},
		"a torn hunk":       {"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-1\n+one\n", PatchFailed, "", 0},
		"a hunk of no file": {good + "\ngarbage\n@@ -2 +2 @@\n-2\n+two\n", PatchFailed, "", 0},
		"a symlink":         {"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n", PatchFailed, "", 0},
		"ambiguous":         {"*** Begin Patch\n*** Update File: f\n@@\n+new\n*** Update File: d/x\n@@\n-y\n+z\n*** End Patch", PatchFailed, "d/x", 1},
		"no end":            {"*** Begin Patch\n*** Delete File: f\n", PatchFailed, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := space(t, before)
			_, err := s.Patch(t.Context(), PatchRequest{Patch: tt.patch})
			e := refused(t, "patch", err, tt.code)
			if tt.file != "" && e.Details["file"] != tt.file || tt.hunk > 0 && e.Details["hunk"] != tt.hunk {
				t.Errorf("the details are %v, want file %q and hunk %d", e.Details, tt.file, tt.hunk)
			}
			got := tree(t, dir)
			delete(got, "d/")
			if !maps.Equal(got, before) {
				t.Errorf("the files are %q", got)
			}
		})
	}
	s, _ := space(t, map[string]string{"f": "x\nx\n"})
	_, err := s.Patch(t.Context(), PatchRequest{Patch: "*** Begin Patch\n*** Update File: f\n-x\n+y\n*** End Patch"})
	refused(t, "two places", err, PatchFailed)
	_, err = s.Patch(t.Context(), PatchRequest{Patch: good, ExpectedSHA256: map[string]string{"f": hashOf(nil)}})
	refused(t, "another hash", err, Conflict)
	_, err = s.Patch(t.Context(), PatchRequest{Patch: "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", ExpectedSHA256: map[string]string{"g": hashOf(nil)}})
	refused(t, "a hash of another file", err, InvalidRequest)
}

// TestPatchHeedsTime: row 7. Looking for a hunk among many equal lines ends with
// the time of the command, not hours later.
func TestPatchHeedsTime(t *testing.T) {
	s, dir := space(t, map[string]string{"f": strings.Repeat("x\n", 1_000_000)})
	old := strings.Repeat("x\n", 50_000)
	for name, patch := range map[string]string{
		"unified":  "--- a/f\n+++ b/f\n@@ -1,50001 +1,50001 @@\n" + strings.ReplaceAll(old, "x", " x") + "-y\n+z\n",
		"envelope": "*** Begin Patch\n*** Update File: f\n" + strings.ReplaceAll(old, "x", " x") + "-y\n+z\n*** End Patch",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := s.Patch(ctx, PatchRequest{Patch: patch}); err != context.DeadlineExceeded {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestPatchSymlink: rows 14 and 15. A patch changes the file that a symlink leads
// to; to delete or rename by it is refused, since the link would stay.
func TestPatchSymlink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no symlinks")
	}
	s, dir := space(t, map[string]string{"d/f": "x\n"})
	if err := errors.Join(os.Symlink("d/f", filepath.Join(dir, "l")), os.Symlink("d", filepath.Join(dir, "e"))); err != nil {
		t.Fatal(err)
	}
	for name, patch := range map[string]string{
		"delete":          "--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
		"rename":          "diff --git a/l b/m\nsimilarity index 100%\nrename from l\nrename to m\n",
		"delete envelope": "*** Begin Patch\n*** Delete File: l\n*** End Patch",
		"move":            "*** Begin Patch\n*** Update File: l\n*** Move to: m\n-x\n+y\n*** End Patch",
	} {
		_, err := s.Patch(t.Context(), PatchRequest{Patch: patch})
		if e := refused(t, name, err, NotAFile); e.Details["path"] != "l" || !strings.Contains(e.Message, "symlink") {
			t.Errorf("%s: %v", name, e)
		}
	}
	if _, err := s.Patch(t.Context(), PatchRequest{Patch: "--- a/l\n+++ b/l\n@@ -1 +1 @@\n-x\n+y\n"}); err != nil {
		t.Error(err)
	}
	if got := tree(t, dir)["d/f"]; got != "y\n" {
		t.Errorf("the file is %q", got)
	}
	// A folder on the way may be a symlink.
	if _, err := s.Patch(t.Context(), PatchRequest{Path: "e", Patch: "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n"}); err != nil {
		t.Error(err)
	}
	if _, there := tree(t, dir)["d/f"]; there {
		t.Error("the file is still there")
	}
}

// TestPatchMode: git's modes, and the mode of a renamed file.
func TestPatchMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	s, dir := space(t, map[string]string{"f": "x\n", "g": "y\n"})
	os.Chmod(filepath.Join(dir, "g"), 0o700)
	patch := "diff --git a/f b/f\nold mode 100644\nnew mode 100755\ndiff --git a/g b/h\nsimilarity index 100%\nrename from g\nrename to h\n"
	if _, err := s.Patch(t.Context(), PatchRequest{Patch: patch}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"f": 0o755, "h": 0o700} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestDiffApplies: the diff of any two texts turns one into the other, by this
// package and by the program patch where there is one.
func TestDiffApplies(t *testing.T) {
	tool, _ := exec.LookPath("patch")
	r := rand.New(rand.NewPCG(1, 1))
	text := func() string {
		var b strings.Builder
		for range r.IntN(30) {
			fmt.Fprintf(&b, "%d\n", r.IntN(4))
		}
		if r.IntN(3) == 0 {
			b.WriteString("bare")
		}
		return b.String()
	}
	for i := range 300 {
		a, b := text(), text()
		if a == b || a == "" {
			continue
		}
		s, dir := space(t, map[string]string{"f": a})
		p, err := s.find("f")
		if err != nil {
			t.Fatal(err)
		}
		c, err := snapshot(p)
		if err != nil {
			t.Fatal(err)
		}
		c.after = []byte(b)
		d := diffOf(t.Context(), []change{c})
		if _, err := s.Patch(t.Context(), PatchRequest{Patch: d.Text}); err != nil {
			t.Fatalf("%q to %q: %v\n%s", a, b, err, d.Text)
		}
		if got := tree(t, dir)["f"]; got != b {
			t.Fatalf("%q to %q gave %q\n%s", a, b, got, d.Text)
		}
		if tool != "" && i < 30 {
			write(t, filepath.Join(dir, "f"), a)
			cmd := exec.Command(tool, "-p1", "-s")
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(d.Text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("patch: %v %s\n%s", err, out, d.Text)
			}
			if got, _ := os.ReadFile(filepath.Join(dir, "f")); string(got) != b {
				t.Errorf("patch made %q of %q, want %q", got, a, b)
			}
		}
	}
}

// TestDiffIsBounded: texts that differ everywhere cost little.
func TestDiffIsBounded(t *testing.T) {
	var a, b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i)
	}
	d := diffOf(t.Context(), []change{{before: []byte(a.String()), after: []byte(b.String()), exists: true}})
	if d.Omitted != "too large" || len(d.Text) > maxDiff {
		t.Errorf("a diff of %d bytes, %q", len(d.Text), d.Omitted)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\n")
	f.Add("diff --git a/f b/g\nrename from f\nrename to g\n")
	f.Add("*** Begin Patch\n*** Update File: f\n@@ 3\n-4\n+four\n*** End Patch")
	f.Fuzz(func(t *testing.T, patch string) {
		s, dir := space(t, map[string]string{"in/f": ten})
		before := tree(t, dir)
		_, err := s.Patch(t.Context(), PatchRequest{Patch: patch, Path: "in"})
		if err != nil && !maps.Equal(tree(t, dir), before) {
			t.Errorf("a refused patch has changed the files: %v", err)
		}
		for name := range tree(t, dir) {
			if !strings.HasPrefix(name, "in/") {
				t.Errorf("a patch has made %s", name)
			}
		}
	})
}
