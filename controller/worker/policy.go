package worker

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"prp/controller/files"
)

// SchemaPolicy is the schema of a policy file.
const SchemaPolicy = "paperclip.worker_policy.v1"

// policySchema is the JSON Schema of a policy file.
//
//go:embed policy.schema.json
var policySchema []byte

// PolicySchema is the JSON Schema (draft 2020-12) of a policy file. The slice is
// the caller's.
func PolicySchema() []byte { return bytes.Clone(policySchema) }

// Class is what a policy says of a command (row 16).
type Class string

// Classes, from the mildest on.
const (
	ClassAllow   Class = "allow"
	ClassApprove Class = "approve"
	ClassDeny    Class = "deny"
)

// strictness orders the classes: of several, the strictest counts.
var strictness = []Class{ClassAllow, ClassApprove, ClassDeny}

// Policy says which commands are allowed. The zero value allows what only looks.
type Policy struct {
	Schema string `json:"schema" jsonschema:"enum=paperclip.worker_policy.v1,description=Says which format this file has."`
	// Rules are asked in order; the first that matches decides.
	Rules []PolicyRule `json:"rules" jsonschema:"description=Asked in order: the first that matches decides. Without one what only looks is allowed and all else denied."`
}

// PolicyRule is one rule. Every member that is given has to match.
type PolicyRule struct {
	Class Class `json:"class" jsonschema:"enum=allow,enum=approve,enum=deny,description=What is done with a command that every other member of the rule matches."`
	// Tools are names of tools; none is every tool.
	Tools []string `json:"tools,omitempty" jsonschema:"description=Names of tools; none is every tool."`
	// Paths match a file that is one of them or below it: absolute, or
	// relative to the first root. For command.run it is the working folder. A
	// rule that does not allow also matches them in upper or lower case.
	Paths []string `json:"paths,omitempty" jsonschema:"description=Files or folders with all that is below: absolute or relative to the first root. For command.run it is the working folder. A rule that denies or asks also matches them in upper or lower case."`
	// Argv is how the words of a command have to begin.
	Argv []string `json:"argv,omitempty" jsonschema:"description=The first words of the command; only with tools command.run."`
	// Env are variables that the command may set. Since PATH and others decide
	// what the words mean, a rule of the class allow with Argv does not match a
	// command that sets another one.
	Env []string `json:"env,omitempty" jsonschema:"description=Names of variables that a command which is allowed by its first words may set; only with argv. A command that sets another one is not matched."`
}

// looking are the tools that are allowed where no rule says otherwise.
var looking = []string{ToolPing, ToolCapabilities, ToolRead, ToolSearch, ToolStatus, ToolCancel}

// ParsePolicy reads a policy file strictly.
func ParsePolicy(text []byte) (Policy, error) {
	var p Policy
	if err := decodeStrict(text, &p, "policy"); err != nil {
		return Policy{}, err
	}
	if p.Schema != SchemaPolicy {
		return Policy{}, fmt.Errorf("policy: schema: expected %q, got %q", SchemaPolicy, p.Schema)
	}
	for i, r := range p.Rules {
		if !slices.Contains(strictness, r.Class) {
			return Policy{}, fmt.Errorf("policy: rules[%d].class: expected one of %q, got %q", i, strictness, r.Class)
		}
		for _, tool := range r.Tools {
			if !slices.Contains(Tools(), tool) {
				return Policy{}, fmt.Errorf("policy: rules[%d].tools: expected a tool, got %q", i, tool)
			}
		}
		if len(r.Argv) > 0 && (len(r.Tools) != 1 || r.Tools[0] != ToolRun) {
			return Policy{}, fmt.Errorf("policy: rules[%d].argv: expected it with tools [%q] only", i, ToolRun)
		}
		if len(r.Env) > 0 && (len(r.Argv) == 0 || r.Class != ClassAllow) {
			return Policy{}, fmt.Errorf("policy: rules[%d].env: expected it with argv and the class %q only", i, ClassAllow)
		}
	}
	return p, nil
}

// subject is what a command would touch.
type subject struct {
	tool  string
	paths []string // resolved
	argv  []string
	env   []string // names
}

// resolved gives the rules absolute paths, with symlinks resolved where they
// exist, as those of a subject are.
func (p Policy) resolved(resolve func(string) (string, error)) (Policy, error) {
	out := Policy{Schema: p.Schema}
	for i, r := range p.Rules {
		var paths []string
		for _, path := range r.Paths {
			real, err := resolve(path)
			if err != nil {
				return Policy{}, fmt.Errorf("policy: rules[%d].paths: %w", i, err)
			}
			paths = append(paths, real)
		}
		r.Paths = paths
		out.Rules = append(out.Rules, r)
	}
	return out, nil
}

// class is the strictest class of all paths of a subject.
func (p Policy) class(s subject) Class {
	paths := s.paths
	if len(paths) == 0 {
		paths = []string{""}
	}
	strictest := 0
	for _, path := range paths {
		strictest = max(strictest, slices.Index(strictness, p.classOf(s, path)))
	}
	return strictness[strictest]
}

func (p Policy) classOf(s subject, path string) Class {
	for _, r := range p.Rules {
		if r.matches(s, path) {
			return r.Class
		}
	}
	if slices.Contains(looking, s.tool) {
		return ClassAllow
	}
	return ClassDeny
}

// hidden tells which files below a path a search does not look into: those of a
// stricter class than the path itself. Nil is none.
func (p Policy) hidden(path string) func(string) bool {
	if !slices.ContainsFunc(p.Rules, func(r PolicyRule) bool { return len(r.Paths) > 0 }) {
		return nil
	}
	allowed := slices.Index(strictness, p.class(subject{tool: ToolSearch, paths: []string{path}}))
	return func(file string) bool {
		return slices.Index(strictness, p.classOf(subject{tool: ToolSearch}, file)) > allowed
	}
}

func (r PolicyRule) matches(s subject, path string) bool {
	if len(r.Tools) > 0 && !slices.Contains(r.Tools, s.tool) {
		return false
	}
	below := func(dir string) bool { return path != "" && files.Within(dir, path, r.Class != ClassAllow) }
	if len(r.Paths) > 0 && !slices.ContainsFunc(r.Paths, below) {
		return false
	}
	other := func(name string) bool { return !slices.Contains(r.Env, name) }
	if len(r.Argv) > 0 && r.Class == ClassAllow && slices.ContainsFunc(s.env, other) {
		return false
	}
	return len(r.Argv) <= len(s.argv) && slices.Equal(r.Argv, s.argv[:len(r.Argv)])
}

// approvals binds each approval to the one command that used it.
type approvals struct {
	mu   sync.Mutex
	used map[string]string // approval id to command id and content
}

// check is nil where a command may be executed. Keep records the use of an
// approval; it is called before the command is.
func (a *approvals) check(c *Command, class Class, keep func(id, use string) error) *Error {
	switch {
	case class == ClassAllow:
		return nil
	case class == ClassDeny:
		e := fault(CodePolicyDenied, "the local policy denies this %s; the worker's --policy says what is allowed", c.Tool)
		e.Details["tool"] = c.Tool
		return e
	case !c.Policy.Approved || c.Policy.ApprovalID == "":
		e := fault(CodeApprovalRequired, "the local policy asks for an approval of this %s: send it again with policy_context.approved and an approval_id", c.Tool)
		e.Details["tool"], e.Details["digest"] = c.Tool, c.content
		return e
	}
	use := c.CommandID + " " + c.content
	a.mu.Lock()
	defer a.mu.Unlock()
	if before, ok := a.used[c.Policy.ApprovalID]; ok && before != use || c.Policy.Digest != "" && c.Policy.Digest != c.content {
		e := fault(CodeApprovalInvalid, "the approval %q is for another command", c.Policy.ApprovalID)
		e.Details["field"], e.Details["digest"] = "policy_context.approval_id", c.content
		return e
	}
	if err := keep(c.Policy.ApprovalID, use); err != nil {
		return fault(CodeInternal, "the approval cannot be recorded: %s", err)
	}
	a.used[c.Policy.ApprovalID] = use
	return nil
}
