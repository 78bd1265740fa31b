package process

import (
	"errors"
	"os"
)

// ErrSettled is never returned here.
var ErrSettled = errors.New("everything that had come is read")

// Input reads a file that somebody else owns. Here it cannot be asked to stop.
type Input struct{ file *os.File }

// NewInput returns a reader for f.
func NewInput(f *os.File) *Input { return &Input{file: f} }

// Settle reports that it is not possible here.
func (in *Input) Settle() bool { return false }

// Read reads what there is and blocks while there is nothing.
func (in *Input) Read(p []byte) (int, error) { return in.file.Read(p) }

// WatchHangup returns a channel that stays open: a reader that is gone is seen
// at the next write.
func WatchHangup(*os.File) <-chan struct{} { return make(chan struct{}) }

// Buffered cannot be told here.
func Buffered(*os.File) int { return 0 }

// EnlargePipe does nothing: a pipe has the size that it was made with.
func EnlargePipe(*os.File, int) {}

// ErrNotNow is what [WriteNow] returns here.
var ErrNotNow = errors.New("the file cannot be written without blocking")

// WriteNow is not possible here.
func WriteNow(*os.File, []byte) (int, error) { return 0, ErrNotNow }
