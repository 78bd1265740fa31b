//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"prp/protocol"
)

// write writes text to the runner's stdin as it is. A runner that has ended
// meanwhile is no fault here: what misses is the receipt.
func (r *run) write(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.stdin, text); err != nil && !errors.Is(err, syscall.EPIPE) {
		r.t.Fatalf("write to stdin: %v\n%s", err, r.tail())
	}
}

// commandLine is one command line without its newline. Further members begin
// with a comma.
func commandLine(id string, seq int64, t protocol.CommandType, payload, more string) string {
	if payload == "" {
		payload = "{}"
	}
	return fmt.Sprintf(`{"schema":"paperclip.prp.command.v1","commandId":%q,"controllerSeq":%d,"type":%q,"issuedAt":"2026-01-01T00:00:00Z","payload":%s%s}`,
		id, seq, t, payload, more)
}

// next is the next command with its number as its id.
func (r *run) next(t protocol.CommandType, payload string) (id, line string) {
	r.seq++
	id = fmt.Sprintf("c%d", r.seq)
	return id, commandLine(id, r.seq, t, payload, "") + "\n"
}

// send writes the next command and returns its id.
func (r *run) send(t protocol.CommandType, payload string) string {
	r.t.Helper()
	id, line := r.next(t, payload)
	r.write(line)
	return id
}

// do sends a command and waits for its receipt.
func (r *run) do(t protocol.CommandType, payload string) protocol.Receipt {
	r.t.Helper()
	return r.answer(r.send(t, payload))
}

// accepted sends a command that has to be accepted.
func (r *run) accepted(t protocol.CommandType, payload string) {
	r.t.Helper()
	if got := r.do(t, payload); got.Status != protocol.ReceiptAccepted {
		r.t.Fatalf("%s: got %+v, want accepted\n%s", t, got, r.tail())
	}
}

// rejected sends a command that has to be rejected with a code.
func (r *run) rejected(t protocol.CommandType, payload string, code protocol.Code) {
	r.t.Helper()
	if got := r.do(t, payload); got.Status != protocol.ReceiptRejected || got.Code != code {
		r.t.Errorf("%s %s: got %+v, want rejected with %s", t, payload, got, code)
	}
}

// turn is the payload of turn.start for the one turn of most tests.
const turn = `{"turnId":"turn_1","text":"go"}`

// begin prepares, opens and starts a turn, all in one write, and waits until
// the turn is accepted.
func (r *run) begin() {
	r.t.Helper()
	r.beginUnread()
	if got := r.answer("c3"); got.Status != protocol.ReceiptAccepted {
		r.t.Fatalf("turn.start: got %+v, want accepted\n%s", got, r.tail())
	}
}

// beginUnread is begin for a test that does not look at the answers.
func (r *run) beginUnread() {
	r.t.Helper()
	var all strings.Builder
	for _, c := range []struct {
		t       protocol.CommandType
		payload string
	}{{protocol.RunPrepare, ""}, {protocol.SessionOpen, ""}, {protocol.TurnStart, turn}} {
		_, line := r.next(c.t, c.payload)
		all.WriteString(line)
	}
	r.write(all.String())
}

// hangUp ends the runner's stdin.
func (r *run) hangUp() { r.stdin.Close() }
