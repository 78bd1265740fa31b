package worker

import (
	"fmt"
	"strings"

	"prp/controller/bridge"
)

// Output that is kept (row 6): the beginning and the end of each stream.
const (
	keepHead = 128 << 10 // bytes
	keepTail = 128 << 10 // bytes
)

// capture keeps the beginning and the end of a masked text.
type capture struct {
	mask  *bridge.Stream
	head  []byte
	tail  []byte // at most twice keepTail
	total int64  // bytes before masking
	lost  int64  // bytes that are in neither
}

func (c *capture) add(piece string) {
	c.total += int64(len(piece))
	c.keep(c.mask.Add([]byte(piece)))
}

func (c *capture) keep(b []byte) {
	n := min(keepHead-len(c.head), len(b))
	c.head = append(c.head, b[:n]...)
	c.tail = append(c.tail, b[n:]...)
	if extra := len(c.tail) - keepTail; extra > keepTail {
		c.lost += int64(extra)
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
}

// end closes the text. It is called once.
func (c *capture) end() {
	c.keep(c.mask.End())
	if extra := len(c.tail) - keepTail; extra > 0 {
		c.lost += int64(extra)
		c.tail = c.tail[extra:]
	}
}

// text is what is kept, within most bytes, and whether that is not all.
func (c *capture) text(most int) (string, bool) {
	head, tail, lost := c.head, c.tail, c.lost
	if len(head)+len(tail) > most {
		whole := len(head) + len(tail)
		head = head[:min(len(head), most/2)]
		tail = tail[len(tail)-min(len(tail), most-len(head)):]
		lost += int64(whole - len(head) - len(tail))
	}
	if lost == 0 {
		return strings.ToValidUTF8(string(head)+string(tail), "\uFFFD"), false
	}
	// Where a character was cut, its rest is not text.
	return strings.ToValidUTF8(string(head), "") + fmt.Sprintf("\n[%d bytes left out]\n", lost) + strings.ToValidUTF8(string(tail), ""), true
}
