// Package fakemodel is a model server without a model, on loopback, so that
// real agents can be tried offline. It speaks OpenAI chat completions and
// responses, Anthropic messages and Gemini, streamed and whole.
//
// The last marker in the user's text says what the answer is:
//
//	[[text]]            a plain answer, which is also the default
//	[[tool:CMD]]        one call of a shell tool that runs CMD, then a text
//	[[slow:N]]          N words, a quarter of a second apart
//	[[hang]]            nothing after the headers
//	[[error:CODE]]      the HTTP status CODE, every time
//	[[error:CODE:K]]    the same for the first K requests with this marker
//	[[huge:N]]          N bytes in pieces of 8 KiB
//	[[one:N]]           N bytes in one piece
//	[[think]]           reasoning, then a text
//	[[utf8]]            awkward Unicode ([Awkward])
//
// # Duties of the caller
//
// Start it, point the agent to it with [Server.URL], and close it.
//
// # Invariants
//
// It listens on 127.0.0.1 only and asks nobody. Two requests with the same text
// get the same answer, but for their ids and the counted errors.
package fakemodel
