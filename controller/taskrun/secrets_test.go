//go:build unix

package taskrun

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"prp/controller"
	"prp/controller/awaittest"
	"prp/controller/bridge"
	"prp/controller/devserver"
	"prp/controller/workerclient"
	"prp/protocol"
)

// spellings are what must not leave the process for a secret: the value, each of
// its lines, and these in JSON, in URLs and in base64 (remote.md rule 7).
func spellings(secret string) []string {
	var out []string
	for _, s := range append(strings.Split(secret, "\n"), secret) {
		if len(s) < bridge.MinSecret {
			continue
		}
		quoted, _ := json.Marshal(s) // a string
		out = append(out, s, string(quoted[1:len(quoted)-1]), url.QueryEscape(s), url.PathEscape(s))
		for skip := range 3 {
			for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				text := enc.EncodeToString(append(make([]byte, skip), s...))
				if core := text[[]int{0, 2, 3}[skip] : len(text)-1]; len(core) >= 8 {
					out = append(out, core)
				}
			}
		}
	}
	return out
}

// secretValues are values of many forms.
func secretValues(r *rand.Rand) []string {
	word := func() string {
		b := make([]byte, 8+r.IntN(10))
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789"[r.IntN(44)]
		}
		return string(b)
	}
	return []string{
		word(), word() + "\n" + word() + "\nx\n" + word(), `q"` + word() + `\` + word(), "</" + word() + "&?=" + word(),
		"\u2603" + word() + "\U0001f600", word() + " " + word(), "k=" + word() + "+/==",
		strconv.Itoa(100_000_000 + r.IntN(900_000_000)),
	}
}

// spoken is how a harness may write a value.
func spoken(r *rand.Rand, s string) string {
	switch r.IntN(8) {
	case 0:
		return strings.Split(s, "\n")[0]
	case 1:
		q, _ := json.Marshal(map[string]string{"inner": s})
		return string(q)
	case 2:
		return url.QueryEscape(s)
	case 3:
		return base64.StdEncoding.EncodeToString([]byte("user:" + s + "!"))
	}
	return s
}

// leakyScript makes steps that write every secret in many places, and a message
// whose deltas cut them.
func leakyScript(r *rand.Rand, secrets []string, fails bool) []string {
	var steps []string
	add := func(format string, args ...any) { steps = append(steps, fmt.Sprintf(format, args...)) }
	any := func() string { return spoken(r, secrets[r.IntN(len(secrets))]) }
	text := ""
	for _, s := range secrets {
		text += "before " + spoken(r, s) + " after " + s
	}
	var pieces []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(len(runes), 1+r.IntN(12))
		pieces = append(pieces, string(runes[:n]))
		runes = runes[n:]
	}
	add(`{"kind":"event","event_type":"item.started","item_id":"c","payload":{"kind":"command","title":%s,"nested":[{"a":%s}]}}`, quoted(any()), quoted(any()))
	for _, p := range pieces[:len(pieces)/2] {
		add(`{"kind":"event","event_type":"item.delta","item_id":"c","payload":{"stream":"stdout","delta":%s}}`, quoted(p))
	}
	steps = append(steps, message(pieces...))
	add(`{"kind":"event","event_type":"item.completed","item_id":"c","payload":{"kind":"command","text":%s}}`, quoted(any()))
	add(`{"kind":"event","event_type":"harness.diagnostic","payload":{"code":"x","message":%s,%s:1}}`, quoted(any()), quoted(any()))
	number := secrets[len(secrets)-1] // digits, which may stand in JSON as they are
	add(`{"kind":"event","event_type":"usage.reported","payload":{"inputTokens":%s,"other":[{"a":-%s.5}]}}`, number, number)
	add(`{"kind":"stderr","text":%s,"times":1}`, quoted(any()+"\n"))
	add(`{"kind":"log","stream":"stdout","text":%s}`, quoted(any()))
	add(`{"kind":"event","event_type":%s,"payload":{}}`, quoted(strings.Split(secrets[0], "\n")[0]))
	if fails {
		return append(steps, `{"kind":"exit","code":7}`)
	}
	return append(steps, result(any(), `,"structuredOutput":{"key":`+quoted(any())+`}`))
}

// leak is where bytes left the process.
type leak struct {
	where string
	bytes []byte
}

// everything collects what left a worker: the folder of its state, the bodies of
// its calls, and what it and its parts said or were started with.
func (b *bench) everything(st devserver.TaskRunState, more ...leak) []leak {
	b.t.Helper()
	all := more
	err := filepath.WalkDir(b.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(all, leak{path, text}, leak{"a file's name", []byte(path)})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range st.Calls {
		all = append(all, leak{"the body of " + c.Kind, c.Body})
	}
	return append(all, leak{"the text", []byte(st.Text)}, leak{"the end", []byte(text(st.End.ErrorMessage) + text(st.End.Output) + text(st.End.Structured))})
}

// TestSecrets: remote.md rule 7 and issue point 7. Whatever a harness does with
// the secrets of its run, no byte of them leaves the process: they are in no
// output, journal, call, argument or file, in none of their spellings.
func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := programs.Dir(t)
	seeds := 4
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		b := newBench(t)
		values := secretValues(r)
		b.offer.Secrets = map[string]string{}
		for i, v := range values {
			b.offer.Secrets[fmt.Sprintf("SECRET_%d", i)] = v
		}
		fails := seed%2 == 1
		b.script(leakyScript(r, values, fails)...)
		b.offered()
		run := exec.CommandContext(b.ctx, filepath.Join(dir, "prp"), "taskrun", "--task-run-id", b.id, "--url", b.http.URL, "--dir", b.cfg.Dir,
			"--allow-unsandboxed", "--program", filepath.Dir(b.cfg.Harness[4]), "--harness", quote(b.cfg.Harness))
		run.Env = append(controller.SmallEnv(), "PRP_RUN_TOKEN="+b.token)
		var stdout, stderr bytes.Buffer
		run.Stdout, run.Stderr = &stdout, &stderr
		if err := run.Run(); err != nil {
			t.Fatalf("seed %d: %v: %s", seed, err, &stderr)
		}
		st := b.state()
		if want := map[bool]string{false: "SUCCEEDED", true: "FAILED"}[fails]; st.Status != want {
			t.Fatalf("seed %d: %s: %s", seed, st.Status, text(st.End.ErrorMessage))
		}
		journal := b.journal(st)
		if !strings.Contains(journal, bridge.Masked) || strings.Count(st.Text, bridge.Masked) < len(values) {
			t.Errorf("seed %d: the harness has written no secrets: %q", seed, st.Text)
		}
		all := b.everything(st, leak{"stdout", stdout.Bytes()}, leak{"stderr", stderr.Bytes()}, leak{"joined deltas", []byte(deltas(journal))})
		for _, secret := range append(values, b.token) {
			for _, form := range spellings(secret) {
				for _, l := range all {
					if bytes.Contains(l.bytes, []byte(form)) {
						t.Errorf("seed %d: %s has %q", seed, l.where, form)
					}
				}
			}
		}
	}
}

// deltas are the texts of a journal's items, each as a whole.
func deltas(journal string) string {
	texts := map[string]string{}
	d := protocol.NewDecoder()
	for line := range strings.Lines(journal) {
		m, err := d.Stream([]byte(strings.TrimSuffix(line, "\n")))
		if err == nil && m.Event != nil && m.Event.EventType == protocol.EventItemDelta {
			texts[m.Event.ItemID] += controller.DeltaText(m.Event)
		}
	}
	all := ""
	for _, text := range texts {
		all += text + "\n"
	}
	return all
}

// TestSecretsAreNowhere: while a run goes on its secrets are in the environment
// of the harness alone: in no argument of a process and in no file.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shell()
	args := b.recordArgs()
	values := secretValues(rand.New(rand.NewPCG(1, 2)))
	b.offer.Secrets = map[string]string{}
	for i, v := range values {
		b.offer.Secrets[fmt.Sprintf("SECRET_%d", i)] = v
	}
	b.cfg.Harness[2] = `printf %s "$SECRET_1" > got; ` + b.cfg.Harness[2]
	b.offered()
	found := make(chan []leak, 1)
	go func() {
		b.running()
		recorded, _ := os.ReadFile(args)
		st := b.state()
		st.End = &workerclient.PatchTaskRunRequest{}
		found <- b.everything(st, leak{"the runner's arguments", recorded}, leak{"the harness's arguments", []byte(b.read("args"))})
		b.goOn()
	}()
	b.must()
	if b.read("got") != values[1] {
		t.Errorf("the harness got %q, want %q", b.read("got"), values[1])
	}
	all := awaittest.Came(t, "what was found", found)
	if !bytes.Contains(all[0].bytes, []byte("SECRET_0")) {
		t.Errorf("the arguments do not name the variables: %s", all[0].bytes)
	}
	for _, secret := range append(values, b.token) {
		for _, form := range spellings(secret) {
			for _, l := range all {
				if bytes.Contains(l.bytes, []byte(form)) {
					t.Errorf("%s has %q", l.where, form)
				}
			}
		}
	}
}
