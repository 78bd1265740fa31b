package workerclient

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// additions are the exported types and functions beside those of the product,
// each with its reason. Methods belong to the types.
var additions = map[string]string{
	"StatusError":               "the typed error (workerclient.md, wire)",
	"Temporary":                 "whether such an error is worth another try (row 5)",
	"Untrusted":                 "whether one end does not trust the other (row 5)",
	"WorkspaceOff":              "404 and 503 for the workspace",
	"DigestHeader":              "the header of a download",
	"NewTLSClient":              "makes a client of TLSClientOptions",
	"NewWorkerHTTPUpdater":      "makes an updater of WorkerAPIClientConfig",
	"NewWorkerHTTPStreamSender": "makes a sender of WorkerAPIClientConfig",
}

// declared lists the exported names of files with what tests compare: of a
// struct each field with its type and tag, of an interface each method.
func declared(t *testing.T, paths ...string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					out[d.Name.Name] = []string{"func"}
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					addSpec(out, s)
				}
			}
		}
	}
	return out
}

func addSpec(out map[string][]string, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				out[name.Name] = []string{"value"}
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		switch of := s.Type.(type) {
		case *ast.StructType:
			out[s.Name.Name] = fieldsOf(of)
		case *ast.InterfaceType:
			list := []string{"interface"}
			for _, m := range of.Methods.List {
				list = append(list, m.Names[0].Name+signature(m.Type.(*ast.FuncType)))
			}
			out[s.Name.Name] = list
		default:
			out[s.Name.Name] = []string{types.ExprString(s.Type)}
		}
	}
}

func fieldsOf(s *ast.StructType) []string {
	list, hidden := []string{"struct"}, false
	for _, f := range s.Fields.List {
		tag := ""
		if f.Tag != nil {
			tag = " " + f.Tag.Value
		}
		for _, name := range f.Names {
			if !name.IsExported() {
				hidden = true
				continue
			}
			list = append(list, fmt.Sprintf("%s %s%s", name.Name, types.ExprString(f.Type), tag))
		}
	}
	if hidden {
		list = append(list, "and fields that are not exported")
	}
	return list
}

func signature(f *ast.FuncType) string {
	list := func(fields *ast.FieldList) string {
		var of []string
		for _, p := range fields.List {
			for range max(1, len(p.Names)) {
				of = append(of, types.ExprString(p.Type))
			}
		}
		return "(" + strings.Join(of, ", ") + ")"
	}
	return list(f.Params) + list(f.Results)
}

// TestAPI: the exported types, fields and tags are those of the product.
func TestAPI(t *testing.T) {
	want := declared(t, filepath.Join("testdata", "api.txt"))
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	mine := slices.DeleteFunc(all, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	got := declared(t, mine...)
	const types = 21
	if len(want) != types {
		t.Errorf("testdata/api.txt has %d types, want %d", len(want), types)
	}
	for name, fields := range want {
		if !slices.Equal(got[name], fields) {
			t.Errorf("%s is\n  %s\nwant\n  %s", name, strings.Join(got[name], "\n  "), strings.Join(fields, "\n  "))
		}
	}
	for name := range got {
		if want[name] == nil && additions[name] == "" {
			t.Errorf("%s is exported and the product does not have it", name)
		}
	}
	for name := range additions {
		if got[name] == nil {
			t.Errorf("%s is in the list of additions and does not exist", name)
		}
	}
}

// TestAPISees: a field that differs in its name, type, tag or place is seen.
func TestAPISees(t *testing.T) {
	const base = "package p\ntype T struct {\n\tA string `json:\"a\"`\n\tB *int `json:\"b,omitempty\"`\n}\n"
	compare := func(src string) bool {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		for path, text := range map[string]string{a: base, b: src} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Equal(declared(t, a)["T"], declared(t, b)["T"])
	}
	if !compare(base) {
		t.Error("the same is not equal")
	}
	for _, change := range [][2]string{
		{`"a"`, `"x"`}, {"A string", "X string"}, {"*int", "int"}, {",omitempty", ""}, {"\tA string", "\tC int\n\tA string"}, {"\tB", "\tb bool\n\tB"},
	} {
		if compare(strings.Replace(base, change[0], change[1], 1)) {
			t.Errorf("%q for %q is not seen", change[1], change[0])
		}
	}
}
