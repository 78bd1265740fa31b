package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// ANSI sequences. They are written only to a terminal, colours only where
// NO_COLOR is not set.
const (
	clearLine  = "\r\x1b[K"
	styleReset = "\x1b[0m"
)

// style is the look of a word.
type style string

const (
	plain  style = ""
	dim    style = "\x1b[2m"
	bold   style = "\x1b[1m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	cyan   style = "\x1b[36m"
)

// spinnerPause is the time between two pictures of the progress line.
const spinnerPause = 100 * time.Millisecond

var spinnerPictures = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// screen writes lines to a person. On a terminal a progress line stands below
// them. It is safe for use by several goroutines.
type screen struct {
	out      *os.File
	terminal bool
	colour   bool

	mu       sync.Mutex
	progress func() string // nil where there is no progress line
	picture  int
	shown    bool
}

func newScreen(out *os.File) *screen {
	terminal := isTerminal(out)
	return &screen{out: out, terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// isTerminal tells whether a person sits at f: a character device that is not
// the null device. No build tags are needed for that.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// paint gives a text its look, where colours are wanted.
func (s *screen) paint(look style, text string) string {
	if !s.colour || look == plain || text == "" {
		return text
	}
	return string(look) + text + styleReset
}

// print writes whole lines above the progress line.
func (s *screen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hide()
	fmt.Fprintln(s.out, strings.TrimSuffix(text, "\n"))
	s.show()
}

// ask writes a question; the cursor stays behind it, and no progress line is
// shown until the next call of resume.
func (s *screen) ask(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hide()
	s.progress = nil
	fmt.Fprint(s.out, text)
}

// resume shows a progress line from now on, where there is a terminal.
func (s *screen) resume(progress func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hide()
	s.progress = progress
	s.show()
}

// hide takes the progress line away; the lock is held.
func (s *screen) hide() {
	if s.shown {
		fmt.Fprint(s.out, clearLine)
		s.shown = false
	}
}

// show draws the progress line; the lock is held.
func (s *screen) show() {
	if !s.terminal || s.progress == nil {
		return
	}
	picture := spinnerPictures[s.picture%len(spinnerPictures)]
	fmt.Fprint(s.out, clearLine+s.paint(cyan, picture)+" "+s.paint(dim, s.progress()))
	s.shown = true
}

// spin moves the progress line until stop is called, which takes it away.
func (s *screen) spin() (stop func()) {
	if !s.terminal {
		return func() {}
	}
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(spinnerPause)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				s.mu.Lock()
				s.picture++
				s.show()
				s.mu.Unlock()
			}
		}
	})
	return func() {
		close(over)
		wg.Wait()
		s.resume(nil)
	}
}
