package secret

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestReadFile: remote.md rule 6, prp.md section 5: nobody but the owner may be
// able to read the file, and an error shows nothing of what it holds.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "held")
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string // of the error
	}{
		{"sesame", 0o600, ""},
		{"sesame", 0o400, ""},
		{"12345678", 0o600, ""},
		{"", 0o600, ""},
		{"sesame", 0o640, "chmod 600"},
		{"sesame", 0o604, "chmod 600"},
		{"sesame-and-more", 0o600, "at most 8 bytes"},
	} {
		if c.want == "chmod 600" && runtime.GOOS == "windows" {
			continue // the mode says nothing there
		}
		os.Remove(path)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(path, 8)
		switch {
		case c.want == "" && (err != nil || string(got) != c.text):
			t.Errorf("%q with mode %o: %q, %v", c.text, c.mode, got, err)
		case c.want != "" && (err == nil || got != nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sesame")):
			t.Errorf("%q with mode %o: %q, %v; want an error with %q", c.text, c.mode, got, err, c.want)
		}
	}
	if _, err := ReadFile(path+"-missing", 8); !os.IsNotExist(err) {
		t.Errorf("a file that is missing: %v", err)
	}
}
