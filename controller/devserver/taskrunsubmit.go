package devserver

import (
	"encoding/json"
	"net/http"

	"prp/controller/workerclient"
)

// Paths for who submits runs.
const (
	// SubmitPath takes a [Submission] by POST and answers with [Progress], one
	// a line, up to the end of the run.
	SubmitPath = "/submit"
	// CancelPath takes {"id"} by POST.
	CancelPath = "/cancel"
)

// Submission is a run that somebody wants.
type Submission struct {
	Input        string                       `json:"input"`
	Instructions string                       `json:"instructions,omitempty"`
	Secrets      map[string]string            `json:"secrets,omitempty"`
	Sandbox      *workerclient.TaskRunSandbox `json:"sandbox,omitempty"`
}

// Progress is a line of the answer to a submission.
type Progress struct {
	// ID is the run; in the first line. Its token is for its worker alone.
	ID string `json:"id,omitempty"`
	// Status is a new status.
	Status string `json:"status,omitempty"`
	// Delta is new text.
	Delta string `json:"delta,omitempty"`
	// End is the terminal report; in the last line.
	End *workerclient.PatchTaskRunRequest `json:"end,omitempty"`
}

func (s *TaskRuns) submit(rw http.ResponseWriter, r *http.Request) {
	var want Submission
	switch {
	case !hasToken(r, s.cfg.Token):
		http.Error(rw, "expected the token", http.StatusUnauthorized)
		return
	case readBody(rw, r, maxFrame, &want) != nil || want.Input == "":
		http.Error(rw, "expected a JSON object with an input", http.StatusBadRequest)
		return
	}
	offer := TaskRun{Secrets: want.Secrets}
	offer.Bundle.Run.Input = want.Input
	offer.Bundle.Task.AgentInstructions = want.Instructions
	offer.Bundle.Sandbox = want.Sandbox
	id, token := s.Add(offer)
	if s.cfg.Submitted != nil {
		s.cfg.Submitted(id, token)
	}
	rw.Header().Set("Content-Type", "application/x-ndjson")
	s.follow(rw, r, id)
}

// follow writes what happens to a run until it has ended.
func (s *TaskRuns) follow(rw http.ResponseWriter, r *http.Request, id string) {
	out := http.NewResponseController(rw)
	line := json.NewEncoder(rw)
	told := TaskRunState{}
	if line.Encode(Progress{ID: id}) != nil || out.Flush() != nil {
		return
	}
	for {
		var now TaskRunState
		err := s.Await(r.Context(), id, func(st TaskRunState) bool {
			now = st
			return st.Status != told.Status || len(st.Text) > len(told.Text)
		})
		if err != nil {
			return
		}
		p := Progress{Delta: now.Text[len(told.Text):], End: now.End}
		if now.Status != told.Status {
			p.Status = now.Status
		}
		told = now
		if line.Encode(p) != nil || out.Flush() != nil || now.End != nil {
			return
		}
	}
}

func (s *TaskRuns) cancel(rw http.ResponseWriter, r *http.Request) {
	var which struct {
		ID string `json:"id"`
	}
	switch {
	case !hasToken(r, s.cfg.Token):
		http.Error(rw, "expected the token", http.StatusUnauthorized)
	case readBody(rw, r, maxFrame, &which) != nil:
		http.Error(rw, "expected a JSON object with an id", http.StatusBadRequest)
	case !s.RequestCancel(which.ID):
		http.Error(rw, "no such run", http.StatusNotFound)
	}
}
