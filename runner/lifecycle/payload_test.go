package lifecycle

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"prp/protocol"
)

// TestPayloads: what is written by hand is what the types in package protocol say,
// member by member, and strict JSON (spec sections 3 and 5).
func TestPayloads(t *testing.T) {
	code, signal := 7, 9
	hostile := "\"\\\b\x00\u2028<&>\xff\u2603"
	const proposal = `{"runTerminalState": "succeeded"}`
	for name, tt := range map[string]struct {
		got  json.RawMessage
		want any
	}{
		"exited": {
			exitedPayload(protocol.HarnessExited{}),
			protocol.HarnessExited{
				Logs:        protocol.LogTail{Lines: []string{}},
				Containment: protocol.Containment{Means: []string{}, Survivors: []protocol.Survivor{}},
			},
		},
		"exited by a signal": {exitedPayload(fullExit(hostile, &signal)), fullExit(hostile, &signal)},
		"terminal": {
			terminalPayload(protocol.Terminal{}, nil), protocol.Terminal{},
		},
		"terminal with a proposal": {
			terminalPayload(fullTerminal(hostile, &code), []byte(proposal)),
			func() any {
				t := fullTerminal(hostile, &code)
				t.HarnessTerminalProposal = json.RawMessage(proposal)
				return t
			}(),
		},
	} {
		if err := protocol.CheckJSON(tt.got); err != nil {
			t.Errorf("%s: %v: %s", name, err, tt.got)
		}
		want, err := json.Marshal(tt.want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(members(t, want), members(t, tt.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func members(t *testing.T, text []byte) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return m
}

func fullExit(s string, signal *int) protocol.HarnessExited {
	return protocol.HarnessExited{
		ProcessExit: protocol.ExitFact{Signal: signal}, SemanticResultObserved: true,
		Logs: protocol.LogTail{Lines: []string{s, ""}, RetainedLines: 2, RetainedBytes: 12, DroppedLines: 1 << 40},
		Containment: protocol.Containment{
			Means: []string{"cgroup", s}, Swept: 3,
			Survivors: []protocol.Survivor{{PID: 4, Name: s, State: "D"}, {PID: 5}},
		},
	}
}

func fullTerminal(s string, code *int) protocol.Terminal {
	return protocol.Terminal{
		TerminalProposal: protocol.TerminalProposal{
			Schema: protocol.SchemaTerminal, TurnTerminalState: protocol.TurnTerminalState(s),
			RunTerminalState: "failed", ReportedWorkDisposition: "blocked",
		},
		Reconciliation: protocol.Reconciliation{
			Authority: protocol.AuthorityRunner, Reason: protocol.Reason(s), ProposalValid: true, ProposalContradicted: true,
			ProcessExit: &protocol.ExitFact{ExitCode: code, Success: true}, SemanticResultObserved: true,
		},
	}
}
