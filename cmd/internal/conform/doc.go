// Package conform tries an agent: it plays one table of cases against it, each
// a whole run with a real runner and a real adapter, and tells what came of
// each. The agents of the presets are pointed to a fake model on loopback; any
// other agent is played with the cases that need no model.
//
// After each case the same things are checked: there is one run.terminal, it is
// the last event and fits what happened; no process of the agent lives; the
// account's own home has no new entries.
//
// # Duties of the caller
//
// The command lines of [Config] lead to prp-runner and prp-harness. The agent's
// package is installed.
//
// # Invariants
//
// A case works in a folder of its own, which is removed: home, workspace and
// temporary files of the agent are in it. No key of the user is passed on to an
// agent that talks to the fake model.
package conform
