package protocol

// LookupResult says whether a command id was seen before.
type LookupResult uint8

const (
	// LookupUnknown is an id that was never consumed, or long ago.
	LookupUnknown LookupResult = iota
	// LookupSame is an id that was consumed with equal content.
	LookupSame
	// LookupOther is an id that was consumed with other content.
	LookupOther
)

// Entry is what became of a command that was seen before. Undecided is a
// command whose receipt has not been given yet. Where it is decided and was not
// accepted, Code and Detail are those of its rejected receipt.
type Entry struct {
	Undecided bool
	Accepted  bool
	Code      Code
	Detail    string
}

const (
	// ledgerBlock is how many records a ledger allocates at a time, so that
	// it grows with what it has to keep and is never copied.
	ledgerBlock = 1024
	// ledgerDetailBytes bounds the details that a ledger keeps. Where more
	// were given, the oldest are forgotten, and such a command is answered
	// with its code and an empty detail.
	ledgerDetailBytes = 1 << 20
)

// Ledger remembers which commands were consumed and what became of them (spec
// section 2), at most a given number of them; the oldest are forgotten. Ids and
// contents are kept as digests: 65,536 commands take less than 8 MB, whatever
// their length. It is not safe for concurrent use.
type Ledger struct {
	history int
	next    int64
	count   int64 // records ever made; the record i is at place i%history
	blocks  [][]ledgerRecord
	places  map[Digest]int32
	codes   []Code

	details     map[int32]string // of rejected records, by place
	detailBytes int
	detailScan  int64 // records before this one have no detail any more
}

type ledgerRecord struct {
	key     Digest // of the command id
	digest  Digest
	outcome outcome
	code    uint16 // place in Ledger.codes
}

type outcome uint8

const (
	undecided outcome = iota
	accepted
	rejected
)

// NewLedger returns an empty ledger that remembers at most history commands;
// [DefaultCommandHistory] where history is not positive. It grows on demand.
func NewLedger(history int) *Ledger {
	if history <= 0 {
		history = DefaultCommandHistory
	}
	return &Ledger{
		history: history,
		next:    1,
		places:  make(map[Digest]int32),
		details: make(map[int32]string),
	}
}

// Next is the sequence number that the next new command must have.
func (l *Ledger) Next() int64 { return l.next }

// Lookup tells whether the id was consumed before, and what became of it. The
// entry is zero but for [LookupSame].
func (l *Ledger) Lookup(id string, d Digest) (Entry, LookupResult) {
	place, ok := l.places[digestOfID(id)]
	if !ok {
		return Entry{}, LookupUnknown
	}
	r := l.at(place)
	if r.digest != d {
		return Entry{}, LookupOther
	}
	switch r.outcome {
	case accepted:
		return Entry{Accepted: true}, LookupSame
	case rejected:
		return Entry{Code: l.codes[r.code], Detail: l.details[place]}, LookupSame
	}
	return Entry{Undecided: true}, LookupSame
}

// Consume remembers a new command as undecided and makes seq+1 the next
// sequence number. The caller has checked with Lookup that the id is unknown
// and with Next that seq is the next one.
func (l *Ledger) Consume(id string, seq int64, d Digest) {
	place := int32(l.count % int64(l.history))
	if l.count >= int64(l.history) {
		l.forget(place)
	}
	for int(place) >= len(l.blocks)*ledgerBlock {
		rest := l.history - len(l.blocks)*ledgerBlock
		l.blocks = append(l.blocks, make([]ledgerRecord, min(rest, ledgerBlock)))
	}
	key := digestOfID(id)
	*l.at(place) = ledgerRecord{key: key, digest: d}
	l.places[key] = place
	l.count++
	l.next = seq + 1
}

// Decide records the receipt of a command that was consumed. An id that is not
// remembered, or is decided already, is left alone.
func (l *Ledger) Decide(id string, ok bool, code Code, detail string) {
	place, known := l.places[digestOfID(id)]
	if !known {
		return
	}
	r := l.at(place)
	switch {
	case r.outcome != undecided:
	case ok:
		r.outcome = accepted
	default:
		r.outcome = rejected
		r.code = l.codePlace(code)
		l.keepDetail(place, detail)
	}
}

func (l *Ledger) at(place int32) *ledgerRecord {
	return &l.blocks[place/ledgerBlock][place%ledgerBlock]
}

func (l *Ledger) forget(place int32) {
	r := l.at(place)
	if l.places[r.key] == place {
		delete(l.places, r.key)
	}
	l.dropDetail(place)
}

func (l *Ledger) dropDetail(place int32) {
	l.detailBytes -= len(l.details[place])
	delete(l.details, place)
}

// keepDetail keeps a detail and forgets the oldest ones beyond the bound.
func (l *Ledger) keepDetail(place int32, detail string) {
	if detail == "" {
		return
	}
	l.details[place] = detail
	l.detailBytes += len(detail)
	l.detailScan = max(l.detailScan, l.count-int64(l.history))
	for ; l.detailBytes > ledgerDetailBytes && l.detailScan < l.count; l.detailScan++ {
		l.dropDetail(int32(l.detailScan % int64(l.history)))
	}
}

// codePlace keeps each code once; the protocol has a few dozen.
func (l *Ledger) codePlace(code Code) uint16 {
	for i, c := range l.codes {
		if c == code {
			return uint16(i)
		}
	}
	l.codes = append(l.codes, code)
	return uint16(len(l.codes) - 1)
}
