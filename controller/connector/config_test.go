package connector

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write config.schema.json from the types")

// TestFileSchema: the schema is that of the types, and says what ParseFile does.
func TestFileSchema(t *testing.T) {
	s := (&jsonschema.Reflector{DoNotReference: true}).Reflect(&File{})
	s.ID, s.Title = "urn:prp:schema:connector-config:v1", "Configuration of a connector"
	want, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("config.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, FileSchema()) {
		t.Fatal("config.schema.json is stale; run go test ./controller/connector -run TestFileSchema -update")
	}
	doc, err := validator.UnmarshalJSON(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource("config", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("config")
	if err != nil {
		t.Fatal(err)
	}
	with := func(more string) string { return `{"url":"wss://x/y","agents":[{` + more + `}]}` }
	const agent = `"agent_id":"a","runtime":"r","harness":"h"`
	for text, valid := range map[string]bool{
		with(agent): true,
		with(agent + `,"model":"m","tools":["terminal"],"max_turns":60,"supports":["streaming","handoff"],"cwd":".","env_allow":["A"],"max_concurrent_runs":2`):                                              true,
		`{"url":"wss://x/y","ca_file":"a","cert_file":"b","key_file":"c","token_file":"d","connector_id":"e","dir":"f","max_concurrent_runs":1,"max_queue":0,"metrics_addr":"g","agents":[{` + agent + `}]}`: true,
		with(`"agent_id":"a","runtime":"r"`):       false,
		with(`"agent_id":"a","harness":"h"`):       false,
		with(`"runtime":"r","harness":"h"`):        false,
		with(agent + `,"supports":["everything"]`): false,
		with(agent + `,"max_turns":-1`):            false,
		with(agent + `,"goal_to":"argv"`):          false,
		with(agent + `,"command":"x"`):             false,
		with(agent + `,"Cwd":"x"`):                 false,
		`{"url":"wss://x/y","agents":[]}`:          false,
		`{"agents":[{` + agent + `}]}`:             false,
		`[]`:                                       false,
	} {
		_, err := ParseFile([]byte(text))
		doc, _ := validator.UnmarshalJSON(strings.NewReader(text))
		if (err == nil) != valid || (schema.Validate(doc) == nil) != valid {
			t.Errorf("%s: %v, by the schema %v; want valid %v", text, err, schema.Validate(doc), valid)
		}
	}
	for _, text := range []string{with(agent) + `{}`, `{"url":"wss://x/y","agents":[{` + agent + `},{` + agent + `}]}`} {
		if _, err := ParseFile([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestID: an id is made once and stays; a given one takes its place (row 3).
func TestID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first, err := ID(dir, "")
	if err != nil || len(first) != 36 {
		t.Fatalf("the first id is %q, %v", first, err)
	}
	if again, err := ID(dir, ""); again != first || err != nil {
		t.Errorf("the second time it is %q, %v, want %q", again, err, first)
	}
	if given, err := ID(dir, "mine"); given != "mine" || err != nil {
		t.Errorf("the given id is %q, %v", given, err)
	}
	if kept, err := ID(dir, ""); kept != "mine" || err != nil {
		t.Errorf("then it is %q, %v", kept, err)
	}
}

// TestTimes: every timeout is that of the seed's table and of the page.
func TestTimes(t *testing.T) {
	var got Times
	got.fill()
	want := Times{
		Register: 10 * time.Second, Heartbeat: 30 * time.Second, MinHeartbeat: 5 * time.Second, HeartbeatAnswer: 5 * time.Second,
		EventAck: 60 * time.Second, Approval: 5 * time.Minute, Handoff: 30 * time.Second, Force: 14 * time.Second,
		Busy: 60 * time.Second, URL: 300 * time.Second, Upload: 300 * time.Second, Poll: 25 * time.Second, Socket: 60 * time.Second,
		Ending: 30 * time.Second, Deliver: 60 * time.Second,
	}
	if got != want {
		t.Errorf("the times are %+v, want %+v", got, want)
	}
}

// TestIDAtOnce: row 3. Connectors and those who ask for a state at the same time find
// one id, and nobody takes a half of it away from another.
func TestIDAtOnce(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"", "mine"} {
		for range 20 {
			dir := filepath.Join(t.TempDir(), "state")
			begin := make(chan struct{})
			var all sync.WaitGroup
			var ids [16]string
			for i := range ids {
				all.Go(func() {
					<-begin
					id, err := ID(dir, given)
					if err != nil {
						t.Error(err)
					}
					ids[i] = id
				})
			}
			close(begin)
			all.Wait()
			kept, err := ID(dir, "")
			if err != nil || slices.ContainsFunc(ids[:], func(id string) bool { return id != kept }) || given != "" && kept != given {
				t.Fatalf("given %q: the folder has %q, they have %q, %v", given, kept, ids, err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Fatalf("left in the folder: %v, %v", entries, err)
			}
		}
	}
}
