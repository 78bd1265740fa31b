package sandbox

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// full is a host that has everything.
var full = Host{Landlock: 7, Seccomp: true, UserNamespaces: true, NetworkNamespaces: true}

// at is an absolute path on every system.
func at(name string) string {
	if runtime.GOOS == "windows" {
		return `C:\` + name
	}
	return "/" + name
}

func policy(network, files string) Policy {
	return Policy{
		Network: network, Filesystem: files, Workspace: at("w"), Private: []string{at("home")}, Programs: []string{at("bin")},
		SharedRead: []string{at("shared")}, ExternalWrite: []string{at("outside")},
	}
}

// TestRow10Tiers: what each tier may do; empty or not known is the strictest.
func TestRow10Tiers(t *testing.T) {
	read, write := []string{at("bin")}, []string{at("w"), at("home")}
	shared, outside := append(slices.Clone(read), at("shared")), append(slices.Clone(write), at("outside"))
	for _, c := range []struct {
		network, files string
		want           Rules
	}{
		{"none", "workspace", Rules{true, read, write, "none"}},
		{"open", "workspace", Rules{true, read, write, "open"}},
		{"none", "workspace_plus_shared_read", Rules{true, shared, write, "none"}},
		{"open", "workspace_plus_external_write", Rules{true, shared, outside, "open"}},
		{"", "", Rules{true, read, write, "none"}},
		{"OPEN", "Workspace_plus_external_write", Rules{true, read, write, "none"}},
		{"everything", "everything", Rules{true, read, write, "none"}},
		{"open ", "workspace_plus_shared_read,", Rules{true, read, write, "none"}},
	} {
		plan, err := policy(c.network, c.files).plan(full)
		if err != nil || !reflect.DeepEqual(plan.rules, c.want) {
			t.Errorf("%q and %q give %+v (%v), want %+v", c.network, c.files, plan.rules, err, c.want)
		}
		if !plan.Report.Network.Enforced || !plan.Report.Filesystem.Enforced {
			t.Errorf("%q and %q: %v; %v; want both enforced", c.network, c.files, plan.Report.Network, plan.Report.Filesystem)
		}
	}
}

// TestRow10Refused: a tier that a host cannot enforce is refused, and left out
// only where that is allowed; the rest is enforced all the same.
func TestRow10Refused(t *testing.T) {
	old := Host{Landlock: abiFiles - 1, Seccomp: true}
	noFilter := Host{Landlock: 7}
	nothing := Host{Reason: "only Linux has the means"}
	for _, c := range []struct {
		name           string
		host           Host
		network, files string
		axis           string // that is named
		files1         bool   // what is enforced where it is allowed
		sockets        string
	}{
		{"registries", full, "registries", "workspace", "network", true, "open"},
		{"old Landlock", old, "none", "workspace", "filesystem", false, "none"},
		{"old Landlock, open", old, "open", "workspace", "filesystem", false, ""},
		{"no seccomp", noFilter, "none", "workspace", "network", false, ""},
		{"no seccomp, open", noFilter, "open", "workspace", "filesystem", false, ""},
		{"nothing", nothing, "none", "workspace", "network", false, ""},
		{"nothing, widest", nothing, "open", "workspace_plus_external_write", "filesystem", false, ""},
		{"nothing, not known", nothing, "", "", "network", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := policy(c.network, c.files)
			_, err := p.plan(c.host)
			var refused *Unenforceable
			if !errors.As(err, &refused) || refused.Axis != c.axis || refused.Why == "" {
				t.Fatalf("got %v, want that %s is refused, and why", err, c.axis)
			}
			p.AllowUnsandboxed = true
			plan, err := p.plan(c.host)
			if err != nil {
				t.Fatal(err)
			}
			if plan.rules.Files != c.files1 || plan.rules.Sockets != c.sockets {
				t.Errorf("got %+v, want files %v and sockets %q", plan.rules, c.files1, c.sockets)
			}
			if r := plan.Report; r.Filesystem.Enforced != c.files1 || r.Filesystem.Enforced && r.Network.Enforced {
				t.Errorf("the report says %v; %v", r.Network, r.Filesystem)
			}
			if text := plan.Report.Network.String() + plan.Report.Filesystem.String(); !strings.Contains(text, "NOT enforced") {
				t.Errorf("the report says %q, want what is not enforced", text)
			}
		})
	}
}

// TestRow10ABI: what each version of Landlock holds a harness to, of the past and
// of later kernels. A version that cannot is refused, and never taken for less.
func TestRow10ABI(t *testing.T) {
	for abi := range 12 {
		files, tcp := abi >= 3, abi >= 4
		for _, seccomp := range []bool{true, false} {
			host := Host{Landlock: abi, Seccomp: seccomp}
			for _, network := range []string{NetworkNone, NetworkRegistries, NetworkOpen} {
				p := policy(network, FilesWorkspace)
				plan, err := p.plan(host)
				// "open" asks for nothing, and nothing tells servers apart.
				network1 := network == NetworkOpen || network == NetworkNone && seccomp
				enforced := network1 && files && seccomp
				if refused := errors.As(err, new(*Unenforceable)); refused == enforced || (err == nil) != enforced {
					t.Errorf("ABI %d, seccomp %v, %s: %v, want enforced %v", abi, seccomp, network, err, enforced)
					continue
				}
				p.AllowUnsandboxed = true
				if plan, err = p.plan(host); err != nil {
					t.Error(err)
				}
				r := plan.Report
				if r.Network.Enforced != network1 || r.Filesystem.Enforced != (files && seccomp) || plan.rules.Files != (files && seccomp) {
					t.Errorf("ABI %d, seccomp %v, %s: %v; %v", abi, seccomp, network, r.Network, r.Filesystem)
				}
				if says := strings.Contains(r.Network.How, "TCP"); says != (tcp && seccomp && network == NetworkNone) {
					t.Errorf("ABI %d, %s: it says %q", abi, network, r.Network.How)
				}
			}
		}
	}
}

// TestTiers: a person is told of each tier what it is, and whether a run is held
// to it here.
func TestTiers(t *testing.T) {
	tiers := []struct{ name, says string }{
		{"network none", "a task run's tier, no network at all"},
		{"network registries", "a task run's tier, package registries alone"},
		{"network open", "a task run's tier, any server"},
		{"filesystem", "a task run's tier, files of its workspace, and more where it names a wider one"},
	}
	for name, tt := range map[string]struct {
		host Host
		want []string
	}{
		"everything":  {full, []string{"enforced: seccomp", "NOT enforced", "enforced", "enforced: Landlock"}},
		"no Landlock": {Host{Seccomp: true}, []string{"enforced: seccomp", "NOT enforced", "enforced", "NOT enforced"}},
		"nothing":     {Host{Reason: "not here"}, []string{"NOT enforced, so that a run that names it fails: not here", "NOT enforced", "enforced", "NOT enforced, so that a run that names it fails: not here"}},
	} {
		for i, m := range tt.host.Tiers() {
			if about := tiers[i]; m.Name != about.name || !strings.HasPrefix(m.Detail, about.says+"; "+tt.want[i]) {
				t.Errorf("%s: %+v, want %q, %q and %q", name, m, about.name, about.says, tt.want[i])
			}
			if m.Used == strings.Contains(m.Detail, "NOT") || m.Used != m.Available {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}

// TestFolders: the folders of a policy are absolute, and none is everything.
func TestFolders(t *testing.T) {
	for name, change := range map[string]func(*Policy){
		"no workspace":                  func(p *Policy) { p.Workspace = "" },
		"relative":                      func(p *Policy) { p.Workspace = "w" },
		"root":                          func(p *Policy) { p.Workspace = at("") },
		"root later":                    func(p *Policy) { p.ExternalWrite = []string{at("x") + string(filepath.Separator) + ".."} },
		"zero byte":                     func(p *Policy) { p.Private = []string{at("a\x00b")} },
		"empty":                         func(p *Policy) { p.SharedRead = []string{""} },
		"private in what is external":   func(p *Policy) { p.Private = []string{at("outside/a/home")} },
		"workspace in what is external": func(p *Policy) { p.Workspace = at("outside/w") },
		"shared in what is external":    func(p *Policy) { p.SharedRead = []string{at("x/../outside/shared")} },
	} {
		p := policy("none", "workspace")
		change(&p)
		if _, err := p.plan(full); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	// Beside each other, twice, and what only begins like another.
	p := policy("none", "workspace")
	p.Private, p.Programs = []string{at("w"), at("w2")}, []string{at("w..")}
	if _, err := p.plan(full); err != nil {
		t.Errorf("folders that are apart: %v", err)
	}
	// In one that is written in every tier: a symlink there grants nothing.
	p = policy("none", "workspace")
	p.Private = append(p.Private, at("w/home"))
	p.Programs = append(p.Programs, at("w/a/bin"), at("home/bin"))
	want := Rules{true, []string{at("bin")}, []string{at("w"), at("home")}, "none"}
	if plan, err := p.plan(full); err != nil || !reflect.DeepEqual(plan.rules, want) {
		t.Errorf("folders in the workspace: %+v, %v, want %+v", plan.rules, err, want)
	}
}

// TestWrap: the command line carries the rules, and is left alone where there
// are none.
func TestWrap(t *testing.T) {
	own, argv := []string{"prp", "sandboxed"}, []string{"agent", "--flag", "{}"}
	plan, err := policy("none", "").plan(full)
	if err != nil {
		t.Fatal(err)
	}
	line := plan.Wrap(own, argv)
	if len(line) != 6 || !slices.Equal(line[:2], own) || !slices.Equal(line[3:], argv) {
		t.Fatalf("got %q", line)
	}
	if strings.ContainsAny(line[2], " '\"\\$`{}[]|&;<>()*?#~") {
		t.Errorf("a shell would change %q", line[2])
	}
	if r, err := parse(line[2]); err != nil || !reflect.DeepEqual(r, plan.rules) {
		t.Errorf("read back: %+v, %v, want %+v", r, err, plan.rules)
	}
	p := policy("open", "")
	p.AllowUnsandboxed = true
	plan, err = p.plan(Host{Reason: "nothing here"})
	if err != nil {
		t.Fatal(err)
	}
	if line := plan.Wrap(own, argv); !slices.Equal(line, argv) {
		t.Errorf("without rules: %q, want %q", line, argv)
	}
}

// TestRulesRefused: rules that are cut, or say nothing, confine nobody, and
// nothing is started.
func TestRulesRefused(t *testing.T) {
	rules := Rules{Files: true, Write: []string{at("w")}, Sockets: NetworkNone}
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	for _, text := range []string{
		"", "{}", "null", "[]", `"none"`, good[:len(good)-1], good + "{}",
		`{"files":true}`, `{"sockets":"registries"}`, `{"sockets":"NONE"}`, `{"sockets":"none","network":"open"}`,
	} {
		err := Exec(encoded(text), []string{"prp-no-such-program"}, nil)
		var e *Error
		if !errors.As(err, &e) || e.Status != StatusRefused {
			t.Errorf("%q: %v, want status %d", text, err, StatusRefused)
		}
	}
	var e *Error
	if err := Exec(good, []string{"prp-no-such-program"}, nil); !errors.As(err, &e) || e.Status != StatusRefused {
		t.Errorf("rules in another form: %v", err)
	}
	if err := Exec(rules.text(), nil, nil); !errors.As(err, &e) || e.Status != StatusRefused {
		t.Errorf("no program: %v", err)
	}
	if err := Exec(rules.text(), []string{"prp-no-such-program"}, []string{"PATH=" + t.TempDir()}); !errors.As(err, &e) || e.Status != StatusNotFound {
		t.Errorf("a program that is not there: %v", err)
	}
}

func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// TestElsewhere: other systems say that they cannot.
func TestElsewhere(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Skip("this is Linux")
	}
	p := policy("open", "")
	if _, err := p.Plan(); !errors.As(err, new(*Unenforceable)) {
		t.Errorf("got %v", err)
	}
}

// TestMeans: a person is told what is there and what is used.
func TestMeans(t *testing.T) {
	for _, host := range []Host{full, {}, {Landlock: 1}, {Landlock: 3, Seccomp: true}, {Landlock: 5}, {Reason: "not here"}} {
		means := host.Means()
		for _, m := range means {
			if m.Name == "" || m.Detail == "" || m.Used && !m.Available {
				t.Errorf("%+v: %+v", host, m)
			}
		}
		if used := means[0].Used; used != (host.Landlock >= abiFiles) {
			t.Errorf("Landlock %d is used: %v", host.Landlock, used)
		}
	}
}
