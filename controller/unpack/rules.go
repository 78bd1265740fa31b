package unpack

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// maxName bounds the name of an entry and the target of a symlink, in
	// bytes: PATH_MAX of Linux. It bounds what a header costs in memory too.
	maxName = 4096
	// maxFolderNames bounds the names of folders that are kept until the end,
	// for their modes and times, in bytes in all. 500,000 folders of
	// usual depth fit.
	maxFolderNames = 64 << 20
	// modeBits are what is kept of a mode: setuid, setgid and sticky are not.
	modeBits = 0o777
)

// Rules are the limits of an area. A limit of 0 allows nothing.
type Rules struct {
	// MaxBytes bounds the contents of all files, in bytes.
	MaxBytes int64
	// MaxFileBytes bounds the content of one file, in bytes.
	MaxFileBytes int64
	// MaxFiles bounds the files and symlinks, MaxEntries these and the folders.
	MaxFiles, MaxEntries int64
	// MaxDepth bounds the parts of a name.
	MaxDepth int
	// Symlinks allows symlinks that stay inside.
	Symlinks bool
	// Exact keeps permission bits and modification times, and wants each
	// folder before what is in it. Otherwise files are 0644, or 0755 where
	// one may execute them, and missing folders are made.
	Exact bool
	// Portable refuses names that mean something else, or the same as
	// another one, on some system: two that differ in case or in characters that
	// are not seen alone, devices, backslashes, colons, control characters, bytes
	// that are no UTF-8. A system that takes a composed letter and its parts for
	// one says so itself: there the second is refused.
	Portable bool
}

// Refused is an entry that does not go into the area.
type Refused struct {
	// Name is the entry's as the archive has it, empty where the whole archive
	// is refused.
	Name string
	// Why is a short text without the name.
	Why string
}

// Error implements error.
func (e *Refused) Error() string {
	if e.Name == "" {
		return "archive refused: " + e.Why
	}
	const shown = 200 // bytes of a name in a message
	return fmt.Sprintf("entry %q refused: %s", e.Name[:min(len(e.Name), shown)], e.Why)
}

func refuse(name, format string, args ...any) error {
	return &Refused{Name: name, Why: fmt.Sprintf(format, args...)}
}

// CheckName says why a name cannot be that of an entry: nil where it can.
// The error is a [*Refused].
func (r Rules) CheckName(name string) error {
	switch {
	case name == "":
		return refuse(`""`, "expected a name")
	case len(name) > maxName:
		return refuse(name, "a name of %d bytes, more than %d", len(name), maxName)
	case strings.HasPrefix(name, "/"):
		return refuse(name, "expected a relative name, got an absolute one")
	case strings.ContainsRune(name, 0):
		return refuse(name, "a zero byte")
	case !fs.ValidPath(name) && utf8.ValidString(name), name == ".":
		return refuse(name, `a part that is empty, "." or ".."`)
	}
	// ValidPath says no to every name that is not UTF-8.
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return refuse(name, `a part that is empty, "." or ".."`)
		}
	}
	if depth := strings.Count(name, "/") + 1; depth > r.MaxDepth {
		return refuse(name, "%d folders deep, more than %d", depth, r.MaxDepth)
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return refuse(name, "this system takes it for something else than a name")
	}
	if filepath.Separator != '/' && strings.ContainsRune(name, filepath.Separator) {
		return refuse(name, "this system takes it for several names")
	}
	if r.Portable {
		return checkPortable(name)
	}
	return nil
}

// device is what Windows takes for a device in every folder, with any ending.
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?$`)

func checkPortable(name string) error {
	if !utf8.ValidString(name) {
		return refuse(name, "expected UTF-8")
	}
	for _, c := range name {
		if c == '\\' || c == ':' || unicode.IsControl(c) {
			return refuse(name, "the character %q does not mean the same everywhere", c)
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return refuse(name, "some systems drop the end of %q", part)
		}
		if device.MatchString(part) {
			return refuse(name, "some systems take %q for a device", part)
		}
	}
	return nil
}

// Times that the system is told in 64 bits of nanoseconds, as package os does;
// others would become something else without a word.
var (
	minTime = time.Unix(0, math.MinInt64)
	maxTime = time.Unix(0, math.MaxInt64)
)

// CheckTime says why an entry cannot have a modification time, where that is
// kept: nil where it can, which is from 1677 to 2262. The error is a
// [*Refused]. A file system that has fewer years still takes the nearest it has.
func (r Rules) CheckTime(name string, t time.Time) error {
	if r.Exact && (t.Before(minTime) || t.After(maxTime)) {
		return refuse(name, "a time in the year %d, which cannot be kept", t.UTC().Year())
	}
	return nil
}

// CheckLink says why a symlink of that name and target is not safe: nil where
// it is. See the package comment for the rule.
func (r Rules) CheckLink(name, target string) error {
	above := strings.Count(name, "/") // folders over the link
	switch {
	case !r.Symlinks:
		return refuse(name, "symlinks are not allowed")
	case target == "":
		return refuse(name, "a symlink without a target")
	case len(target) > maxName:
		return refuse(name, "a target of %d bytes, more than %d", len(target), maxName)
	case path.IsAbs(target) || filepath.IsAbs(target) || filepath.VolumeName(target) != "":
		return refuse(name, "an absolute target %q", target)
	case strings.ContainsRune(target, 0):
		return refuse(name, "a zero byte in the target")
	case filepath.Separator != '/' && strings.ContainsRune(target, filepath.Separator):
		return refuse(name, "expected slashes in the target %q", target)
	}
	ups, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if down {
				return refuse(name, `".." behind a name in the target %q can lead outside through another link`, target)
			}
			ups++
		default:
			down = true
		}
	}
	if ups > above {
		return refuse(name, "the target %q is outside", target)
	}
	return nil
}

// fold is the same for names that a system without regard to case takes for
// one. Some pass over characters that are not seen, too.
func fold(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		least := c
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
