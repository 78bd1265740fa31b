package fakemodel

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// object is JSON as it is handled here.
type object = map[string]any

// Awkward is the answer to [[utf8]].
const Awkward = "snow \u2603 emoji \U0001F600 nul\x00 ls\u2028 ps\u2029 bidi\u202e quotes \u201cq\u201d \\ \"x\" </script>"

// Hello is the answer to [[text]].
const Hello = "Hello from the fake model. This is a scripted answer."

// Thought is the reasoning of [[think]].
const Thought = "Thinking about it."

// ToolDone begins the answer after a tool has run.
const ToolDone = "Tool finished."

// query is a request of an agent.
type query struct {
	body      object
	dialect   dialect
	model     string
	streaming bool
}

// dialect is one of the protocols.
type dialect interface {
	// said lists what was said so far, in order.
	said(b object) []utterance
	// tools lists the tools that the agent offers.
	tools(b object) []tool
	stream(q *query, p plan, id func(string) string, pieces iter.Seq[string], out *events)
	whole(q *query, p plan, id func(string) string) object
}

// utterance is one part of a conversation; who is user, assistant or tool.
type utterance struct{ who, text string }

type tool struct {
	name   string
	schema object
	local  bool // a shell call of a kind of its own
}

// call is a tool call of the answer.
type call struct {
	tool tool
	args object
}

func (c *call) json() string {
	raw, err := json.Marshal(c.args)
	if err != nil {
		return "{}" // cannot be: the arguments are made here
	}
	return string(raw)
}

// plan is what the answer is.
type plan struct {
	marker, arg string
	key         string // of the marker and the text that it stands in
	text        string
	call        *call
}

// route finds the dialect by the path.
func (q *query) route(path string) bool {
	q.streaming, _ = q.body["stream"].(bool)
	q.model, _ = q.body["model"].(string)
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		q.dialect = chat{}
	case strings.HasSuffix(path, "/responses"):
		q.dialect = responses{}
	case strings.HasSuffix(path, "/messages"):
		q.dialect = anthropic{}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		q.dialect, q.streaming = gemini{}, strings.HasSuffix(path, ":streamGenerateContent")
	default:
		return false
	}
	if q.model == "" {
		q.model = "fake-model"
	}
	return true
}

var markers = regexp.MustCompile(`(?s)\[\[(\w+)(?::(.*?))?\]\]`)

// plan reads the last marker of the user, and whether its tool has run.
func (q *query) plan() plan {
	p := plan{marker: "text", text: Hello}
	results, after := []string{}, false
	for _, u := range q.dialect.said(q.body) {
		switch u.who {
		case "user":
			if found := markers.FindAllStringSubmatch(u.text, -1); found != nil {
				last := found[len(found)-1]
				p.marker, p.arg, p.key = last[1], last[2], last[0]+u.text
				results, after = nil, true
			}
		case "tool":
			if after {
				results = append(results, u.text)
			}
		}
	}
	if p.marker == "tool" {
		q.planTool(&p, results)
	}
	return p
}

// shells are the names that agents give their shell tools.
var shells = []string{
	"exec_command", "shell_command", "local_shell", "shell", "bash", "Bash", "run_shell_command",
	"execute_command", "run_command", "run_in_terminal", "terminal", "execute",
}

func (q *query) planTool(p *plan, results []string) {
	tools := q.dialect.tools(q.body)
	i := slices.IndexFunc(tools, func(t tool) bool { return slices.Contains(shells, t.name) })
	switch {
	case len(results) > 0:
		last := []rune(results[len(results)-1])
		p.text = ToolDone + " Result began: " + string(last[:min(len(last), 120)])
	case i >= 0:
		p.text = "I will use a tool. "
		p.call = &call{tool: tools[i], args: shellArgs(tools[i], p.arg)}
	default:
		p.text = "A title" // a request beside the turn, such as one for a title
	}
}

// shellArgs fills the arguments that a shell tool asks for.
func shellArgs(t tool, command string) object {
	properties, _ := t.schema["properties"].(object)
	required, _ := t.schema["required"].([]any)
	args := object{}
	for name, s := range properties {
		schema, _ := s.(object)
		kind := strings.ToLower(fmt.Sprint(schema["type"]))
		switch {
		case name == "command" || name == "cmd":
			if args[name] = command; kind == "array" {
				args[name] = []string{"bash", "-lc", command}
			}
		case name == "description":
			args[name] = "scripted call"
		case slices.Contains(required, any(name)):
			args[name] = filler(kind)
		}
	}
	if len(args) == 0 {
		args["command"] = command
	}
	return args
}

func filler(kind string) any {
	switch kind {
	case "boolean":
		return false
	case "number", "integer":
		return 30
	case "array":
		return []any{}
	}
	return "x"
}

// hugePiece is the size of a piece of [[huge:N]], in bytes.
const hugePiece = 8 << 10

// Filler is a text of n bytes that does not repeat itself, since agents take
// one that does for a model that has lost its way.
func Filler(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%07d ", i)
	}
	return b.String()[:max(n, 0)]
}

// pieces cuts the answer as it is streamed.
func (p plan) pieces() iter.Seq[string] {
	n, _ := strconv.Atoi(p.arg)
	return func(yield func(string) bool) {
		switch p.marker {
		case "huge":
			for text := Filler(n); text != ""; {
				size := min(len(text), hugePiece)
				if !yield(text[:size]) {
					return
				}
				text = text[size:]
			}
		case "one":
			yield(Filler(n))
		case "utf8":
			yield(Awkward)
		case "slow":
			for i := range n {
				if !yield(fmt.Sprintf("tick %d ", i)) {
					return
				}
			}
		default:
			for _, word := range strings.SplitAfter(p.text, " ") {
				if !yield(word) {
					return
				}
			}
		}
	}
}

// all is the answer in one piece.
func (p plan) all() string {
	return strings.Join(slices.Collect(p.pieces()), "")
}

// textOf is the text in content of whatever shape.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, textOf(e))
		}
		return strings.Join(parts, "\n")
	case object:
		if t, ok := v["text"]; ok {
			return textOf(t)
		}
		if c, ok := v["content"]; ok {
			return textOf(c)
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}

// objects are the objects of a list.
func objects(v any) []object {
	list, _ := v.([]any)
	var out []object
	for _, e := range list {
		if o, ok := e.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

func word(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

func inner(o object, name string) object {
	in, _ := o[name].(object)
	return in
}
