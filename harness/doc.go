// Package harness is the harness's side of the stream between a harness and
// its runner (spec sections 1, 2 and 4): commands come on stdin, messages go
// out on stdout, one JSON object a line.
//
// It is for programs that are a harness: the fake one in harness/fake, and
// adapters to real agents. It knows neither runner nor controller; they meet
// on the wire.
//
// # Duties of the caller
//
// The first message is ready; package harness numbers what it is told to send
// and does not check its content. Stdout belongs to the [Conn]: nobody else
// writes to it. Stderr is free for notes to a person.
//
// A program that wants to see a lost stdout as an error of [Conn.Send] asks
// for SIGPIPE with signal.Notify; else Go ends it at the first write to a
// stdout that nobody reads, which is as good an end for a harness. After an
// error of Send there is nobody to talk to: end the work and exit.
//
// # Invariants
//
// A message and those queued before it are one write call, so messages of several goroutines never mix.
// messageSeq is contiguous from 1 in the order of the writes. A Conn reads
// stdin only while a command is asked for and none is left of the last read;
// with [Conn.Commands] that is as long as its buffer has room.
package harness
