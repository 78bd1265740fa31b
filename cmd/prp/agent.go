package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"prp/harness/acp"
	"prp/harness/acp/translate"
)

// agentTarget is an agent that is run as the harness of a target.
type agentTarget struct {
	name        string
	permissions string
	home        string
	private     *acp.Home // made for this run
}

func (a *agentTarget) flags(fs *flag.FlagSet) {
	fs.StringVar(&a.name, "agent", "", "run the agent of this `NAME` as the harness: "+strings.Join(agentNames(), ", "))
	fs.StringVar(&a.permissions, "permissions", "", permissionsUsage)
	fs.StringVar(&a.home, "home", "", "the agent's home `DIRECTORY`, which is kept; else it has a private one")
}

// permissionsUsage is the help of --permissions.
var permissionsUsage = "who decides about what the agent wants to do, with `POLICY`\n" +
	strings.Join(translate.PolicyNames(), ", ") + "; ask is the default"

// checkPermissions refuses a policy that there is not; empty is the default.
func checkPermissions(policy string) error {
	if policy == "" {
		return nil
	}
	if _, err := translate.ParsePolicy(policy); err != nil {
		return misuse("--permissions: %s", err)
	}
	return nil
}

func agentNames() []string {
	var names []string
	for _, p := range acp.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// check finds what can be wrong with the agent before anything is started.
func (a *agentTarget) check() error {
	preset, ok := acp.FindPreset(a.name)
	switch {
	case a.name == "" && (a.permissions != "" || a.home != ""):
		return misuse("expected --permissions and --home with --agent only")
	case a.name == "":
		return nil
	case !ok:
		return misuse("--agent: expected one of %s, got %q%s", strings.Join(agentNames(), ", "), a.name, didYouMean(a.name, agentNames()))
	}
	if err := checkPermissions(a.permissions); err != nil {
		return err
	}
	if _, err := exec.LookPath(preset.Argv[0]); err != nil {
		return fmt.Errorf("--agent %s: %q is not in PATH; it comes with the npm package %s", a.name, preset.Argv[0], preset.Package)
	}
	return nil
}

// prepare makes the private home and returns the harness's command line and the
// variables that it may see, as far as they are set here.
func (a *agentTarget) prepare(self string) (harness string, names []string, err error) {
	root := a.home
	if root == "" {
		if a.private, err = acp.NewHome(""); err != nil {
			return "", nil, err
		}
		root = a.private.Root()
	}
	words := []string{self, "harness", "acp", "--preset", a.name, "--home", root}
	if a.permissions != "" {
		words = append(words, "--permissions", a.permissions)
	}
	preset, _ := acp.FindPreset(a.name)
	for _, name := range preset.Names() {
		if _, ok := os.LookupEnv(name); ok && name != "PATH" {
			names = append(names, name)
		}
	}
	return quoteWords(words), names, nil
}

// warn says on stderr which variables the agent needs and does not have. It is
// no error: an agent can be logged in by another variable, or by files of its
// home. What an agent says itself without them can be as little as "Internal
// error".
func (a *agentTarget) warn(s *streams, command string) {
	preset, _ := acp.FindPreset(a.name)
	if lacks := unset(preset.Needs); len(lacks) > 0 {
		fmt.Fprintf(s.err, "prp %s: agent %s lacks %s, not set here; without a login of another kind no turn works\n",
			command, a.name, strings.Join(lacks, " "))
	}
}

// close removes the private home. The run is over and its processes are gone.
func (a *agentTarget) close(s *streams) {
	if a.private == nil {
		return
	}
	if err := a.private.Remove(); err != nil {
		fmt.Fprintf(s.err, "prp: %s\n", err)
	}
}

// unquoted needs no quotes anywhere in a command line.
var unquoted = regexp.MustCompile(`^[A-Za-z0-9_./:,@%+-]+$`)

// quoteWords is a command line that splitWords, and a shell, split into the words
// again. Words stay as they are where they can, since people read and copy them.
func quoteWords(words []string) string {
	var out []string
	for _, w := range words {
		if !unquoted.MatchString(w) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// printAgents says which agents are installed and what they lack.
func printAgents(screen *screen) {
	for _, p := range acp.Presets() {
		state, look, detail := "ready", green, ""
		path, err := exec.LookPath(p.Argv[0])
		lacks := unset(p.Needs)
		switch {
		case err != nil:
			state, look, detail = "missing", yellow, fmt.Sprintf("%s is not in PATH; npm package %s", p.Argv[0], p.Package)
		case len(lacks) > 0:
			state, look, detail = "lacks", yellow, strings.Join(lacks, " ")+" for "+path
		default:
			detail = path
		}
		screen.print(fmt.Sprintf("%-18s %s  %s", "agent "+p.Name, screen.paint(look, fmt.Sprintf("%-9s", state)), detail))
	}
}

func unset(names []string) []string {
	var lacks []string
	for _, name := range names {
		if os.Getenv(name) == "" {
			lacks = append(lacks, name)
		}
	}
	return lacks
}
