//go:build unix

package worker

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"prp/controller/devserver"
)

var update = flag.Bool("update", false, "write policy.schema.json from the types")

// TestPolicySchema: the schema is that of the types, and says what ParsePolicy
// does.
func TestPolicySchema(t *testing.T) {
	s := (&jsonschema.Reflector{DoNotReference: true}).Reflect(&Policy{})
	s.ID, s.Title = "urn:prp:schema:worker-policy:v1", "Policy of a local worker"
	s.Description = "What a server may have a local worker do without asking, after an approval, or never."
	want, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("policy.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, PolicySchema()) {
		t.Fatal("policy.schema.json is stale; run go test ./controller/worker -run TestPolicySchema -update")
	}
	doc, err := validator.UnmarshalJSON(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource("policy", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy")
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"schema":"paperclip.worker_policy.v1","rules":[`
	for text, valid := range map[string]bool{
		head + `]}`: true,
		head + `{"class":"allow","tools":["command.run"],"argv":["go","test"],"paths":["src"]}]}`: true,
		head + `{"class":"maybe"}]}`:                         false,
		head + `{"class":"allow","tool":"file.read"}]}`:      false,
		head + `{"tools":["file.read"]}]}`:                   false,
		`{"schema":"paperclip.worker_policy.v2","rules":[]}`: false,
		`[]`: false,
	} {
		_, err := ParsePolicy([]byte(text))
		doc, _ := validator.UnmarshalJSON(strings.NewReader(text))
		if (err == nil) != valid || (schema.Validate(doc) == nil) != valid {
			t.Errorf("%s: %v, by the schema %v; want valid %v", text, err, schema.Validate(doc), valid)
		}
	}
	for _, text := range []string{
		head + `{"class":"deny","tools":["file.chmod"]}]}`, head + `{"class":"deny","argv":["rm"]}]}`, head + `]} {}`,
		head + `{"class":"allow","class":"deny"}]}`, head + `{"Class":"allow"}]}`, head + `{"class":"deny","Tools":["file.read"]}]}`,
	} {
		if _, err := ParsePolicy([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestDefaultPolicy: what only looks is allowed, all else refused.
func TestDefaultPolicy(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Policy = Policy{}
	p.start()
	p.write("f", "x")
	for tool, args := range map[string]string{
		ToolPing: `{}`, ToolCapabilities: `{}`, ToolRead: `{"path":"f"}`, ToolSearch: `{"query":"x"}`, ToolCancel: `{"task_id":"none"}`,
	} {
		if r := p.do(tool, args); r.Status != StatusSuccess {
			t.Errorf("%s: %s", tool, r.Raw)
		}
	}
	for tool, args := range map[string]string{
		ToolWrite: `{"path":"g","content":"x"}`, ToolPatch: `{"patch":"*** Begin Patch\n*** Delete File: f\n*** End Patch"}`, ToolRun: `{"argv":["touch","g"]}`,
	} {
		p.refused(tool, p.do(tool, args, `,"policy_context":{"approved":true,"approval_id":"a"}`), CodePolicyDenied)
	}
	if p.read("f") != "x" || p.read("g") != "" {
		t.Error("a denied command had an effect")
	}
}

// TestPolicyRules: row 16. By tool, path and argv prefix; the first rule that
// matches, the strictest of several files.
func TestPolicyRules(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	policy, err := ParsePolicy([]byte(`{"schema":"paperclip.worker_policy.v1","rules":[
		{"class":"deny","paths":["locked"]},
		{"class":"allow","tools":["file.write","file.apply_patch"],"paths":["free"]},
		{"class":"approve","tools":["file.write","file.apply_patch"]},
		{"class":"allow","tools":["command.run"],"argv":["sh","-c"],"paths":["free"]},
		{"class":"deny","tools":["command.run"],"argv":["sh"]},
		{"class":"allow","tools":["command.run"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p.cfg.Policy = policy
	p.write("locked/f", "x")
	p.write("free/f", "x")
	p.write("f", "x")
	os.Symlink("../locked", p.config.Root+"/free/link")
	p.start()
	for args, want := range map[string]Code{
		ToolRead + ` {"path":"locked/f"}`:                                   CodePolicyDenied,
		ToolRead + ` {"path":"free/link/f"}`:                                CodePolicyDenied,
		ToolRead + ` {"path":"f"}`:                                          "",
		ToolWrite + ` {"path":"free/g","content":""}`:                       "",
		ToolWrite + ` {"path":"freedom","content":""}`:                      CodeApprovalRequired,
		ToolWrite + ` {"path":"free/../f","content":"","mode":"overwrite"}`: CodeApprovalRequired,
		ToolPatch + ` {"patch":"*** Begin Patch\n*** Add File: free/n\n+x\n*** Add File: n\n+x\n*** End Patch"}`:        CodeApprovalRequired,
		ToolPatch + ` {"patch":"*** Begin Patch\n*** Add File: free/n\n+x\n*** Add File: locked/n\n+x\n*** End Patch"}`: CodePolicyDenied,
		ToolRun + ` {"argv":["sh","-c","true"]}`:           CodePolicyDenied,
		ToolRun + ` {"command":"sh -c true","cwd":"free"}`: "",
		ToolRun + ` {"argv":["true"]}`:                     "",
	} {
		tool, args, _ := strings.Cut(args, " ")
		r := p.do(tool, args)
		if want == "" && r.Status != StatusSuccess || want != "" && (r.Error == nil || r.Error.Code != want) {
			t.Errorf("%s %s: %s, want %s", tool, args, r.Raw, want)
		}
	}
}

// TestPolicyEnvironment: row 16. What is allowed by its first words is not made
// another program by the variables of the command, but for those that the rule
// names; a variable takes no command out of a rule that is stricter.
func TestPolicyEnvironment(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	policy, err := ParsePolicy([]byte(`{"schema":"paperclip.worker_policy.v1","rules":[
		{"class":"allow","tools":["command.run"],"argv":["tool","-v"],"env":["LANG"]},
		{"class":"approve","tools":["command.run"],"argv":["true"]},
		{"class":"deny","tools":["command.run"],"argv":["false"]},
		{"class":"allow","tools":["command.run"],"paths":["free"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p.cfg.Policy = policy
	p.write("free/f", "")
	p.write("tool", "#!/bin/sh\necho > had\n")
	if err := os.Chmod(p.config.Root+"/tool", 0o755); err != nil {
		t.Fatal(err)
	}
	p.start()
	for args, want := range map[string]Code{
		`{"argv":["tool","-v"],"env":{"PATH":".:/bin"}}`:                  CodePolicyDenied,
		`{"argv":["tool","-v"],"env":{"LANG":"C","LD_PRELOAD":"./x.so"}}`: CodePolicyDenied,
		`{"argv":["tool","-v"],"env":{"LANG":"C"}}`:                       CodeNotStarted,
		`{"argv":["tool","-v"]}`:                                          CodeNotStarted,
		`{"argv":["true"],"env":{"A":"b"}}`:                               CodeApprovalRequired,
		`{"argv":["false"],"env":{"A":"b"},"cwd":"free"}`:                 CodePolicyDenied,
		`{"argv":["sh","-c","exit 0"],"env":{"A":"b"},"cwd":"free"}`:      "",
	} {
		r := p.do(ToolRun, args)
		if want == "" && r.Status != StatusSuccess || want != "" && (r.Error == nil || r.Error.Code != want) {
			t.Errorf("%s: %s, want %s", args, r.Raw, want)
		}
	}
	if p.read("had") != "" {
		t.Error("another program was run")
	}
	for _, rule := range []string{`"class":"allow","env":["A"]`, `"class":"deny","tools":["command.run"],"argv":["x"],"env":["A"]`} {
		if _, err := ParsePolicy([]byte(`{"schema":"paperclip.worker_policy.v1","rules":[{` + rule + `}]}`)); err == nil || !strings.Contains(err.Error(), "rules[0].env") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestPolicyHidesFromSearch: row 16. What may not be read is not found either.
func TestPolicyHidesFromSearch(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Policy = Policy{Rules: []PolicyRule{{Class: ClassAllow, Paths: []string{"locked/open"}}, {Class: ClassDeny, Paths: []string{"locked"}}}}
	for _, name := range []string{"f", "locked/f", "locked/open/f"} {
		p.write(name, "x\n")
	}
	p.start()
	for args, want := range map[string]string{
		`{"query":"x"}`: "[f locked/open/f] 1", `{"query":"f","kind":"name"}`: "[f locked/open/f] 1", `{"query":"x","path":"locked/open"}`: "[locked/open/f] 0",
	} {
		r := p.do(ToolSearch, args)
		var found []string
		matches, _ := r.Fields["matches"].([]any)
		for _, m := range matches {
			found = append(found, m.(map[string]any)["file"].(string))
		}
		if got := fmt.Sprint(found, " ", r.Fields["skipped"]); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	p.refused("a denied folder", p.do(ToolSearch, `{"query":"x","path":"locked"}`), CodePolicyDenied)
	p.refused("a denied file", p.do(ToolSearch, `{"query":"x","path":"locked/f"}`), CodePolicyDenied)
}

// TestOwnState: row 15. The state of the worker is out of reach, also inside a
// root and whatever the policy says: a used approval could be struck out of it.
func TestOwnState(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Dir = filepath.Join(p.config.Root, "state")
	p.cfg.Policy = Policy{Rules: []PolicyRule{{Class: ClassDeny, Paths: []string{"state"}, Tools: []string{ToolRead}}, {Class: ClassAllow}}}
	p.write("f", "approval\n")
	p.start()
	if err := os.Symlink("state", filepath.Join(p.config.Root, "link")); err != nil {
		t.Fatal(err)
	}
	for args, code := range map[string]Code{
		ToolRead + ` {"path":"state/approvals.jsonl"}`:                                       "PATH_NOT_ALLOWED",
		ToolWrite + ` {"path":"link/approvals.jsonl","mode":"overwrite","content":""}`:       "PATH_NOT_ALLOWED",
		ToolPatch + ` {"patch":"*** Begin Patch\n*** Add File: state/n\n+x\n*** End Patch"}`: "PATH_NOT_ALLOWED",
		ToolSearch + ` {"path":"state","query":"x"}`:                                         "PATH_NOT_ALLOWED",
		ToolRun + ` {"argv":["true"],"cwd":"state"}`:                                         "PATH_NOT_ALLOWED",
	} {
		tool, args, _ := strings.Cut(args, " ")
		p.refused(tool+" "+args, p.do(tool, args), code)
	}
	r := p.do(ToolSearch, `{"query":"a","kind":"regex"}`)
	if found, _ := r.Fields["matches"].([]any); len(found) != 1 {
		t.Errorf("the search found %s", r.Raw)
	}
}

// TestApproval: row 16. An approval is for one command and its content, also
// after a restart.
func TestApproval(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Policy = Policy{Rules: []PolicyRule{{Class: ClassApprove}}}
	p.start()
	args := func(n int) string { return fmt.Sprintf(`{"path":"f%d","content":"x"}`, n) }
	context := func(s string) string { return `,"policy_context":` + s }
	first := p.do(ToolWrite, args(1))
	p.refused("without", first, CodeApprovalRequired)
	digest, _ := first.Error.Details["digest"].(string)
	p.refused("not approved", p.do(ToolWrite, args(1), context(`{"approved":false,"approval_id":"a"}`)), CodeApprovalRequired)
	p.refused("no id", p.do(ToolWrite, args(1), context(`{"approved":true}`)), CodeApprovalRequired)
	p.refused("another content", p.do(ToolWrite, args(2), context(fmt.Sprintf(`{"approved":true,"approval_id":"a","digest":%q}`, digest))), CodeApprovalInvalid)
	if r := p.do(ToolWrite, args(1), context(fmt.Sprintf(`{"approved":true,"approval_id":"a","digest":%q}`, digest))); r.Status != StatusSuccess {
		t.Errorf("approved: %s", r.Raw)
	}
	p.refused("used again", p.do(ToolWrite, args(1), context(`{"approved":true,"approval_id":"a"}`)), CodeApprovalInvalid)
	p.end()
	p.start()
	p.refused("used after a restart", p.do(ToolWrite, args(3), context(`{"approved":true,"approval_id":"a"}`)), CodeApprovalInvalid)
	if r := p.do(ToolWrite, args(3), context(`{"approved":true,"approval_id":"b"}`)); r.Status != StatusSuccess {
		t.Errorf("another approval: %s", r.Raw)
	}
}

// TestPolicyCase: row 16. What is denied is denied by any spelling that a file
// system may take for the same; what is allowed is allowed as it is spelled.
func TestPolicyCase(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	p.cfg.Policy = Policy{Rules: []PolicyRule{
		{Class: ClassDeny, Paths: []string{"Locked", "secret"}},
		{Class: ClassApprove, Paths: []string{"asked"}},
		{Class: ClassAllow, Paths: []string{"Free"}},
	}}
	for _, name := range []string{"locked/f", "Locked/f", "ASKED/f"} {
		p.write(name, "text\n")
	}
	for _, name := range []string{"Free", "free"} {
		if err := os.MkdirAll(filepath.Join(p.config.Root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.start()
	for path, code := range map[string]Code{"locked/f": CodePolicyDenied, "Locked/f": CodePolicyDenied, "LOCKED/new": CodePolicyDenied, "\u017fecret/f": CodePolicyDenied, "loc\u212aed/f": CodePolicyDenied, "ASKED/f": CodeApprovalRequired} {
		p.refused("read "+path, p.do(ToolRead, fmt.Sprintf(`{"path":%q}`, path)), code)
	}
	if r := p.do(ToolSearch, `{"query":"text"}`); len(r.Fields["matches"].([]any)) != 0 || r.Fields["skipped"] != 3.0 {
		t.Errorf("the search says %s", r.Raw)
	}
	if r := p.do(ToolWrite, `{"path":"Free/new","content":""}`); r.Status != StatusSuccess {
		t.Errorf("what is allowed: %s", r.Raw)
	}
	denied := p.do(ToolWrite, `{"path":"free/new2","content":""}`)
	p.refused("another spelling of it", denied, CodePolicyDenied)
	if denied.Error != nil && !strings.Contains(denied.Error.Message, "--policy") {
		t.Errorf("the message does not say what to do: %s", denied.Error.Message)
	}
}
