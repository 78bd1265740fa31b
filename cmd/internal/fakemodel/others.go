package fakemodel

import (
	"encoding/json"
	"iter"
	"strings"
)

// anthropic is Anthropic messages.
type anthropic struct{}

func (anthropic) said(b object) (list []utterance) {
	for _, m := range objects(b["messages"]) {
		if text, ok := m["content"].(string); ok {
			list = append(list, utterance{word(m, "role"), text})
			continue
		}
		for _, c := range objects(m["content"]) {
			if word(c, "type") == "tool_result" {
				list = append(list, utterance{"tool", textOf(c["content"])})
			} else {
				list = append(list, utterance{word(m, "role"), word(c, "text")})
			}
		}
	}
	return list
}

func (anthropic) tools(b object) (list []tool) {
	for _, t := range objects(b["tools"]) {
		list = append(list, tool{name: word(t, "name"), schema: inner(t, "input_schema")})
	}
	return list
}

func anthropicUsage(out int) object {
	return object{
		"input_tokens": tokensIn, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": out,
	}
}

func stopReason(p plan) string {
	if p.call != nil {
		return "tool_use"
	}
	return "end_turn"
}

func (anthropic) stream(q *query, p plan, id func(string) string, pieces iter.Seq[string], out *events) {
	send := func(kind string, o object) {
		o["type"] = kind
		out.send(kind, o)
	}
	index := 0
	block := func(begin object, fill func(delta func(object))) {
		send("content_block_start", object{"index": index, "content_block": begin})
		fill(func(d object) { send("content_block_delta", object{"index": index, "delta": d}) })
		send("content_block_stop", object{"index": index})
		index++
	}
	send("message_start", object{"message": object{
		"id": id("msg"), "type": "message", "role": "assistant", "model": q.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": anthropicUsage(1),
	}})
	if p.marker == "think" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, func(delta func(object)) {
			delta(object{"type": "thinking_delta", "thinking": Thought})
			delta(object{"type": "signature_delta", "signature": "c2ln"})
		})
	}
	block(object{"type": "text", "text": ""}, func(delta func(object)) {
		for piece := range pieces {
			delta(object{"type": "text_delta", "text": piece})
		}
	})
	if c := p.call; c != nil {
		block(object{"type": "tool_use", "id": id("toolu"), "name": c.tool.name, "input": object{}}, func(delta func(object)) {
			delta(object{"type": "input_json_delta", "partial_json": c.json()})
		})
	}
	send("message_delta", object{
		"delta": object{"stop_reason": stopReason(p), "stop_sequence": nil}, "usage": anthropicUsage(tokensOut),
	})
	send("message_stop", object{})
}

func (anthropic) whole(q *query, p plan, id func(string) string) object {
	content := []object{{"type": "text", "text": p.all()}}
	if c := p.call; c != nil {
		content = append(content, object{"type": "tool_use", "id": id("toolu"), "name": c.tool.name, "input": c.args})
	}
	return object{
		"id": id("msg"), "type": "message", "role": "assistant", "model": q.model, "content": content,
		"stop_reason": stopReason(p), "stop_sequence": nil, "usage": anthropicUsage(tokensOut),
	}
}

// gemini is Gemini's generateContent.
type gemini struct{}

func (gemini) said(b object) (list []utterance) {
	for _, c := range objects(b["contents"]) {
		for _, part := range objects(c["parts"]) {
			switch r := inner(part, "functionResponse"); {
			case r != nil:
				list = append(list, utterance{"tool", textOf(r["response"])})
			case word(c, "role") == "model":
				list = append(list, utterance{"assistant", word(part, "text")})
			default:
				list = append(list, utterance{"user", word(part, "text")})
			}
		}
	}
	return list
}

func (gemini) tools(b object) (list []tool) {
	for _, t := range objects(b["tools"]) {
		for _, f := range objects(t["functionDeclarations"]) {
			schema := inner(f, "parametersJsonSchema")
			if schema == nil {
				schema = inner(f, "parameters")
			}
			list = append(list, tool{name: word(f, "name"), schema: schema})
		}
	}
	return list
}

var geminiUsage = object{"promptTokenCount": tokensIn, "candidatesTokenCount": tokensOut, "totalTokenCount": tokensIn + tokensOut}

func geminiCandidate(q *query, finish string, parts ...object) object {
	candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	return object{"candidates": []object{candidate}, "usageMetadata": geminiUsage, "modelVersion": q.model}
}

func (gemini) stream(q *query, p plan, id func(string) string, pieces iter.Seq[string], out *events) {
	if p.marker == "think" {
		out.send("", geminiCandidate(q, "", object{"text": "**Plan** " + Thought, "thought": true}))
	}
	for piece := range pieces {
		out.send("", geminiCandidate(q, "", object{"text": piece}))
	}
	if c := p.call; c != nil {
		out.send("", geminiCandidate(q, "", object{"functionCall": object{"id": id("fc"), "name": c.tool.name, "args": c.args}}))
	}
	out.send("", geminiCandidate(q, "STOP", object{"text": ""}))
}

// whole answers what the agent asks beside the turn too: there it wants JSON of
// a schema.
func (gemini) whole(q *query, p plan, id func(string) string) object {
	config := inner(q.body, "generationConfig")
	schema := inner(config, "responseJsonSchema")
	if schema == nil {
		schema = inner(config, "responseSchema")
	}
	if schema != nil || word(config, "responseMimeType") == "application/json" {
		raw, err := json.Marshal(filled(schema))
		if err != nil {
			raw = []byte("{}") // cannot be: the values are made here
		}
		return geminiCandidate(q, "STOP", object{"text": string(raw)})
	}
	parts := []object{{"text": p.all()}}
	if c := p.call; c != nil {
		parts = append(parts, object{"functionCall": object{"id": id("fc"), "name": c.tool.name, "args": c.args}})
	}
	return geminiCandidate(q, "STOP", parts...)
}

// filled is an object of a schema.
func filled(schema object) object {
	out := object{}
	for name, s := range inner(schema, "properties") {
		property, _ := s.(object)
		if choices, ok := property["enum"].([]any); ok && len(choices) > 0 {
			out[name] = choices[0]
			continue
		}
		out[name] = filler(strings.ToLower(word(property, "type")))
	}
	return out
}
