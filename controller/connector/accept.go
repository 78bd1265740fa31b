package connector

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"prp/controller/bridge"
	"prp/protocol"
)

// create takes a create_run (rows 7 and 8).
func (c *Connector) create(in inbound) {
	req := in.create
	if r := c.runs[req.RunID]; r != nil {
		if r.req.digest != req.digest {
			c.refuseTo(in, reused())
			return
		}
		c.accepted(in.id, req.RunID, r.status)
		return
	}
	known, verdict := c.store.Lookup(req.RunID, req.digest)
	switch verdict {
	case bridge.Other:
		c.refuseTo(in, reused())
		return
	case bridge.Same:
		c.accepted(in.id, req.RunID, statusKnown(known))
		return
	}
	agent, e := c.judge(req)
	if e != nil {
		c.refuseTo(in, e)
		return
	}
	r, err := c.admit(req, agent)
	if err != nil {
		c.fail(err)
		return
	}
	c.schedule()
	c.accepted(in.id, req.RunID, r.status)
}

func (c *Connector) accepted(id, runID string, status RunStatus) {
	c.reply(runAnswer{Type: typeRunAccepted, RunID: runID, Status: status, ReplyTo: id})
}

// statusKnown is the status of a run that is over. One that was begun and has left
// nothing else, since its folder was removed, has an end that nobody has seen.
func statusKnown(m bridge.Remembered) RunStatus {
	if m.Status == "" {
		return StatusUnknown
	}
	return RunStatus(m.Status)
}

// reused is a run_id with other content.
func reused() *Error {
	e := badField("run_id", "expected an id that was not used, or the same content as before")
	e.Details["reason"] = "reused"
	return e
}

// judge decides whether a new run can be done here.
func (c *Connector) judge(req *createRun) (*Agent, *Error) {
	if c.mode != ModeServing {
		until := ""
		if c.mode == ModeStopped {
			until = " until 'prp connect --resume' where it runs"
		}
		e := fault(CodeBusy, "the connector takes no new work: it is %s%s", c.mode, until)
		e.Details["mode"] = c.mode
		return nil, e
	}
	i := slices.IndexFunc(c.cfg.Agents, func(a Agent) bool { return a.AgentID == req.AgentID })
	if i < 0 {
		e := fault(CodeAgentNotFound, "expected an agent of the capabilities, got %q", req.AgentID)
		e.Details["agent_id"] = req.AgentID
		return nil, e
	}
	agent := &c.cfg.Agents[i]
	if e := allowTools(req, agent); e != nil {
		return nil, e
	}
	if n := turnSize(req, agent); n > protocol.DefaultCommandLine {
		return nil, badField("goal", "expected a goal, a context_bundle and a handoff that a turn of %d bytes can hold, got about %d",
			protocol.DefaultCommandLine, n)
	}
	if !c.hasRoom(agent) && len(c.queue) >= c.cfg.MaxQueue {
		e := fault(CodeBusy, "the agent has %d runs, and %d wait already", c.active(agent), len(c.queue))
		e.Details["queued"], e.Details["running"] = len(c.queue), c.running
		return nil, e
	}
	c.mu.Lock()
	spools := len(c.spools)
	c.mu.Unlock()
	if spools >= maxSpools {
		return nil, fault(CodeBusy, "the events of %d runs wait for the server's acknowledgement", spools)
	}
	return agent, nil
}

// allowTools makes the tools of a run those that are asked for and offered.
// One that is not offered is refused by name; a list without any is a mistake,
// since nothing could be done.
func allowTools(req *createRun, agent *Agent) *Error {
	if req.Constraints.Tools == nil {
		req.Constraints.Tools = slices.Clone(orEmpty(agent.Tools))
		return nil
	}
	if len(req.Constraints.Tools) == 0 {
		return badField("constraints.tools", "expected one of %q, got none", agent.Tools)
	}
	for _, tool := range req.Constraints.Tools {
		if !slices.Contains(agent.Tools, tool) {
			e := fault(CodeUnauthorized, "the agent does not offer the tool %q", tool)
			e.Details["tool"], e.Details["offered"] = tool, agent.Tools
			return e
		}
	}
	return nil
}

func (c *Connector) active(agent *Agent) (n int) {
	for _, r := range c.runs {
		if r.agent == agent && r.status == StatusRunning {
			n++
		}
	}
	return n
}

func (c *Connector) hasRoom(agent *Agent) bool {
	return c.running < c.room && c.active(agent) < agent.room()
}

// request is what is kept of a create_run for the next start.
type keptRequest struct {
	Create json.RawMessage `json:"create_run"`
	Digest string          `json:"digest"`
}

// admit remembers a run, on disk before anybody is told, and lets it wait.
func (c *Connector) admit(req *createRun, agent *Agent) (*run, error) {
	dir := c.runDir(req.RunID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	kept := marshal(keptRequest{Create: marshal(req), Digest: req.digest})
	if err := writeWhole(filepath.Join(dir, requestFile), kept); err != nil {
		return nil, err
	}
	s, err := c.openSpool(req.RunID)
	if err != nil {
		return nil, err
	}
	if err := c.store.Begin(remember(req)); err != nil {
		return nil, err
	}
	r := c.newRun(req, agent, s)
	c.runs[req.RunID] = r
	c.queue = append(c.queue, r)
	return r, nil
}

func remember(req *createRun) bridge.Remembered {
	return bridge.Remembered{ID: req.RunID, Task: req.AgentID, Tool: typeCreateRun, Digest: req.digest}
}

// schedule starts what there is room for, in the order in which it came; an
// agent that is busy holds up its own runs only.
func (c *Connector) schedule() {
	for i := 0; i < len(c.queue) && c.mode == ModeServing && !c.leaving; {
		r := c.queue[i]
		if !c.hasRoom(r.agent) {
			i++
			continue
		}
		c.queue = slices.Delete(c.queue, i, i+1)
		c.start(r)
	}
}

// dropOrphans ends runs that wait, at a start: all of them where the connector is
// stopped (row 19), else those for an agent that is offered no more.
func (c *Connector) dropOrphans() {
	for _, r := range slices.Clone(c.queue) {
		switch {
		case c.mode == ModeStopped: // while no connector was running
			c.end(r, stoppedAll())
		case r.agent.Harness == "":
			c.end(r, &cause{
				status: StatusFailed, code: CodeAgentNotFound, reason: "agent_not_found",
				message: fmt.Sprintf("the agent %q is offered no more", r.req.AgentID),
			})
		}
	}
}

// recover brings in order what the connector before has left.
func (c *Connector) recover() error {
	entries, err := os.ReadDir(filepath.Join(c.cfg.Dir, runsDir))
	if err != nil {
		return err
	}
	waiting := map[string]*run{}
	for _, e := range entries {
		dir := filepath.Join(c.cfg.Dir, runsDir, e.Name())
		req, ok := readRequest(dir)
		if ok {
			_, verdict := c.store.Lookup(req.RunID, req.digest)
			ok = verdict == bridge.Same
		}
		if !ok { // it was not admitted, and the server will ask again
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			continue
		}
		r, err := c.restore(req, dir)
		if err != nil {
			return err
		}
		if r != nil {
			waiting[req.RunID] = r
		}
	}
	// Those that wait do so in the order in which they came.
	c.store.Each(func(m bridge.Remembered) {
		if r := waiting[m.ID]; r != nil {
			c.queue = append(c.queue, r)
		}
	})
	return nil
}

func readRequest(dir string) (*createRun, bool) {
	raw, err := os.ReadFile(filepath.Join(dir, requestFile))
	var kept keptRequest
	req := new(createRun)
	if errors.Join(err, json.Unmarshal(raw, &kept)) != nil || json.Unmarshal(kept.Create, req) != nil {
		return nil, false
	}
	req.digest = kept.Digest
	return req, req.RunID != "" && req.decodeContext() == nil
}

// restore opens a run of the connector before. It returns one that had not
// begun; one that had is followed to its end.
func (c *Connector) restore(req *createRun, dir string) (*run, error) {
	known, _ := c.store.Lookup(req.RunID, req.digest)
	if known.Done && !exists(filepath.Join(dir, eventsFile)) {
		// The server had everything, and the connector died as it removed the
		// folder. What is left of it must not look like a run that goes on.
		return nil, os.RemoveAll(dir)
	}
	s, err := c.openSpool(req.RunID)
	if err != nil {
		return nil, err
	}
	if status, over := endOf(s.out.LastKey()); over {
		s.setOver()
		// Its artifacts came to an end before it.
		if err := c.retell(s, func(string) {}); err != nil {
			return nil, err
		}
		if known.Done {
			return nil, nil
		}
		m := remember(req)
		m.Status = string(status)
		return nil, c.store.Finish(m, nil)
	}
	i := slices.IndexFunc(c.cfg.Agents, func(a Agent) bool { return a.AgentID == req.AgentID })
	agent := &Agent{AgentID: req.AgentID} // it is offered no more
	if i >= 0 {
		agent = &c.cfg.Agents[i]
	}
	r := c.newRun(req, agent, s)
	c.runs[req.RunID] = r
	if !exists(filepath.Join(dir, startedFile)) {
		return r, nil
	}
	r.status = StatusRunning
	c.running++
	c.jobs.Go(r.follow)
	return nil, nil
}
