// Package scripts holds the scripts of the fake harness that everybody has at
// hand (spec section 8): demonstrations for a person, and the known runs that
// tests expect event by event.
//
// # Duties of the caller
//
// None: the scripts are embedded in the executable, and what is returned is a
// copy.
//
// # Invariants
//
// Every script is valid for package harness/fake, and the file NAME.json holds
// the script whose name is NAME.
package scripts

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// FS holds the script files, each named NAME.json.
//
//go:embed *.json
var FS embed.FS

const suffix = ".json"

// Names lists the scripts in alphabetical order, without ".json".
func Names() []string {
	// The pattern is a constant that is well formed: Glob has no other error.
	files, _ := fs.Glob(FS, "*"+suffix)
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, suffix))
	}
	slices.Sort(names)
	return names
}

// Read returns the text of a script. The error of an unknown name lists the
// known ones. The caller owns the bytes.
func Read(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("expected one of the scripts %s, got %q", strings.Join(Names(), ", "), name)
	}
	return FS.ReadFile(name + suffix)
}
