package fake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"prp/protocol"
)

func (s *Delay) run(d *driver) error {
	milliseconds := s.Milliseconds
	if d.options.DelayMS != nil {
		milliseconds = *d.options.DelayMS
	}
	return d.sleep(time.Duration(milliseconds) * time.Millisecond)
}

func (s *Log) run(d *driver) error {
	b := protocol.AppendString([]byte(`{"stream":`), s.Stream)
	b = protocol.AppendString(append(b, `,"text":`...), s.Text)
	return d.conn.Send(protocol.MessageLog, append(b, '}'))
}

func (s *Event) run(d *driver) error {
	turnID := s.TurnID
	if turnID == "" {
		turnID = d.turnOf(s.EventType)
	}
	return d.event(protocol.EventType(s.EventType), turnID, s.ItemID, s.Payload)
}

func (s *Request) run(d *driver) error {
	return d.conn.Send(protocol.MessageRequest, wrap("request", s.Request))
}

func (s *Result) run(d *driver) error {
	return d.conn.Send(protocol.MessageResult, wrap("result", s.Payload))
}

func (s *Terminal) run(d *driver) error {
	return d.conn.Send(protocol.MessageTerminal, wrap("terminal", s.Payload))
}

func (s *Ready) run(d *driver) error {
	return d.conn.Send(protocol.MessageReady, []byte(readyPayload))
}

// wrap makes {"name":object}.
func wrap(name string, object []byte) []byte {
	return append(append([]byte(`{"`+name+`":`), object...), '}')
}

func (s *AwaitResolution) run(d *driver) error {
	command, err := d.awaitWhere(func(c protocol.HarnessCommand) bool {
		id, _ := unquote(member(c.Payload, "requestId"))
		return c.Type == protocol.RequestResolve && id == s.RequestID
	})
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("stdin ended while waiting for the answer to %q: %w", s.RequestID, err)
	}
	if err != nil {
		return err
	}
	response := member(command.Payload, "response")
	if response == nil {
		response = []byte("null")
	}
	payload := protocol.AppendString([]byte(`{"requestId":`), s.RequestID)
	payload = append(append(append(payload, `,"response":`...), response...), '}')
	return d.event(protocol.EventRequestResolved, d.turnID, "", payload)
}

// defaultReason stands where an interrupt gives no reason.
const defaultReason = "interrupted"

func (s *AwaitInterrupt) run(d *driver) error {
	command, err := d.await(protocol.TurnInterrupt, protocol.TurnStop)
	if errors.Is(err, io.EOF) && s.HangAtEnd {
		return d.sleep(forever)
	}
	if err != nil {
		return err
	}
	reason, ok := unquote(member(command.Payload, "reason"))
	if !ok {
		reason = defaultReason
	}
	payload := protocol.AppendString([]byte(`{"reason":`), reason)
	return d.event(protocol.EventTurnInterrupted, d.turnID, "", append(payload, '}'))
}

func (s *AwaitCommand) run(d *driver) error {
	_, err := d.await(protocol.CommandType(s.CommandType))
	return err
}

func (s *Exit) run(*driver) error { return exitStatus(s.Code) }

func (s *Raw) run(d *driver) error {
	data := s.Base64
	if s.Text != nil {
		data = []byte(*s.Text)
	}
	d.conn.Skip(s.Messages)
	_, err := d.options.Stdout.Write(data)
	return err
}

func (s *Stderr) run(d *driver) error {
	for i := range max(s.Times, 1) {
		text := strings.ReplaceAll(s.Text, "{n}", strconv.FormatInt(i+1, 10))
		if _, err := d.options.Stderr.WriteString(text); err != nil {
			return err
		}
	}
	return nil
}

// floodChunk is one write of a flood: what a pipe of Linux holds, and in whole
// lines, so that a chunk needs no second look.
const floodChunk = 64 << 10 / FloodLine * FloodLine

func (s *Flood) run(d *driver) error {
	out := d.options.Stdout
	if s.Stream == "stderr" {
		out = d.options.Stderr
	}
	chunk := bytes.Repeat([]byte("x"), floodChunk)
	if s.Newline {
		for i := FloodLine - 1; i < len(chunk); i += FloodLine {
			chunk[i] = '\n'
		}
	}
	for left := s.Bytes; left > 0; {
		n := min(left, floodChunk)
		if s.Newline && n == left {
			chunk[n-1] = '\n'
		}
		if _, err := out.Write(chunk[:n]); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

func (s *Repeat) run(d *driver) error {
	for range s.Times {
		if err := d.steps(s.Steps); err != nil {
			return err
		}
	}
	return nil
}

func (s *CloseStdin) run(d *driver) error { return d.options.Stdin.Close() }

func (s *CloseStdout) run(d *driver) error { return d.options.Stdout.Close() }

func (s *IgnoreSigterm) run(d *driver) error {
	d.onTerm = nil
	// Caught and dropped: an ignored signal would be inherited by workers.
	signal.Notify(d.term, syscall.SIGTERM)
	return nil
}

func (s *OnSigterm) run(d *driver) error {
	d.onTerm = s.Steps
	signal.Notify(d.term, syscall.SIGTERM)
	return nil
}

// forever is a sleep without an end.
const forever = -1

func (s *Hang) run(d *driver) error { return d.sleep(forever) }

func (s *StopSelf) run(*driver) error { return stopSelf() }

func (s *Crash) run(*driver) error {
	if err := dieBy(syscall.Signal(s.Signal)); err != nil {
		return err
	}
	// The signal may be delivered a moment after it was sent.
	time.Sleep(crashWait)
	return fmt.Errorf("expected signal %d to end the process, and it did not", s.Signal)
}

// crashWait is far more than a signal to oneself takes.
const crashWait = 5 * time.Second

func (s *SpawnWorker) run(d *driver) error {
	pid, err := d.spawn(s)
	if err != nil {
		return fmt.Errorf("spawn_worker: %w", err)
	}
	payload := append(strconv.AppendInt([]byte(`{"workerPid":`), int64(pid), 10), '}')
	return d.conn.Send(protocol.MessageDiagnostic, payload)
}
