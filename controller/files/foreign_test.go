//go:build unix

package files

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exchange puts another file in the place of one, as an editor does when it
// saves: with a rename.
func exchange(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".tmp", text)
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

// TestExchangedMeanwhile: a file that somebody has exchanged is kept, whether
// the commit is stopped by that or is undone after it, at every step.
func TestExchangedMeanwhile(t *testing.T) {
	before := map[string]string{"a": "A", "b": "B", "gone": "G"}
	for _, name := range []string{"a", "b", "gone"} {
		want := maps.Clone(before)
		want[name] = "somebody else's"
		for at := 1; ; at++ {
			s, dir := space(t, before)
			k := s.newCommit(changes(t, s, map[string]string{"a": "a2", "b": "b2", "gone": ""}))
			steps := 0
			var failed error
			k.stop = func(string) error {
				if steps++; steps == at {
					exchange(t, filepath.Join(dir, name), want[name])
				}
				return failed
			}
			err := k.run(t.Context())
			if steps < at {
				break
			}
			// Where the file was done with before, the exchange came after.
			if got := tree(t, dir); err != nil && !maps.Equal(got, want) || err == nil && got[name] != want[name] {
				t.Errorf("%s at step %d: %v, the files are %q", name, at, err, got)
			}
		}
		// The process was killed, and the file exchanged before the next start.
		s, dir := space(t, before)
		k := s.newCommit(changes(t, s, map[string]string{"a": "a2", "b": "b2", "gone": ""}))
		if err := k.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range k.list {
			if err := k.replaceFile(&k.list[i]); err != nil {
				t.Fatal(err)
			}
		}
		exchange(t, filepath.Join(dir, name), want[name])
		if n, err := s.Recover(); n != 1 || err != nil {
			t.Errorf("%d undone, %v", n, err)
		}
		if got := tree(t, dir); !maps.Equal(got, want) {
			t.Errorf("%s after a restart: %q", name, got)
		}
	}
}

// TestManyFiles: a patch of many files that exist, with the longest names that
// there are, is applied, and each has its backup.
func TestManyFiles(t *testing.T) {
	const files = 300
	before, after := map[string]string{}, map[string]string{}
	var patch strings.Builder
	long := strings.Repeat("n", 250)
	for i := range files {
		name := fmt.Sprint("f", i)
		switch i {
		case 0, 1:
			name = fmt.Sprint(long, i) // alike but for the end
		case 2:
			name = strings.Repeat("é", 127)
		}
		before[name], after[name] = "old\n", "new\n"
		fmt.Fprintf(&patch, "--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-old\n+new\n", name, name)
	}
	s, dir := space(t, before)
	r, err := s.Patch(t.Context(), PatchRequest{Patch: patch.String()})
	if err != nil {
		t.Fatal(err)
	}
	if got := tree(t, dir); !maps.Equal(got, after) {
		t.Errorf("%d files are left, or not all are new", len(got))
	}
	backups := map[string]bool{}
	for _, f := range r.Files {
		b, err := os.ReadFile(f.Backup)
		if err != nil || string(b) != "old\n" {
			t.Fatalf("the backup of %s is %q, %v", f.Path, b, err)
		}
		backups[f.Backup] = true
	}
	if len(backups) != files {
		t.Errorf("%d backups, want %d", len(backups), files)
	}
	if _, err := put1(s, WriteRequest{Path: long + "0", Mode: ModeOverwrite}, "x"); err != nil {
		t.Error(err)
	}
}

// TestPatchReport: row 14. A patch whose result nobody could take has no effect.
func TestPatchReport(t *testing.T) {
	s, dir := space(t, nil)
	var patch strings.Builder
	patch.WriteString("*** Begin Patch\n")
	deep := strings.Repeat(strings.Repeat("d", 100)+"/", 10)
	for i := range 900 {
		fmt.Fprintf(&patch, "*** Add File: %sf%d\n+x\n", deep, i)
	}
	_, err := s.Patch(t.Context(), PatchRequest{Patch: patch.String() + "*** End Patch"})
	refused(t, "a patch of long names", err, TooLarge)
	if got := tree(t, dir); len(got) != 0 {
		t.Errorf("%d files were made", len(got))
	}
}

// TestBinaryPatch: row 14. A binary hunk is applied; one that could be a
// thousand times as large when it is unpacked is not even looked at.
func TestBinaryPatch(t *testing.T) {
	s, dir := space(t, nil)
	// As git writes a new file of the bytes 0 1 2 255.
	const small = "diff --git a/b b/b\nnew file mode 100644\nindex 0000000..f971a5e\nGIT binary patch\nliteral 4\nLcmZQzWcm*P0SW;F\n\nliteral 0\nHcmV?d00001\n\n"
	if _, err := s.Patch(t.Context(), PatchRequest{Patch: small}); err != nil {
		t.Error(err)
	}
	if got := tree(t, dir)["b"]; got != "\x00\x01\x02\xff" {
		t.Errorf("the file is %q", got)
	}
	large := strings.Replace(small, "a/b b/b", "a/c b/c", 1) + strings.Repeat("zcmV?d00001\n", 10_000)
	_, err := s.Patch(t.Context(), PatchRequest{Patch: large})
	refused(t, "a large binary hunk", err, TooLarge)
}
