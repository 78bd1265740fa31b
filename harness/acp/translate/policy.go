package translate

import (
	"fmt"
	"slices"
	"strings"
)

// Policy decides about the permissions that an agent asks for.
type Policy uint8

const (
	// PolicyAsk passes every one on to the controller.
	PolicyAsk Policy = iota
	// PolicyAllow allows, for the moment.
	PolicyAllow
	// PolicyDeny denies.
	PolicyDeny
	// PolicyAllowReads allows what only reads (read, search, think) and asks
	// for everything else.
	PolicyAllowReads
)

var policyNames = []string{"ask", "allow", "deny", "allow-reads"}

// String is the policy's name.
func (p Policy) String() string { return policyNames[p] }

// PolicyNames lists the names that [ParsePolicy] knows.
func PolicyNames() []string { return slices.Clone(policyNames) }

// ParsePolicy reads the name of a policy.
func ParsePolicy(name string) (Policy, error) {
	i := slices.Index(policyNames, name)
	if i < 0 {
		return 0, fmt.Errorf("expected one of %s, got %q", strings.Join(policyNames, ", "), name)
	}
	return Policy(i), nil
}

// option is one answer that an agent takes to a permission request.
type option struct{ id, name, kind string }

// Kinds of options.
const (
	allowOnce   = "allow_once"
	rejectOnce  = "reject_once"
	rejectAlway = "reject_always"
)

// decide is the policy's answer: an option, or none, which is the outcome
// cancelled; ask leaves it to the controller. An option is chosen by its kind:
// ids and names are the agent's own. allow_always is never chosen here.
func (p Policy) decide(toolKind string, options []option) (o option, ask bool) {
	switch p {
	case PolicyAllow:
		return allowOf(options), false
	case PolicyDeny:
		return ofKind(options, rejectOnce, rejectAlway), false
	case PolicyAllowReads:
		switch toolKind {
		case "read", "search", "think":
			return allowOf(options), false
		}
	}
	return option{}, true
}

// allowOf is the option that allows once; where there is none, one that
// rejects.
func allowOf(options []option) option { return ofKind(options, allowOnce, rejectOnce) }

// ofKind is the first option of the first kind that there is.
func ofKind(options []option, kinds ...string) option {
	for _, kind := range kinds {
		for _, o := range options {
			if o.kind == kind {
				return o
			}
		}
	}
	return option{}
}

// chosen reads the controller's answer: the id or the kind of an option, or a
// plain word. Anything else denies.
func chosen(options []option, answer string) option {
	for _, o := range options {
		if o.id == answer {
			return o
		}
	}
	if answer != "" {
		if o := ofKind(options, answer); o.id != "" {
			return o
		}
	}
	switch answer {
	case "allow", "allowed", "approve", "approved", "yes":
		return allowOf(options)
	case "cancel", "cancelled":
		return option{}
	}
	return ofKind(options, rejectOnce)
}
