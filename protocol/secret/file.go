package secret

import (
	"fmt"
	"io"
	"os"
	"runtime"
)

// ReadFile reads a file of at most most bytes that only its owner may be able
// to read (prp.md section 5, remote.md rule 6); another is an error that says
// what to do. The check is made on the open file, so that it cannot be
// exchanged in between.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// On Windows the mode says nothing about who can read.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: expected a file that only its owner can read (chmod 600), got mode %04o", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: expected at most %d bytes", path, most)
	}
	return text, nil
}
