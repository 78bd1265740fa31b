package controller

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"prp/protocol"
)

// However a run ends, nothing of the client is left.
func TestNoGoroutineIsLeft(t *testing.T) {
	cfg := Config{Argv: []string{os.Args[0], asFakeRunner}, EnvAllow: []string{"GORACE"}, CloseGrace: patience}
	quiet := Scenario{TurnID: "turn_1", Text: "go on"}
	tests := map[string]func(t *testing.T, ctx context.Context, stop func(), c *Client){
		"Close": func(t *testing.T, _ context.Context, _ func(), c *Client) { c.Close() },
		"Kill":  func(t *testing.T, _ context.Context, _ func(), c *Client) { c.Kill() },
		"the end of the context": func(t *testing.T, _ context.Context, stop func(), c *Client) {
			stop()
			c.Wait(testContext(t))
		},
		"a reader that stops early": func(t *testing.T, ctx context.Context, _ func(), c *Client) {
			order(t, c, orders{Events: 100})
			for range c.Events(ctx) {
				break
			}
			c.Close()
		},
		"a receipt that nobody waits for": func(t *testing.T, ctx context.Context, _ func(), c *Client) {
			c.Submit(ctx, Command{Type: protocol.RunnerDrain, Payload: orders{Silent: true}})
			c.Close()
		},
		"a runner that exits by itself": func(t *testing.T, _ context.Context, _ func(), c *Client) {
			status := 0
			order(t, c, orders{Exit: &status})
			c.Wait(testContext(t))
		},
		"Drive": func(t *testing.T, ctx context.Context, stop func(), c *Client) {
			go func() { // the fake runner has no end of its own
				for m := range c.Messages(ctx) {
					if m.Kind == protocol.KindReceipt && m.Receipt.ControllerSeq == 3 {
						c.beginClose()
						return
					}
				}
			}()
			c.Drive(ctx, quiet)
		},
		"Drive whose context ends": func(t *testing.T, ctx context.Context, stop func(), c *Client) {
			stop()
			c.Drive(ctx, quiet)
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			c, err := Start(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			end(t, ctx, stop, c)
			select {
			case <-c.Done():
			default:
				t.Error("it has returned before the run was over")
			}
			stop()
			noneLeft(t, before)
		})
	}
	t.Run("a program that cannot be started", func(t *testing.T) {
		before := runtime.NumGoroutine()
		if _, err := Start(t.Context(), Config{Argv: []string{"/does/not/exist"}}); err == nil {
			t.Error("started")
		}
		noneLeft(t, before)
	})
}

func TestManyGoroutinesAndNoneLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	c := startFake(t, Config{})
	var wg, senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range 25 {
				if err := order(t, c, orders{Events: 5}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			var last int64
			for e, err := range c.Events(t.Context()) {
				if err != nil || e.SourceSeq != last+1 {
					t.Errorf("got event %d after %d, %v", e.SourceSeq, last, err)
				}
				last = e.SourceSeq
			}
			if last != 8*25*5+1 {
				t.Errorf("got %d events", last)
			}
		})
	}
	senders.Wait()
	c.Close()
	wg.Wait()
	noneLeft(t, before)
}

// noneLeft waits until there are no more goroutines than before.
func noneLeft(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}
