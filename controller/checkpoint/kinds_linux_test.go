package checkpoint

import (
	"errors"
	"os"
	"syscall"
)

func init() {
	pipe = func(dir string) error { return syscall.Mkfifo(dir+"/x", 0o600) }
	// Package os cannot set such a time.
	late = func(dir string) error {
		if err := os.WriteFile(dir+"/x", nil, 0o600); err != nil {
			return err
		}
		const year2300 = 10413792000 // seconds since 1970
		at := []syscall.Timespec{{Sec: year2300}, {Sec: year2300}}
		if err := syscall.UtimesNano(dir+"/x", at); err != nil {
			return err
		}
		if info, err := os.Stat(dir + "/x"); err != nil || info.ModTime().Unix() != year2300 {
			return errors.ErrUnsupported // the file system has fewer years
		}
		return nil
	}
}
