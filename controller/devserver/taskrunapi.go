package devserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"prp/controller/bridge"
	"prp/controller/workerclient"
	"prp/controller/workerclient/coretask"
)

// maxReport bounds the body of a call, in bytes.
const maxReport = 64 << 20

// taskRunsPath is where the API is.
const taskRunsPath = "/api/worker/task-runs/"

// ServeHTTP implements [http.Handler].
func (s *TaskRuns) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == SubmitPath && r.Method == http.MethodPost:
		s.submit(rw, r)
	case r.URL.Path == CancelPath && r.Method == http.MethodPost:
		s.cancel(rw, r)
	case strings.HasPrefix(r.URL.Path, taskRunsPath):
		s.api(rw, r)
	default:
		http.NotFound(rw, r)
	}
}

// hasToken compares without telling by its time how much was right.
func hasToken(r *http.Request, token string) bool {
	return token == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) == 1
}

// kinds are the calls by method and suffix.
var kinds = map[string]string{
	"GET ": OnFetch, "POST stream": OnStream, "GET secrets": OnSecrets, "GET workspace-base": OnBase,
	"POST workspace-restore": OnRestore, "POST workspace-checkpoints": OnSeed,
}

// kindOf names a call; empty is one that does not exist.
func kindOf(method, suffix string, body []byte) string {
	switch {
	case method == http.MethodPatch && suffix == "":
		var p workerclient.PatchTaskRunRequest
		if bridge.Decode(body, &p) == nil && p.Status == coretask.StatusRunning {
			return OnClaim
		}
		return OnEnd
	case method == http.MethodGet && strings.HasPrefix(suffix, "plugins/") && strings.HasSuffix(suffix, "/download"):
		return OnPlugin
	}
	return kinds[method+" "+suffix]
}

// api answers a call of a worker.
func (s *TaskRuns) api(rw http.ResponseWriter, r *http.Request) {
	id, suffix, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, taskRunsPath), "/")
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxReport))
	kind := kindOf(r.Method, suffix, body)
	s.mu.Lock()
	known := s.runs[id]
	s.mu.Unlock()
	switch {
	case err != nil:
		refuse(rw, http.StatusBadRequest, "the body cannot be read")
		return
	case known == nil:
		refuse(rw, http.StatusNotFound, "no such run")
		return
	case kind == "":
		refuse(rw, http.StatusNotFound, "no such call")
		return
	}
	do := s.rules.next(kind)
	answer := reply{}
	misbehaves := statusRule(do)
	if misbehaves > 0 {
		answer = failure(misbehaves, "as ordered")
	}
	s.change(func() {
		run := s.runs[id]
		switch {
		case misbehaves > 0:
		case !hasToken(r, run.Token):
			answer = failure(http.StatusUnauthorized, "expected the token of the run")
		case do != Drop && do != Hang:
			answer = run.answer(kind, suffix, body)
		}
		status := answer.status
		if do == Drop || do == DropAfter || do == Hang {
			status = 0
		}
		run.Calls = append(run.Calls, Call{Kind: kind, Body: slices.Clone(body), Status: status})
	})
	s.finish(rw, r, do, answer)
}

// finish answers as a rule wants it.
func (s *TaskRuns) finish(rw http.ResponseWriter, r *http.Request, do string, answer reply) {
	switch do {
	case Drop, DropAfter:
		panic(http.ErrAbortHandler) // net/http ends the connection without an answer
	case Hang:
		select {
		case <-s.closed.Done():
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case Late:
		_ = bridge.Pause(s.closed, lateBy) // an end has its own effect
	}
	for name, value := range answer.header {
		rw.Header().Set(name, value)
	}
	rw.WriteHeader(answer.status)
	_, _ = rw.Write(answer.body) // a worker that has left
}

// reply is an answer before it is written.
type reply struct {
	status int
	header map[string]string
	body   []byte
}

func success(value any) reply {
	body, err := json.Marshal(value)
	if err != nil {
		return failure(http.StatusInternalServerError, "the answer cannot be encoded")
	}
	return reply{status: http.StatusOK, header: map[string]string{"Content-Type": "application/json"}, body: body}
}

func failure(status int, why string) reply {
	r := success(map[string]string{"error": why})
	r.status = status
	return r
}

func refuse(rw http.ResponseWriter, status int, why string) {
	r := failure(status, why)
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(r.status)
	_, _ = rw.Write(r.body) // a worker that has left
}

// answer does what a call asks for. The lock is held.
func (r *run) answer(kind, suffix string, body []byte) reply {
	switch kind {
	case OnFetch:
		return success(r.bundle())
	case OnClaim, OnEnd:
		var p workerclient.PatchTaskRunRequest
		if bridge.Decode(body, &p) != nil {
			return failure(http.StatusBadRequest, "expected a report")
		}
		if status, why := r.report(p); why != "" {
			return failure(status, why)
		}
		return success(struct{}{})
	case OnStream:
		return r.stream(body)
	case OnSecrets:
		if r.Secrets == nil {
			return failure(http.StatusNotFound, "the run has no secrets")
		}
		return success(r.secrets())
	case OnPlugin:
		return r.plugin(suffix)
	}
	return r.workspace(kind, body)
}

func (r *run) stream(body []byte) reply {
	var d workerclient.StreamDeltaRequest
	switch {
	case bridge.Decode(body, &d) != nil:
		return failure(http.StatusBadRequest, "expected a delta")
	case coretask.IsTerminal(r.Status):
		return failure(http.StatusConflict, "the run has ended")
	}
	r.text.WriteString(d.Delta)
	return success(struct{}{})
}

func (r *run) plugin(suffix string) reply {
	name := strings.TrimSuffix(strings.TrimPrefix(suffix, "plugins/"), "/download")
	packed, ok := r.Plugins[name]
	if !ok {
		return failure(http.StatusNotFound, "no such plugin")
	}
	sum := sha256.Sum256(packed)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if other, ok := r.Digests[name]; ok {
		digest = other
	}
	return reply{status: http.StatusOK, body: packed, header: map[string]string{
		"Content-Type": "application/octet-stream", workerclient.DigestHeader: digest,
	}}
}

func (r *run) workspace(kind string, body []byte) reply {
	if !r.Workspaces {
		return failure(http.StatusNotFound, "no workspaces are kept")
	}
	var err error
	switch kind {
	case OnBase:
		if r.Base != nil {
			return success(r.Base)
		}
	case OnRestore:
		var restore workerclient.WorkspaceRestoreRequest
		err = bridge.Decode(body, &restore)
		r.Restores = append(r.Restores, restore)
	case OnSeed:
		var seed workerclient.SeedCheckpointRequest
		err = bridge.Decode(body, &seed)
		r.Seeds = append(r.Seeds, seed)
		if err == nil {
			return success(workerclient.SeedCheckpointResponse{CheckpointID: "checkpoint_" + randomID()})
		}
	}
	if err != nil {
		return failure(http.StatusBadRequest, "expected a JSON object")
	}
	return reply{status: http.StatusNoContent}
}
