package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"prp/harness/fake"
)

// wireWords collects the constants of a type in package protocol.
func wireWords(t *testing.T, typeName string) []string {
	t.Helper()
	paths, err := filepath.Glob("../../protocol/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != typeName {
				return true
			}
			for _, value := range spec.Values {
				if lit, ok := value.(*ast.BasicLit); ok {
					word, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					words = append(words, word)
				}
			}
			return true
		})
	}
	if len(words) < 5 {
		t.Fatalf("package protocol has only %d constants of type %s", len(words), typeName)
	}
	return words
}

// TestProtocolPageIsWhole: every word of the wire has exactly one row.
func TestProtocolPageIsWhole(t *testing.T) {
	page := protocolPage()
	for _, typeName := range []string{"CommandType", "EventType", "Code", "Reason"} {
		for _, word := range wireWords(t, typeName) {
			rows := 0
			for line := range strings.Lines(page) {
				if fields := strings.Fields(line); len(fields) > 1 && fields[0] == word && strings.HasPrefix(line, "  ") {
					rows++
				}
			}
			want := 1
			if word == "harness_start_failed" || word == "harness_not_ready" {
				want = 2 // the code of a receipt and the reason of a terminal
			}
			if rows != want {
				t.Errorf("%s %q has %d rows, want %d", typeName, word, rows, want)
			}
		}
	}
}

// TestPages: pages fit a terminal of usual width, and say all that they list.
func TestPages(t *testing.T) {
	for _, topic := range topics() {
		page := topic.page()
		for line := range strings.Lines(page) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > 100 || strings.TrimRight(line, " ") != line {
				t.Errorf("%s: a line of %d characters, or with blanks at its end: %q", topic.name, len(line), line)
			}
		}
	}
	for _, kind := range fake.StepKinds() {
		if !strings.Contains(scriptsPage(), "\n  "+kind) {
			t.Errorf("the page of scripts does not name the step %q", kind)
		}
	}
	for _, name := range commandNames() {
		if !strings.Contains(exitStatusPage(), "\n  "+name+" ") {
			t.Errorf("the page of exit statuses does not name %q", name)
		}
	}
}
