package fakemodel

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask posts a request and returns the status and the body.
func ask(t *testing.T, s *Server, path, body string) (int, string) {
	t.Helper()
	r, err := http.Post(s.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// protocols are the four, each with a path and a body for a text of the user.
var protocols = map[string]struct {
	path, stream string
	body         func(text string, stream bool) string
}{
	"chat": {"/v1/chat/completions", "/v1/chat/completions", func(text string, stream bool) string {
		return fmt.Sprintf(`{"stream":%v,"messages":[{"role":"user","content":%q}],"tools":[{"function":{"name":"bash","parameters":{"properties":{"command":{"type":"string"}}}}}]}`, stream, text)
	}},
	"responses": {"/v1/responses", "/v1/responses", func(text string, stream bool) string {
		return fmt.Sprintf(`{"stream":%v,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}],"tools":[{"type":"function","name":"exec_command","parameters":{"properties":{"cmd":{"type":"string"}}}}]}`, stream, text)
	}},
	"anthropic": {"/v1/messages", "/v1/messages", func(text string, stream bool) string {
		return fmt.Sprintf(`{"stream":%v,"messages":[{"role":"user","content":[{"type":"text","text":%q}]}],"tools":[{"name":"Bash","input_schema":{"properties":{"command":{"type":"string"}}}}]}`, stream, text)
	}},
	"gemini": {"/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent", func(text string, stream bool) string {
		return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":%q}]}],"tools":[{"functionDeclarations":[{"name":"run_shell_command","parameters":{"properties":{"command":{"type":"STRING"}}}}]}]}`, text)
	}},
}

// TestEveryDialect: each protocol gives the text, whole and streamed, and each
// line of a stream is JSON.
func TestEveryDialect(t *testing.T) {
	s := start(t)
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			status, whole := ask(t, s, p.path, p.body("hi [[one:9]]", false))
			if status != 200 || !json.Valid([]byte(whole)) || !strings.Contains(whole, `"0000000 0"`) {
				t.Errorf("%d %s", status, whole)
			}
			_, stream := ask(t, s, p.stream, p.body("hi [[text]]", true))
			var text strings.Builder
			lines := bufio.NewScanner(strings.NewReader(stream))
			for lines.Scan() {
				data, ok := strings.CutPrefix(lines.Text(), "data: ")
				if !ok || data == "[DONE]" {
					continue
				}
				if !json.Valid([]byte(data)) {
					t.Fatalf("no JSON: %s", data)
				}
				text.WriteString(data)
			}
			for word := range strings.FieldsSeq(Hello) {
				if !strings.Contains(text.String(), word) {
					t.Errorf("%q is not in the stream", word)
				}
			}
			_, call := ask(t, s, p.stream, p.body("go [[tool:echo 1; ls]]", true))
			if !strings.Contains(call, "echo 1; ls") {
				t.Errorf("no tool call in %s", call)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	s := start(t)
	p := protocols["chat"]
	for i, want := range []int{503, 503, 200} {
		if status, _ := ask(t, s, p.path, p.body("[[error:503:2]]", false)); status != want {
			t.Errorf("answer %d has status %d, want %d", i, status, want)
		}
	}
	for range 3 {
		if status, _ := ask(t, s, p.path, p.body("[[error:500]]", false)); status != 500 {
			t.Errorf("status %d, want 500", status)
		}
	}
	if s.Answers() != 6 {
		t.Errorf("%d answers", s.Answers())
	}
}

// TestToolOnce: after the result of a tool comes a text, no second call.
func TestToolOnce(t *testing.T) {
	s := start(t)
	_, answer := ask(t, s, "/v1/chat/completions", `{"messages":[{"role":"user","content":"[[tool:ls]]"},{"role":"tool","content":"made.txt"}],"tools":[{"function":{"name":"bash"}}]}`)
	if !strings.Contains(answer, ToolDone) || !strings.Contains(answer, "made.txt") || strings.Contains(answer, "tool_calls") {
		t.Errorf("the answer is %s", answer)
	}
}

func TestOtherPaths(t *testing.T) {
	s := start(t)
	if status, _ := ask(t, s, "/v1/messages/count_tokens", "{}"); status != 200 {
		t.Errorf("count_tokens: %d", status)
	}
	if status, _ := ask(t, s, "/telemetry", "{}"); status != 404 {
		t.Errorf("an unknown path: %d", status)
	}
}
