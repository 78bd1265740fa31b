package fakemodel

import "iter"

// Tokens that every answer claims to have used.
const (
	tokensIn  = 120
	tokensOut = 20
)

// chat is OpenAI chat completions.
type chat struct{}

func (chat) said(b object) (list []utterance) {
	for _, m := range objects(b["messages"]) {
		list = append(list, utterance{word(m, "role"), textOf(m["content"])})
	}
	return list
}

func (chat) tools(b object) (list []tool) {
	for _, t := range objects(b["tools"]) {
		f := inner(t, "function")
		list = append(list, tool{name: word(f, "name"), schema: inner(f, "parameters")})
	}
	return list
}

var chatUsage = object{"prompt_tokens": tokensIn, "completion_tokens": tokensOut, "total_tokens": tokensIn + tokensOut}

func (chat) stream(q *query, p plan, id func(string) string, pieces iter.Seq[string], out *events) {
	chunk := func(delta object, finish any) {
		out.send("", object{
			"id": id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": q.model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	if p.marker == "think" {
		chunk(object{"reasoning_content": Thought}, nil)
	}
	for piece := range pieces {
		chunk(object{"content": piece}, nil)
	}
	finish := "stop"
	if c := p.call; c != nil {
		finish = "tool_calls"
		chunk(object{"tool_calls": []object{{
			"index": 0, "id": id("call"), "type": "function",
			"function": object{"name": c.tool.name, "arguments": c.json()},
		}}}, nil)
	}
	chunk(object{}, finish)
	out.send("", object{
		"id": id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": q.model,
		"choices": []object{}, "usage": chatUsage,
	})
	out.send("", "[DONE]")
}

func (chat) whole(q *query, p plan, id func(string) string) object {
	message, finish := object{"role": "assistant", "content": p.all()}, "stop"
	if c := p.call; c != nil {
		finish = "tool_calls"
		message["tool_calls"] = []object{{
			"id": id("call"), "type": "function",
			"function": object{"name": c.tool.name, "arguments": c.json()},
		}}
	}
	return object{
		"id": id("chatcmpl"), "object": "chat.completion", "created": 1, "model": q.model,
		"choices": []object{{"index": 0, "finish_reason": finish, "message": message}}, "usage": chatUsage,
	}
}

// responses is OpenAI responses.
type responses struct{}

func (responses) said(b object) (list []utterance) {
	if text, ok := b["input"].(string); ok {
		return []utterance{{"user", text}}
	}
	for _, m := range objects(b["input"]) {
		switch kind := word(m, "type"); {
		case kind == "function_call_output" || kind == "custom_tool_call_output" || kind == "local_shell_call_output":
			list = append(list, utterance{"tool", textOf(m["output"])})
		case kind == "message" || kind == "":
			list = append(list, utterance{word(m, "role"), textOf(m["content"])})
		}
	}
	return list
}

func (responses) tools(b object) (list []tool) {
	for _, t := range objects(b["tools"]) {
		name, kind := word(t, "name"), word(t, "type")
		if name == "" {
			name = kind
		}
		if kind != "namespace" && kind != "custom" {
			list = append(list, tool{name: name, schema: inner(t, "parameters"), local: kind == "local_shell"})
		}
	}
	return list
}

func responsesCall(c *call, id func(string) string) object {
	if c.tool.local {
		return object{
			"id": id("lsh"), "type": "local_shell_call", "status": "completed", "call_id": id("call"),
			"action": object{"type": "exec", "command": []string{"bash", "-lc", textOf(c.args["command"])}},
		}
	}
	return object{
		"id": id("fc"), "type": "function_call", "status": "completed", "call_id": id("call"),
		"name": c.tool.name, "arguments": c.json(),
	}
}

func responsesMessage(text string, id func(string) string) object {
	part := object{"type": "output_text", "text": text, "annotations": []any{}}
	return object{"id": id("msg"), "type": "message", "status": "completed", "role": "assistant", "content": []object{part}}
}

var responsesUsage = object{
	"input_tokens": tokensIn, "input_tokens_details": object{"cached_tokens": 0},
	"output_tokens": tokensOut, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": tokensIn + tokensOut,
}

func (responses) stream(q *query, p plan, id func(string) string, pieces iter.Seq[string], out *events) {
	seq, index, items := 0, 0, []object{}
	send := func(kind string, o object) {
		o["type"], o["sequence_number"] = kind, seq
		seq++
		out.send(kind, o)
	}
	response := func(status string) object {
		return object{
			"id": id("resp"), "object": "response", "created_at": 1, "status": status, "model": q.model,
			"output": items, "parallel_tool_calls": false, "tools": []any{},
		}
	}
	add := func(begin, end object, between func(index int)) {
		send("response.output_item.added", object{"output_index": index, "item": begin})
		between(index)
		send("response.output_item.done", object{"output_index": index, "item": end})
		items = append(items, end)
		index++
	}
	send("response.created", object{"response": response("in_progress")})
	send("response.in_progress", object{"response": response("in_progress")})
	if p.marker == "think" {
		end := object{"id": id("rs"), "type": "reasoning", "summary": []object{{"type": "summary_text", "text": Thought}}}
		add(object{"id": id("rs"), "type": "reasoning", "summary": []any{}}, end, func(i int) {
			send("response.reasoning_summary_text.delta", object{"item_id": id("rs"), "output_index": i, "summary_index": 0, "delta": Thought})
		})
	}
	text := ""
	message := object{"id": id("msg"), "type": "message", "status": "in_progress", "role": "assistant", "content": []any{}}
	send("response.output_item.added", object{"output_index": index, "item": message})
	send("response.content_part.added", object{"item_id": id("msg"), "output_index": index, "content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}})
	for piece := range pieces {
		text += piece
		send("response.output_text.delta", object{"item_id": id("msg"), "output_index": index, "content_index": 0, "delta": piece})
	}
	send("response.output_text.done", object{"item_id": id("msg"), "output_index": index, "content_index": 0, "text": text})
	done := responsesMessage(text, id)
	send("response.output_item.done", object{"output_index": index, "item": done})
	items = append(items, done)
	index++
	if p.call != nil {
		c := responsesCall(p.call, id)
		add(c, c, func(int) {})
	}
	last := response("completed")
	last["usage"] = responsesUsage
	send("response.completed", object{"response": last})
}

func (responses) whole(q *query, p plan, id func(string) string) object {
	items := []object{responsesMessage(p.all(), id)}
	if p.call != nil {
		items = append(items, responsesCall(p.call, id))
	}
	return object{
		"id": id("resp"), "object": "response", "created_at": 1, "status": "completed", "model": q.model,
		"output": items, "usage": responsesUsage,
	}
}
