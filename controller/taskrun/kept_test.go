//go:build unix

package taskrun

import (
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prp/controller"
	"prp/controller/devserver"
	"prp/controller/workerclient"
)

// TestServerGone: remote.md rule 1 and row 5. A server that is gone stops no run;
// the end stays on disk, and the next start reports it once, with the run left
// alone.
func TestServerGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shell()
	b.cfg.Times.Report, b.cfg.Times.Flush = 50*time.Millisecond, 50*time.Millisecond
	b.offered()
	go func() {
		b.running()
		b.http.CloseClientConnections()
		b.http.Listener.Close()
		b.goOn()
	}()
	outcome, err := b.work()
	if outcome != Unreported || err == nil || strings.Contains(err.Error(), b.token) {
		t.Fatalf("the outcome is %d, %v", outcome, err)
	}
	traces, _ := filepath.Glob(filepath.Join(b.cfg.Dir, tracesDir, "*", "*.jsonl"))
	if len(traces) != 1 {
		t.Fatalf("the traces are %q", traces)
	}
	f, err := os.Open(traces[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r, problems, err := controller.Replay(f); err != nil || len(problems) > 0 || r.Snapshot.Terminal == nil {
		t.Errorf("the journal is not whole: %v, %v", problems, err)
	}

	listener, err := net.Listen("tcp", b.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	again := httptest.NewUnstartedServer(b.server)
	again.Listener.Close()
	again.Listener = listener
	again.Start()
	defer again.Close()
	b.cfg.Times.Report = 0 // the usual one
	if outcome, err := b.work(); outcome != Reported || err != nil {
		t.Fatalf("the outcome of the next start is %d, %v", outcome, err)
	}
	st := b.state()
	if st.Status != "SUCCEEDED" || st.Count(devserver.OnClaim) != 1 || st.Count(devserver.OnEnd) != 1 || text(st.End.Output) != "Done." {
		t.Errorf("the server has %+v", st.End)
	}
	b.clean()
	if outcome, err := b.work(); outcome != NotOurs || err != nil {
		t.Errorf("the outcome of a third start is %d, %v", outcome, err)
	}
}

// keptCase is a report that an earlier process left.
type keptCase struct {
	rules   []devserver.Rule
	other   bool // of another run
	outcome Outcome
	stays   bool
	same    bool // the other run has the token of this one
	old     bool // it was written long ago, as far as the wall clock knows
}

func (k keptCase) token(b *bench) string {
	if k.same {
		return b.token
	}
	return "token-of-the-other"
}

// TestKept: what becomes of reports that earlier processes left.
func TestKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]keptCase{
		"delivered":                {nil, false, Reported, false, false, false},
		"refused for ever":         {[]devserver.Rule{rule(devserver.OnEnd, 0, "400")}, false, Unreported, false, false, false},
		"refused for now":          {[]devserver.Rule{rule(devserver.OnEnd, 0, "401")}, false, Unreported, true, false, false},
		"not at first":             {[]devserver.Rule{rule(devserver.OnEnd, 1, "503")}, false, Reported, false, false, false},
		"of another run":           {nil, true, Reported, true, false, false},
		"of another, same token":   {nil, true, Reported, false, true, false},
		"of another, refused":      {[]devserver.Rule{rule(devserver.OnEnd, 1, "404")}, true, Reported, true, false, false},
		"of another, no answer":    {[]devserver.Rule{rule(devserver.OnEnd, 1, devserver.Drop)}, true, Reported, true, false, false},
		"of another, old, refused": {nil, true, Reported, false, false, true},
		// A clock that has jumped must not lose it (remote.md rule 9).
		"of another, old, no answer": {[]devserver.Rule{rule(devserver.OnEnd, 1, devserver.Drop)}, true, Reported, true, true, true},
		"of another, old, busy":      {[]devserver.Rule{rule(devserver.OnEnd, 1, "503")}, true, Reported, true, true, true},
		"old":                        {nil, false, Reported, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.rules...)
			b.offered()
			if err := b.cfg.fill(); err != nil {
				t.Fatal(err)
			}
			id := b.id
			if tt.other {
				id, _ = b.server.Add(devserver.TaskRun{Token: tt.token(b)})
			} else {
				b.server.SetStatus(b.id, "RUNNING") // it was claimed
			}
			w := &worker{cfg: b.cfg}
			if err := w.keep(kept{id, workerclient.PatchTaskRunRequest{Status: "FAILED"}}); err != nil {
				t.Fatal(err)
			}
			if long := time.Now().Add(-2 * maxKeptAge); tt.old {
				if err := os.Chtimes(w.keptPath(id), long, long); err != nil {
					t.Fatal(err)
				}
			}
			outcome, err := b.work()
			if outcome != tt.outcome || (err != nil) != (outcome == Unreported) {
				t.Errorf("the outcome is %d, %v", outcome, err)
			}
			if _, err := os.Stat(w.keptPath(id)); (err == nil) != tt.stays {
				t.Errorf("the report stays: %v", err == nil)
			}
			if st := b.state(); tt.other != (st.Count(devserver.OnClaim) == 1) {
				t.Errorf("%d claims", st.Count(devserver.OnClaim))
			}
		})
	}
}

// TestKeptOfManyOthers: a server that does not answer is asked for one report of
// other runs, not for each: the run of this process waits.
func TestKeptOfManyOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, rule(devserver.OnEnd, 1, devserver.Drop))
	b.offered()
	if err := b.cfg.fill(); err != nil {
		t.Fatal(err)
	}
	w := &worker{cfg: b.cfg}
	var others []string
	for range 3 {
		id, _ := b.server.Add(devserver.TaskRun{Token: b.token})
		others = append(others, id)
		if err := w.keep(kept{id, workerclient.PatchTaskRunRequest{Status: "FAILED"}}); err != nil {
			t.Fatal(err)
		}
	}
	if st := b.must(); st.Status != "SUCCEEDED" {
		t.Errorf("the run is %s", st.Status)
	}
	calls := 0
	for _, id := range others {
		calls += b.server.State(id).Count(devserver.OnEnd)
		if _, err := os.Stat(w.keptPath(id)); err != nil {
			t.Error(err)
		}
	}
	if calls != 1 {
		t.Errorf("%d reports of others were tried, want 1", calls)
	}
}

// TestFileName: an id is one part of a path, and told from others.
func TestFileName(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"run_1", ".", "..", "a/b", "a%2Fb", `a\b`, strings.Repeat("x", 300), strings.Repeat("x", 301), "\x00", "a b"} {
		name := fileName(id)
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") || len(name) > maxFileName || seen[name] {
			t.Errorf("%q gives %q", id, name)
		}
		seen[name] = true
	}
}
