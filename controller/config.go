package controller

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"prp/protocol"
)

// Limits that hold where a [Config] does not say otherwise.
const (
	// defaultCloseGrace is how long the runner may take to end by itself once
	// its stdin has ended: its own stop ladder takes a grace of 5 s and, at
	// worst, a hard bound of 5 s more (spec section 6).
	defaultCloseGrace = 15 * time.Second
	// defaultTermGrace is the same after SIGTERM, which starts the same ladder.
	defaultTermGrace = 12 * time.Second
	// defaultStreamLine bounds a line of the runner, in bytes: a harness line
	// of 64 KiB fits many times, and so does a log tail in escapes.
	defaultStreamLine = 4 << 20
	// defaultRetained bounds what is kept of the stream, in bytes of lines.
	defaultRetained = 64 << 20
	// defaultStderrTail bounds what is kept of the runner's stderr, in bytes.
	defaultStderrTail = 16 << 10
	// maxQueuedBytes bounds the commands that wait for the runner to read
	// its stdin; one command always fits.
	maxQueuedBytes = 4 << 20
)

// Config says how to start a runner and how to treat it. The zero value of
// every member but Argv is a sensible default.
type Config struct {
	// Argv is the runner's command line: a path, or a name that is looked up
	// in PATH, and its arguments. Start appends --run-id, --session-id and
	// --runner-id, so that both ends agree on them.
	Argv []string
	// Dir is the runner's working directory; empty is the caller's own.
	Dir string
	// Env is the runner's whole environment. Nil is a small one: PATH, HOME
	// and what [SmallEnv] lists, and the variables named by EnvAllow.
	Env []string
	// EnvAllow names variables of the caller that the small environment has
	// as well. It is not used where Env is given.
	EnvAllow []string

	// RunID, SessionID and RunnerID bind the stream, 1 to 140 characters
	// each; an empty one is made up at random.
	RunID, SessionID, RunnerID string

	// Tap is called with each line of the runner's stdout, without its
	// newline, before the line is looked at. The slice is valid during the
	// call. It may block, which slows the run down; it must not call the
	// client.
	Tap func(line []byte)
	// OnEvent is called with each event once it was checked and kept, in
	// order, before the next line is read. The event must not be changed. It
	// may block, which slows the run down; it must not call the client. The
	// last call returns before [Client.Done] is closed.
	OnEvent func(e *protocol.Event)

	// CloseGrace is how long Close waits after the end of stdin before it
	// sends SIGTERM, and TermGrace how long after that until SIGKILL.
	// Zero is 15 s and 12 s.
	CloseGrace, TermGrace time.Duration
	// MaxCommandBytes bounds a command line, in bytes of content; it must
	// not be more than the runner's --command-max-line-bytes. Zero is 1 MiB.
	MaxCommandBytes int
	// MaxLineBytes bounds a line of the runner's stdout. Zero is 4 MiB.
	MaxLineBytes int
	// MaxRetainedBytes bounds what is kept of the stream for readers and
	// for the trace, in bytes of lines. Zero is 64 MiB.
	MaxRetainedBytes int
	// MaxStderrBytes bounds what is kept of the end of the runner's stderr.
	// Zero is 16 KiB.
	MaxStderrBytes int
}

// filled is the configuration with every default in its place, or an error
// that names the member that is wrong.
func (c Config) filled() (Config, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return c, errors.New("controller: config: argv: expected a command line, got none")
	}
	ids := []struct {
		name string
		at   *string
	}{{"run id", &c.RunID}, {"session id", &c.SessionID}, {"runner id", &c.RunnerID}}
	for _, id := range ids {
		if *id.at == "" {
			*id.at = randomID()
		}
		if n := utf8.RuneCountInString(*id.at); n > protocol.MaxRunIDLen || !utf8.ValidString(*id.at) {
			return c, fmt.Errorf("controller: config: %s: expected 1 to %d characters, got %q",
				id.name, protocol.MaxRunIDLen, *id.at)
		}
	}
	fillDuration(&c.CloseGrace, defaultCloseGrace)
	fillDuration(&c.TermGrace, defaultTermGrace)
	fillInt(&c.MaxCommandBytes, protocol.DefaultCommandLine)
	fillInt(&c.MaxLineBytes, defaultStreamLine)
	fillInt(&c.MaxRetainedBytes, defaultRetained)
	fillInt(&c.MaxStderrBytes, defaultStderrTail)
	if c.Env == nil {
		c.Env = SmallEnv(c.EnvAllow...)
	}
	return c, nil
}

func fillDuration(at *time.Duration, value time.Duration) {
	if *at <= 0 {
		*at = value
	}
}

func fillInt(at *int, value int) {
	if *at <= 0 {
		*at = value
	}
}

// randomID is an id that no other run has.
func randomID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails (package crypto/rand)
	return hex.EncodeToString(b[:])
}

// smallEnvNames are the variables that a program needs to find its files and
// to write text; none of them carries a secret. The last row is for Windows.
var smallEnvNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
	"SYSTEMROOT", "USERPROFILE", "TEMP", "TMP", "PATHEXT",
}

// SmallEnvNames lists the variables that [SmallEnv] passes on by itself.
func SmallEnvNames() []string { return slices.Clone(smallEnvNames) }

// SmallEnv is the environment that a runner gets where nothing else is said:
// those of PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, LC_CTYPE, TZ and
// TMPDIR (and what Windows needs) that the caller has, and the variables that
// allow names. Everything else of the caller's environment stays where it is,
// so that a key or a token has to be named to be passed on.
func SmallEnv(allow ...string) []string {
	env := []string{}
	seen := map[string]bool{}
	for _, names := range [][]string{smallEnvNames, allow} {
		for _, name := range names {
			value, ok := os.LookupEnv(name)
			if !ok || seen[name] {
				continue
			}
			seen[name] = true
			env = append(env, name+"="+value)
		}
	}
	return env
}
