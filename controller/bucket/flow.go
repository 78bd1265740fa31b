package bucket

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// flowing is a reader whose every byte puts the idle timeout off.
type flowing struct {
	r    io.Reader
	idle *time.Timer
	ctx  context.Context
}

// Read implements io.Reader.
func (f *flowing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if n > 0 {
		f.idle.Reset(idleTimeout)
	}
	if err != nil && err != io.EOF {
		if cause := context.Cause(f.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

// exact is the body of a request: as many bytes as were announced, or an error in
// the place of the last ones, so that nothing is stored then.
type exact struct {
	r     io.Reader
	left  int64
	wrong atomic.Bool
	once  sync.Once
	// closed is closed when nobody reads any more: the client may read on after
	// the answer has come.
	closed chan struct{}
}

func newExact(r io.Reader, size int64) *exact {
	return &exact{r: r, left: size, closed: make(chan struct{})}
}

// Read implements io.Reader.
func (e *exact) Read(p []byte) (int, error) {
	n, err := e.r.Read(p[:min(int64(len(p)), max(e.left, 1))])
	e.left -= int64(n)
	if e.left == 0 && err == nil {
		// The last bytes go out only where nothing comes after them.
		var more [1]byte
		if got, _ := io.ReadFull(e.r, more[:]); got > 0 {
			e.left--
		}
		err = io.EOF
	}
	if e.left < 0 || err == io.EOF && e.left > 0 {
		e.wrong.Store(true)
		return 0, errLength
	}
	return n, err
}

// Close implements io.Closer.
func (e *exact) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

// object is the body of an answer, with what it holds.
type object struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (o *object) Close() error {
	err := o.ReadCloser.Close()
	o.end()
	return err
}
