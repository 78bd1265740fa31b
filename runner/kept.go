package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"prp/protocol"
)

// codeTerminalKept is the code of the diagnostic of a terminal that is not in its
// file.
const codeTerminalKept protocol.Code = "terminal_not_kept"

// keptMode is that of the file: its owner's alone.
const keptMode = 0o600

// freeTerminal makes sure that the file for the terminal can be written and is
// not there: one of another run would be taken for this one's.
func freeTerminal(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		// An empty folder, or a device where this is root, would be gone.
		return fmt.Errorf("%q: expected a plain file or none, got %s", path, info.Mode())
	default:
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, keptMode)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(path+".new"))
}

// keepTerminal writes the terminal to its file before it is written to stdout, so
// that the end of the run is known where the controller died before it. What the
// harness has proposed is left out: the file has no word of the harness, and so
// none of its secrets.
func (l *loop) keepTerminal(e *protocol.Event) {
	if l.cfg.TerminalPath == "" || e.EventType != protocol.EventRunTerminal {
		return
	}
	if err := writeTerminal(l.cfg.TerminalPath, l.printer, e); err != nil {
		l.diagnose(&protocol.Diagnostic{
			Level: protocol.LevelError, Code: codeTerminalKept,
			Message: fmt.Sprintf("the terminal cannot be written to %q: %v", filepath.Base(l.cfg.TerminalPath), err),
		})
	}
}

func writeTerminal(path string, printer *protocol.EventPrinter, e *protocol.Event) error {
	var t protocol.Terminal
	if err := json.Unmarshal(e.Payload, &t); err != nil {
		return err // cannot be: it was made here
	}
	t.HarnessTerminalProposal = nil
	payload, err := json.Marshal(t)
	if err != nil {
		return err
	}
	kept := *e
	kept.Payload = payload
	line := printer.Append(nil, &kept)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, keptMode)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
