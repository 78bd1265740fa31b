package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// endSignals ask a program for its end. The runner takes each of them in the
// same way, so that Ctrl-\ too ends a run and leaves nothing behind.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// untilTold is a context that ends with the first of the endSignals. The others
// mean nothing more until stop is called.
func untilTold() (ctx context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(context.Background(), endSignals...)
}

// outliveReaders keeps a program that has work to end well from being ended by a
// write to a stdout or stderr that nobody reads any more. The write is an error
// then.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// pressGap is how far two signals of one kind are apart at least, where each
// is meant: timeout(1) and others send theirs to the program and then to its
// group, and the second is no second wish. Whoever presses Ctrl-C again because
// of what the first has shown needs longer.
const pressGap = 250 * time.Millisecond

// presses tells a new press from an old one that arrives again. The zero value
// has seen none. It is for one goroutine.
type presses struct {
	last os.Signal
	at   time.Time
}

// again reports whether the signal, which came at that time, belongs to the
// press before it. Another signal is always a press of its own.
func (p *presses) again(sig os.Signal, at time.Time) bool {
	if sig == p.last && at.Sub(p.at) < pressGap {
		return true
	}
	p.last, p.at = sig, at
	return false
}
