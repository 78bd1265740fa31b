package console

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// refusal is why a request is not served: a status and a code that stay the
// same, and a message for a person.
type refusal struct {
	status  int
	code    string
	message string
}

// Error implements error.
func (r *refusal) Error() string { return r.code + ": " + r.message }

// Codes of refusals that more than one place gives.
const (
	codeNotFound     = "not_found"
	codeInvalidBody  = "invalid_body"
	codeBodyTooLarge = "body_too_large"
)

func refuse(status int, code, message string) *refusal {
	return &refusal{status: status, code: code, message: message}
}

// errorBody is what a refused request is answered with.
type errorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	// Receipt is the runner's, where it was the runner that refused.
	Receipt any `json:"receipt,omitempty"`
}

// write answers with the refusal.
func (r *refusal) write(w http.ResponseWriter) { r.writeWith(w, nil) }

func (r *refusal) writeWith(w http.ResponseWriter, receipt any) {
	body := errorBody{Receipt: receipt}
	body.Error.Code, body.Error.Message = r.code, r.message
	answer(w, r.status, body)
}

// answer writes a JSON answer. A client that is gone does not see it.
func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil { // every body is a struct of this package
		status, text = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer cannot be written"}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
