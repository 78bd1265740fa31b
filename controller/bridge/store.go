package bridge

import (
	"encoding/json"
	"sync"
	"time"
)

// Defaults of a store.
const (
	// DefaultKeepCommands is how many commands are remembered. A forgotten
	// one would be run again.
	DefaultKeepCommands = 65536
	// DefaultKeepResults and DefaultResultAge bound the results (worker.md
	// row 19). Of an older command it is known that it has ended.
	DefaultKeepResults = 1000
	DefaultResultAge   = 24 * time.Hour
)

// StoreConfig bounds a store. Zero members are the defaults above.
type StoreConfig struct {
	KeepCommands, KeepResults int
	ResultAge                 time.Duration
	// Now is the wall clock; nil is the real one.
	Now func() time.Time
}

// Verdict says whether a command was seen before.
type Verdict uint8

const (
	// New is an id that is not remembered.
	New Verdict = iota
	// Same is an id with equal content.
	Same
	// Other is an id with other content.
	Other
)

// Remembered is what is known of a command.
type Remembered struct {
	ID, Task, Tool, Digest string
	// Done tells that it has a result; else it has begun and no more is known.
	Done bool
	// Status is the status of its result.
	Status string
	// Seq is the number of its result in the outbox.
	Seq int64
}

// Store remembers commands and their results on disk.
type Store struct {
	cfg StoreConfig

	mu     sync.Mutex
	log    *file
	live   int64
	known  map[string]*remembered
	order  []string // by when they were first seen
	result []string // those that have a result on disk, oldest first
}

type remembered struct {
	Remembered
	at   time.Time
	line span // of the result; size 0 where it is no longer kept
}

// storeRecord is one line of the file.
type storeRecord struct {
	ID     string          `json:"id"`
	Task   string          `json:"task,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	Digest string          `json:"digest"`
	At     time.Time       `json:"at"`
	Status string          `json:"status,omitempty"` // empty: has begun
	Seq    int64           `json:"seq,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// OpenStore opens the store in the file at path, or makes it.
func OpenStore(path string, cfg StoreConfig) (*Store, error) {
	Fill(&cfg.KeepCommands, DefaultKeepCommands)
	Fill(&cfg.KeepResults, DefaultKeepResults)
	Fill(&cfg.ResultAge, DefaultResultAge)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Store{cfg: cfg, known: map[string]*remembered{}}
	log, err := openFile(path, func(line []byte, at span) error {
		var r storeRecord
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		r.At = aged(r.At, s.cfg.Now())
		s.take(r, at)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.log = log
	s.forget()
	return s, nil
}

// take adds what a record says.
func (s *Store) take(r storeRecord, at span) {
	m := s.known[r.ID]
	if m == nil {
		m = &remembered{}
		s.known[r.ID] = m
		s.order = append(s.order, r.ID)
	}
	s.live -= int64(m.line.size)
	m.Remembered = Remembered{ID: r.ID, Task: r.Task, Tool: r.Tool, Digest: r.Digest, Done: r.Status != "", Status: r.Status, Seq: r.Seq}
	m.at, m.line = r.At, span{}
	if r.Result != nil {
		m.line = at
		s.live += int64(at.size)
		s.result = append(s.result, r.ID)
	}
}

// Close closes the file.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.close()
}

// Lookup tells whether a command was seen, and what is known of it.
func (s *Store) Lookup(id, digest string) (Remembered, Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.known[id]
	switch {
	case m == nil:
		return Remembered{}, New
	case m.Digest != digest:
		return m.Remembered, Other
	}
	return m.Remembered, Same
}

// Begin records that a command's effect may begin. It returns when that is on
// the disk, also after a power failure.
func (s *Store) Begin(m Remembered) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(storeRecord{ID: m.ID, Task: m.Task, Tool: m.Tool, Digest: m.Digest, At: s.cfg.Now()}); err != nil {
		return err
	}
	return s.log.j.Sync()
}

// Finish records a command's result, one JSON value, before it is sent as frame
// seq of an outbox.
func (s *Store) Finish(m Remembered, result []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(storeRecord{
		ID: m.ID, Task: m.Task, Tool: m.Tool, Digest: m.Digest, At: s.cfg.Now(), Status: m.Status, Seq: m.Seq, Result: result,
	})
}

func (s *Store) write(r storeRecord) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	at, err := s.log.append(line)
	if err != nil {
		return err
	}
	s.take(r, at)
	s.forget()
	s.compact()
	return nil
}

// Result is the result of a command; false where it has none, or it is no
// longer kept.
func (s *Store) Result(id string) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.known[id]
	if m == nil || m.line.size == 0 {
		return nil, false, nil
	}
	line, err := s.log.read(m.line)
	if err != nil {
		return nil, false, err
	}
	var r storeRecord
	err = json.Unmarshal(line, &r)
	return r.Result, err == nil, err
}

// Each calls fn with every command in the order in which they came.
func (s *Store) Each(fn func(Remembered)) {
	s.mu.Lock()
	list := make([]Remembered, 0, len(s.order))
	for _, id := range s.order {
		list = append(list, s.known[id].Remembered)
	}
	s.mu.Unlock()
	for _, m := range list {
		fn(m)
	}
}

// forget keeps the limits.
func (s *Store) forget() {
	oldest := s.cfg.Now().Add(-s.cfg.ResultAge)
	for len(s.result) > 0 {
		m := s.known[s.result[0]]
		if m != nil && len(s.result) <= s.cfg.KeepResults && !m.at.Before(oldest) {
			break
		}
		if m != nil {
			s.live -= int64(m.line.size)
			m.line = span{}
		}
		s.result = s.result[1:]
	}
	for len(s.order) > s.cfg.KeepCommands {
		if m := s.known[s.order[0]]; m != nil {
			s.live -= int64(m.line.size)
			delete(s.known, s.order[0])
		}
		s.order = s.order[1:]
	}
}

// recordBytes is about what a command without its result takes in the file.
const recordBytes = 256

// compact has the file rewritten where that is due. It only saves room: a record
// stands on the disk whether it succeeds or not.
func (s *Store) compact() {
	var lines map[string]span
	s.log.compact(s.live+recordBytes*int64(len(s.order)), func(next *file) error {
		lines = make(map[string]span, len(s.result))
		for _, id := range s.order {
			m := s.known[id]
			line, err := json.Marshal(storeRecord{
				ID: m.ID, Task: m.Task, Tool: m.Tool, Digest: m.Digest, At: m.at, Status: m.Status, Seq: m.Seq,
			})
			if err == nil && m.line.size > 0 {
				line, err = s.log.read(m.line)
			}
			if err != nil {
				return err
			}
			at, err := next.append(line)
			if err != nil {
				return err
			}
			if m.line.size > 0 {
				lines[id] = at
			}
		}
		return nil
	}, func() {
		s.live = 0
		for id, at := range lines {
			s.known[id].line = at
			s.live += int64(at.size)
		}
	})
}
