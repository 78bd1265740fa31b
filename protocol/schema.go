package protocol

// Schema names as they stand in the member "schema" of a line or an object
// (spec section 1).
const (
	// SchemaCommand is what a controller writes to the runner's stdin.
	SchemaCommand = "paperclip.prp.command.v1"
	// SchemaCommandShort is accepted as another name of [SchemaCommand].
	SchemaCommandShort = "prp.command.v1"
	// SchemaStream is what the runner writes to its stdout.
	SchemaStream = "paperclip.runner.stream.v1"
	// SchemaEvent is an event inside a stream line.
	SchemaEvent = "paperclip.prp.event.v1"
	// SchemaRequest is a runtime request of the harness.
	SchemaRequest = "paperclip.runtime_request.v1"
	// SchemaResult is a semantic result.
	SchemaResult = "paperclip.run_result.v1"
	// SchemaTerminal is a terminal, proposed or canonical.
	SchemaTerminal = "paperclip.prp.terminal.v1"
	// SchemaScript is a script of the fake harness.
	SchemaScript = "paperclip.fake_harness.script.v1"
)

// Family is the family of schema names that a harness speaks. The schema of
// its first message decides, for the whole run.
type Family uint8

const (
	// FamilyNone is a harness that has not said anything yet.
	FamilyNone Family = iota
	// FamilyFake is the fake harness.
	FamilyFake
	// FamilyHarness is any other harness.
	FamilyHarness
)

// Schemas of the lines of a harness, one a family.
const (
	schemaMessageFake    = "paperclip.fake_harness.message.v1"
	schemaMessageHarness = "paperclip.harness.message.v1"
)

// MessageSchema is the schema of the lines that a harness of this family writes.
func (f Family) MessageSchema() string {
	switch f {
	case FamilyFake:
		return schemaMessageFake
	case FamilyHarness:
		return schemaMessageHarness
	}
	return ""
}

// CommandSchema is the schema of the lines that a harness of this family reads.
func (f Family) CommandSchema() string {
	switch f {
	case FamilyFake:
		return "paperclip.fake_harness.command.v1"
	case FamilyHarness:
		return "paperclip.harness.command.v1"
	}
	return ""
}

// Limits of the wire that no flag changes.
const (
	// MaxIDLen is the largest number of characters (code points) of a
	// command, turn, item or request id.
	MaxIDLen = 160
	// MaxRunIDLen is the largest number of characters of a run, session or
	// runner id: an event id made from it stays under [MaxIDLen].
	MaxRunIDLen = 140
	// MaxDepth is how deep arrays and objects may be nested.
	MaxDepth = 512
	// MaxSummaryLen is the largest number of characters of a result's summary.
	MaxSummaryLen = 12000
	// DefaultHarnessLine bounds a line of the harness, in bytes of content.
	DefaultHarnessLine = 64 << 10
	// DefaultCommandLine bounds a line of the controller, in bytes of content.
	DefaultCommandLine = 1 << 20
	// DefaultCommandHistory is how many command ids a ledger remembers.
	DefaultCommandHistory = 65536
)
