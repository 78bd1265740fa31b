package runner

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"prp/protocol"
	"prp/protocol/jsonl"
	"prp/runner/lifecycle"
)

// BenchmarkHotPath is the runner's own work on a line of the harness, without
// processes, pipes and goroutines: frame, decode, step, print.
func BenchmarkHotPath(b *testing.B) {
	for _, size := range []int{200, 2 << 10, 60 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) { benchmarkHotPath(b, size) })
	}
}

func benchmarkHotPath(b *testing.B, size int) {
	l := preparedLoop(b)
	input := &endless{size: size, seq: 2}
	lines := jsonl.NewReader(input, protocol.DefaultHarnessLine)
	decoder := protocol.NewDecoder()
	batch := &harnessBatch{}
	b.ReportAllocs()
	b.SetBytes(int64(size))
	b.ResetTimer()
	for n := 0; n < b.N; {
		batch.items = batch.items[:0]
		if err := lines.ReadBatch(&batch.lines); err != nil {
			b.Fatal(err)
		}
		for _, line := range batch.lines.Lines {
			if !batch.decode(decoder, line, protocol.DefaultHarnessLine, false) {
				b.Fatal(batch.items[len(batch.items)-1].fault)
			}
		}
		n += len(batch.items)
		l.harness.free = make(chan *harnessBatch, 1)
		l.batch(batch)
		l.out = l.out[:0]
	}
}

// preparedLoop is a loop whose harness has said ready, without a process.
func preparedLoop(tb testing.TB) *loop {
	cfg := Defaults()
	cfg.RunID, cfg.SessionID, cfg.RunnerID = "run-1", "session-1", "runner-1"
	l := newLoop(cfg, nil)
	at := time.Now()
	decoder := protocol.NewDecoder()
	c, fault := decoder.Command([]byte(`{"schema":"prp.command.v1","commandId":"c1","controllerSeq":1,"type":"run.prepare","issuedAt":"2026-01-01T00:00:00Z"}`))
	if fault != nil {
		tb.Fatal(fault)
	}
	var m protocol.HarnessMessage
	if fault := decoder.HarnessMessage([]byte(`{"schema":"paperclip.harness.message.v1","messageSeq":1,"type":"ready","payload":{"version":"1"}}`), &m); fault != nil {
		tb.Fatal(fault)
	}
	l.state.Step(at, lifecycle.CommandReceived{Command: &c})
	l.state.Step(at, lifecycle.WorkspaceChecked{})
	l.state.Step(at, lifecycle.HarnessStarted{})
	l.state.Step(at, &lifecycle.HarnessSaid{Message: &m})
	return l
}

// endless is a harness that writes events of one size for ever. It costs
// little beside what is measured.
type endless struct {
	size int
	seq  int64
	rest []byte
	line []byte
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(e.rest) == 0 {
			e.next()
		}
		k := copy(p[n:], e.rest)
		e.rest = e.rest[k:]
		n += k
	}
	return n, nil
}

// next makes one line: only its number is new.
func (e *endless) next() {
	const (
		head  = `{"schema":"paperclip.harness.message.v1","messageSeq":`
		event = `,"type":"event","payload":{"eventType":"item.delta","turnId":"turn_1","itemId":"item_1","payload":{"kind":"assistant_message","delta":"`
		end   = `"}}}` + "\n"
	)
	e.line = strconv.AppendInt(append(e.line[:0], head...), e.seq, 10)
	e.line = append(e.line, event...)
	for len(e.line)+len(end) < e.size {
		e.line = append(e.line, "some text of an agent that goes on and on "[:min(42, e.size-len(end)-len(e.line))]...)
	}
	e.line = append(e.line, end...)
	e.rest = e.line
	e.seq++
}
