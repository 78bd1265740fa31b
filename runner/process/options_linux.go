package process

// Options change how a [Supervisor] works. The zero value is right for every
// caller: the fields are switches that the tests of this package use to show
// that a child does live where a protection is off.
type Options struct {
	noGuardian  bool // parent of the harness is this process
	noCgroup    bool // no cgroup leaf
	noSubreaper bool // orphans go to init
	noSweep     bool // only the process group is ended
	// guardProgram is what a guardian executes; "" is this program.
	guardProgram string
}
