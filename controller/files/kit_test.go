package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// space is a space with one root, which has these files.
func space(t testing.TB, content map[string]string) (*Space, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		write(t, filepath.Join(dir, name), text)
	}
	s, err := Open(Config{Roots: []string{dir}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree is the content of every regular file below a folder.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			if rel != "." {
				found[rel+"/"] = ""
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// refused checks that an error is a refusal with a code.
func refused(t testing.TB, what string, err error, code Code) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
		return &Error{}
	}
	return e
}
