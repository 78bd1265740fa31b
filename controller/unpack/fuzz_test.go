package unpack

import (
	"archive/tar"
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzTar: whatever an archive says, nothing is written outside the target, and
// no path of it, through symlinks too, ends outside. The sums of the headers
// are made right, so that what is changed is looked at.
func FuzzTar(f *testing.F) {
	for _, seed := range [][]byte{
		archive(file("x"), folderOf("d/"), file("d/y")),
		archive(folderOf("a/"), folderOf("a/b/"), link("a/b/l", "../../x"), file("x")),
		archive(folderOf("y/"), link("x", "y"), file("x/z")),
		archive(link("x", "../y"), file("../x"), entry{tar.TypeLink, "b", "a"}),
		archive(file(strings.Repeat("ü", 90)), link("l", strings.Repeat("n", 150))),
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, packed []byte, exact bool) {
		packed = bytes.Clone(packed)
		for block := packed; len(block) >= 512; block = block[512:] {
			if string(block[257:262]) == "ustar" {
				checksum(block[:512])
			}
		}
		rules := wide
		rules.Exact, rules.Portable = exact, !exact
		top := t.TempDir()
		dir := filepath.Join(top, "target")
		area, err := Open(dir, rules)
		if err != nil {
			t.Fatal(err)
		}
		err = area.Tar(context.Background(), bytes.NewReader(packed))
		if err == nil {
			err = area.Commit()
		}
		if gone := area.Discard(); gone != nil {
			t.Errorf("Discard: %v", gone)
		}
		left, _ := os.ReadDir(top)
		switch {
		case err != nil && len(left) != 0:
			t.Errorf("after %v there is %v", err, left)
		case err == nil && (len(left) != 1 || left[0].Name() != "target"):
			t.Errorf("there is %v, want the target alone", left)
		}
		inside(t, dir)
	})
}

// inside checks that every path of a tree ends in it.
func inside(t *testing.T, dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return // there is none
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, privateDir) // so that the test can look and tidy up
		}
		end, err := filepath.EvalSymlinks(path)
		if err == nil && end != real && !strings.HasPrefix(end, real+string(filepath.Separator)) {
			t.Errorf("%s leads to %s", path, end)
		}
		return nil
	})
}
