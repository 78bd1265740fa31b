package schema_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"prp/protocol/schema"
)

var update = flag.Bool("update", false, "write the schema files from the types and rules")

// document describes one schema file.
type document struct {
	title string
	text  string
	// root is a value of the Go type that the whole line or object has.
	root any
	// parts are further types that the rules of finish refer to by $ref.
	parts []any
	// finish adds what holds between members.
	finish func(*jsonschema.Schema)
}

// TestFilesAreCurrent compares the embedded files with what the types and
// rules give now; with -update it writes them.
func TestFilesAreCurrent(t *testing.T) {
	docs := documents()
	for _, name := range schema.Names() {
		t.Run(name, func(t *testing.T) {
			doc, ok := docs[name]
			if !ok {
				t.Fatalf("schema %q has no document in the generator", name)
			}
			want := generate(t, name, doc)
			if *update {
				if err := os.WriteFile(name+".json", want, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			got, err := schema.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s.json is stale; run go test ./protocol/schema -run TestFilesAreCurrent -update\n(-want +embedded)\n%s", name, diff)
			}
		})
	}
	if len(docs) != len(schema.Names()) {
		t.Errorf("%d documents for %d names", len(docs), len(schema.Names()))
	}
}

// generate reflects the types of a document, tightens every member by its rule
// and prints the schema.
func generate(t *testing.T, name string, doc document) []byte {
	t.Helper()
	root := reflector(true).Reflect(doc.root)
	if root.Definitions == nil {
		root.Definitions = jsonschema.Definitions{}
	}
	for _, part := range doc.parts {
		for def, s := range reflector(false).Reflect(part).Definitions {
			root.Definitions[def] = s
		}
	}
	tighten(t, typeName(reflect.TypeOf(doc.root)), root)
	for def, s := range root.Definitions {
		tighten(t, def, s)
	}
	root.ID = jsonschema.ID("urn:prp:schema:" + name + ":v1")
	root.Title, root.Description = doc.title, doc.text
	if doc.finish != nil {
		doc.finish(root)
	}
	if len(root.Definitions) == 0 {
		root.Definitions = nil
	}
	return indented(t, root)
}

func indented(t *testing.T, s *jsonschema.Schema) []byte {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// reflector reads the Go types. Unknown members are allowed: tighten closes
// the types that do not want them.
func reflector(expand bool) *jsonschema.Reflector {
	return &jsonschema.Reflector{
		Anonymous:                 true,
		AllowAdditionalProperties: true,
		ExpandedStruct:            expand,
		Namer:                     typeName,
		Mapper:                    mapType,
	}
}

// tighten gives every member of one type its description and its rule. A
// member without an entry, and an entry without a member, are errors: so a
// change of a Go type cannot pass unseen.
func tighten(t *testing.T, typ string, s *jsonschema.Schema) {
	t.Helper()
	if s.Properties == nil {
		return
	}
	if typ == "Script" || strings.HasPrefix(typ, "Step") {
		tightenStep(t, typ, s)
		return
	}
	rules, ok := members()[typ]
	if !ok {
		t.Errorf("type %s has no entry in members", typ)
		return
	}
	seen := map[string]bool{}
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		rule, ok := rules[pair.Key]
		if !ok {
			t.Errorf("member %q of %s has no description and rule", pair.Key, typ)
			continue
		}
		seen[pair.Key] = true
		if rule.shape != nil {
			rule.shape(pair.Value)
		}
		pair.Value.Description = rule.text
	}
	for key := range rules {
		if !seen[key] {
			t.Errorf("type %s has no member %q any more", typ, key)
		}
	}
	if between := relations()[typ]; between != nil {
		between(s)
	}
}
