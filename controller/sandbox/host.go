package sandbox

import "fmt"

// ABI versions of Landlock from which on something can be refused.
const (
	abiFiles  = 3 // truncating, the last way to change a file
	abiTCP    = 4
	abiIoctl  = 5
	abiScopes = 6 // signals and abstract unix sockets
	abiUnix   = 9 // unix sockets by their path
	abiUDP    = 10
)

// Host is what a host has to confine a harness with.
type Host struct {
	// Landlock is the ABI version, 0 where there is none.
	Landlock int
	// Seccomp is whether there are filters, and this package has one for the
	// processor.
	Seccomp bool
	// UserNamespaces and NetworkNamespaces are whether the settings of the host
	// let this user make them. Nothing here needs them.
	UserNamespaces, NetworkNamespaces bool
	// Reason says why there is nothing at all, empty on Linux.
	Reason string
}

// why is the reason for what is missing.
func (h Host) why(missing string) string {
	if h.Reason != "" {
		return h.Reason
	}
	return missing
}

// Means is one line of what a host has, for a person.
type Means struct {
	Name string
	// Available is whether the host has it, Used whether [Exec] uses it.
	Available, Used bool
	Detail          string
}

// Means lists what the host has.
func (h Host) Means() []Means {
	landlock := fmt.Sprintf("ABI %d", h.Landlock)
	switch {
	case h.Reason != "":
		landlock = h.Reason
	case h.Landlock == 0:
		landlock = "not in this kernel, or not enabled at boot"
	case h.Landlock < abiFiles:
		landlock += fmt.Sprintf("; files need %d", abiFiles)
	case h.Landlock < abiTCP:
		landlock += fmt.Sprintf("; confines files; TCP needs %d", abiTCP)
	case h.Landlock < abiScopes:
		landlock += fmt.Sprintf("; confines files and TCP; signals need %d", abiScopes)
	default:
		landlock += "; confines files, TCP and signals."
	}
	return []Means{
		{"landlock", h.Landlock > 0, h.Landlock >= abiFiles, landlock},
		{"seccomp", h.Seccomp, h.Seccomp, h.why("Refuses sockets: all with network none, unix sockets in every tier.")},
		{"network_namespace", h.NetworkNamespaces, false, h.why("Not used: seccomp refuses more, and needs no setting.")},
	}
}

// Tiers lists the tiers, each with a name of its own, what it lets a run have,
// and what becomes of a run that names it.
func (h Host) Tiers() []Means {
	var list []Means
	add := func(name, lets string, a Axis) {
		then := "enforced: " + a.How
		if !a.Enforced {
			then = "NOT enforced, so that a run that names it fails: " + a.How
		}
		list = append(list, Means{
			Name: name, Available: a.Enforced, Used: a.Enforced,
			Detail: fmt.Sprintf("a task run's tier, %s; %s", lets, then),
		})
	}
	for _, t := range []struct{ tier, lets string }{
		{NetworkNone, "no network at all"},
		{NetworkRegistries, "package registries alone"},
		{NetworkOpen, "any server"},
	} {
		add("network "+t.tier, t.lets, planNetwork(t.tier, h))
	}
	// One can be enforced where all can.
	add("filesystem", "files of its workspace, and more where it names a wider one", planFiles(FilesWorkspace, h))
	return list
}
