package translate

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"prp/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestTranscripts plays conversations of testdata/*.txtar: the file "in" is a
// list of inputs, "out" repeats each with the effects under it.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var in, want string
			for _, f := range archive.Files {
				switch f.Name {
				case "in":
					in = string(f.Data)
				case "out":
					want = string(f.Data)
				}
			}
			got, _ := transcript(t, in)
			if *update {
				archive.Files = []txtar.File{{Name: "in", Data: []byte(in)}, {Name: "out", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// transcript plays the inputs and returns what came of them, and what was
// written to the agent.
func transcript(t *testing.T, in string) (printed string, written [][]byte) {
	t.Helper()
	var out strings.Builder
	var k *talk
	begin := func(cfg Config) {
		if k == nil {
			k = newTalk(t, cfg)
		}
	}
	for line := range strings.Lines(in) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		if word == "config" {
			begin(config(t, rest))
			continue
		}
		begin(Config{})
		input(t, k, word, rest)
		if word == "open" {
			continue // what every conversation begins with stands in one file
		}
		out.WriteString(line + "\n")
		for _, l := range k.last {
			out.WriteString("    " + l + "\n")
		}
	}
	return out.String(), k.written
}

func config(t *testing.T, text string) Config {
	t.Helper()
	var cfg Config
	for pair := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(pair, "=")
		var err error
		switch name {
		case "policy":
			cfg.Policy, err = ParsePolicy(value)
		case "auth":
			cfg.AuthMethod = value
		case "turn":
			cfg.TurnTimeout, err = time.ParseDuration(value)
		case "idle":
			cfg.TurnIdle, err = time.ParseDuration(value)
		default:
			t.Fatalf("no config %q", pair)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

func input(t *testing.T, k *talk, word, rest string) {
	t.Helper()
	switch word {
	case "start":
		k.last = k.all // what New gave
	case "open":
		k.open(strings.Fields(rest)...)
	case "turn":
		k.turn(rest)
	case "agent":
		k.agent(rest)
	case "update":
		k.update(rest)
	case "runner":
		kind, payload, _ := strings.Cut(rest, " ")
		k.runner(protocol.CommandType(kind), payload)
	case "fire":
		for timer := range Timers {
			if timer.String() == rest {
				k.fire(timer)
				return
			}
		}
		t.Fatalf("no timer %q", rest)
	case "exited":
		n, err := strconv.Atoi(strings.TrimPrefix(rest, "signal "))
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(rest, "signal "):
			k.exited(Exit{Signal: n})
		default:
			k.exited(Exit{Status: n})
		}
	case "eof":
		k.state.InputEnded()
		k.take()
	case "term":
		k.state.Terminated("terminated")
		k.take()
	default:
		t.Fatalf("no input %q", word)
	}
}
