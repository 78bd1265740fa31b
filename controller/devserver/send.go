package devserver

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
)

// send hands a command to the worker and answers with every frame about it, one
// a line, up to its result. A command without an id gets one.
func (w *Worker) send(rw http.ResponseWriter, r *http.Request) {
	var command map[string]json.RawMessage
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxFrame))
	if err != nil || json.Unmarshal(body, &command) != nil || command == nil {
		http.Error(rw, "expected a command as a JSON object", http.StatusBadRequest)
		return
	}
	id := ""
	if raw := command["command_id"]; raw != nil {
		_ = json.Unmarshal(raw, &id)
	}
	if id == "" {
		id = "cmd_" + randomID()
		command["command_id"], _ = json.Marshal(id) // a string
	}
	frame, err := json.Marshal(command)
	if err != nil {
		http.Error(rw, "expected a command as a JSON object", http.StatusBadRequest)
		return
	}
	at := len(w.Frames())
	if !w.Connected() {
		http.Error(rw, "no worker is connected", http.StatusServiceUnavailable)
		return
	}
	if err := w.Send(r.Context(), frame); err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	rw.Header().Set("Content-Type", "application/x-ndjson")
	w.copyFrames(rw, r, id, at)
}

// copyFrames writes the frames of a command from an index on.
func (w *Worker) copyFrames(rw http.ResponseWriter, r *http.Request, id string, at int) {
	out := http.NewResponseController(rw)
	for {
		var list []Frame
		err := w.Await(r.Context(), func(frames []Frame) bool {
			list = slices.Clone(frames[at:])
			return len(list) > 0
		})
		if err != nil {
			return
		}
		at += len(list)
		for _, f := range list {
			if f.ID != id {
				continue
			}
			if _, err := rw.Write(append(slices.Clone(f.Raw), '\n')); err != nil {
				return
			}
			if f.Kind == OnResult {
				return
			}
		}
		if out.Flush() != nil {
			return
		}
	}
}
