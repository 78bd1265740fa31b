package sandbox

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Network tiers, the strictest first.
const (
	NetworkNone       = "none"
	NetworkRegistries = "registries"
	NetworkOpen       = "open"
)

// Filesystem tiers, the strictest first.
const (
	FilesWorkspace     = "workspace"
	FilesSharedRead    = "workspace_plus_shared_read"
	FilesExternalWrite = "workspace_plus_external_write"
)

// Policy is what a run may do. Paths are absolute and exist. None lies in one of
// ExternalWrite; one that lies in Workspace or Private is used as these are.
type Policy struct {
	// Network and Filesystem are tiers as the server names them. One that is
	// empty or not known is the strictest.
	Network, Filesystem string
	// Workspace is read and written in every tier.
	Workspace string
	// Private are the run's own folders, as its HOME and TMPDIR: as Workspace.
	Private []string
	// Programs are folders or files that are read and executed in every tier,
	// beside those of the system: where the harness and its tools are.
	Programs []string
	// SharedRead are read and executed from the tier of that name on.
	SharedRead []string
	// ExternalWrite are read and written in the tier of that name.
	ExternalWrite []string
	// AllowUnsandboxed leaves out what this host cannot enforce, and only that,
	// instead of refusing.
	AllowUnsandboxed bool
}

// Axis is one line of a [Report].
type Axis struct {
	// Tier is the one that was asked for, or that an unknown one was taken for.
	Tier string
	// Enforced is whether a harness is held to it.
	Enforced bool
	// How says by which means, or why not.
	How string
}

// String is a line for a person.
func (a Axis) String() string {
	if a.Enforced {
		return fmt.Sprintf("%s, enforced: %s", a.Tier, a.How)
	}
	return fmt.Sprintf("%s, NOT enforced: %s", a.Tier, a.How)
}

// Report says what is enforced and how.
type Report struct{ Network, Filesystem Axis }

// Unenforceable is a tier that this host cannot enforce.
type Unenforceable struct {
	Axis, Tier, Why string
}

// Error implements error.
func (e *Unenforceable) Error() string {
	return fmt.Sprintf("%s tier %q cannot be enforced here: %s; expected another tier, or a worker that may run without a sandbox", e.Axis, e.Tier, e.Why)
}

// Rules are what [Exec] does. They have no secrets: they stand in arguments.
type Rules struct {
	// Files is whether files are confined to the lists below, which are paths.
	Files bool `json:"files,omitempty"`
	// Read may be read and executed. Write may be changed too.
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
	// Sockets is the network tier that is enforced: none or open. It is empty
	// where sockets are not confined at all.
	Sockets string `json:"sockets,omitempty"`
}

// Plan is a policy as this host can enforce it.
type Plan struct {
	Report Report
	rules  Rules
}

// Plan asks the host what it can enforce and decides. The error is an
// [*Unenforceable] where a tier is refused.
func (p Policy) Plan() (Plan, error) { return p.plan(Probe()) }

// plan decides; it is pure.
func (p Policy) plan(host Host) (Plan, error) {
	if err := p.check(); err != nil {
		return Plan{}, err
	}
	var plan Plan
	network := known(p.Network, NetworkNone, NetworkRegistries, NetworkOpen)
	files := known(p.Filesystem, FilesWorkspace, FilesSharedRead, FilesExternalWrite)
	plan.Report.Network = planNetwork(network, host)
	plan.Report.Filesystem = planFiles(files, host)
	for _, axis := range []struct {
		name string
		Axis
	}{{"network", plan.Report.Network}, {"filesystem", plan.Report.Filesystem}} {
		if !axis.Enforced && !p.AllowUnsandboxed {
			return Plan{}, &Unenforceable{axis.name, axis.Tier, axis.How}
		}
	}
	plan.rules = p.rules(plan.Report, host)
	return plan, nil
}

// known is a tier, or the first where it is not one.
func known(tier string, tiers ...string) string {
	if slices.Contains(tiers, tier) {
		return tier
	}
	return tiers[0]
}

func (p Policy) check() error {
	if p.Workspace == "" {
		return fmt.Errorf("expected a workspace")
	}
	lists := [][]string{{p.Workspace}, p.Private, p.Programs, p.SharedRead, p.ExternalWrite}
	for _, path := range slices.Concat(lists...) {
		if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
			return fmt.Errorf("expected an absolute path, got %q", path)
		}
		if clean := filepath.Clean(path); filepath.Dir(clean) == clean {
			return fmt.Errorf("expected a folder, got %q, which is the whole file system", path)
		}
		if err := p.apart(path); err != nil {
			return err
		}
	}
	return nil
}

// apart refuses a folder that lies in an external one: a harness could have put
// a symlink in its place, which then would be granted.
func (p Policy) apart(path string) error {
	if at := holder(path, p.ExternalWrite); at != "" {
		return fmt.Errorf("expected folders that are apart, got %q in %q, where a harness can replace it", path, at)
	}
	return nil
}

// holder is the folder that a path lies in, or empty.
func holder(path string, folders []string) string {
	for _, folder := range folders {
		rel, err := filepath.Rel(folder, path)
		if err == nil && rel != "." && filepath.IsLocal(rel) {
			return folder
		}
	}
	return ""
}

// granted leaves out what lies in a folder that is written in every tier: it may
// be used already, and a harness could have put a symlink in its place.
func (p Policy) granted(paths []string) []string {
	always := append([]string{p.Workspace}, p.Private...)
	return slices.DeleteFunc(paths, func(path string) bool { return holder(path, always) != "" })
}

func planNetwork(tier string, host Host) Axis {
	switch {
	case tier == NetworkOpen:
		return Axis{tier, true, "nothing is asked for"}
	case tier == NetworkRegistries:
		return Axis{tier, false, "neither Landlock nor seccomp can tell one server from another, and it is not taken for open"}
	case !host.Seccomp:
		return Axis{tier, false, host.why("no seccomp filter for this kernel and processor")}
	}
	how := "seccomp refuses every socket that is not a connected pair"
	if host.Landlock >= abiTCP {
		how += fmt.Sprintf("; Landlock ABI %d refuses TCP", host.Landlock)
	}
	return Axis{tier, true, how}
}

func planFiles(tier string, host Host) Axis {
	switch {
	case host.Landlock < abiFiles:
		return Axis{tier, false, host.why(fmt.Sprintf("Landlock has ABI %d, expected %d or more", host.Landlock, abiFiles))}
	case !host.Seccomp:
		return Axis{tier, false, host.why("no seccomp filter, so that unix sockets lead outside")}
	}
	return Axis{tier, true, fmt.Sprintf("Landlock ABI %d; seccomp refuses unix sockets", host.Landlock)}
}

// rules are what the child does. What is asked for and can be had is done, also
// where the rest is left out.
func (p Policy) rules(r Report, host Host) Rules {
	var rules Rules
	if r.Filesystem.Enforced {
		rules.Files = true
		rules.Read = slices.Clone(p.Programs)
		rules.Write = append([]string{p.Workspace}, p.Private...)
		if r.Filesystem.Tier != FilesWorkspace {
			rules.Read = append(rules.Read, p.SharedRead...)
		}
		if r.Filesystem.Tier == FilesExternalWrite {
			rules.Write = append(rules.Write, p.ExternalWrite...)
		}
		rules.Read, rules.Write = p.granted(rules.Read), p.granted(rules.Write)
		rules.Sockets = NetworkOpen
	}
	if r.Network.Tier == NetworkNone && r.Network.Enforced {
		rules.Sockets = NetworkNone
	}
	return rules
}

// Wrap is the command line that confines itself and then becomes argv. own is
// the command of this program that calls [Exec] with the words that follow: the
// rules, then argv. Where there is nothing to enforce it is argv.
func (p Plan) Wrap(own, argv []string) []string {
	if !p.rules.Files && p.rules.Sockets == "" {
		return slices.Clone(argv)
	}
	return slices.Concat(own, []string{p.rules.text()}, argv)
}

// text is the rules as one word without a character that a shell knows, since
// a runner takes the command line of its harness as shell words.
func (r Rules) text() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and a bool
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
