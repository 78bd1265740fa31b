package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
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

// pictureColumns is what the progress line needs beside its text: the picture,
// a space, and the last column, which stays free.
const pictureColumns = 3

var spinnerPictures = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// screen writes lines to a person. On a terminal a progress line stands below
// them. It is safe for use by several goroutines.
type screen struct {
	out      io.Writer
	file     *os.File // where out leads to
	terminal bool     // there can be a progress line
	colour   bool

	mu       sync.Mutex
	progress func() string // nil where there is no progress line
	picture  int
	shown    bool
	prompt   string // of the question that waits for an answer
}

func newScreen(out *output) *screen {
	terminal := isTerminal(out.File)
	return &screen{
		out: out, file: out.File, terminal: terminal,
		colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

// isTerminal tells whether a person sits at f.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

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

// aside writes a line to another file that may be the same terminal.
func (s *screen) aside(out io.Writer, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hide()
	fmt.Fprintln(out, text)
	s.show()
}

// ask writes a question and its prompt. The cursor stays behind the prompt,
// which takes the place of the progress line until the next call of resume.
func (s *screen) ask(text, prompt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hide()
	fmt.Fprintln(s.out, text)
	s.progress, s.prompt = nil, prompt
	s.show()
}

// resume shows a progress line from now on, where there is a terminal.
func (s *screen) resume(progress func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompt != "" {
		s.prompt, s.shown = "", false // the answer has ended its line
	}
	s.hide()
	s.progress = progress
	s.show()
}

// hide takes the progress line or the prompt away; the lock is held. What is
// being typed stays in the terminal's own buffer.
func (s *screen) hide() {
	if s.shown {
		fmt.Fprint(s.out, clearLine)
		s.shown = false
	}
}

// show draws the progress line or the prompt; the lock is held.
func (s *screen) show() {
	if s.prompt != "" {
		fmt.Fprint(s.out, s.prompt)
		s.shown = s.terminal
		return
	}
	if !s.terminal || s.progress == nil {
		return
	}
	picture := spinnerPictures[s.picture%len(spinnerPictures)]
	text := s.progress()
	if width, _, err := term.GetSize(int(s.file.Fd())); err == nil && width > 0 {
		text = cut(text, width-pictureColumns) // a line that wraps could not be cleared
	}
	fmt.Fprint(s.out, clearLine+s.paint(cyan, picture)+" "+s.paint(dim, text))
	s.shown = true
}

// tick moves the progress line on. A prompt stays as it is, with what is being
// typed behind it.
func (s *screen) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompt == "" {
		s.picture++
		s.show()
	}
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
				s.tick()
			}
		}
	})
	return func() {
		close(over)
		wg.Wait()
		s.resume(nil)
	}
}

// firstWide is where the scripts begin whose characters may take two columns.
const firstWide = 0x1100

// cut shortens a text to so many columns of a terminal at most.
func cut(text string, columns int) string {
	for i, r := range text {
		columns--
		if r >= firstWide {
			columns--
		}
		if columns < 0 {
			return text[:i]
		}
	}
	return text
}
