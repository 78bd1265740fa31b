package main

import (
	"bytes"
	"strconv"
)

// blockBytes is about how much is written at once: more than a pipe holds, so
// that it is always full.
const blockBytes = 256 << 10

const (
	eventHead = `,"type":"event","payload":{"eventType":"item.delta","turnId":"turn_1","itemId":"item_1","payload":{"at":`
	textHead  = `,"delta":"`
	textTail  = `"}}}`
	// filler is text as agents write it: words, a line end, sometimes
	// something beyond ASCII.
	filler = `The test fails because the greeting lacks a letter – fixed now.\n`
)

// appendLine appends an event of size bytes and its line end. One that is too
// small for that is as small as it can be.
func appendLine(dst []byte, seq, at int64, size int) []byte {
	start := len(dst)
	dst = strconv.AppendInt(append(dst, head...), seq, 10)
	dst = strconv.AppendInt(append(dst, eventHead...), at, 10)
	dst = append(dst, textHead...)
	for left := size - (len(dst) - start) - len(textTail); left > 0; {
		if left < len(filler) {
			dst = append(dst, bytes.Repeat([]byte("."), left)...)
			break
		}
		dst = append(dst, filler...)
		left -= len(filler)
	}
	return append(append(dst, textTail...), '\n')
}

// block is a buffer of numbered lines that is written again and again: only
// the digits of the numbers change.
type block struct {
	size int // bytes a line, without its end

	buf    []byte
	width  int // digits of every number
	stride int // from line to line
	lines  int64
	fill   int // bytes in use
}

// number numbers as many lines as the block has, at most limit, from first on,
// and returns how many.
func (b *block) number(first, limit int64) int64 {
	next := int64(10) // the first number with another width
	width := 1
	for next <= first {
		next, width = next*10, width+1
	}
	if width != b.width {
		b.rebuild(first, width)
	}
	n := min(b.lines, limit, next-first)
	for i := range n {
		at := int(i)*b.stride + len(head)
		digits := b.buf[at : at+b.width]
		v := first + i
		for j := len(digits) - 1; j >= 0; j-- {
			digits[j] = byte('0' + v%10)
			v /= 10
		}
	}
	b.fill = int(n) * b.stride
	return n
}

func (b *block) rebuild(first int64, width int) {
	b.width = width
	line := appendLine(nil, first, 0, b.size)
	b.stride = len(line)
	b.lines = int64(max(1, blockBytes/b.stride))
	b.buf = bytes.Repeat(line, int(b.lines))
}

// bytes are the lines that were numbered last.
func (b *block) bytes() []byte { return b.buf[:b.fill] }
