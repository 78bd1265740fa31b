package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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

// job is a batch of files of one folder, and what was found in them.
type job struct {
	number int
	dir    *folder
	names  []string

	matches        []Match
	files, skipped int64
}

func (j *job) release() { j.dir.release() }

// folder is an open folder that several batches share.
type folder struct {
	*os.Root
	rel  string // below the folder that is searched, "" is itself
	uses atomic.Int32
}

func (f *folder) release() {
	if f.uses.Add(-1) == 0 {
		f.Close()
	}
}

func (f *folder) join(name string) string {
	if f.rel == "" {
		return name
	}
	return f.rel + "/" + name
}

// walker hands out the files below a folder, in the order of their paths.
type walker struct {
	ctx    context.Context
	work   *searchWork
	number int
}

// walk hands out every file that is to be searched.
func (w *searchWork) walk(ctx context.Context) error {
	k := &walker{ctx: ctx, work: w}
	dir, name := w.top.rel, ""
	if w.single {
		dir, name = filepath.Dir(w.top.rel), filepath.Base(w.top.rel)
	}
	root, err := w.top.root.OpenRoot(dir)
	if err != nil {
		return err
	}
	top := &folder{Root: root}
	top.uses.Store(1)
	defer top.release()
	if w.single {
		return k.hand(top, []string{name})
	}
	// Patterns of the folders above count from there: their paths begin with
	// the way down, which every path of the walk then has in front.
	base := filepath.ToSlash(w.top.rel)
	if base == "." {
		base = ""
	}
	return k.folder(top, base, k.above(base), 0)
}

// above reads the ignore files from the root down to the folder's parent.
func (k *walker) above(base string) *rules {
	if base == "" {
		return nil
	}
	var r *rules
	dir := ""
	for _, name := range strings.Split(base, "/") {
		if sub, err := k.work.top.root.OpenRoot(filepath.Join(".", filepath.FromSlash(dir))); err == nil {
			r = k.rulesOf(sub, dir, r, true, true)
			sub.Close()
		}
		dir = strings.TrimPrefix(dir+"/"+name, "/")
	}
	return r
}

// rulesOf adds the ignore files of one folder.
func (k *walker) rulesOf(dir *os.Root, path string, up *rules, hasGit, hasIgnore bool) *rules {
	if hasGit {
		up = k.ignoreFile(dir, filepath.Join(gitDir, "info", "exclude"), path, up)
	}
	if hasIgnore {
		up = k.ignoreFile(dir, gitIgnore, path, up)
	}
	return up
}

func (k *walker) ignoreFile(dir *os.Root, name, path string, up *rules) *rules {
	if info, err := dir.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return up
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return up // one that cannot be read ignores nothing, as with git
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return up
	}
	return parseRules(up, path, text)
}

// folder walks one folder; path is its path below the root, for the rules.
func (k *walker) folder(dir *folder, path string, up *rules, depth int) error {
	if k.ctx.Err() != nil {
		return context.Cause(k.ctx)
	}
	entries, err := readDir(dir.Root)
	if err != nil {
		if dir.rel == "" {
			return err
		}
		return nil // one that cannot be read, or is gone, is passed over
	}
	has := func(name string) bool {
		_, ok := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
		return ok
	}
	here := k.rulesOf(dir.Root, path, up, has(gitDir), has(gitIgnore))
	var names []string
	for _, e := range entries {
		name := e.Name()
		below := strings.TrimPrefix(path+"/"+name, "/")
		switch {
		case e.Type().IsRegular():
			switch {
			case here.ignored(below, false) || !k.work.glob.matches(dir.join(name), name):
			case k.work.request.Hidden != nil && k.work.request.Hidden(filepath.Join(k.work.top.root.real, below)):
				k.work.hidden++
			default:
				names = append(names, name)
			}
		case e.IsDir() && name != gitDir && depth < maxDepth && !here.ignored(below, true):
			if err := k.flush(dir, &names, 1); err != nil {
				return err
			}
			if err := k.sub(dir, name, below, here, depth); err != nil {
				return err
			}
		}
		if err := k.flush(dir, &names, batchFiles); err != nil {
			return err
		}
	}
	return k.flush(dir, &names, 1)
}

func (k *walker) sub(dir *folder, name, below string, here *rules, depth int) error {
	root, err := dir.OpenRoot(name)
	if err != nil {
		return nil
	}
	sub := &folder{Root: root, rel: dir.join(name)}
	sub.uses.Store(1)
	defer sub.release()
	return k.folder(sub, below, here, depth+1)
}

func readDir(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// flush hands the names out where there are at least so many.
func (k *walker) flush(dir *folder, names *[]string, least int) error {
	if len(*names) < least {
		return nil
	}
	err := k.hand(dir, *names)
	*names = nil
	return err
}

func (k *walker) hand(dir *folder, names []string) error {
	select {
	case k.work.window <- struct{}{}:
	case <-k.ctx.Done():
		return context.Cause(k.ctx)
	}
	dir.uses.Add(1)
	k.work.jobs <- &job{number: k.number, dir: dir, names: names}
	k.number++
	return nil
}

// searcher looks into files with a buffer of its own.
type searcher struct {
	work *searchWork
	buf  []byte
}

func (s *searcher) search(j *job) {
	for _, name := range j.names {
		if s.work.request.Kind == KindName {
			j.files++
			if s.work.look.name(name) {
				j.matches = append(j.matches, Match{File: s.work.shown(j.dir.join(name))})
			}
			continue
		}
		text, ok := s.read(j.dir.Root, name)
		if !ok || bytes.IndexByte(text, 0) >= 0 { // a NUL is what makes it binary
			j.skipped++
			continue
		}
		j.files++
		s.work.look.file(text, func(m Match) bool {
			m.File = s.work.shown(j.dir.join(name))
			j.matches = append(j.matches, m)
			// One more than wanted tells that there is more.
			return len(j.matches) <= s.work.request.MaxResults
		})
	}
}

// read reads a whole regular file; false where it is too large or not readable.
func (s *searcher) read(dir *os.Root, name string) ([]byte, bool) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSearched {
		return nil, false
	}
	size := int(info.Size())
	if cap(s.buf) < size {
		s.buf = make([]byte, max(size, 64<<10))
	}
	n := 0
	for n < size { // what is added meanwhile is not looked for
		m, err := f.Read(s.buf[n:size])
		if n += m; errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false
		}
	}
	return s.buf[:n], true
}
