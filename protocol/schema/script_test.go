package schema_test

import (
	"reflect"
	"testing"

	"github.com/invopop/jsonschema"

	"prp/harness/fake"
)

// scriptDocument describes a script of the fake harness. The bounds of its
// members stand in the tags of package fake.
func scriptDocument() document {
	doc := document{
		title: "Fake harness script", text: "A script that the fake harness plays. Unknown members are errors.",
		root: fake.Script{},
	}
	for _, kind := range fake.StepKinds() {
		doc.parts = append(doc.parts, fake.StepTypes()[kind])
	}
	doc.finish = func(root *jsonschema.Schema) {
		step := &jsonschema.Schema{Type: "object", Description: "One step; kind says which members it has."}
		kinds := &jsonschema.Schema{Description: "What the step does."}
		oneOf(fake.StepKinds()...)(kinds)
		step.Properties = properties("kind", kinds).Properties
		needs(step, "kind")
		for _, kind := range fake.StepKinds() {
			def := typeName(reflect.TypeOf(fake.StepTypes()[kind]))
			when(step, "kind", constant(kind), ref(def))
		}
		root.Definitions["Step"] = step
	}
	return doc
}

// stepType is the interface of a step; each kind of step has its own struct.
var stepType = reflect.TypeFor[fake.Step]()

// scriptTexts describes the members of scripts by name, or by type and name
// where a name has two meanings.
var scriptTexts = map[string]string{
	"Script.schema":       "Name of the schema of the script.",
	"Script.name":         "Name of the script.",
	"Script.description":  "What the script shows, in one line.",
	"Script.no_handshake": "Starts with the steps at once: no ready, no events of the start, no command awaited.",
	"Script.steps":        "The steps, in order.",
	"kind":                "What the step does.",
	"milliseconds":        "How long to wait.",
	"stream":              "The stream that is meant.",
	"text":                "The text as it is.",
	"StepStderr.text":     "The text as it is; {n} is the number of the repetition.",
	"event_type":          "The type of the event.",
	"turn_id":             "The turn; absent: the one that was started last.",
	"item_id":             "The item.",
	"payload":             "The object that is sent, as it is.",
	"request":             "The request that is sent, as it is.",
	"request_id":          "The request whose answer is awaited.",
	"command_type":        "The command that is awaited.",
	"hang_at_end":         "Whether the end of stdin makes the script hang instead of ending it.",
	"code":                "Exit status.",
	"base64":              "The bytes in base64, in place of text.",
	"messages":            "How many messages the bytes hold; the numbers of the next ones skip them.",
	"times":               "How often.",
	"bytes":               "How many bytes.",
	"newline":             "Whether the bytes are lines or have no newline at all.",
	"steps":               "The steps that are meant.",
	"signal":              "Number of the signal.",
	"escape":              "How the worker leaves the harness's process group.",
	"ignore_sigterm":      "Whether the worker ignores SIGTERM.",
	"hold_stdout":         "Whether the worker keeps stdout open.",
	"hold_stderr":         "Whether the worker keeps stderr open.",
	"clear_env":           "Whether the worker has no environment.",
	"stopped":             "Whether the worker stops itself.",
	"term_forks":          "Whether the worker answers SIGTERM with five more workers.",
	"fork_chain":          "Whether the worker starts the next one and exits, for ever.",
	"writes_every_ms":     "Interval at which the worker writes an event once the fake has exited.",
	"writes_from_seq":     "Number of the worker's first message.",
	"lifetime_ms":         "After how long the worker ends by itself.",
}

// tightenStep describes the members of a type of a script and closes it.
func tightenStep(t *testing.T, typ string, s *jsonschema.Schema) {
	t.Helper()
	s.AdditionalProperties = jsonschema.FalseSchema
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		text, ok := scriptTexts[typ+"."+pair.Key]
		if !ok {
			text, ok = scriptTexts[pair.Key]
		}
		if !ok {
			t.Errorf("member %q of %s has no description in scriptTexts", pair.Key, typ)
		}
		pair.Value.Description = text
	}
}
