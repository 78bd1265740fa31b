package schema_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/invopop/jsonschema"

	"prp/harness/fake"
	"prp/protocol"
)

// shape makes a reflected member stricter.
type shape func(*jsonschema.Schema)

func ptr(n uint64) *uint64 { return &n }

// all applies several shapes to one member.
func all(shapes ...shape) shape {
	return func(s *jsonschema.Schema) {
		for _, f := range shapes {
			f(s)
		}
	}
}

// only allows exactly one value.
func only(value string) shape {
	return func(s *jsonschema.Schema) { s.Type, s.Const = "string", value }
}

// oneOf allows exactly these strings.
func oneOf(values ...string) shape {
	return func(s *jsonschema.Schema) {
		s.Type, s.Enum = "string", nil
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
	}
}

// length bounds a string in characters (code points).
func length(least, most uint64) shape {
	return func(s *jsonschema.Schema) {
		s.Type, s.MinLength, s.MaxLength = "string", ptr(least), ptr(most)
	}
}

var (
	id    = length(1, protocol.MaxIDLen)
	runID = length(1, protocol.MaxRunIDLen)
	claim = length(1, protocol.MaxSummaryLen)
)

// atLeast bounds an integer. The upper bound is the largest integer that
// every JSON reader keeps exactly, 2^53-1.
func atLeast(least int) shape {
	return func(s *jsonschema.Schema) {
		s.Type = "integer"
		s.Minimum = json.Number(strconv.Itoa(least))
		s.Maximum = "9007199254740991"
	}
}

func object(s *jsonschema.Schema) { s.Type = "object" }
func array(s *jsonschema.Schema)  { s.Type = "array" }

// anyOfTypes allows a value of any of these JSON types.
func anyOfTypes(types ...string) shape {
	return func(s *jsonschema.Schema) {
		s.Type = ""
		for _, typ := range types {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: typ})
		}
	}
}

// orNull allows null beside what the member is.
func orNull(s *jsonschema.Schema) {
	value := *s
	*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{&value, {Type: "null"}}}
}

// dateTime is RFC 3339; the pattern says it to validators that take a format
// for a remark.
func dateTime(s *jsonschema.Schema) {
	s.Type, s.Format = "string", "date-time"
	s.Pattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$`
}

func pattern(p string) shape {
	return func(s *jsonschema.Schema) { s.Type, s.Pattern = "string", p }
}

// properties builds a property list in the given order.
func properties(pairs ...any) *jsonschema.Schema {
	s := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	for i := 0; i < len(pairs); i += 2 {
		s.Properties.Set(pairs[i].(string), pairs[i+1].(*jsonschema.Schema))
	}
	return s
}

func constant(v any) *jsonschema.Schema { return &jsonschema.Schema{Const: v} }

func values[T ~string](list ...T) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, v := range list {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

func ref(def string) *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/" + def} }

// when adds a rule: where the member key is as the condition says, then holds.
func when(s *jsonschema.Schema, key string, condition, then *jsonschema.Schema) {
	test := properties(key, condition)
	test.Required = []string{key}
	s.AllOf = append(s.AllOf, &jsonschema.Schema{If: test, Then: then})
}

// needs makes members required.
func needs(s *jsonschema.Schema, keys ...string) *jsonschema.Schema {
	s.Required = append(s.Required, keys...)
	return s
}

var scriptType = reflect.TypeFor[fake.Script]()

// typeName is the name of a type in $defs. The steps of a script have a prefix:
// some are called like an object of the wire.
func typeName(t reflect.Type) string {
	if t.PkgPath() == scriptType.PkgPath() && t != scriptType {
		return "Step" + t.Name()
	}
	return t.Name()
}

// openTypes are string types whose list of constants is not the whole of what
// may stand on the wire.
var openTypes = map[string]bool{"EventType": true, "Code": true}

// mapType turns the string types of package protocol into lists of values.
func mapType(t reflect.Type) *jsonschema.Schema {
	if t == stepType {
		return ref("Step")
	}
	if t.Kind() != reflect.String || t.PkgPath() != "prp/protocol" || openTypes[t.Name()] {
		return nil
	}
	s := &jsonschema.Schema{}
	oneOf(constants()[t.Name()]...)(s)
	return s
}

// constants reads the typed string constants of package protocol from its
// source, by type, in order: a new constant cannot be forgotten here.
var constants = sync.OnceValue(func() map[string][]string {
	return readConstants("../*.go")
})

// receiptCodes are the codes of rejected receipts: those of command.go.
var receiptCodes = sync.OnceValue(func() []string {
	return readConstants("../command.go")["Code"]
})

func readConstants(glob string) map[string][]string {
	found := map[string][]string{}
	paths, err := filepath.Glob(glob)
	if err != nil {
		panic(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			panic(err)
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				addConstant(found, spec.(*ast.ValueSpec))
			}
		}
	}
	return found
}

func addConstant(found map[string][]string, spec *ast.ValueSpec) {
	typ, ok := spec.Type.(*ast.Ident)
	if !ok || len(spec.Values) != 1 {
		return
	}
	lit, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	value, err := strconv.Unquote(lit.Value)
	if err != nil {
		panic(err)
	}
	found[typ.Name] = append(found[typ.Name], value)
}

// TestConstantsAreRead shows that the reading of the source finds what the
// package itself lists.
func TestConstantsAreRead(t *testing.T) {
	var want []string
	for _, typ := range protocol.CommandTypes() {
		want = append(want, string(typ))
	}
	if got := constants()["CommandType"]; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("command types read from the source: %q, want %q", got, want)
	}
	if got := receiptCodes(); len(got) < 25 {
		t.Errorf("%d receipt codes read from the source, want at least the 25 of spec section 2", len(got))
	}
}
