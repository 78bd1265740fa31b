package fake

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"prp/scripts"
)

// samples has every kind of step with all its required members.
var samples = map[string]string{
	"delay":            `{"kind":"delay","milliseconds":5}`,
	"log":              `{"kind":"log","stream":"stdout","text":"a"}`,
	"event":            `{"kind":"event","event_type":"item.started","payload":{}}`,
	"request":          `{"kind":"request","request":{}}`,
	"await_resolution": `{"kind":"await_resolution","request_id":"r"}`,
	"await_interrupt":  `{"kind":"await_interrupt"}`,
	"await_command":    `{"kind":"await_command","command_type":"turn.steer"}`,
	"result":           `{"kind":"result","payload":{}}`,
	"terminal":         `{"kind":"terminal","payload":{}}`,
	"spawn_worker":     `{"kind":"spawn_worker"}`,
	"exit":             `{"kind":"exit","code":130}`,
	"ready":            `{"kind":"ready"}`,
	"raw":              `{"kind":"raw","text":"a"}`,
	"stderr":           `{"kind":"stderr","text":"a"}`,
	"flood":            `{"kind":"flood","stream":"stderr","bytes":5}`,
	"repeat":           `{"kind":"repeat","times":2,"steps":[]}`,
	"close_stdin":      `{"kind":"close_stdin"}`,
	"close_stdout":     `{"kind":"close_stdout"}`,
	"ignore_sigterm":   `{"kind":"ignore_sigterm"}`,
	"on_sigterm":       `{"kind":"on_sigterm","steps":[]}`,
	"stop_self":        `{"kind":"stop_self"}`,
	"hang":             `{"kind":"hang"}`,
	"crash":            `{"kind":"crash","signal":9}`,
}

func scriptOf(steps ...string) string {
	return `{"schema":"paperclip.fake_harness.script.v1","name":"test","steps":[` + strings.Join(steps, ",") + `]}`
}

func TestParseTakesEveryKind(t *testing.T) {
	for _, name := range StepKinds() {
		sample, ok := samples[name]
		if !ok {
			t.Errorf("no sample of kind %q", name)
			continue
		}
		s, err := Parse([]byte(scriptOf(sample)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := reflect.TypeOf(StepTypes()[name])
		if got := reflect.TypeOf(s.Steps[0]).Elem(); got != want {
			t.Errorf("%s: parsed as %v, the table says %v", name, got, want)
		}
		if kind := reflect.ValueOf(s.Steps[0]).Elem().FieldByName("Kind").String(); kind != name {
			t.Errorf("%s: Kind is %q", name, kind)
		}
	}
}

// TestTagsAgreeWithParser holds the two descriptions of a step together: the
// struct tags, from which schemas are made, and the parse functions.
func TestTagsAgreeWithParser(t *testing.T) {
	for name, shape := range StepTypes() {
		var sample map[string]json.RawMessage
		if err := json.Unmarshal([]byte(samples[name]), &sample); err != nil {
			t.Fatal(err)
		}
		typ := reflect.TypeOf(shape)
		for i := range typ.NumField() {
			member, omit, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			optional := omit == "omitempty" || omit == "omitzero"
			if !optional {
				checkRequired(t, name, member, sample)
			}
			checkWrongType(t, name, member, sample)
		}
	}
}

func checkRequired(t *testing.T, name, member string, sample map[string]json.RawMessage) {
	without := make(map[string]json.RawMessage)
	for m, value := range sample {
		if m != member {
			without[m] = value
		}
	}
	text, err := json.Marshal(without)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse([]byte(scriptOf(string(text))))
	if err == nil || !strings.HasPrefix(err.Error(), "steps[0]."+member+": expected") || !strings.HasSuffix(err.Error(), "got nothing") {
		t.Errorf("%s without %s: %v", name, member, err)
	}
}

func checkWrongType(t *testing.T, name, member string, sample map[string]json.RawMessage) {
	with := map[string]json.RawMessage{member: json.RawMessage("null")}
	for m, value := range sample {
		if m != member {
			with[m] = value
		}
	}
	if name == "raw" && member == "base64" {
		delete(with, "text")
	}
	text, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse([]byte(scriptOf(string(text))))
	if err == nil || !strings.HasPrefix(err.Error(), "steps[0]."+member+": expected") || !strings.HasSuffix(err.Error(), "got null") {
		t.Errorf("%s with %s null: %v", name, member, err)
	}
}

func TestParseErrors(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`{"kind":"repeat","times":1,"steps":[`, depth) + strings.Repeat(`]}`, depth)
	}
	good := samples["hang"]
	tests := []struct{ name, script, want string }{
		{"empty", "", "expected a JSON object, got nothing"},
		{"blank", " \n", "expected a JSON object, got nothing"},
		{"not JSON", "{\n\"schema\": x}", "line 2: expected valid JSON"},
		{"cut off", `{"schema":`, "expected valid JSON"},
		{"array", "[]", "script: expected an object, got an array"},
		{"two objects", scriptOf() + scriptOf(), "expected one JSON object, got more after it"},
		{"garbage after", scriptOf() + "x", "expected valid JSON"},
		{"invalid UTF-8", strings.Replace(scriptOf(), "test", "te\xffst", 1), "line 1: expected valid JSON"},
		{"lone surrogate", strings.Replace(scriptOf(), "test", `\ud800`, 1), "line 1: expected valid JSON"},
		{"huge number", scriptOf(`{"kind":"result","payload":{"a":1e400}}`), "expected valid JSON"},
		{"schema", `{"schema":"x","name":"a","steps":[]}`, `schema: expected one of "paperclip.fake_harness.script.v1", got "x"`},
		{"no name", `{"schema":"paperclip.fake_harness.script.v1","steps":[]}`, "name: expected a string of 1 to 160 characters, got nothing"},
		{"empty name", `{"schema":"paperclip.fake_harness.script.v1","name":"","steps":[]}`, `name: expected a string of 1 to 160 characters, got ""`},
		{"no steps", `{"schema":"paperclip.fake_harness.script.v1","name":"a"}`, "steps: expected an array of steps, got nothing"},
		{"unknown member", `{"schema":"paperclip.fake_harness.script.v1","name":"a","step":[],"steps":[]}`, `step: unknown member of a script; did you mean "steps"?`},
		{"case", `{"schema":"paperclip.fake_harness.script.v1","Name":"a","steps":[]}`, "name: expected"},
		{"step", scriptOf(good, "5"), "steps[1]: expected an object, got 5"},
		{"kind", scriptOf(`{"kind":"dealy"}`), `steps[0].kind: unknown kind "dealy"; did you mean "delay"?`},
		{"unheard-of kind", scriptOf(`{"kind":"zzzzzzzz"}`), `steps[0].kind: unknown kind "zzzzzzzz"`},
		{"kind type", scriptOf(`{"kind":1}`), "steps[0].kind: expected a kind of step, got 1"},
		{"path", scriptOf(good, good, good, `{"kind":"delay","milliseconds":"x"}`), `steps[3].milliseconds: expected an integer from 0, got "x"`},
		{"negative", scriptOf(`{"kind":"delay","milliseconds":-1}`), "steps[0].milliseconds: expected an integer from 0, got -1"},
		{"fraction", scriptOf(`{"kind":"delay","milliseconds":1.5}`), "steps[0].milliseconds: expected an integer from 0 to 86400000, got 1.5"},
		{"too long", scriptOf(`{"kind":"delay","milliseconds":86400001}`), "steps[0].milliseconds: expected an integer from 0 to 86400000, got 86400001"},
		{"exit code", scriptOf(`{"kind":"exit","code":256}`), "steps[0].code: expected an integer from 0 to 255, got 256"},
		{"signal", scriptOf(`{"kind":"crash","signal":0}`), "steps[0].signal: expected an integer from 1, got 0"},
		{"stream", scriptOf(`{"kind":"log","stream":"stdin","text":""}`), `steps[0].stream: expected one of "stdout", "stderr", got "stdin"`},
		{"payload", scriptOf(`{"kind":"event","event_type":"a","payload":[]}`), "steps[0].payload: expected an object, got an array"},
		{"no payload", scriptOf(`{"kind":"event","event_type":"a"}`), "steps[0].payload: expected an object, got nothing"},
		{"long id", scriptOf(`{"kind":"event","event_type":"a","item_id":"` + strings.Repeat("é", 161) + `","payload":{}}`), "steps[0].item_id: expected a string of 1 to 160 characters"},
		{"strange member", scriptOf(`{"kind":"hang","a b":1}`), `steps[0]."a b": unknown member of a "hang" step`},
		{"duplicate key", scriptOf(`{"kind":"hang","kind":"hang"}`), "line 1: expected valid JSON"},
		{"duplicate key below", scriptOf(`{"kind":"result","payload":{"a":{"b":1,"b":2}}}`), "line 1: expected valid JSON"},
		{"flag", scriptOf(`{"kind":"flood","stream":"stdout","bytes":1,"newline":1}`), "steps[0].newline: expected true or false, got 1"},
		{"raw neither", scriptOf(`{"kind":"raw"}`), `steps[0]: expected exactly one of "text" and "base64"`},
		{"raw both", scriptOf(`{"kind":"raw","text":"","base64":""}`), `steps[0]: expected exactly one of "text" and "base64"`},
		{"base64", scriptOf(`{"kind":"raw","base64":"?"}`), `steps[0].base64: expected standard base64, got "?"`},
		{"command", scriptOf(`{"kind":"await_command","command_type":"run.prepare"}`), "steps[0].command_type: expected one of"},
		{"escape", scriptOf(`{"kind":"spawn_worker","escape":"fork"}`), `steps[0].escape: expected one of "none", "setpgid", "setsid", "double_fork", got "fork"`},
		{"writes without stdout", scriptOf(`{"kind":"spawn_worker","writes_every_ms":5}`), "steps[0].writes_every_ms: expected hold_stdout"},
		{"number without writes", scriptOf(`{"kind":"spawn_worker","writes_from_seq":5}`), "steps[0].writes_from_seq: expected writes_every_ms"},
		{"inside repeat", scriptOf(good, `{"kind":"repeat","times":1,"steps":[{"kind":"hang"},{"kind":"exit"}]}`), "steps[1].steps[1].code: expected an integer from 0, got nothing"},
		{"too deep", scriptOf(nested(MaxRepeatDepth)), "expected steps nested at most 8 deep"},
		{"too large", scriptOf(`{"kind":"stderr","text":"` + strings.Repeat("x", MaxScriptBytes) + `"}`), "expected at most 4194304 bytes, got more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse([]byte(tt.script))
			if err == nil || s != nil {
				t.Fatalf("a script came out: %+v", s)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %q, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := Parse([]byte(scriptOf(nested(MaxRepeatDepth - 1)))); err != nil {
		t.Errorf("steps as deep as allowed: %v", err)
	}
}

func TestParseKeepsNumbersAndMakesOneLine(t *testing.T) {
	s, err := Parse([]byte(scriptOf("{\"kind\":\"event\",\"event_type\":\"x\",\"payload\":{\n  \"n\": 9007199254740993,\r\n\t\"e\": 1.50E+1, \"s\": \"\\u0061\"}}")))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"n":9007199254740993,"e":1.50E+1,"s":"\u0061"}`
	if got := string(s.Steps[0].(*Event).Payload); got != want {
		t.Errorf("payload is %s, want %s", got, want)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.json")
	if _, err := Load(path); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte(scriptOf(`{}`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.HasPrefix(err.Error(), path+": steps[0].kind: expected") {
		t.Errorf("a wrong file: %v", err)
	}
}

func TestEmbeddedScripts(t *testing.T) {
	for _, name := range scripts.Names() {
		data, err := scripts.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s.Name != name || s.Description == "" {
			t.Errorf("%s has the name %q and the description %q", name, s.Name, s.Description)
		}
	}
}

func TestNearest(t *testing.T) {
	tests := []struct{ name, want string }{
		{"happypath", "happy-path"},
		{"happy-paht", "happy-path"},
		{"eror", "error"},
		{"lingre", "linger"},
		{"permission", ""},
		{"", ""},
		{strings.Repeat("x", 1000), ""},
	}
	for _, tt := range tests {
		if got := Nearest(tt.name, scripts.Names()); got != tt.want {
			t.Errorf("Nearest(%q) is %q, want %q", tt.name, got, tt.want)
		}
	}
}

// FuzzParse: either a whole script or an error, and what is printed again as
// JSON is the same script.
func FuzzParse(f *testing.F) {
	for _, name := range scripts.Names() {
		data, err := scripts.Read(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := slices.Clone(data)
		s, err := Parse(data)
		if !slices.Equal(before, data) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if s != nil || err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Fatalf("script %v, error %q", s, err)
			}
			return
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("printed as %s: %v", text, err)
		}
		printed, err := json.Marshal(again)
		if err != nil || string(printed) != string(text) {
			t.Fatalf("printed as %s, then as %s (%v)", text, printed, err)
		}
	})
}
