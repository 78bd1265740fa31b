package files

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"prp/controller/files/disktest"
)

// TestDiskFills: issue point 2. A patch of several files on a real file system
// with room for a part of it, from none to all, page by page and file by file:
// every file is new or every one is old, and nothing is left beside them. Once
// the files have no room, once the backups and the record.
func TestDiskFills(t *testing.T) {
	if !disktest.Apart(t) {
		return
	}
	const page = 4096
	for _, limit := range []string{"size=%d", "size=16m,nr_inodes=%d"} {
		for _, full := range []string{"root", "state"} {
			ends := map[bool]int{}
			for room := range 14 {
				n := (room + 1) * page
				if full == "root" {
					n += 3 * page // the old files have their place
				}
				if strings.Contains(limit, "inodes") {
					n = room + 3 // the folder, and two files or folders
				}
				ends[fills(t, fmt.Sprintf(limit, n), full)]++
			}
			if ends[true] == 0 || ends[false] < 2 {
				t.Errorf("%s of the %s: %d patches were whole and %d had no room", limit, full, ends[true], ends[false])
			}
		}
	}
}

// fills applies a patch where the root or the state has little room, and
// reports whether it was applied.
func fills(t *testing.T, limit, full string) bool {
	t.Helper()
	disk, other := disktest.Mount(t, limit), t.TempDir()
	cfg := Config{Roots: []string{disk}, Dir: other}
	if full == "state" {
		cfg = Config{Roots: []string{other}, Dir: disk}
	}
	old, fresh := strings.Repeat("old\n", 1500), strings.Repeat("new line\n", 1500)
	before := map[string]string{"a": old, "b": old}
	for name, text := range before {
		write(t, filepath.Join(cfg.Roots[0], name), text)
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var patch strings.Builder
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&patch, "--- a/%s\n+++ b/%s\n@@ -1,1500 +1,1500 @@\n-%s+%s", name, name,
			strings.ReplaceAll(strings.TrimSuffix(old, "\n"), "\n", "\n-")+"\n", strings.ReplaceAll(strings.TrimSuffix(fresh, "\n"), "\n", "\n+")+"\n")
	}
	fmt.Fprint(&patch, "--- /dev/null\n+++ b/d/e/c\n@@ -0,0 +1 @@\n+made\n")
	_, err = s.Patch(t.Context(), PatchRequest{Patch: patch.String()})
	want := before
	if err == nil {
		want = map[string]string{"a": fresh, "b": fresh, "d/": "", "d/e/": "", "d/e/c": "made\n"}
	} else if e := refused(t, limit, err, Internal); !strings.Contains(e.Message, "no space left on device") {
		t.Errorf("%s of the %s: %v", limit, full, err)
	}
	if got := tree(t, cfg.Roots[0]); !maps.Equal(got, want) {
		for name, text := range got {
			got[name] = fmt.Sprintf("%.4s... of %d bytes", text, len(text))
		}
		t.Errorf("%s of the %s: %v; the files are %q", limit, full, err, got)
	}
	if n, err := s.Recover(); n != 0 || err != nil {
		t.Errorf("%s of the %s: %d changes were left, %v", limit, full, n, err)
	}
	return err == nil
}
