// Package controller is the parent's side of a run: it starts a runner, numbers
// and sends commands, follows the stream that comes back, and folds its events
// into a [Snapshot].
//
// It knows the runner only by the wire (package protocol) and never imports
// packages runner or harness. A runner is any program that keeps the contract:
// the binary prp-runner, prp itself, or a fake in a test.
//
// # A run
//
// [Start] starts the runner. [Client.Prepare], [Client.OpenSession] and
// [Client.StartTurn] set it going; [Client.Events] yields what happens, in
// order, from the first event on, to any number of readers. [Client.Wait]
// gives the whole [Trace] once the runner is gone, and [Client.Close] ends a
// run that is not over.
//
// # Duties of the caller
//
// Every client that was started must be closed, also after its run has ended;
// Close is cheap then. The caller's [Config.Tap] and [Config.OnEvent] must not
// call the client: they run on the goroutine that reads the stream, so that a slow
// one slows the run down and not memory. Commands are not retried: a [Client.Send] that was
// ended by its context may still take effect.
//
// # Invariants
//
// Commands go out in the order of their sequence numbers, without gaps. An
// event is handed on only if its run, session, source, sequence and id are
// the ones that this client expects (spec section 3); the first that is not
// ends the stream with a [BindingError], and the run with it. A reader that is
// slow, or gone, never delays a receipt: what it has not read is kept up to
// [Config.MaxRetainedBytes], and past that it gets [ErrLagged] instead of a
// gap it cannot see. All methods are safe for use by many goroutines; there is
// one lock, and no goroutine is left once [Client.Close] or [Client.Wait] has
// returned.
//
// Folding ([Snapshot.Apply]) and replaying ([Replay]) are pure: they start
// nothing and read no clock.
package controller
