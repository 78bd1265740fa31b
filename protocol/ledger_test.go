package protocol

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func digestOfNumber(i int) Digest { return digestOfText(fmt.Append(nil, i)) }

func TestLedger(t *testing.T) {
	l := NewLedger(10)
	if l.Next() != 1 {
		t.Fatalf("the first sequence number is %d, want 1", l.Next())
	}
	one, two := digestOfNumber(1), digestOfNumber(2)
	look := func(id string, d Digest, want LookupResult, entry Entry) {
		t.Helper()
		if e, got := l.Lookup(id, d); got != want || e != entry {
			t.Errorf("Lookup(%s) = %+v, %v; want %+v, %v", id, e, got, entry, want)
		}
	}
	look("a", one, LookupUnknown, Entry{})
	l.Consume("a", 1, one)
	if l.Next() != 2 {
		t.Errorf("the next sequence number is %d, want 2", l.Next())
	}
	look("a", one, LookupSame, Entry{Undecided: true})
	look("a", two, LookupOther, Entry{})
	look("b", one, LookupUnknown, Entry{})
	l.Decide("a", true, "", "")
	look("a", one, LookupSame, Entry{Accepted: true})
	l.Decide("a", false, CodeDraining, "too late")
	look("a", one, LookupSame, Entry{Accepted: true})
	l.Consume("b", 2, two)
	l.Decide("b", false, CodeDraining, "the runner drains")
	look("b", two, LookupSame, Entry{Code: CodeDraining, Detail: "the runner drains"})
	look("b", one, LookupOther, Entry{})
	l.Decide("never", true, "", "")
	look("never", one, LookupUnknown, Entry{})
	if l.Next() != 3 {
		t.Errorf("the next sequence number is %d, want 3", l.Next())
	}
}

// The oldest ids are forgotten, and no others.
func TestLedgerForgets(t *testing.T) {
	for _, history := range []int{1, 2, 7, ledgerBlock, ledgerBlock + 1} {
		l := NewLedger(history)
		for i := 1; i <= 3*history; i++ {
			id := fmt.Sprint("c", i)
			l.Consume(id, l.Next(), digestOfNumber(i))
			l.Decide(id, i%3 == 0, CodeDraining, id)
		}
		for i := 1; i <= 3*history; i++ {
			id := fmt.Sprint("c", i)
			e, got := l.Lookup(id, digestOfNumber(i))
			want, entry := LookupUnknown, Entry{}
			if i > 2*history {
				want, entry = LookupSame, Entry{Code: CodeDraining, Detail: id}
				if i%3 == 0 {
					entry = Entry{Accepted: true}
				}
			}
			if got != want || e != entry {
				t.Fatalf("history %d: Lookup(%s) = %+v, %v; want %+v, %v", history, id, e, got, entry, want)
			}
		}
	}
}

// A history in full takes less than 8 MB, whatever the ids and details are, and
// no more after many times as many commands.
func TestLedgerMemory(t *testing.T) {
	const most = 8 << 20
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	l := NewLedger(0)
	id := strings.Repeat("é", MaxIDLen-8)
	detail := strings.Repeat("d", 200)
	for i := range 3 * DefaultCommandHistory {
		name := fmt.Sprintf("%s%08d", id, i)
		l.Consume(name, l.Next(), digestOfNumber(i))
		l.Decide(name, false, CodeTurnMismatch, detail+name[len(id):])
		if (i+1)%DefaultCommandHistory == 0 {
			after := heap()
			t.Logf("%d commands: %d KiB", i+1, (int64(after)-int64(before))>>10)
			if after > before+most {
				t.Fatalf("%d commands take %d bytes, want at most %d", i+1, after-before, most)
			}
		}
	}
	last := 3*DefaultCommandHistory - 1
	name := fmt.Sprintf("%s%08d", id, last)
	if e, got := l.Lookup(name, digestOfNumber(last)); got != LookupSame || e.Code != CodeTurnMismatch || e.Detail != detail+name[len(id):] {
		t.Errorf("the newest command is %v, %+v", got, e)
	}
	oldest := 2 * DefaultCommandHistory
	if e, got := l.Lookup(fmt.Sprintf("%s%08d", id, oldest), digestOfNumber(oldest)); got != LookupSame || e.Code != CodeTurnMismatch {
		t.Errorf("the oldest command that is kept is %v, %+v", got, e)
	}
	if l.detailBytes > ledgerDetailBytes {
		t.Errorf("%d bytes of details are kept", l.detailBytes)
	}
	runtime.KeepAlive(l)
}

func BenchmarkLedger(b *testing.B) {
	l := NewLedger(0)
	b.ReportAllocs()
	id := []byte("command-0000000000")
	var d Digest
	for b.Loop() {
		for i := len(id) - 1; ; i-- {
			if id[i]++; id[i] <= '9' {
				break
			}
			id[i] = '0'
		}
		name := string(id)
		d[0]++
		l.Lookup(name, d)
		l.Consume(name, l.Next(), d)
		l.Decide(name, true, "", "")
	}
}
