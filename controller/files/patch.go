package files

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxPatchFiles and maxPatchBytes bound a patch: its files, and what
	// they hold before and after together.
	maxPatchFiles = 1000
	maxPatchBytes = 64 << 20
	// maxReport bounds what a result says of the files, in bytes: beside a
	// diff it fits into a frame of 1 MiB, also where each short secret in a
	// name has become longer by a third since it is masked. fileReport is what
	// it says of a file beside names.
	maxReport  = 448 << 10
	fileReport = 300
)

// PatchRequest asks to apply a patch.
type PatchRequest struct {
	// Patch is a unified diff, also git's, or a *** Begin Patch envelope.
	Patch string `json:"patch"`
	// Path is the folder that the names of the patch are relative to; the
	// first root where it is empty.
	Path   string `json:"path,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
	// ExpectedSHA256 is what files must have before, by their name in the
	// patch.
	ExpectedSHA256 map[string]string `json:"expected_sha256,omitempty"`
}

// PatchResult tells what a patch has done, or would do.
type PatchResult struct {
	DryRun bool          `json:"dry_run"`
	Files  []PatchedFile `json:"files"`
	Diff
}

// PatchedFile is one file of a patch. A renamed one is two: one deleted, one
// created.
type PatchedFile struct {
	Path string `json:"path"`
	// Action is create, modify or delete.
	Action string `json:"action"`
	// SHA256Before and SHA256After are empty where there is no file.
	SHA256Before string `json:"sha256_before"`
	SHA256After  string `json:"sha256_after"`
	Backup       string `json:"backup,omitempty"`
}

// patchError is a patch that cannot be applied; hunk counts from 1, 0 is the
// whole file.
func patchError(file string, hunk int, format string, args ...any) *Error {
	e := refuse(PatchFailed, file, format, args...)
	e.Details = map[string]any{"file": file}
	if hunk > 0 {
		e.Details["hunk"] = hunk
		e.Message = fmt.Sprintf("hunk %d: %s", hunk, e.Message)
	}
	e.Message = fmt.Sprintf("%q: %s", file, e.Message)
	return e
}

// PatchPaths lists the files that a patch names, resolved, for whoever has to
// allow them.
func (s *Space) PatchPaths(r PatchRequest) ([]string, error) {
	edits, err := parsePatch(r.Patch)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range edits {
		for _, name := range []string{e.from, e.to} {
			if name == "" {
				continue
			}
			p, err := s.inPatch(r, name)
			if err != nil {
				return nil, err
			}
			if abs := p.abs(); !slices.Contains(list, abs) {
				list = append(list, abs)
			}
		}
	}
	return list, nil
}

// inPatch resolves a name of a patch: relative, and without "..", whatever the
// parser of the patch let pass.
func (s *Space) inPatch(r PatchRequest, name string) (place, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return place{}, refuse(PathNotAllowed, name, "expected a name inside the folder, got %q", name)
	}
	base := r.Path
	if base == "" {
		base = "."
	}
	p, err := s.find(filepath.Join(base, filepath.FromSlash(name)))
	p.path = name
	if err == nil && p.rel == "." {
		err = refuse(NotAFile, name, "%q is a folder", name)
	}
	return p, err
}

// notLink refuses a name of a patch that is itself a symlink: the file that it
// leads to would be deleted, and the link would stay.
func (s *Space) notLink(r PatchRequest, name string) error {
	above, err := s.find(filepath.Join(r.Path, filepath.Dir(filepath.FromSlash(name))))
	if err != nil {
		return err
	}
	info, err := above.root.Lstat(filepath.Join(above.rel, filepath.Base(filepath.FromSlash(name))))
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		return refuse(NotAFile, name, "%q is a symlink, which a patch neither deletes nor renames; name the file that it leads to", name)
	}
	return nil // what is not there is told when it is read
}

// fileEdit is what a patch does to one file.
type fileEdit struct {
	from, to string      // empty: is created, is deleted
	mode     os.FileMode // permission bits, 0 where the patch says nothing
	apply    func(ctx context.Context, before []byte) ([]byte, error)
}

func parsePatch(text string) ([]fileEdit, error) {
	var edits []fileEdit
	var err error
	if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), envelopeBegin) {
		edits, err = parseEnvelope(text)
	} else {
		edits, err = parseUnified(text)
	}
	switch {
	case err != nil:
		return nil, err
	case len(edits) == 0:
		return nil, patchError("", 0, "expected a unified diff or a *** Begin Patch envelope, got neither")
	case len(edits) > maxPatchFiles:
		return nil, patchError("", 0, "expected at most %d files, got %d", maxPatchFiles, len(edits))
	}
	return edits, nil
}

// Patch applies a patch: every hunk is tried in memory first, then all files
// are written or none. A hunk applies where its lines stand exactly, at its
// line number or at the nearest other place. The error is an [*Error] or the
// cause of ctx.
func (s *Space) Patch(ctx context.Context, r PatchRequest) (*PatchResult, error) {
	edits, err := parsePatch(r.Patch)
	if err != nil {
		return nil, err
	}
	w := &patchWork{space: s, request: r, at: map[string]int{}, expected: map[string]bool{}}
	for _, e := range edits {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := w.add(ctx, e); err != nil {
			return nil, err
		}
	}
	for name := range r.ExpectedSHA256 {
		if !w.expected[name] {
			return nil, badField("expected_sha256", "the patch has no file %q", name)
		}
	}
	if err := w.reportable(); err != nil {
		return nil, err
	}
	result := &PatchResult{DryRun: r.DryRun, Diff: diffOf(ctx, w.list)}
	var backups map[string]string
	if !r.DryRun {
		k := s.newCommit(w.list)
		if err := k.run(ctx); err != nil {
			return nil, err
		}
		backups = k.backups
	}
	for _, c := range w.list {
		f := PatchedFile{Path: c.at.abs(), Action: "modify", Backup: backups[c.at.path]}
		if c.exists {
			f.SHA256Before = hashOf(c.before)
		} else {
			f.Action = "create"
		}
		if c.remove {
			f.Action = "delete"
		} else {
			f.SHA256After = hashOf(c.after)
		}
		result.Files = append(result.Files, f)
	}
	return result, nil
}

// patchWork collects the changes of a patch.
type patchWork struct {
	space    *Space
	request  PatchRequest
	list     []change
	at       map[string]int // index in list by resolved path
	expected map[string]bool
	bytes    int
}

// reportable refuses a patch whose result would be larger than anybody takes,
// before it has an effect that nobody could be told of.
func (w *patchWork) reportable() error {
	total := 0
	for _, c := range w.list {
		path, err := json.Marshal(filepath.Join(w.space.dir, c.at.abs()))
		if err != nil {
			return fromOS(c.at.path, err)
		}
		total += 2*len(path) + fileReport // itself and its backup
	}
	if total > maxReport {
		return refuse(TooLarge, "", "the names of %d files take more than %d bytes in a result; send the patch in parts", len(w.list), maxReport)
	}
	return nil
}

// file is the change of one file, which a patch names once: a file that it
// names twice would be changed behind the back of one of them.
func (w *patchWork) file(name string) (*change, error) {
	p, err := w.space.inPatch(w.request, name)
	if err != nil {
		return nil, err
	}
	if _, twice := w.at[p.abs()]; twice {
		return nil, patchError(name, 0, "the patch names the file twice")
	}
	c, err := snapshot(p)
	if err != nil {
		return nil, err
	}
	w.expected[name] = true
	if err := checkHash(&c, w.request.ExpectedSHA256[name]); err != nil {
		return nil, err
	}
	if w.bytes += len(c.before); w.bytes > maxPatchBytes {
		return nil, refuse(TooLarge, name, "the files of the patch have more than %d bytes", maxPatchBytes)
	}
	w.at[p.abs()] = len(w.list)
	w.list = append(w.list, c)
	return &w.list[len(w.list)-1], nil
}

func (w *patchWork) add(ctx context.Context, e fileEdit) error {
	mode := e.mode
	if e.from != "" {
		if e.to != e.from {
			if err := w.space.notLink(w.request, e.from); err != nil {
				return err
			}
		}
		old, err := w.file(e.from)
		if err != nil {
			return err
		}
		if !old.exists {
			return refuse(NotFound, e.from, "there is no file %q", e.from)
		}
		after, err := e.apply(ctx, old.before)
		if err != nil {
			return err
		}
		if e.to == e.from {
			old.after = after
			if mode != 0 {
				old.mode = mode
			}
			return w.grow(e.to, after)
		}
		old.remove = true
		if e.to == "" {
			return nil
		}
		exact := mode == 0
		if exact {
			mode = old.mode
		}
		return w.create(e.to, after, mode, exact)
	}
	after, err := e.apply(ctx, nil)
	if err != nil {
		return err
	}
	return w.create(e.to, after, mode, false)
}

func (w *patchWork) create(name string, after []byte, mode os.FileMode, exact bool) error {
	c, err := w.file(name)
	if err != nil {
		return err
	}
	if c.exists {
		return refuse(Conflict, name, "%q exists already", name)
	}
	c.after, c.exact = after, exact
	if mode != 0 {
		c.mode = mode
	}
	return w.grow(name, after)
}

func (w *patchWork) grow(name string, after []byte) error {
	if len(after) > MaxFile {
		return refuse(TooLarge, name, "%q would have %d bytes, more than %d", name, len(after), MaxFile)
	}
	if w.bytes += len(after); w.bytes > maxPatchBytes {
		return refuse(TooLarge, name, "the files of the patch have more than %d bytes", maxPatchBytes)
	}
	return nil
}
