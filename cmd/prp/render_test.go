package main

import (
	"context"
	"testing"

	"prp/controller"
	"prp/protocol"
)

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestKnownBeforeShown: whoever sees an event can act on it at once, and whoever
// awaits it goes on after it was shown.
func TestKnownBeforeShown(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	r := &renderer{}
	awaited := func() bool { return r.await(over, func(*controller.Snapshot) bool { return true }) }
	shown := false
	r.screen = &screen{out: writerFunc(func(p []byte) (int, error) {
		shown = true
		if _, events := r.state(); events != 1 {
			t.Errorf("%d events are known while the first is shown", events)
		}
		if awaited() {
			t.Error("who awaits an event goes on before it was shown")
		}
		return len(p), nil
	})}
	r.message(0, &protocol.StreamMessage{Kind: protocol.KindEvent, Event: &protocol.Event{EventType: protocol.EventWorkspaceReady}})
	if !shown || !awaited() {
		t.Errorf("shown %v, and who awaits it does not go on", shown)
	}
}
