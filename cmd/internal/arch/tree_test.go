package arch

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the top folder of the module, seen from this package.
const root = "../../.."

// module is the name of the module, the start of every path of our own.
const module = "prp"

// source is one parsed Go file.
type source struct {
	path   string // from the top folder
	pkg    string // folder of the package, from the top folder; "." is the top
	name   string // name in the package clause
	test   bool
	tagged bool // built on some platforms only
	file   *ast.File
}

// imports lists the paths that a file imports.
func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// uses reports the members of a package that a file names, such as "Now" of
// "time". Imports under another name are seen too.
func (s source) uses(path string) map[string]bool {
	local := ""
	for _, spec := range s.file.Imports {
		if spec.Path.Value == strconv.Quote(path) {
			local = path[strings.LastIndex(path, "/")+1:]
			if spec.Name != nil {
				local = spec.Name.Name
			}
		}
	}
	found := map[string]bool{}
	if local == "" {
		return found
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
				found[sel.Sel.Name] = true
			}
		}
		return true
	})
	return found
}

// sources parses every Go file of the module, for every platform.
var sources = sync.OnceValues(func() ([]source, error) {
	var list []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && skipped(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(d.Name(), ".go") {
			return nil
		}
		s, err := parse(path)
		if err == nil {
			list = append(list, s)
		}
		return err
	})
	return list, err
})

// skipped reports folders that the go command does not look into either.
func skipped(folder string) bool {
	return folder == "testdata" || folder == "bin" || strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

func parse(path string) (source, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return source{}, err
	}
	rel = filepath.ToSlash(rel)
	return source{
		path:   rel,
		pkg:    filepath.ToSlash(filepath.Dir(rel)),
		name:   file.Name.Name,
		test:   strings.HasSuffix(path, "_test.go"),
		tagged: hasConstraint(file) || hasPlatformName(filepath.Base(path)),
		file:   file,
	}, nil
}

// hasConstraint reports a //go:build line. It counts only before the package
// clause.
func hasConstraint(file *ast.File) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			return false
		}
		for _, c := range group.List {
			if constraint.IsGoBuild(c.Text) {
				return true
			}
		}
	}
	return false
}

// platformNames are the words at the end of a file's name that bind it to a
// platform, as far as this project could use them.
var platformNames = map[string]bool{
	"linux": true, "darwin": true, "windows": true, "unix": true, "freebsd": true, "openbsd": true, "netbsd": true,
	"amd64": true, "arm64": true, "386": true, "arm": true,
}

func hasPlatformName(base string) bool {
	words := strings.Split(strings.TrimSuffix(strings.TrimSuffix(base, ".go"), "_test"), "_")
	return len(words) > 1 && platformNames[words[len(words)-1]]
}

// each calls f for every file, and fails where there are none.
func each(t *testing.T, f func(source)) {
	t.Helper()
	list, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatalf("no Go files under %s", root)
	}
	for _, s := range list {
		f(s)
	}
}

// TestTreeIsRead shows that the reading finds what the rules look for.
func TestTreeIsRead(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("%s is not the top folder: %v", root, err)
	}
	seen := map[string]bool{}
	each(t, func(s source) { seen[s.pkg] = true })
	for _, pkg := range []string{"protocol", "protocol/jsonl", "runner/lifecycle", "cmd/internal/arch"} {
		if !seen[pkg] {
			t.Errorf("no file of package %s was read", pkg)
		}
	}
	for base, want := range map[string]bool{
		"proc_linux.go": true, "proc_windows_test.go": true, "linux.go": false, "line.go": false, "start_unix.go": true,
	} {
		if got := hasPlatformName(base); got != want {
			t.Errorf("hasPlatformName(%q) = %v, want %v", base, got, want)
		}
	}
}
