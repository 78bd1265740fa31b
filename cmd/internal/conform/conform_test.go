package conform

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"prp/cmd/internal/harnesscmd"
	"prp/cmd/internal/runnercmd"
	"prp/harness/acp"
	"prp/runner/process"
)

// agentsDir names the folder with the agents' commands, such as node_modules/.bin;
// without it only the agent that is built from Go is tried.
const agentsDir = "PRP_AGENTS_BIN"

// TestMain makes the test binary also the runner and the harness.
func TestMain(m *testing.M) {
	process.Main()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "as-runner":
			os.Exit(runnercmd.Main(os.Args[2:]))
		case "as-harness":
			os.Exit(harnesscmd.Main(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// agentHang only ends what hangs: on a machine that does much else, an agent
// that starts in three seconds takes a minute.
const agentHang = 4 * time.Minute

// try plays the table against an agent; every row is a subtest. They run side by
// side: an agent sleeps more than it works. Each row goes to note as well.
func try(t *testing.T, agent Agent, note func(Row), only ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the cases need signals")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Cases() {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			rows, err := Run(t.Context(), Config{
				Runner: []string{self, "as-runner"}, Harness: []string{self, "as-harness"},
				Agent: agent, Only: []string{name}, Patience: agentHang,
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != 1 {
				t.Fatalf("%d rows", len(rows))
			}
			note(rows[0])
			switch rows[0].Status {
			case Passed:
			case Skipped:
				t.Skip(rows[0].Detail)
			default:
				t.Error(rows[0].Detail)
			}
		})
	}
}

// table collects the rows of all agents and prints them at the end, in order.
type table struct {
	mu    sync.Mutex
	lines []string
}

func (x *table) note(agent string, r Row) {
	x.mu.Lock()
	defer x.mu.Unlock()
	place := slices.Index(Cases(), r.Case)
	x.lines = append(x.lines, fmt.Sprintf("%-9s %2d %-33s %-8s %5.1fs  %.200s", agent, place+1, r.Case, r.Status, r.Took.Seconds(), r.Detail))
}

func (x *table) print(t *testing.T) {
	x.mu.Lock()
	defer x.mu.Unlock()
	slices.Sort(x.lines)
	t.Logf("%d rows:\n%s", len(x.lines), strings.Join(x.lines, "\n"))
}

// TestGoExampleAgent tries the example agent of the protocol's Go SDK, which is
// built from a module of its own, so that the product does not depend on it.
func TestGoExampleAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("the agent takes five seconds a turn")
	}
	bin := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "github.com/coder/acp-go-sdk/example/agent")
	build.Dir = filepath.Join("testdata", "agent-go")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("the example agent cannot be built, which needs the Go proxy once: %v\n%s", err, out)
	}
	try(t, Agent{Argv: []string{bin}}, func(Row) {})
}

// everyCase in the environment plays every case against every agent.
const everyCase = "PRP_AGENTS_ALL"

// slowAgents take many seconds of the processor for every start, opencode 10 to
// 20. Where not every case is asked for they play those in which agents differ
// most: what they ask, what they leave behind, how they die.
var slowAgents = map[string][]string{
	"gemini":   {"permission allowed", "cancel in mid-tool", "background processes"},
	"opencode": {"permission allowed", "background processes"},
	"qwen":     {"permission allowed", "cancel in mid-tool", "background processes"},
}

// TestAgents tries the agents of the presets, as far as they are installed.
func TestAgents(t *testing.T) {
	dir := os.Getenv(agentsDir)
	if dir == "" {
		t.Skipf("%s names no folder with agents", agentsDir)
	}
	for agent, names := range slowAgents {
		for _, name := range names {
			if !slices.Contains(Cases(), name) {
				t.Fatalf("%s: there is no case %q", agent, name)
			}
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	all := new(table)
	t.Cleanup(func() { all.print(t) })
	for _, p := range acp.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			if _, err := exec.LookPath(p.Argv[0]); err != nil {
				t.Skipf("%s of %s is not installed", p.Argv[0], p.Package)
			}
			note := func(r Row) { all.note(p.Name, r) }
			var only []string
			if os.Getenv(everyCase) == "" {
				only = slowAgents[p.Name]
			}
			for _, name := range Cases() {
				if len(only) > 0 && !slices.Contains(only, name) {
					note(Row{Case: name, Status: Skipped, Detail: "left out, the agent is slow to start; " + everyCase + "=1 plays it"})
				}
			}
			try(t, Agent{Preset: p.Name}, note, only...)
		})
	}
}

// TestPoint01ToolsInSessionsOfTheirOwn: what an agent leaves in other sessions
// and groups, ignoring SIGTERM, is gone when the run has ended; that it would be
// seen is shown by TestProcessesAreFound.
func TestPoint01ToolsInSessionsOfTheirOwn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs setsid and /proc")
	}
	const agent = `n=0
while read -r line; do
  n=$((n+1))
  case $n in
  1) result='{"protocolVersion":1}' ;;
  2) result='{"sessionId":"s"}' ;;
  3) setsid sh -c 'trap "" TERM; sleep 300' </dev/null >/dev/null 2>&1 &
     (setsid setsid sleep 300 &)
     printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}\n'
     result='{"stopReason":"end_turn"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%d,"result":%s}\n' "$n" "$result"
done`
	try(t, Agent{Argv: []string{"sh", "-c", agent}}, func(Row) {}, "text turn")
}

// TestBadAgent: the table tells the truth about an agent that is none.
func TestBadAgent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the cases need signals")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Run(t.Context(), Config{
		Runner: []string{self, "as-runner"}, Harness: []string{self, "as-harness"},
		Agent: Agent{Argv: []string{"sh", "-c", "echo no; exit 3"}}, Only: []string{"text turn", "answer of 2 MB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Status != Failed || !strings.Contains(rows[0].Detail, "status 3") || rows[1].Status != Skipped {
		t.Errorf("the rows are %+v", rows)
	}
	if _, err := Run(t.Context(), Config{Only: []string{"nonsense"}}); err == nil {
		t.Error("an unknown case is played")
	}
}

// TestProcessesAreFound shows that the search for what is left would find it.
func TestProcessesAreFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	root := t.TempDir()
	inEnv := exec.Command("sleep", "300")
	inEnv.Env = []string{"HOME=" + filepath.Join(root, "home")}
	inDir := exec.Command("sleep", "300")
	inDir.Dir, inDir.Env = root, []string{}
	for _, c := range []*exec.Cmd{inEnv, inDir} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer c.Wait()
		defer c.Process.Kill()
	}
	found := processesOf(root)
	for _, c := range []*exec.Cmd{inEnv, inDir} {
		if !slices.ContainsFunc(found, func(p left) bool { return p.pid == c.Process.Pid }) {
			t.Errorf("process %d is not among %v", c.Process.Pid, found)
		}
	}
}
