package controller_test

import (
	"context"
	"fmt"
	"os"

	"prp/controller"
)

// A run that is followed from its start to its end. The runner here is a
// stand-in that answers every command; a real one is started as
//
//	Argv: []string{"prp-runner", "--harness", "prp-harness fake --script happy-path"}
func Example() {
	ctx := context.Background()
	client, err := controller.Start(ctx, controller.Config{
		Argv:     []string{os.Args[0], "fake-runner"},
		EnvAllow: []string{"GORACE"},
		RunID:    "run_1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	if err := client.Prepare(ctx); err != nil {
		fmt.Println(err)
	}
	if err := client.OpenSession(ctx); err != nil {
		fmt.Println(err)
	}
	if err := client.StartTurn(ctx, "turn_1", "Fix the greeting.", nil); err != nil {
		fmt.Println(err)
	}
	client.Close() // ends a run that is not over

	for event, err := range client.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(event.SourceEventID, event.EventType)
	}
	trace, err := client.Wait(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(trace.Terminal.RunTerminalState, trace.Terminal.Reconciliation.Reason)
	// Output:
	// event_run_1_001 run.terminal
	// cancelled controller_closed
}
