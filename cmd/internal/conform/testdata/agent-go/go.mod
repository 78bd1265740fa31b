module prp/agentgo

go 1.26.0

require github.com/coder/acp-go-sdk v0.13.0 // indirect

tool github.com/coder/acp-go-sdk/example/agent
