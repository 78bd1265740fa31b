package arch

import (
	"go/ast"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// room is what the code of a package may import beside the standard library.
// Tests are free, but for [TestThreeProcesses].
type room struct {
	own   []string // packages of this module; "cmd" stands for everything
	third []string // modules of others
}

const (
	jsontext   = "github.com/go-json-experiment/json/jsontext"
	shellwords = "github.com/mattn/go-shellwords"
	websocket  = "github.com/coder/websocket"
	gitdiff    = "github.com/bluekeyes/go-gitdiff"
	xsys       = "golang.org/x/sys"
	xterm      = "golang.org/x/term"
	zstd       = "github.com/klauspost/compress"
	landlock   = "github.com/landlock-lsm/go-landlock"
)

// rooms has a row for every package.
var rooms = map[string]room{
	"protocol":         {third: []string{jsontext}},
	"protocol/jsonl":   {},
	"protocol/journal": {own: []string{"protocol/jsonl"}},
	"protocol/schema":  {},
	// Below the runner and the controller, which mask by the same rule.
	"protocol/secret": {},
	// Below the harness and the controller, whose private folders outlive them.
	"protocol/orphan": {},

	"runner": {own: []string{
		"protocol", "protocol/jsonl", "protocol/journal", "protocol/secret", "runner/lifecycle", "runner/logtail", "runner/process",
	}},
	"runner/lifecycle": {own: []string{"protocol"}},
	"runner/process":   {own: []string{"runner/early"}, third: []string{xsys}},
	// Nothing but unsafe: it has to be initialised before the package syscall.
	"runner/early":   {},
	"runner/logtail": {},

	"harness":        {own: []string{"protocol", "protocol/jsonl"}},
	"harness/fake":   {own: []string{"harness", "protocol", "protocol/jsonl"}, third: []string{jsontext}},
	"harness/text":   {},
	"harness/fields": {own: []string{"harness/text", "protocol"}},
	// The one place that starts a program for an adapter and ends as it did.
	"harness/child": {},
	"harness/command": {
		own: []string{"harness", "harness/child", "harness/fields", "harness/text", "protocol"}, third: []string{jsontext},
	},
	"harness/acp": {own: []string{"harness", "harness/acp/translate", "harness/child", "protocol", "protocol/jsonl", "protocol/orphan"}},
	// Pure: see TestPureCore.
	"harness/acp/translate": {own: []string{"harness/fields", "harness/text", "protocol"}, third: []string{jsontext}},
	"scripts":               {},

	"controller": {own: []string{"protocol", "protocol/jsonl", "protocol/journal"}},
	"controller/console": {
		own: []string{"controller", "protocol", "protocol/jsonl", "protocol/schema"},
	},
	// What the remote doors share.
	"controller/bridge": {own: []string{"protocol", "protocol/journal", "protocol/secret"}, third: []string{websocket}},
	"controller/worker": {
		own:   []string{"controller", "controller/bridge", "controller/files", "protocol", "protocol/journal"},
		third: []string{shellwords},
	},
	"controller/connector": {
		own:   []string{"controller", "controller/artifact", "controller/bridge", "protocol"},
		third: []string{websocket},
	},
	// Parts of the remote doors.
	"controller/artifact":              {own: []string{"controller/bridge", "controller/s3"}},
	"controller/s3":                    {own: []string{"controller/bridge"}},
	"controller/metrics":               {own: []string{"controller/bridge"}},
	"controller/identity":              {own: []string{"controller/bridge", "protocol/secret"}},
	"controller/identity/authority":    {},
	"controller/identity/identitytest": {own: []string{"controller/identity/authority"}},
	"controller/awaittest":             {},
	"controller/programstest":          {},
	"controller/connector/connectortest": {own: []string{
		"controller", "controller/bridge", "controller/connector", "controller/devserver",
	}},
	// The file tools know no network, no process and no protocol.
	"controller/files":          {third: []string{gitdiff, xsys}},
	"controller/files/disktest": {},
	"controller/devserver":      {own: []string{"controller/bridge", "controller/identity/authority", "controller/workerclient", "controller/workerclient/coretask"}, third: []string{websocket}},
	"controller/workerclient": {
		own: []string{"controller/bridge", "controller/workerclient/coreplugin", "controller/workerclient/coretask"},
	},
	"controller/taskrun": {own: []string{
		"controller", "controller/bridge", "controller/checkpoint", "controller/plugin", "controller/sandbox", "controller/unpack",
		"controller/workerclient", "controller/workerclient/coretask", "protocol", "protocol/journal", "protocol/orphan",
	}},
	// The plain values that the client hands on, under the names of the product.
	"controller/workerclient/coretask":   {},
	"controller/workerclient/coreplugin": {},
	// The parts of a task run: they know no network and no process.
	"controller/unpack": {},
	"controller/plugin": {own: []string{"controller/unpack"}},
	// Beside them, since it talks to a network.
	"controller/checkpoint": {own: []string{"controller/unpack"}, third: []string{zstd}},
	"controller/sandbox":    {third: []string{landlock, xsys}},

	"cmd/prp-runner":          {own: []string{"cmd/internal/runnercmd", "runner/process"}},
	"cmd/prp-harness":         {own: []string{"cmd/internal/harnesscmd"}},
	"cmd/prp":                 {own: []string{"cmd"}, third: []string{shellwords, xsys, xterm}},
	"cmd/internal/runnercmd":  {own: []string{"protocol", "protocol/secret", "runner", "runner/process"}, third: []string{shellwords}},
	"cmd/internal/flagtext":   {own: []string{"harness/fake"}},
	"cmd/internal/harnesscmd": {own: []string{"cmd/internal/flagtext", "harness", "harness/acp", "harness/acp/translate", "harness/child", "harness/command", "harness/fake", "protocol", "scripts"}},
	"cmd/internal/conform": {
		own: []string{"cmd/internal/fakemodel", "controller", "harness/acp", "protocol"},
	},
	"cmd/internal/fakemodel": {},
	"cmd/internal/arch":      {},
}

func TestImports(t *testing.T) {
	each(t, func(s source) {
		rule, ok := rooms[s.pkg]
		if !ok {
			t.Errorf("%s: package %s has no row in the table of rooms", s.path, s.pkg)
			return
		}
		if s.test {
			return
		}
		for _, path := range s.imports() {
			first, _, _ := strings.Cut(path, "/")
			own, isOwn := strings.CutPrefix(path, module+"/")
			switch {
			case isOwn:
				if !slices.Contains(rule.own, own) && !slices.Contains(rule.own, "cmd") {
					t.Errorf("%s imports %s; package %s may import %q", s.path, path, s.pkg, rule.own)
				}
			case strings.Contains(first, "."):
				if !slices.ContainsFunc(rule.third, func(m string) bool { return under(path, m) }) {
					t.Errorf("%s imports %s; package %s may import %q", s.path, path, s.pkg, rule.third)
				}
			}
		}
	})
}

// under reports whether a path is top or below it.
func under(path, top string) bool { return path == top || strings.HasPrefix(path, top+"/") }

// TestThreeProcesses: controller, runner and harness meet only on the wire,
// in tests too.
func TestThreeProcesses(t *testing.T) {
	sides := []string{"controller", "runner", "harness"}
	each(t, func(s source) {
		for _, mine := range sides {
			if !under(s.pkg, mine) {
				continue
			}
			for _, path := range s.imports() {
				for _, other := range sides {
					if other != mine && under(path, module+"/"+other) {
						t.Errorf("%s imports %s: %s and %s meet only on the wire", s.path, path, mine, other)
					}
				}
			}
		}
	})
}

// restricted says which packages may import what starts processes or talks to
// a network. A package stands for those below it where it ends in "/...".
var restricted = map[string][]string{
	"os/exec":                    {"runner/process", "harness/child", "harness/fake", "controller", "controller/files/disktest", "controller/programstest", "cmd/internal/doctor", "cmd/prp"},
	"net":                        {"controller/...", "cmd/internal/fakemodel"},
	"net/http":                   {"controller/...", "cmd/internal/fakemodel"},
	"crypto/tls":                 {"controller/..."},
	"github.com/coder/websocket": {"controller/bridge", "controller/connector", "controller/devserver"},
	"flag":                       {"cmd/..."},
	"log":                        {},
	"log/slog":                   {},
	"unsafe":                     {"runner/process", "runner/early", "harness/fake", "harness/child", "protocol", "controller/sandbox"},
	"C":                          {},
}

func TestRestrictedImports(t *testing.T) {
	each(t, func(s source) {
		if s.test {
			return
		}
		for _, path := range s.imports() {
			allowed, isRestricted := restricted[path]
			if !isRestricted {
				continue
			}
			if !slices.ContainsFunc(allowed, func(pkg string) bool { return covers(pkg, s.pkg) }) {
				t.Errorf("%s imports %s; only %q may", s.path, path, allowed)
			}
		}
	})
}

func covers(pattern, pkg string) bool {
	if top, ok := strings.CutSuffix(pattern, "/..."); ok {
		return under(pkg, top)
	}
	return pattern == pkg
}

// pureStd is all of the standard library that the pure core may import.
var pureStd = []string{
	"bytes", "cmp", "encoding/json", "errors", "fmt", "maps", "math", "slices", "strconv", "strings", "time", "unicode/utf8",
}

// clock are the members of package time that read the clock or wait.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Timer", "Ticker"}

// TestPureCore: the rules of a run do no I/O, read no clock and start nothing,
// so that a run is a list of inputs and a list of effects.
func TestPureCore(t *testing.T) {
	each(t, func(s source) {
		if s.test || s.pkg != "runner/lifecycle" {
			return
		}
		for _, path := range s.imports() {
			if path != module+"/protocol" && !slices.Contains(pureStd, path) {
				t.Errorf("%s imports %s; the pure core may import protocol and %q", s.path, path, pureStd)
			}
		}
	})
	each(t, func(s source) {
		if s.test || s.pkg != "runner/lifecycle" && s.pkg != "protocol" && s.pkg != "harness/acp/translate" {
			return
		}
		used := s.uses("time")
		for _, name := range clock {
			if used[name] {
				t.Errorf("%s uses time.%s; %s reads no clock", s.path, name, s.pkg)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
				t.Errorf("%s: %T; %s starts nothing and waits for nothing", s.path, n, s.pkg)
			}
			return true
		})
		for _, path := range s.imports() {
			if slices.Contains([]string{"os", "net", "sync", "context", "syscall"}, path) {
				t.Errorf("%s imports %s; %s does no I/O", s.path, path, s.pkg)
			}
		}
	})
}

// TestBuildTags: what differs by platform stands in few places.
func TestBuildTags(t *testing.T) {
	each(t, func(s source) {
		if !s.tagged || s.test {
			return
		}
		switch {
		case s.pkg == "runner/process", s.pkg == "runner/early", s.pkg == "harness/fake":
		case s.pkg == "harness/child": // signals, and a death by one
		case s.pkg == "controller/sandbox": // system calls of Linux
		case s.pkg == "controller" && strings.HasPrefix(s.path, "controller/proc_"):
		case s.pkg == "controller/files" && strings.HasPrefix(s.path, "controller/files/dir_"): // folders by descriptor
		case s.pkg == "controller/files/disktest": // mounts of Linux
		default:
			t.Errorf("%s is built on some platforms only; only runner/process, runner/early, harness/fake, harness/child, controller/sandbox, controller/files/disktest, controller/proc_*.go and controller/files/dir_*.go may be", s.path)
		}
	})
}

// TestExitOnlyInMain: what ends the process stands where a reader looks for
// it, with the few exceptions that are a process's whole work.
func TestExitOnlyInMain(t *testing.T) {
	each(t, func(s source) {
		if s.test || s.name == "main" || s.pkg == "runner/process" || s.pkg == "harness" || s.pkg == "harness/fake" {
			return
		}
		if s.uses("os")["Exit"] {
			t.Errorf("%s calls os.Exit; it stands only in main", s.path)
		}
	})
}

// TestEnvironmentOnlyInCmd: configuration comes in through Config values. What
// starts a process may read the environment that it hands on in part.
func TestEnvironmentOnlyInCmd(t *testing.T) {
	each(t, func(s source) {
		if s.test || under(s.pkg, "cmd") || s.pkg == "runner/process" || s.pkg == "harness/fake" || s.path == "controller/config.go" {
			return
		}
		used := s.uses("os")
		for _, name := range []string{"Getenv", "LookupEnv", "Environ", "Args"} {
			if used[name] {
				t.Errorf("%s uses os.%s; flags and environment are read only in cmd", s.path, name)
			}
		}
	})
}

// TestPackageComments: every package says what it is.
func TestPackageComments(t *testing.T) {
	docs, names := map[string]string{}, map[string]string{}
	each(t, func(s source) {
		if s.test {
			return
		}
		names[s.pkg] = s.name
		if s.file.Doc != nil {
			docs[s.pkg] += s.file.Doc.Text()
		}
	})
	for pkg, name := range names {
		starts := []string{"Package " + name + " "}
		if name == "main" {
			command := pkg[strings.LastIndex(pkg, "/")+1:]
			starts = []string{"Command " + command + " ", strings.ToUpper(command[:1]) + command[1:] + " "}
		}
		if !slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(docs[pkg], start) }) {
			t.Errorf("the doc comment of %s begins with %.40q, want one of %q", pkg, docs[pkg], starts)
		}
	}
}

// topLevel is the folder list: whoever reads only ls must be able to guess
// the architecture.
var topLevel = []string{
	".ci", ".git", ".gitignore", "LICENSE", "README.md", "bin", "cmd", "controller", "fixtures",
	"go.mod", "go.sum", "harness", "protocol", "runner", "scripts", "testdata",
}

func TestTopLevel(t *testing.T) {
	// What a person keeps beside the tree is nobody's business: only what is
	// part of it counts.
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil || len(out) == 0 {
		t.Skipf("git does not say what is part of the tree: %v", err)
	}
	seen := map[string]bool{}
	for file := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		name, _, _ := strings.Cut(file, "/")
		if seen[name] {
			continue
		}
		seen[name] = true
		if !slices.Contains(topLevel, name) {
			t.Errorf("%q stands at the top level; the list is %q", name, topLevel)
		}
		if strings.Contains(" utils common helpers types ", " "+name+" ") {
			t.Errorf("%q says nothing", name)
		}
	}
}

// TestThreePrograms: 'go build -o bin/ ./cmd/...' makes what a person runs, and
// nothing else. A program that only tests need stands below a testdata.
func TestThreePrograms(t *testing.T) {
	list := exec.Command("go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
	list.Dir = root
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	want := []string{module + "/cmd/prp", module + "/cmd/prp-harness", module + "/cmd/prp-runner"}
	if got := strings.Fields(string(out)); !slices.Equal(got, want) {
		t.Errorf("the programs are %q, want %q", got, want)
	}
}

// heavy is what a small program does not link.
var heavy = []string{
	"net", "net/http", "crypto/tls", "text/template", "html/template", "go/parser", "testing", "encoding/xml",
	"github.com/invopop/jsonschema", "github.com/santhosh-tekuri/jsonschema/v6", "github.com/coder/websocket",
	"github.com/klauspost/compress/zstd", "github.com/landlock-lsm/go-landlock/landlock",
}

// TestSmallPrograms: the programs that run beside every agent link neither a
// network nor a schema library, nor the other sides of the wire.
func TestSmallPrograms(t *testing.T) {
	for cmd, others := range map[string][]string{
		"prp-runner":  {"controller", "harness", "protocol/schema", "scripts"},
		"prp-harness": {"controller", "runner", "protocol/schema"},
	} {
		t.Run(cmd, func(t *testing.T) {
			list := exec.Command("go", "list", "-deps", "./cmd/"+cmd)
			list.Dir = root
			list.Stderr = os.Stderr
			out, err := list.Output()
			if err != nil {
				t.Fatalf("go list: %v", err)
			}
			deps := strings.Fields(string(out))
			if !slices.Contains(deps, module+"/protocol") {
				t.Fatalf("the dependencies of %s have no protocol: %d packages", cmd, len(deps))
			}
			for _, dep := range deps {
				if slices.Contains(heavy, dep) {
					t.Errorf("%s links %s", cmd, dep)
				}
				for _, other := range others {
					if under(dep, module+"/"+other) {
						t.Errorf("%s links %s", cmd, dep)
					}
				}
			}
		})
	}
}
