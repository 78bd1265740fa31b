package files

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// automaton finds the lines in which a pattern may match, in one pass over a
// text at a few instructions a byte; package regexp takes some hundred. It
// never misses a line: where it cannot know (other characters than ASCII, the
// end of a line as Windows writes it, too many states or steps) it says "may". It is
// made while it runs, and used by one goroutine.
type automaton struct {
	prog *syntax.Prog
	wide []bool // by instruction: it takes a character that is not ASCII
	// next has 256 places for each state: what follows a byte.
	next   []uint16
	states []state
	known  map[string]uint16
	held   int    // instructions in the sets of all states
	work   int64  // steps since rest: no more than maxSteps and one state
	seen   []bool // by instruction, while a set is closed
}

// state is a set of instructions that wait for a character, and what the
// character before was.
type state struct {
	set  []uint32
	last lastKind
}

type lastKind byte

const (
	lastNone  lastKind = iota // the line begins
	lastWord                  // a letter, a digit or _
	lastOther                 // any other
)

const (
	notMade    = 0 // it is not known yet what follows
	mayMatch   = 1
	startState = 2
	// maxStates bounds the states, 512 bytes each, and maxHeld the instructions
	// in their sets, 8 bytes each; then all are made again.
	maxStates = 2048
	maxHeld   = 1 << 20
	// maxInstructions bounds the pattern: the steps of a larger one take longer
	// than they save.
	maxInstructions = 10_000
)

// newAutomaton makes the automaton of a pattern, which is not changed.
func newAutomaton(prog *syntax.Prog) *automaton {
	a := &automaton{prog: prog, wide: make([]bool, len(prog.Inst)), seen: make([]bool, len(prog.Inst))}
	for i := range prog.Inst {
		a.wide[i] = isWide(&prog.Inst[i])
	}
	a.reset()
	return a
}

// worked is how many steps were taken since rest; 0 where there is no automaton.
func (a *automaton) worked() int64 {
	if a == nil {
		return 0
	}
	return a.work
}

// rest begins to count the steps anew.
func (a *automaton) rest() {
	if a != nil {
		a.work = 0
	}
}

// full tells that no state may be added.
func (a *automaton) full() bool { return len(a.states) >= maxStates || a.held >= maxHeld }

// isWide tells whether an instruction can take a character that is not ASCII.
func isWide(i *syntax.Inst) bool {
	switch i.Op {
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	case syntax.InstRune, syntax.InstRune1:
	default:
		return false
	}
	if len(i.Rune) > 1 {
		return i.Rune[len(i.Rune)-1] >= utf8.RuneSelf // ranges in their order
	}
	if len(i.Rune) == 0 {
		return false
	}
	r := i.Rune[0]
	if syntax.Flags(i.Arg)&syntax.FoldCase != 0 {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if f >= utf8.RuneSelf {
				return true
			}
		}
	}
	return r >= utf8.RuneSelf
}

func (a *automaton) reset() {
	clear(a.states) // their sets are no longer held
	a.next, a.states, a.known, a.held = a.next[:0], a.states[:0], map[string]uint16{}, 0
	a.add(state{}) // notMade
	a.add(state{}) // mayMatch
	a.intern([]uint32{uint32(a.prog.Start)}, lastNone)
}

func (a *automaton) add(s state) {
	a.states = append(a.states, s)
	a.held += len(s.set)
	var row [256]uint16
	a.next = append(a.next, row[:]...)
}

// intern is the number of a state.
func (a *automaton) intern(set []uint32, last lastKind) uint16 {
	slices.Sort(set)
	set = slices.Compact(set)
	key := []byte{byte(last)}
	for _, pc := range set {
		key = binary.NativeEndian.AppendUint32(key, pc)
	}
	n, ok := a.known[string(key)]
	if !ok {
		n = uint16(len(a.states))
		a.known[string(key)] = n
		a.add(state{set, last})
	}
	return n
}

// find is a place in the first line that may match, -1 where none can.
func (a *automaton) find(text []byte) int {
	if a.full() {
		a.reset()
	}
	s, next := uint16(startState), a.next
	for i, c := range text {
		n := next[int(s)<<8|int(c)]
		if n <= mayMatch {
			if n == notMade {
				if a.full() || a.work >= maxSteps {
					return i
				}
				a.work += int64(len(a.prog.Inst))
				n = a.step(s, c)
				a.next[int(s)<<8|int(c)] = n
				next = a.next
			}
			if n == mayMatch {
				return i
			}
		}
		s = n
	}
	if n := len(text); n > 0 && text[n-1] != '\n' && a.endsHere(s) {
		return n - 1
	}
	return -1
}

// before is a character as the one before a place, -1 is the begin of a line.
func (k lastKind) before() rune { return [...]rune{-1, 'a', ' '}[k] }

func (a *automaton) endsHere(n uint16) bool {
	s := a.states[n]
	_, hit := a.closed(s.set, syntax.EmptyOpContext(s.last.before(), -1))
	return hit
}

// step is the state after a byte.
func (a *automaton) step(n uint16, c byte) uint16 {
	s := a.states[n]
	if (c == '\n' || c == '\r') && a.endsHere(n) {
		return mayMatch
	}
	if c == '\n' {
		return startState
	}
	r := rune(c)
	set, hit := a.closed(s.set, syntax.EmptyOpContext(s.last.before(), r))
	if hit {
		return mayMatch
	}
	var after []uint32
	for _, pc := range set {
		i := &a.prog.Inst[pc]
		if r < utf8.RuneSelf && i.MatchRune(r) || r >= utf8.RuneSelf && a.wide[pc] {
			after = append(after, i.Out)
		}
	}
	if !utf8.RuneStart(c) {
		after = append(after, s.set...) // it may belong to the byte before
	}
	last := lastOther
	if r < utf8.RuneSelf && syntax.IsWordChar(r) {
		last = lastWord
	}
	return a.intern(append(after, uint32(a.prog.Start)), last)
}

// closed follows a set to the instructions that wait for a character, and tells
// whether it matches here.
func (a *automaton) closed(set []uint32, here syntax.EmptyOp) (out []uint32, hit bool) {
	clear(a.seen)
	for stack := slices.Clone(set); len(stack) > 0; {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if a.seen[pc] {
			continue
		}
		a.seen[pc] = true
		switch i := &a.prog.Inst[pc]; i.Op {
		case syntax.InstMatch:
			return nil, true
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, i.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^here == 0 {
				stack = append(stack, i.Out)
			}
		case syntax.InstFail:
		default:
			out = append(out, pc)
		}
	}
	return out, false
}
