package taskrun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"prp/controller"
	"prp/controller/bridge"
	"prp/controller/workerclient"
)

// Outcome is how the work on a run ended for the server.
type Outcome uint8

const (
	// Unreported is an end that the server does not know; the error says why.
	Unreported Outcome = iota
	// Reported is an end that the server has taken.
	Reported
	// NotOurs is a run that was left alone, or was ended by somebody else.
	NotOurs
)

// Causes of an end before the run's own.
var (
	errCancelled = errors.New("the run was cancelled")
	errSignalled = errors.New("the worker was told to end")
	errTaken     = errors.New("the run has ended at the server")
)

// worker works on one run.
type worker struct {
	cfg     Config
	session string
	text    *workerclient.DebouncedStreamSender
	mask    atomic.Pointer[bridge.Masker]
	saying  sync.Mutex
}

// Run works on a run from its fetch to its report and blocks until that is done
// and nothing of the run lives. The end of ctx is SIGTERM. The error is not nil
// where the outcome is [Unreported]; it is masked.
func Run(ctx context.Context, cfg Config) (Outcome, error) {
	if err := cfg.fill(); err != nil {
		return Unreported, err
	}
	w := &worker{
		cfg: cfg, session: "session_" + rand.Text(),
		text: &workerclient.DebouncedStreamSender{Inner: cfg.Sender},
	}
	w.mask.Store(bridge.NewMasker(cfg.Secrets))
	defer w.text.Stop()
	removeOrphans(filepath.Join(w.cfg.Dir, runsDir))
	outcome, err := w.run(ctx)
	if err != nil {
		err = errors.New(w.mask.Load().String(err.Error()))
	}
	return outcome, err
}

// say tells a person something, masked.
func (w *worker) say(format string, args ...any) {
	w.saying.Lock()
	defer w.saying.Unlock()
	w.cfg.Report(controller.OneLine(w.mask.Load().String(fmt.Sprintf(format, args...))))
}

func (w *worker) run(ctx context.Context) (Outcome, error) {
	if outcome, found, err := w.sendKept(ctx); found {
		return outcome, err
	}
	b, what, err := w.claim(ctx)
	if err != nil || what == notOurs {
		return outcomeOf(err), err
	}
	f := facts{cancelled: b.CancelRequested, fault: b.PluginError}
	if what == ours {
		f = w.work(ctx, b)
	}
	f.ended = time.Now()
	report, tell := f.report()
	if !tell {
		w.say("the run has another end at the server, so none is reported")
		return NotOurs, nil
	}
	if err := w.deliver(ctx, w.cfg.TaskRunID, report); err != nil {
		return Unreported, err
	}
	return Reported, nil
}

func outcomeOf(err error) Outcome {
	if err != nil {
		return Unreported
	}
	return NotOurs
}

// work is the one loop: it owns what is known of the run until its report.
func (w *worker) work(ctx context.Context, b *workerclient.WorkerTaskRun) facts {
	job, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	polling, endPolling := context.WithCancel(context.WithoutCancel(ctx))
	p := newPoller(w)
	var polls sync.WaitGroup
	polls.Go(func() { p.run(polling) })
	defer polls.Wait()
	defer endPolling()
	defer stop(nil)

	var f facts
	var last <-chan time.Time // the end of the wait for the last poll
	signalled := ctx.Done()
	cancel := func() {
		f.cancelled = true
		stop(errCancelled)
	}
	if b.CancelRequested {
		cancel()
	}
	ended := make(chan facts, 1)
	go func() { ended <- w.job(job, b) }()
	done := false
	for {
		select {
		case o := <-p.seen:
			if o.cancelled {
				cancel()
			}
			if o.taken {
				f.taken = true
				stop(errTaken)
			}
			if o.hurried {
				last = nil // one before may have missed a cancel
			}
		case <-signalled:
			signalled, f.signalled = nil, true
			stop(errSignalled)
			p.hurry()
			last = time.After(w.cfg.Times.LastPoll)
		case <-last:
			last = nil
		case own := <-ended:
			done = true
			own.taken, own.cancelled, own.signalled = f.taken, f.cancelled, f.signalled
			f = own
		}
		if done && (last == nil || f.cancelled) {
			return f
		}
	}
}
