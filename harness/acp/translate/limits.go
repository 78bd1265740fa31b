package translate

import (
	"prp/harness/fields"
	"prp/harness/text"
	"prp/protocol"
)

// Sizes are bytes unless said otherwise. A payload is made of a few of these,
// so that it stays under protocol.DefaultHarnessLine.
const (
	// maxShort bounds titles, names and messages.
	maxShort = fields.MaxShort
	// maxRaw bounds a value of the agent that is passed on as it is, such as
	// the input of a tool.
	maxRaw = text.MaxPiece
	// maxKey bounds the id, the name and the kind of a choice.
	maxKey = 256
	// maxList bounds a list that is made of parts of the agent's.
	maxList = 2 * maxRaw
	// maxToolOutput bounds what is passed on of the output of one tool call.
	maxToolOutput = 256 << 10
	// maxMetadata bounds a metadata value that session.closed repeats.
	maxMetadata = 2 << 10
	// maxSummary is the length of a summary, in characters.
	maxSummary = protocol.MaxSummaryLen
	// maxSummaryJSON is its size as a JSON string: enough for the longest one
	// without control characters.
	maxSummaryJSON = 4*maxSummary + 2
	// maxTools, maxRequests, maxQueued, maxNames and maxChoices are counts:
	// open tool calls, requests that wait for an answer, commands that wait
	// for the session, kinds of notes that are told as events, and choices of
	// one permission.
	maxTools    = 1024
	maxRequests = 64
	maxQueued   = 256
	maxNames    = 256
	maxHeld     = 64
	maxChoices  = 32
)
