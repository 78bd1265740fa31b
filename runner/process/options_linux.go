package process

import (
	"cmp"
	"time"
)

// Options change how a [Supervisor] works. The zero value is right for every
// caller: the fields are switches that the tests of this package use to show
// that a child does live where a protection is off.
type Options struct {
	noGuardian  bool // parent of the harness is this process
	noCgroup    bool // no cgroup leaf
	noSubreaper bool // orphans go to init
	noSweep     bool // only the process group is ended
	// guardPatience replaces that of a guardian; below 0 it has none.
	guardPatience time.Duration
	// guardProgram is what a guardian executes; "" is this program.
	guardProgram string
}

// guardianPatience is how long a guardian puts its exec off: longer than the
// start of most programs takes, which would compete with it, and than a short
// command lives, which does not need it.
const guardianPatience = 100 * time.Millisecond

func (o Options) patience() time.Duration {
	return max(cmp.Or(o.guardPatience, guardianPatience), 0)
}
