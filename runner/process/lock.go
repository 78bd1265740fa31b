package process

import (
	"errors"
	"fmt"
	"os"
)

// ErrLocked is what [Lock] returns where another process has the lock.
var ErrLocked = errors.New("another process has the lock")

// Lock takes the file at path, which is made, for this process alone until
// release is called or the process ends, however it does; a child does not
// inherit it. It does not wait: where another has it the error is [ErrLocked].
func Lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %q: %w", path, err)
	}
	return func() { f.Close() }, nil
}
