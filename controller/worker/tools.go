package worker

import (
	"context"
	"errors"
	"time"

	"prp/controller/bridge"
	"prp/controller/files"
)

// tools says for each tool how its arguments become an execution. The function
// sets do, keys and effect, and tells what would be touched.
var tools map[string]func(w *Worker, x *execution) (subject, *Error)

func init() {
	tools = map[string]func(w *Worker, x *execution) (subject, *Error){
		ToolPing:         makePing,
		ToolCapabilities: makeCapabilities,
		ToolRead:         makeRead,
		ToolWrite:        makeWrite,
		ToolSearch:       makeSearch,
		ToolPatch:        makePatch,
		ToolRun:          makeRun,
		ToolStatus:       makeStatus,
		ToolCancel:       makeCancel,
	}
}

// decodeArgs reads the arguments strictly.
func decodeArgs(c *Command, into any) *Error {
	err := decodeStrict(c.Args, into, "args")
	var wrong *wrongField
	if errors.As(err, &wrong) {
		return badField(wrong.path, "%s", wrong.want)
	}
	return nil
}

func makePing(_ *Worker, x *execution) (subject, *Error) {
	x.do = func(context.Context, *execution) outcome { return outcome{} }
	var args struct{}
	e := decodeArgs(&x.command, &args)
	x.do = pong
	return subject{}, e
}

func makeCapabilities(w *Worker, x *execution) (subject, *Error) {
	x.do = func(context.Context, *execution) outcome { return succeeded(w.Capabilities()) }
	var args struct{}
	return subject{}, decodeArgs(&x.command, &args)
}

// frameRoom is what the parts of a result's frame beside its content may take,
// in bytes.
const frameRoom = 16 << 10

// searchRoom bounds what a search may find, in bytes: every byte can become six
// in JSON.
const searchRoom = 160 << 10

func makeRead(w *Worker, x *execution) (subject, *Error) {
	var r files.ReadRequest
	if e := decodeArgs(&x.command, &r); e != nil {
		return subject{}, e
	}
	path, err := w.space.Resolve(r.Path)
	if err != nil {
		return subject{}, fromFiles(err)
	}
	mask := w.fileMask()
	x.do = timed(w.unmoved([]string{path}, w.onePath(r.Path), func(ctx context.Context) (any, error) {
		return w.space.Read(ctx, r, resultBytes-frameRoom, mask)
	}))
	return subject{paths: []string{path}}, nil
}

// fileMask hides secrets in parts of files, nil where there are none.
func (w *Worker) fileMask() *files.Mask {
	if !w.mask.Any() {
		return nil
	}
	return &files.Mask{Whole: w.mask.Mask, Edge: w.mask.Edge(), Part: w.mask.Part, Shown: bridge.Masked}
}

func makeWrite(w *Worker, x *execution) (subject, *Error) {
	var r files.WriteRequest
	if e := decodeArgs(&x.command, &r); e != nil {
		return subject{}, e
	}
	path, err := w.space.Resolve(r.Path)
	if err != nil {
		return subject{}, fromFiles(err)
	}
	x.effect, x.keys = true, []string{path}
	x.do = timed(w.unmoved(x.keys, w.onePath(r.Path), func(ctx context.Context) (any, error) { return w.space.Write(ctx, r) }))
	return subject{paths: x.keys}, nil
}

func makePatch(w *Worker, x *execution) (subject, *Error) {
	var r files.PatchRequest
	if e := decodeArgs(&x.command, &r); e != nil {
		return subject{}, e
	}
	paths, err := w.space.PatchPaths(r)
	if err != nil {
		return subject{}, fromFiles(err)
	}
	x.effect, x.keys = !r.DryRun, paths
	again := func() ([]string, error) { return w.space.PatchPaths(r) }
	x.do = timed(w.unmoved(paths, again, func(ctx context.Context) (any, error) { return w.space.Patch(ctx, r) }))
	return subject{paths: paths}, nil
}

func makeSearch(w *Worker, x *execution) (subject, *Error) {
	var r files.SearchRequest
	if e := decodeArgs(&x.command, &r); e != nil {
		return subject{}, e
	}
	if r.Path == "" {
		r.Path = "."
	}
	path, err := w.space.Resolve(r.Path)
	if err != nil {
		return subject{}, fromFiles(err)
	}
	r.Hidden, r.Mask = w.policy.hidden(path), w.fileMask()
	x.do = timed(w.unmoved([]string{path}, w.onePath(r.Path), func(ctx context.Context) (any, error) {
		due := newPace(w.cfg.ProgressEvery)
		return w.space.Search(ctx, r, searchRoom, func(n int64) {
			if due.now() {
				w.report(x, nil, "Searching: %d files", n)
			}
		})
	}))
	return subject{paths: []string{path}}, nil
}

// onePath resolves a path.
func (w *Worker) onePath(path string) func() ([]string, error) {
	return func() ([]string, error) {
		real, err := w.space.Resolve(path)
		return []string{real}, err
	}
}

// unmoved executes f where its paths still lead to the files that the policy
// was asked about: the command may have waited in the queue meanwhile.
func (w *Worker) unmoved(asked []string, resolve func() ([]string, error), f func(context.Context) (any, error)) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		now, err := resolve()
		if err != nil {
			return nil, err
		}
		for i, path := range now {
			if i >= len(asked) || path != asked[i] {
				e := fault(Code(files.Conflict), "a path leads elsewhere than when the command was allowed")
				e.Details["path"] = path
				return nil, e
			}
		}
		return f(ctx)
	}
}

// errTimeout is the cause of an execution whose time is up.
var errTimeout = errors.New("the time is up")

// timed executes a file tool within the command's time.
func timed(f func(ctx context.Context) (any, error)) func(context.Context, *execution) outcome {
	return func(ctx context.Context, x *execution) outcome {
		ctx, cancel := context.WithTimeoutCause(ctx, x.command.Timeout, errTimeout)
		defer cancel()
		result, err := f(ctx)
		switch {
		case err == nil:
			return succeeded(result)
		case errors.Is(err, errTimeout):
			return tooLate(x)
		case errors.Is(err, errCancelled), errors.Is(err, context.Canceled):
			return outcome{status: StatusCancelled, err: fault(CodeCancelled, "the command was cancelled")}
		}
		return failed(fromFiles(err))
	}
}

// pace says when the next report of one command is due (row 13).
type pace struct {
	every time.Duration
	last  time.Time
}

// newPace has the first report due after one interval: what is over before that
// needs none.
func newPace(every time.Duration) *pace { return &pace{every: every, last: time.Now()} }

func (p *pace) now() bool {
	if time.Since(p.last) < p.every {
		return false
	}
	p.last = time.Now()
	return true
}

// report queues a progress event; a full spool may drop it.
func (w *Worker) report(x *execution, percent *int, format string, args ...any) {
	body := encodeProgress(x.command.CommandID, percent, format, args...)
	w.call(func() {
		if _, err := w.put(x.command.CommandID, true, body); err != nil {
			w.cfg.Report("progress is lost: " + err.Error())
		}
	})
}
