package files

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	// batchFiles is how many files of a folder are searched at once by one.
	batchFiles = 128
	// maxIgnoreFile bounds an ignore file, in bytes.
	maxIgnoreFile = 1 << 20
	// maxDepth bounds how deep folders are followed.
	maxDepth = 255

	gitDir    = ".git"
	gitIgnore = ".gitignore"
)

// first is the part that all others come from.
func (w *searchWork) first() (*part, error) {
	if w.single {
		d, err := w.open(w.top.root.Root, filepath.Dir(w.top.rel))
		if err != nil {
			return nil, err
		}
		return &part{in: newFolder(d, ""), names: []string{filepath.Base(w.top.rel)}}, nil
	}
	d, err := w.open(w.top.root.Root, w.top.rel)
	if err != nil {
		return nil, err
	}
	// Patterns of the folders above count from there: their paths begin with
	// the way down, which every path of the walk then has in front.
	path := filepath.ToSlash(w.top.rel)
	if path == "." {
		path = ""
	}
	return &part{in: newFolder(d, ""), path: path, rules: w.rulesAbove(path)}, nil
}

// rulesAbove reads the ignore files from the root down to the folder's parent.
func (w *searchWork) rulesAbove(path string) *rules {
	if path == "" {
		return nil
	}
	var r *rules
	dir := ""
	for _, name := range strings.Split(path, "/") {
		r = w.rulesOf(dir, r, true, true)
		dir = strings.TrimPrefix(dir+"/"+name, "/")
	}
	return r
}

// rulesOf adds the ignore files of one folder, by its path below the root.
func (w *searchWork) rulesOf(path string, up *rules, hasGit, hasIgnore bool) *rules {
	if hasGit {
		up = w.ignoreFile(path, gitDir+"/info/exclude", up)
	}
	if hasIgnore {
		up = w.ignoreFile(path, gitIgnore, up)
	}
	return up
}

// ignoreFile reads an ignore file; there are few, so the way down is that of
// the os.Root.
func (w *searchWork) ignoreFile(path, name string, up *rules) *rules {
	root, file := w.top.root, filepath.FromSlash(strings.TrimPrefix(path+"/"+name, "/"))
	if info, err := root.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return up
	}
	f, err := root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return up // one that cannot be read ignores nothing, as with git
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return up
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return up
	}
	return parseRules(up, path, text)
}

// searcher works on parts, with buffers and an automaton of its own.
type searcher struct {
	work   *searchWork
	ctx    context.Context
	lister lister
	buf    []byte
	lines  *automaton // nil where none is of use
	path   []byte     // of shown
}

// do works on a part, and gives those that it leads to.
func (s *searcher) do(p *part) ([]*part, error) {
	if p.names != nil {
		s.search(p)
		return nil, nil
	}
	at := p.in
	if p.name != "" {
		d, err := p.in.folder(p.name)
		if err != nil {
			return nil, nil // one that cannot be read, or is gone, is passed over
		}
		at = newFolder(d, p.in.join(p.name))
		defer at.release()
	}
	entries, err := at.list(&s.lister)
	if err != nil {
		if p.name == "" {
			return nil, err
		}
		return nil, nil
	}
	return s.split(p, at, s.wanted(p, at, entries)), nil
}

// wanted is what of a folder is searched, in order.
func (s *searcher) wanted(p *part, at *folder, entries []entry) []entry {
	hasGit, hasIgnore := false, false
	for _, e := range entries {
		hasGit, hasIgnore = hasGit || e.name == gitDir, hasIgnore || e.name == gitIgnore
	}
	p.rules = s.work.rulesOf(p.path, p.rules, hasGit, hasIgnore)
	kept := entries[:0]
	masked := map[string]string{} // names with secrets, as they are shown
	for _, e := range entries {
		name := s.shown(at, e.name, false)
		if e.kind == fileEntry && s.wantsFile(p, at, e.name, name) || e.kind == folderEntry && s.wantsFolder(p, e.name) {
			kept = append(kept, e)
			if name != e.name {
				masked[e.name] = name
			}
		}
	}
	// Where a secret stood among others would tell how it begins.
	shown := func(e entry) string {
		if name, ok := masked[e.name]; ok {
			return name
		}
		return e.name
	}
	slices.SortFunc(kept, func(a, b entry) int {
		if len(masked) == 0 {
			return strings.Compare(a.name, b.name)
		}
		return cmp.Or(strings.Compare(shown(a), shown(b)), strings.Compare(a.name, b.name))
	})
	return kept
}

// shown is a name in a folder as a result shows it; with whole it is the path
// below the folder that is searched. A secret in it may begin above.
func (s *searcher) shown(at *folder, name string, whole bool) string {
	mask, in := s.work.look.mask, name
	if whole {
		in = at.join(name)
	}
	if mask == nil {
		return in
	}
	s.path = append(s.path[:0], s.work.above...)
	from := len(s.path)
	if at.rel != "" {
		s.path = append(append(s.path, filepath.FromSlash(at.rel)...), filepath.Separator)
	}
	if !whole {
		from = len(s.path)
	}
	if s.path = append(s.path, name...); bytes.Equal(mask.Whole(s.path), s.path) {
		return in
	}
	return filepath.ToSlash(string(mask.Part(s.path, from, len(s.path))))
}

func (s *searcher) wantsFolder(p *part, name string) bool {
	return name != gitDir && p.depth < maxDepth && !p.rules.ignored(p.path, name, true)
}

// wantsFile tells what costs least first. What is asked for is compared with names
// as they are shown, and with that alone: else a secret in a name could be guessed,
// piece by piece.
func (s *searcher) wantsFile(p *part, at *folder, name, shown string) bool {
	w := s.work
	if w.glob != nil {
		asked := shown
		if w.glob.anchored {
			asked = s.shown(at, name, true)
		}
		if !w.glob.matches(asked) {
			return false
		}
	}
	if p.rules.ignored(p.path, name, false) {
		return false
	}
	if w.request.Hidden != nil && w.request.Hidden(filepath.Join(w.top.root.real, filepath.FromSlash(p.path), name)) {
		p.skipped++
		return false
	}
	if w.request.Kind == KindName {
		p.files++
		return w.look.name(shown)
	}
	return true
}

// split makes parts of what is in a folder: batches of files between folders.
// Each holds the folder.
func (s *searcher) split(p *part, at *folder, entries []entry) []*part {
	var parts []*part
	for i := 0; i < len(entries); {
		if e := entries[i]; e.kind == folderEntry {
			path := e.name
			if p.path != "" {
				path = p.path + "/" + e.name
			}
			parts = append(parts, &part{in: at, name: e.name, path: path, rules: p.rules, depth: p.depth + 1})
			i++
			continue
		}
		var names []string
		for i < len(entries) && entries[i].kind == fileEntry && len(names) < batchFiles {
			names = append(names, entries[i].name)
			i++
		}
		parts = append(parts, &part{in: at, names: names})
	}
	at.uses.Add(int32(len(parts)))
	return parts
}

// search looks into files.
func (s *searcher) search(p *part) {
	w := s.work
	size := 0
	for _, name := range p.names {
		if s.ctx.Err() != nil || len(p.matches) > w.request.MaxResults || size > w.most {
			return
		}
		if w.request.Kind == KindName {
			if w.single {
				p.files++
				if !w.look.name(s.shown(p.in, name, false)) {
					return
				}
			}
			p.matches = append(p.matches, Match{File: w.shown(p.in.join(name))})
			continue
		}
		text, ok := p.in.read(name, s.buf, maxSearched)
		s.buf = text
		if !ok || bytes.IndexByte(text, 0) >= 0 { // a NUL is what makes it binary
			p.skipped++
			continue
		}
		p.files++
		goOn := func() bool { return s.ctx.Err() == nil }
		w.look.file(text, s.lines, goOn, func(m Match) bool {
			m.File = w.shown(p.in.join(name))
			p.matches = append(p.matches, m)
			size += m.size()
			// One more than wanted tells that there is more.
			return len(p.matches) <= w.request.MaxResults && size <= w.most
		})
	}
}
