package workerclient_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prp/controller/devserver"
	"prp/controller/workerclient"
	"prp/controller/workerclient/coreplugin"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// status is the status in an error, 0 for none.
func status(err error) int {
	var e *workerclient.StatusError
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// TestWays: every call over HTTP and over TLS with and without a client
// certificate (workerclient.md, wire and row 12).
func TestWays(t *testing.T) {
	runs := devserver.NewTaskRuns(devserver.TaskRunsConfig{})
	t.Cleanup(runs.Close)
	for _, w := range ways(t, runs) {
		t.Run(w.name, func(t *testing.T) {
			packed := []byte("packed")
			sum := sha256.Sum256(packed)
			offer := devserver.TaskRun{
				Secrets: map[string]string{"KEY": "value of the key"}, Workspaces: true,
				Plugins: map[string][]byte{"a plugin/1.0 beta": packed},
			}
			offer.Bundle.Run.Input = "do it"
			id, token := runs.Add(offer)
			config := workerclient.WorkerAPIClientConfig{BaseURL: w.url + "/", Token: token, Client: w.client}
			u := workerclient.NewWorkerHTTPUpdater(config)
			got, err := u.GetTaskRun(t.Context(), id)
			if !w.authorized {
				if err == nil || status(err) != 0 {
					t.Errorf("the run is %+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Run.ID != id || got.Run.Input != "do it" || got.Run.Status != "SCHEDULED" {
				t.Fatalf("the run is %+v, %v", got, err)
			}
			session := "session"
			base, baseErr := u.GetWorkspaceBase(t.Context(), id)
			secrets, secretsErr := u.GetTaskRunSecrets(t.Context(), id)
			var file bytes.Buffer
			pin := coreplugin.Pin{Name: "a plugin", Version: "1.0 beta", Digest: "sha256:" + hex.EncodeToString(sum[:])}
			seed, seedErr := u.SeedCheckpoint(t.Context(), id, workerclient.SeedCheckpointRequest{PayloadFormat: "tar.zst.v1"})
			sender := workerclient.NewWorkerHTTPStreamSender(config)
			err = errors.Join(
				baseErr, secretsErr, seedErr,
				u.PatchTaskRun(t.Context(), id, workerclient.PatchTaskRunRequest{Status: "RUNNING", SessionID: &session}),
				u.DownloadPlugin(t.Context(), id, pin, &file),
				u.ReportWorkspaceRestore(t.Context(), id, workerclient.WorkspaceRestoreRequest{Status: "restored"}),
				sender.SendDelta(t.Context(), id, "te"), sender.SendDelta(t.Context(), id, ""), sender.SendDelta(t.Context(), id, "xt"),
				sender.Flush(t.Context(), id),
				u.PatchTaskRun(t.Context(), id, workerclient.PatchTaskRunRequest{Status: "SUCCEEDED"}),
				u.PatchTaskRun(t.Context(), id, workerclient.PatchTaskRunRequest{Status: "FAILED"}),
			)
			if err != nil || base != nil || secrets["KEY"] != "value of the key" || file.String() != "packed" || seed.CheckpointID == "" {
				t.Errorf("%v; base %v, secrets %v, file %q, seed %v", err, base, secrets, &file, seed)
			}
			st := runs.State(id)
			if st.Status != "SUCCEEDED" || st.SessionID != session || st.Text != "text" || len(st.Restores) != 1 || len(st.Seeds) != 1 || st.Count(devserver.OnStream) != 2 {
				t.Errorf("the server has %+v", st)
			}
		})
	}
}

// TestElse: the other answers of each call (workerclient.md, wire).
func TestElse(t *testing.T) {
	runs, s := served(t)
	id, token := runs.Add(devserver.TaskRun{})
	u := updater(s.URL, token)
	patch := func(status string) error {
		return u.PatchTaskRun(t.Context(), id, workerclient.PatchTaskRunRequest{Status: status})
	}
	if secrets, err := u.GetTaskRunSecrets(t.Context(), id); err != nil || secrets != nil {
		t.Errorf("no secrets are %v, %v", secrets, err)
	}
	if _, err := u.GetWorkspaceBase(t.Context(), id); !workerclient.WorkspaceOff(err) {
		t.Errorf("a server without workspaces gives %v", err)
	}
	if err := errors.Join(patch("RUNNING"), patch("FAILED")); err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"an unknown run":    {second(u.GetTaskRun(t.Context(), "run_unknown")), 404},
		"a wrong token":     {second(updater(s.URL, "wrong").GetTaskRun(t.Context(), id)), 401},
		"a lost claim":      {patch("RUNNING"), 409},
		"a wrong status":    {patch("PENDING"), 400},
		"a late text":       {workerclient.NewWorkerHTTPStreamSender(workerclient.WorkerAPIClientConfig{BaseURL: s.URL, Token: token}).SendDelta(t.Context(), id, "x"), 409},
		"an unknown plugin": {u.DownloadPlugin(t.Context(), id, coreplugin.Pin{Name: "p", Version: "1"}, io.Discard), 404},
		"no workspaces":     {second(u.SeedCheckpoint(t.Context(), id, workerclient.SeedCheckpointRequest{})), 404},
	} {
		if status(tt.err) != tt.want {
			t.Errorf("%s: %v, want status %d", name, tt.err, tt.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestStatusError: the typed error keeps status, message and operation, and no
// more than 4096 bytes of a body are read (wire).
func TestStatusError(t *testing.T) {
	var kind, body string
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", kind)
		rw.Header().Set("Retry-After", "7")
		rw.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(rw, body)
	}))
	defer s.Close()
	for _, tt := range []struct{ kind, body, want string }{
		{"application/json", `{"error":"a sentence"}`, "a sentence"},
		{"application/json", `{"message":"a message"}`, "a message"},
		{"application/json", `{"error":"","message":"a message"}`, "a message"},
		{"application/json", `{"error":{"code":1},"message":"a message"}`, "a message"},
		{"application/json", `{}`, ""},
		{"text/plain; charset=utf-8", "a line\n", "a line"},
		{"text/html", "<html>", ""},
		{"text/plain", strings.Repeat("x", 5000), strings.Repeat("x", 4096)},
		{"application/json", `{"error":"` + strings.Repeat("x", 5000) + `"}`, ""},
	} {
		kind, body = tt.kind, tt.body
		_, err := updater(s.URL, "token").GetTaskRun(t.Context(), "run")
		var e *workerclient.StatusError
		if !errors.As(err, &e) || e.Status != 429 || e.Message != tt.want || e.Operation != "fetch the run" || e.RetryAfter != 7*time.Second {
			t.Errorf("%.40q: %+v", tt.body, e)
		}
		if strings.Contains(err.Error(), s.URL) || strings.Contains(err.Error(), "token") {
			t.Errorf("the error tells too much: %s", err)
		}
	}
}

// TestRetryAfter: row 5. A time is meant on the server's clock, whatever ours says
// (remote.md rule 9).
func TestRetryAfter(t *testing.T) {
	var header http.Header
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			rw.Header()[name] = values
		}
		rw.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for name, tt := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"seconds":              {http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		"a clock that is late": {http.Header{"Date": {at(-24 * time.Hour)}, "Retry-After": {at(-24*time.Hour + 9*time.Second)}}, 9 * time.Second},
		"a clock that is fast": {http.Header{"Date": {at(24 * time.Hour)}, "Retry-After": {at(24*time.Hour + 9*time.Second)}}, 9 * time.Second},
		"a time that is over":  {http.Header{"Retry-After": {at(-time.Hour)}}, 0},
		"nothing":              {nil, 0},
		"words":                {http.Header{"Retry-After": {"soon"}}, 0},
		"less than nothing":    {http.Header{"Retry-After": {"-5"}}, 0},
	} {
		header = tt.header
		_, err := updater(s.URL, "token").GetTaskRun(t.Context(), "run")
		var e *workerclient.StatusError
		// The two times of a header are formed in whole seconds, a moment apart.
		if !errors.As(err, &e) || e.RetryAfter < tt.want || e.RetryAfter > tt.want+min(tt.want, time.Second) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// TestTemporary: row 5.
func TestTemporary(t *testing.T) {
	for status, want := range map[int]bool{200: false, 400: false, 401: false, 404: false, 409: false, 429: true, 500: true, 503: true} {
		if got := workerclient.Temporary(fmt.Errorf("x: %w", &workerclient.StatusError{Status: status})); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
	s := httptest.NewServer(nil)
	s.Close()
	if err := second(updater(s.URL, "").GetTaskRun(t.Context(), "run")); !workerclient.Temporary(err) {
		t.Errorf("nobody listens: %v is not temporary", err)
	}
	for _, id := range []string{"", ".", ".."} {
		if err := second(updater(s.URL, "").GetTaskRun(t.Context(), id)); err == nil || workerclient.Temporary(err) {
			t.Errorf("the id %q: %v", id, err)
		}
	}
	if workerclient.Temporary(nil) {
		t.Error("no error is temporary")
	}
}

// TestPath: an id is one part of the path, whatever stands in it.
func TestPath(t *testing.T) {
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI }))
	defer s.Close()
	_ = updater(s.URL+"/base//", "").PatchTaskRun(t.Context(), "a/../b?c#d", workerclient.PatchTaskRunRequest{})
	if want := "/base/api/worker/task-runs/a%2F..%2Fb%3Fc%23d"; got != want {
		t.Errorf("the path is %q, want %q", got, want)
	}
}

// TestRedirect: row 12. The token never goes to another host, and a PATCH never
// becomes a GET.
func TestRedirect(t *testing.T) {
	var tokens []string
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		_, _ = io.WriteString(rw, "{}")
	}))
	defer other.Close()
	var to string
	var code int
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/here" {
			_, _ = io.WriteString(rw, "{}")
			return
		}
		http.Redirect(rw, r, to, code)
	}))
	defer s.Close()
	client, err := workerclient.NewTLSClient(workerclient.TLSClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*http.Client{"none given": nil, "ours": client, "without a rule": {}} {
		u := workerclient.NewWorkerHTTPUpdater(workerclient.WorkerAPIClientConfig{BaseURL: s.URL, Token: "token", Client: c})
		for _, tt := range []struct {
			to        string
			code      int
			get, post bool // whether it is followed
		}{
			{other.URL, 302, false, false},
			{other.URL, 307, false, false},
			{strings.Replace(s.URL, "http:", "https:", 1) + "/here", 307, false, false},
			{"/here", 307, true, true},
			{"/here", 302, true, false},
		} {
			to, code = tt.to, tt.code
			_, getErr := u.GetTaskRun(t.Context(), "run")
			patchErr := u.PatchTaskRun(t.Context(), "run", workerclient.PatchTaskRunRequest{})
			if (getErr == nil) != tt.get || (patchErr == nil) != tt.post {
				t.Errorf("%s, %d to %s: GET %v, PATCH %v", name, tt.code, tt.to, getErr, patchErr)
			}
		}
	}
	if len(tokens) > 0 {
		t.Errorf("the other host was called with %q", tokens)
	}
}

// TestTLSOptions: row 12. What cannot be used fails when the client is made.
func TestTLSOptions(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("client", nil)
	empty := filepath.Join(a.dir, "empty")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]workerclient.TLSClientOptions{
		"no such CA":            {CAFile: filepath.Join(a.dir, "none")},
		"a CA without any":      {CAFile: empty},
		"a certificate alone":   {ClientCertFile: cert},
		"a key alone":           {ClientKeyFile: key},
		"a key that is no key":  {ClientCertFile: cert, ClientKeyFile: cert},
		"a certificate no file": {ClientCertFile: empty, ClientKeyFile: key},
	} {
		if c, err := workerclient.NewTLSClient(o); err == nil || c != nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestPlugin: row 9. The hash of the file is that of the pin and of the header,
// and the file is bounded.
func TestPlugin(t *testing.T) {
	packed := []byte("packed")
	sum := sha256.Sum256(packed)
	good := "sha256:" + hex.EncodeToString(sum[:])
	for name, tt := range map[string]struct {
		pin, header string
		ok          bool
	}{
		"right":          {good, "", true},
		"a wrong pin":    {"sha256:" + strings.Repeat("0", 64), "", false},
		"no pin":         {"", "", false},
		"another form":   {strings.ToUpper(good), "", false},
		"a wrong header": {good, "sha256:" + strings.Repeat("0", 64), false},
	} {
		runs, s := served(t)
		offer := devserver.TaskRun{Plugins: map[string][]byte{"p/1": packed}, Digests: map[string]string{}}
		if tt.header != "" {
			offer.Digests["p/1"] = tt.header
		}
		id, token := runs.Add(offer)
		err := updater(s.URL, token).DownloadPlugin(t.Context(), id, coreplugin.Pin{Name: "p", Version: "1", Digest: tt.pin}, io.Discard)
		if (err == nil) != tt.ok || workerclient.Temporary(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	runs, s := served(t)
	id, token := runs.Add(devserver.TaskRun{Plugins: map[string][]byte{"p/1": make([]byte, 32<<20+1)}})
	err := updater(s.URL, token).DownloadPlugin(t.Context(), id, coreplugin.Pin{Name: "p", Version: "1"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "at most 33554432 bytes") {
		t.Errorf("32 MiB and a byte: %v", err)
	}
}

// transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDeadlines: row 4. 30 s a call, 60 s without a byte for a download.
func TestDeadlines(t *testing.T) {
	silent := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	calls := map[string]func(context.Context, *workerclient.WorkerHTTPUpdater) error{
		"fetch": func(ctx context.Context, u *workerclient.WorkerHTTPUpdater) error {
			return second(u.GetTaskRun(ctx, "r"))
		},
		"patch": func(ctx context.Context, u *workerclient.WorkerHTTPUpdater) error {
			return u.PatchTaskRun(ctx, "r", workerclient.PatchTaskRunRequest{})
		},
		"secrets": func(ctx context.Context, u *workerclient.WorkerHTTPUpdater) error {
			return second(u.GetTaskRunSecrets(ctx, "r"))
		},
		"base": func(ctx context.Context, u *workerclient.WorkerHTTPUpdater) error {
			return second(u.GetWorkspaceBase(ctx, "r"))
		},
		"text": func(ctx context.Context, u *workerclient.WorkerHTTPUpdater) error {
			return (&workerclient.WorkerHTTPStreamSender{BaseURL: u.BaseURL, Client: u.Client}).SendDelta(ctx, "r", "x")
		},
		"plugin": func(ctx context.Context, u *workerclient.WorkerHTTPUpdater) error {
			return u.DownloadPlugin(ctx, "r", coreplugin.Pin{Name: "p", Version: "1"}, io.Discard)
		},
	}
	for name, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := call(t.Context(), &workerclient.WorkerHTTPUpdater{BaseURL: "https://host", Client: &http.Client{Transport: transport(silent)}})
			want := 30 * time.Second
			if name == "plugin" {
				want = 60 * time.Second
			}
			if took := time.Since(began); took != want || !workerclient.Temporary(err) || !strings.Contains(err.Error(), want.String()) {
				t.Errorf("%s: %v after %s", name, err, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		packed := []byte("12345")
		sum := sha256.Sum256(packed)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		slow := func(r *http.Request) (*http.Response, error) {
			pr, pw := io.Pipe()
			go func() {
				for i := range packed {
					time.Sleep(50 * time.Second)
					_, _ = pw.Write(packed[i : i+1])
				}
				pw.Close()
			}()
			return &http.Response{StatusCode: 200, Body: pr, Header: http.Header{workerclient.DigestHeader: {digest}}}, nil
		}
		u := &workerclient.WorkerHTTPUpdater{BaseURL: "https://host", Client: &http.Client{Transport: transport(slow)}}
		began := time.Now()
		err := u.DownloadPlugin(context.Background(), "r", coreplugin.Pin{Name: "p", Version: "1", Digest: digest}, io.Discard)
		if took := time.Since(began); err != nil || took != 250*time.Second {
			t.Errorf("a byte each 50 s: %v after %s", err, took)
		}
	})
}

// TestBundle: what a worker gets of a bundle, and that what is absent is absent.
func TestBundle(t *testing.T) {
	body := `{"run":{"id":"r","task_id":"t","previous_task_run_id":"p","input":"i","status":"SCHEDULED","cancel_requested":true,"created_at":"2026-01-02T03:04:05Z","new":1},
		"task":{"id":"t","conversation_id":"c","space_id":"s","user_id":"u","session_id":"x","agent_instructions":"a","space_agent_instructions":"b","space_agent_instructions_revision":3},
		"llm":{"transport":"buildmax","model":"m","context_window":5,"call_timeout":6},
		"plugins":[{"name":"n","version":"1","digest":"d"}],"plugin_error":"e","sandbox":{"network_tier":"open","filesystem_tier":"workspace"}}`
	var answer string
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, answer) }))
	defer s.Close()
	answer = body
	got, err := updater(s.URL, "").GetTaskRun(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	flat, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Run":{"ID":"r","TaskID":"t","PreviousTaskRunID":"p","Input":"i","Status":"SCHEDULED","CreatedAt":"2026-01-02T03:04:05Z"},` +
		`"Task":{"ID":"t","ConversationID":"c","SpaceID":"s","UserID":"u","SessionID":"x"},` +
		`"LLM":{"transport":"buildmax","model":"m","context_window":5,"call_timeout":6},` +
		`"AgentInstructions":"a","SpaceAgentInstructions":"b","CancelRequested":true,"Plugins":[{"Name":"n","Version":"1","Digest":"d"}],` +
		`"PluginError":"e","SandboxNetworkTier":"open","SandboxFilesystemTier":"workspace"}`
	if string(flat) != want {
		t.Errorf("the run is\n%s\nwant\n%s", flat, want)
	}
	answer = `{"run":{"id":"r"},"task":{}}`
	got, err = updater(s.URL, "").GetTaskRun(t.Context(), "r")
	if err != nil || got.LLM != nil || got.Plugins != nil || got.SandboxNetworkTier != "" || got.Task.SessionID != nil || got.CancelRequested {
		t.Errorf("the smallest bundle is %+v, %v", got, err)
	}
	for _, answer = range []string{"", "{", `{"run":[]}`, `[]`} {
		if _, err := updater(s.URL, "").GetTaskRun(t.Context(), "r"); err == nil || workerclient.Temporary(err) {
			t.Errorf("the answer %q: %v", answer, err)
		}
	}
}

// TestNames: a member of an answer in other letters is not the one that is meant.
func TestNames(t *testing.T) {
	body, status := `{"run":{"id":"r","status":"RUNNING","Status":"CANCELED","Cancel_Requested":true},"task":{},"Plugin_Error":"x"}`, 200
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}))
	defer s.Close()
	b, err := updater(s.URL, "token").GetTaskRun(t.Context(), "r")
	if err != nil || b.Run.Status != "RUNNING" || b.CancelRequested || b.PluginError != "" {
		t.Errorf("the run is %+v, %v", b, err)
	}
	body, status = `{"error":"e","Error":"x"}`, 404
	_, err = updater(s.URL, "token").GetTaskRun(t.Context(), "r")
	var e *workerclient.StatusError
	if !errors.As(err, &e) || e.Message != "e" {
		t.Errorf("the error is %v", err)
	}
}
