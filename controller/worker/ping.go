package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"prp/protocol"
)

// pingResult is the result of worker.ping.
type pingResult struct {
	Time string `json:"time"`
}

func pong(context.Context, *execution) outcome {
	return succeeded(pingResult{Time: time.Now().UTC().Format(protocol.TimeLayout)})
}

func encodeProgress(id string, percent *int, format string, args ...any) []byte {
	b, err := json.Marshal(progress{
		Event: "progress", CommandID: id, Progress: progressBody{Percent: percent, Message: fmt.Sprintf(format, args...)},
	})
	if err != nil {
		return []byte("{}") // cannot be: only strings and numbers
	}
	return b
}
