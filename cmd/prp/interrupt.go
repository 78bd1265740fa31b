package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"prp/controller"
	"prp/protocol"
)

// interrupts gives Ctrl-C its three meanings: the first interrupts the turn,
// the second cancels the run, the third kills it. The runner is in a process
// group of its own and does not see the key.
type interrupts struct {
	client *controller.Client
	say    func(text string)
	// idle, where it is set, tells that there is nothing to interrupt: then
	// the first Ctrl-C says only what a second one would do.
	idle func() bool
	// id, where it is set, makes the id of a command.
	id func(kind protocol.CommandType) string

	keys   chan os.Signal
	typed  chan struct{} // what press has seen
	now    func() time.Time
	count  atomic.Int32 // since the last turn began
	killed atomic.Bool
	// ended is closed when a signal other than Ctrl-C has asked for the end.
	ended chan struct{}
}

func newInterrupts(client *controller.Client, say func(text string)) *interrupts {
	return &interrupts{
		client: client, say: say, ended: make(chan struct{}), now: time.Now,
		keys: make(chan os.Signal, 8), typed: make(chan struct{}, 8), // more than a person can mean
	}
}

// hook listens until stop is called.
func (i *interrupts) hook() (stop func()) {
	signal.Notify(i.keys, endSignals...)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var p presses
		for {
			select {
			case <-over:
				return
			case <-i.typed:
				i.take(&wg, os.Interrupt)
			case sig := <-i.keys:
				if !p.again(sig, i.now()) {
					i.take(&wg, sig)
				}
			}
		}
	})
	return func() {
		signal.Stop(i.keys)
		close(over)
		wg.Wait()
	}
}

// press is a Ctrl-C that a terminal in raw mode does not make a signal of. Each
// is one that a person has typed.
func (i *interrupts) press() {
	select {
	case i.typed <- struct{}{}:
	default: // nobody presses so often and means it
	}
}

// take does what the signal means. It does not wait for the runner, but the
// commands go out in the order of the keys.
func (i *interrupts) take(wg *sync.WaitGroup, sig os.Signal) {
	n := i.count.Add(1)
	if sig != os.Interrupt {
		if n == 1 {
			n = 2 // the end was asked for, not a pause
			i.count.Store(n)
		}
		select {
		case <-i.ended:
		default:
			close(i.ended)
		}
	}
	switch {
	case n == 1 && i.idle != nil && i.idle():
		i.say("no turn is active; Ctrl-C again cancels the run")
	case n == 1:
		i.say("interrupting the turn; Ctrl-C again cancels the run")
		i.order(wg, protocol.TurnInterrupt, func() {
			i.order(wg, protocol.RunCancel, i.close) // there is no turn to interrupt
		})
	case n == 2:
		i.say("cancelling the run; Ctrl-C again kills it")
		i.order(wg, protocol.RunCancel, i.close)
	default:
		i.say("killing the run")
		i.killed.Store(true)
		wg.Go(i.client.Kill)
	}
}

// order sends a command; where it is not taken, instead is called.
func (i *interrupts) order(wg *sync.WaitGroup, kind protocol.CommandType, instead func()) {
	ctx := context.Background() // a command ends with the run at the latest
	command := controller.Command{Type: kind, Payload: map[string]string{"reason": "asked for at the terminal"}}
	if i.id != nil {
		command.ID = i.id(kind)
	}
	wait, err := i.client.Submit(ctx, command)
	if err != nil {
		instead()
		return
	}
	wg.Go(func() {
		if _, err := wait(ctx); err != nil {
			instead()
		}
	})
}

// close ends the run by the end of the runner's stdin; it does not block.
func (i *interrupts) close() { go i.client.Close() }
