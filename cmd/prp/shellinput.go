package main

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"prp/protocol/jsonl"
)

// inputLine is a line that was typed or piped, or the end of them.
type inputLine struct {
	text   string
	number int64 // from 1, where the lines come from a pipe
	err    error // io.EOF is the end
}

// typedAhead is how many lines a person may be ahead of the shell.
const typedAhead = 16

// prompt is what stands before a line that is typed.
const prompt = "prp> "

// open chooses between the line editor and plain lines. The goroutine that
// reads stdin stays in its read until the process ends. restore gives the
// terminal back.
func (sh *shell) open() (in <-chan inputLine, restore func(), err error) {
	lines := make(chan inputLine, typedAhead)
	if !sh.typed || !isTerminal(sh.streams.out.File) || os.Getenv("TERM") == "dumb" {
		go readPlain(sh.streams.in, lines)
		return lines, func() {}, nil
	}
	fd := int(sh.streams.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, nil, err
	}
	keyboard := &keyboard{file: sh.streams.in, out: sh.streams.out.File, ctrlC: sh.ctrlC}
	editor := term.NewTerminal(keyboard, prompt)
	editor.AutoCompleteCallback = (&completer{shell: sh, show: editor}).key
	keyboard.resize = editor.SetSize
	keyboard.fit()
	sh.screen.out = &fitting{editor: editor, fit: keyboard.fit}
	go func() {
		for {
			text, err := editor.ReadLine()
			lines <- inputLine{text: text, err: err}
			if err != nil {
				return
			}
		}
	}()
	return lines, func() { term.Restore(fd, before) }, nil
}

// readPlain reads lines from a pipe or a file.
func readPlain(in io.Reader, lines chan<- inputLine) {
	r := jsonl.NewReader(in, maxLine)
	for {
		text, flags, err := r.Next()
		if err == nil && flags&jsonl.TooLong != 0 {
			err = misuse("expected at most %d bytes, got more", maxLine)
		}
		lines <- inputLine{text: string(text), number: r.LineNumber(), err: err}
		if err != nil {
			return
		}
	}
}

// ctrlC is a Ctrl-C at the line editor: it ends what is waited for, else it
// has the meanings that it has in prp run.
func (sh *shell) ctrlC() {
	sh.waitLock.Lock()
	defer sh.waitLock.Unlock()
	if sh.stopWait != nil {
		sh.stopWait()
		return
	}
	sh.keys.press()
}

// keyboard is a terminal in raw mode. It takes Ctrl-C out of what is typed,
// since the line editor would take it for the end.
type keyboard struct {
	file, out *os.File
	ctrlC     func()
	resize    func(width, height int) error
	width     int
	mu        sync.Mutex
}

// ctrlCByte is what a terminal in raw mode gives for Ctrl-C.
const ctrlCByte = 3

// Read implements io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	for {
		n, err := k.file.Read(p)
		k.fit()
		kept := p[:0]
		for _, b := range p[:n] {
			if b == ctrlCByte {
				k.ctrlC()
				continue
			}
			kept = append(kept, b)
		}
		if len(kept) > 0 || err != nil {
			return len(kept), err
		}
	}
}

// Write implements io.Writer.
func (k *keyboard) Write(p []byte) (int, error) { return k.out.Write(p) }

// fit tells the editor the width of the terminal, where it has changed. It is
// looked at whenever something is typed or shown, so that no signal is needed.
func (k *keyboard) fit() {
	width, height, err := term.GetSize(int(k.out.Fd()))
	if err != nil || width <= 0 {
		return
	}
	k.mu.Lock()
	changed := width != k.width
	k.width = width
	k.mu.Unlock()
	if changed {
		k.resize(width, height)
	}
}

// fitting writes above the line that is being typed.
type fitting struct {
	editor io.Writer
	fit    func()
}

// Write implements io.Writer.
func (f *fitting) Write(p []byte) (int, error) {
	f.fit()
	return f.editor.Write(p)
}

// completer completes what stands before the cursor.
type completer struct {
	shell *shell
	show  io.Writer
}

// key is the editor's callback for a key that it does not handle itself.
func (c *completer) key(line string, pos int, key rune) (newLine string, newPos int, ok bool) {
	if key != '\t' {
		return "", 0, false
	}
	before := line[:pos]
	start := strings.LastIndexByte(before, ' ') + 1
	var fit []string
	for _, word := range c.shell.complete(strings.Fields(before[:start])) {
		if strings.HasPrefix(word, before[start:]) {
			fit = append(fit, word)
		}
	}
	if len(fit) == 0 {
		return line, pos, true
	}
	word, rest := commonPrefix(fit), line[pos:]
	switch {
	case len(fit) == 1:
		word, rest = word+" ", strings.TrimPrefix(rest, " ")
	case word == before[start:]:
		io.WriteString(c.show, strings.Join(fit, "  ")+"\n")
	}
	return before[:start] + word + rest, start + len(word), true
}

// commonPrefix is how far all words are the same, in whole characters.
func commonPrefix(words []string) string {
	prefix := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, prefix) {
			_, n := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-n]
		}
	}
	return prefix
}
