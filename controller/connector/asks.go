package connector

import (
	"slices"
	"time"
)

// ask is a request of ours to the server, until it is answered. After a
// reconnect it is sent again with the same id.
type ask struct {
	id, kind string
	run      *run
	body     []byte
	// key is another name by which an answer may mean it.
	key string
	// done is called once, by the loop, with the answer; or with an error,
	// also when the time is up.
	done  func(serverAnswer, *Error)
	until time.Time // with its monotonic clock
	// hold is until when it is not sent.
	hold  time.Time
	tries int
	// pending is set where a permission is asked for.
	pending *pending

	session int64 // in which it was sent; guarded by the connector's lock
}

// repeats is how often a request is repeated at once after 5001 and 5002 (row
// 15). All of ours may be repeated: the server knows them by their id.
const repeats = 3

// send queues a request.
func (c *Connector) send(a *ask) {
	c.mu.Lock()
	c.asks = append(c.asks, a)
	c.mu.Unlock()
	c.nudge()
}

// removeAsk takes the first request that matches; nil where there is none.
func (c *Connector) removeAsk(match func(*ask) bool) *ask {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.asks, match)
	if i < 0 {
		return nil
	}
	a := c.asks[i]
	c.asks = slices.Delete(c.asks, i, i+1)
	return a
}

// answered finds the request that an answer is for: by reply_to, else by what it
// names, else by type and run in order (row 1).
func (c *Connector) answered(in inbound) {
	kind := map[string]string{typeHandoffAck: typeHandoff, typeUploadURL: typeUpload, typeDownloadURL: typeDownload}[in.kind]
	a := c.removeAsk(func(a *ask) bool {
		if a.kind != kind {
			return false
		}
		switch {
		case in.replyTo != "":
			return a.id == in.replyTo
		case kind == typeHandoff:
			return a.key == in.answer.HandoffID
		case kind == typeDownload && in.answer.ArtifactID != "":
			return a.key == in.answer.ArtifactID
		}
		return in.runID == "" || a.run.req.RunID == in.runID
	})
	if a != nil {
		a.done(in.answer, nil)
	}
}

// erred takes an error of the server (row 15).
func (c *Connector) erred(in inbound) {
	e := in.err
	a := c.removeAsk(func(a *ask) bool { return in.replyTo != "" && a.id == in.replyTo })
	r := c.runs[in.runID]
	if a != nil {
		r = a.run
	}
	c.cfg.Report("the server says: " + c.mask.String(e.Error()))
	switch {
	case e.Code == CodeQuota && r != nil:
		if a != nil {
			a.done(serverAnswer{}, e)
		}
		c.end(r, &cause{status: StatusFailed, code: CodeQuota, reason: reasonQuota, message: "the server says: " + e.Message})
	case a == nil:
	case (e.Code == CodeInternal || e.Code == CodeAdapter) && a.tries < repeats:
		a.tries++
		a.hold = time.Time{}
		c.again(a)
	case e.Code == CodeBusy:
		a.hold = time.Now().Add(c.cfg.Times.Busy)
		c.again(a)
	default:
		a.done(serverAnswer{}, e)
	}
}

// again queues a request once more.
func (c *Connector) again(a *ask) {
	a.session = 0
	c.send(a)
}

// expireAsks ends what was not answered in time.
func (c *Connector) expireAsks(now time.Time) {
	for {
		a := c.removeAsk(func(a *ask) bool { return now.After(a.until) })
		if a == nil {
			break
		}
		a.done(serverAnswer{}, fault(CodeInternal, "the server has not answered %s in time", a.kind))
	}
	c.mu.Lock()
	held := slices.ContainsFunc(c.asks, func(a *ask) bool { return a.session == 0 && !a.hold.IsZero() && now.After(a.hold) })
	c.mu.Unlock()
	if held {
		c.nudge()
	}
}

// giveUpLarge ends the requests that no frame of so many bytes can hold: sent all
// the same they would end each session (rows 4 and 16). A question of a harness is
// not shortened, since nobody may approve what he cannot read: it is denied.
func (c *Connector) giveUpLarge(limit int) {
	for {
		a := c.removeAsk(func(a *ask) bool { return len(a.body) > limit })
		if a == nil {
			return
		}
		a.done(serverAnswer{}, fault(CodeInvalid, "%s has %d bytes, and the server takes frames of %d at most", a.kind, len(a.body), limit))
	}
}

// dropAsks forgets the requests of a run that is over.
func (c *Connector) dropAsks(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = slices.DeleteFunc(c.asks, func(a *ask) bool { return a.run == r })
}
