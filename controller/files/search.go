package files

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
)

// Kinds of a search.
const (
	KindText  = "text"
	KindRegex = "regex"
	KindName  = "name"
)

const (
	// DefaultResults is how many matches a search gives, and MaxResults the
	// most that may be asked for.
	DefaultResults = 200
	MaxResults     = 10_000
	// maxQuery bounds a query, in bytes, maxContext the lines around a match.
	maxQuery   = 4096
	maxContext = 20
	// maxLine bounds a line in a result, in bytes: what is around the match.
	maxLine = 500
	// maxSearched bounds a file that is searched, in bytes.
	maxSearched = 64 << 20
)

// SearchRequest asks where something is.
type SearchRequest struct {
	// Path is a folder or a file, the first root where it is empty.
	Path  string `json:"path,omitempty"`
	Query string `json:"query"`
	// Kind is text, regex (RE2, line by line) or name (part of a file name).
	Kind string `json:"kind,omitempty"`
	Glob string `json:"glob,omitempty"`
	// CaseSensitive is true where it is not given.
	CaseSensitive *bool `json:"case_sensitive,omitempty"`
	MaxResults    int   `json:"max_results,omitempty"`
	ContextLines  int   `json:"context_lines,omitempty"`
	// Hidden, where it is not nil, tells files that are not looked into, by
	// their whole path. It is called by several goroutines.
	Hidden func(path string) bool `json:"-"`
	// Mask, where it is not nil, hides secrets in lines and paths. It is called
	// by several goroutines.
	Mask *Mask `json:"-"`
}

// SearchResult is what was found, in the order of the paths as they are shown.
type SearchResult struct {
	Matches []Match `json:"matches"`
	// Truncated tells that there may be more.
	Truncated bool `json:"truncated"`
	// Files counts those that were looked at, Skipped those that are binary,
	// too large, hidden or cannot be read.
	Files   int64 `json:"files"`
	Skipped int64 `json:"skipped"`
}

// Match is one place. File is without secrets. Line and Column count from 1, Column
// in bytes, in a line with secrets without them; both are 0 for a name.
type Match struct {
	File   string   `json:"file"`
	Line   int      `json:"line,omitempty"`
	Column int      `json:"column,omitempty"`
	Text   string   `json:"text,omitempty"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// size is about what a match takes in a result, in bytes.
func (m *Match) size() int {
	n := len(m.File) + len(m.Text) + 80
	for _, l := range m.Before {
		n += len(l) + 4
	}
	for _, l := range m.After {
		n += len(l) + 4
	}
	return n
}

// searchWork is one search. Searchers take its parts from a queue, and what they
// find is collected in order.
type searchWork struct {
	request SearchRequest
	look    *looker
	glob    *rule // nil is every file
	top     place
	single  bool   // the path is a file
	above   string // the path of a result in front of what is below the folder
	most    int    // bytes of matches
	open    func(root *os.Root, rel string) (dir, error)
}

// Search finds text, a pattern or names, without binary and git-ignored files
// and without following symlinks. Most bounds the result, in bytes. Progress,
// where it is not nil, is called now and then with the number of files so far,
// by one goroutine. The error is an [*Error] or the cause of ctx.
func (s *Space) Search(ctx context.Context, r SearchRequest, most int, progress func(files int64)) (*SearchResult, error) {
	w := &searchWork{request: r, most: most, open: openDir}
	if err := w.check(); err != nil {
		return nil, err
	}
	var err error
	if w.top, err = s.find(w.request.Path); err != nil {
		return nil, err
	}
	info, err := w.top.root.Stat(w.top.rel)
	if err != nil {
		return nil, fromOS(r.Path, err)
	}
	if !info.IsDir() {
		if err := w.top.regular(info); err != nil {
			return nil, err
		}
	}
	w.single = !info.IsDir()
	w.setAbove()
	if hidden := r.Hidden; s.closed != "" && Within(w.top.abs(), s.closed, true) {
		w.request.Hidden = func(path string) bool { return s.isClosed(path) || hidden != nil && hidden(path) }
	}
	return w.run(ctx, progress)
}

func (w *searchWork) check() error {
	r := &w.request
	if r.Path == "" {
		r.Path = "."
	}
	if r.Kind == "" {
		r.Kind = KindText
	}
	if r.MaxResults == 0 {
		r.MaxResults = DefaultResults
	}
	switch {
	case r.Query == "" && (r.Kind != KindName || r.Glob == ""):
		return badField("query", "expected a text, got an empty one")
	case len(r.Query) > maxQuery:
		return badField("query", "expected at most %d bytes, got %d", maxQuery, len(r.Query))
	case strings.ContainsAny(r.Query, "\n\x00"):
		return badField("query", "expected one line, since lines are searched one by one")
	case r.MaxResults < 1 || r.MaxResults > MaxResults:
		return badField("max_results", "expected a number from 1 to %d, got %d", MaxResults, r.MaxResults)
	case r.ContextLines < 0 || r.ContextLines > maxContext:
		return badField("context_lines", "expected a number from 0 to %d, got %d", maxContext, r.ContextLines)
	}
	var err error
	if w.glob, err = parseGlob(r.Glob); err != nil {
		return err
	}
	w.look, err = newLooker(r)
	return err
}

func (w *searchWork) run(ctx context.Context, progress func(int64)) (*SearchResult, error) {
	first, err := w.first()
	if err != nil {
		return nil, fromOS(w.request.Path, err)
	}
	q := newQueue(first)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(inner, q.end)
	var failed error // of the folder that is searched
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			s := &searcher{work: w, ctx: inner, lines: w.look.automaton()}
			for p := q.take(); p != nil; p = q.take() {
				parts, err := s.do(p)
				if err != nil {
					failed = err // there is one first part
				}
				q.finish(p, parts)
			}
		})
	}
	result := w.collect(q, first, progress)
	stop()
	all.Wait()
	q.release()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case failed != nil:
		return nil, fromOS(w.request.Path, failed)
	}
	return result, nil
}

// collect takes what is found in the order of the paths until that is enough.
func (w *searchWork) collect(q *queue, first *part, progress func(int64)) *SearchResult {
	result := &SearchResult{Matches: []Match{}}
	size := 0
	q.collect(first, func(p *part) bool {
		result.Files += p.files
		result.Skipped += p.skipped
		for _, m := range p.matches {
			if size += m.size(); len(result.Matches) == w.request.MaxResults || size > w.most {
				result.Truncated = true
				return false
			}
			result.Matches = append(result.Matches, m)
		}
		if progress != nil && (p.names != nil || p.files > 0) {
			progress(result.Files)
		}
		return true
	})
	return result
}

// setAbove sets what stands before the names of the folder that is searched.
func (w *searchWork) setAbove() {
	dir := w.request.Path
	if w.single {
		dir = filepath.Dir(dir)
	}
	if dir = filepath.Clean(dir); dir != "." {
		w.above = strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator)
	}
}

// shown is the path of a file as the request would name it, without secrets.
func (w *searchWork) shown(rel string) string {
	path := w.request.Path
	if !w.single {
		path = w.above + filepath.FromSlash(rel)
	}
	if w.look.mask == nil {
		return path
	}
	return string(w.look.mask.Whole([]byte(path)))
}

// cut is a line as a result shows it: without secrets, valid UTF-8, bounded,
// around a place.
func (l *looker) cut(line []byte, at int) string {
	from, to := 0, len(line)
	if len(line) > maxLine {
		from = max(min(at-maxLine/4, len(line)-maxLine), 0)
		to = from + maxLine
		for from > 0 && from < to && !utf8.RuneStart(line[from]) {
			from++
		}
		for to < len(line) && to > from && !utf8.RuneStart(line[to]) {
			to--
		}
	}
	if l.mask != nil {
		line = l.mask.Part(line, from, to)
	} else {
		line = line[from:to]
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}
