package schema_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"prp/harness/fake"
	"prp/protocol"
	"prp/protocol/schema"
)

// compiled holds every embedded schema as the independent validator reads it.
// Formats are checked: they are part of what the schemas say.
var compiled = sync.OnceValues(func() (map[string]*validator.Schema, error) {
	all := map[string]*validator.Schema{}
	for _, name := range schema.Names() {
		raw, err := schema.Get(name)
		if err != nil {
			return nil, err
		}
		doc, err := validator.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		c := validator.NewCompiler()
		c.AssertFormat()
		id := "urn:prp:schema:" + name + ":v1"
		if err := c.AddResource(id, doc); err != nil {
			return nil, err
		}
		if all[name], err = c.Compile(id); err != nil {
			return nil, err
		}
	}
	return all, nil
})

// validate checks a text against a schema.
func validate(t *testing.T, name, text string) error {
	t.Helper()
	all, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	s, ok := all[name]
	if !ok {
		t.Fatalf("no schema %q", name)
	}
	v, err := validator.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("the sample is not JSON: %v\n%s", err, text)
	}
	return s.Validate(v)
}

// decode gives a text to the decoder that reads it in the chain.
func decode(t *testing.T, name, text string) error {
	t.Helper()
	d, line := protocol.NewDecoder(), []byte(text)
	switch name {
	case "command":
		if _, fault := d.Command(line); fault != nil {
			return fault
		}
		return nil
	case "stream":
		_, err := d.Stream(line)
		return err
	case "event":
		_, err := d.Stream([]byte(`{"schema":"paperclip.runner.stream.v1","message":{"kind":"event","event":` + text + `}}`))
		return err
	case "terminal":
		return decode(t, "event", runnerEvent(1000, "run.terminal", 0, text))
	case "request":
		_, err := protocol.DecodeRequest(line)
		return err
	case "result":
		_, err := protocol.DecodeResult(line)
		return err
	case "proposal":
		_, err := protocol.DecodeTerminalProposal(line)
		return err
	case "harness-command":
		_, _, err := d.HarnessCommand(line)
		return err
	case "harness-message":
		var m protocol.HarnessMessage
		if fault := d.HarnessMessage(line, &m); fault != nil {
			return fault
		}
		return nil
	case "script":
		_, err := fake.Parse(line)
		return err
	}
	t.Fatalf("no decoder for %q", name)
	return nil
}

// TestGoodLines: every base is accepted by its schema and by its decoder, and
// every schema has one.
func TestGoodLines(t *testing.T) {
	have := map[string]bool{}
	for base, text := range bases {
		name, _, _ := strings.Cut(base, "/")
		have[name] = true
		t.Run(base, func(t *testing.T) {
			if err := validate(t, name, text); err != nil {
				t.Errorf("schema: %v\n%s", err, text)
			}
			if err := decode(t, name, text); err != nil {
				t.Errorf("decoder: %v\n%s", err, text)
			}
		})
	}
	for _, name := range schema.Names() {
		if !have[name] {
			t.Errorf("schema %q has no good line", name)
		}
	}
}

// TestSchemaAndDecoderAgree gives every sample to both.
func TestSchemaAndDecoderAgree(t *testing.T) {
	for _, s := range samples {
		name, _, _ := strings.Cut(s.base, "/")
		t.Run(s.base+"/"+s.path+"="+shorten(s.value), func(t *testing.T) {
			text := s.text(t)
			bySchema, byDecoder := validate(t, name, text), decode(t, name, text)
			if refuse := s.want == bad || s.want == schemaOnly; (bySchema != nil) != refuse {
				t.Errorf("schema: refused is %v, want %v: %v\n%s", bySchema != nil, refuse, bySchema, shorten(text))
			}
			if refuse := s.want == bad || s.want == decoderOnly; (byDecoder != nil) != refuse {
				t.Errorf("decoder: refused is %v, want %v: %v\n%s", byDecoder != nil, refuse, byDecoder, shorten(text))
			}
		})
	}
}

func shorten(s string) string {
	const most = 600
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// TestEveryRequiredMemberIsRequired removes each required member of each base
// in turn: the schema refuses what is left.
func TestEveryRequiredMemberIsRequired(t *testing.T) {
	all, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	for base := range bases {
		name, _, _ := strings.Cut(base, "/")
		for _, member := range all[name].Required {
			text := sample{base: base, path: member}.text(t)
			if validate(t, name, text) == nil {
				t.Errorf("%s without %q is accepted", base, member)
			}
		}
	}
}

// TestNames: the names are fixed, other programs ask for them.
func TestNames(t *testing.T) {
	for _, name := range []string{
		"command", "stream", "event", "request", "result", "terminal", "harness-command", "harness-message", "script",
	} {
		text, err := schema.Get(name)
		if err != nil || len(text) == 0 {
			t.Errorf("Get(%q): %d bytes, error %v", name, len(text), err)
		}
		if about, err := schema.Describe(text); err != nil || !strings.HasSuffix(about, ".") {
			t.Errorf("Describe(%q): %q, error %v", name, about, err)
		}
	}
	if _, err := schema.Get("events"); err == nil || !strings.Contains(err.Error(), `"events"`) {
		t.Errorf("Get of a name that does not exist: %v, want an error that names it", err)
	}
	if _, err := schema.Describe([]byte("events")); err == nil {
		t.Error("a text that is no JSON is described")
	}
	names := schema.Names()
	names[0] = "changed"
	if schema.Names()[0] == "changed" {
		t.Error("Names hands out its own slice")
	}
}
