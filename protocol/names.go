package protocol

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// manyNames is how many names an object may have before its names are hashed
// instead of compared one by one.
const manyNames = 12

// nameBook finds duplicate names of all open objects of one text. The names of
// small objects are compared; those of large ones stand in one hash table,
// marked with the number of their object, so that its size follows the length
// of the text and never the nesting.
type nameBook struct {
	src     []byte
	list    []bookName // of the open small objects, as a stack
	escaped []byte     // names that had escapes, without them
	objects uint32     // numbers given out

	table []tableName // open addressing, a power of two long; owner 0 is free
	used  int
	seed  maphash.Seed
}

// objectNames is the part of the book that belongs to one object.
type objectNames struct {
	from   int    // of its names in the list
	number uint32 // of the object
	many   bool   // its names are in the table
}

// place is where a name stands: in the text, or, where at is negative, in
// escaped from ^at on.
type place struct{ at, end int32 }

// bookName is a name of a small object. Head is a part of it and its length in
// one word, so that most comparisons end there.
type bookName struct {
	head uint64
	place
}

type tableName struct {
	owner, hash uint32
	place
}

// reset forgets the names of the text before and takes a new one.
func (b *nameBook) reset(src []byte) {
	b.src = src
	b.list, b.escaped, b.objects = b.list[:0], b.escaped[:0], 0
	if b.used > 0 {
		clear(b.table)
		b.used = 0
	}
}

// release forgets the text, and memory that an unusual one needed.
func (b *nameBook) release() {
	b.src = nil
	if len(b.table)*tableNameSize+cap(b.list)*bookNameSize+cap(b.escaped) > keepScratch {
		b.list, b.escaped, b.table, b.used = nil, nil, nil, 0
	}
}

// Sizes in bytes, for release.
const (
	tableNameSize = 16
	bookNameSize  = 16
)

func (b *nameBook) open() objectNames {
	b.objects++
	return objectNames{from: len(b.list), number: b.objects}
}

func (b *nameBook) close(o *objectNames) { b.list = b.list[:o.from] }

// text is the name that stands at p.
func (b *nameBook) text(p place) []byte {
	if p.at < 0 {
		return b.escaped[^p.at:p.end:p.end]
	}
	return b.src[p.at:p.end:p.end]
}

// locate finds the name of the checked string from at to end of the text.
func (b *nameBook) locate(at, end int, escaped bool) place {
	if !escaped {
		return place{int32(at + 1), int32(end - 1)}
	}
	from := len(b.escaped)
	b.escaped = appendUnquoted(b.escaped, b.src[at:end])
	return place{^int32(from), int32(len(b.escaped))}
}

// add takes a name; false where the object has it already.
func (b *nameBook) add(o *objectNames, p place) bool {
	if o.many {
		return b.insert(o.number, p)
	}
	text := b.text(p)
	head := nameHead(text)
	for i := o.from; i < len(b.list); i++ {
		if have := &b.list[i]; have.head == head && bytes.Equal(b.text(have.place), text) {
			return false
		}
	}
	b.list = append(b.list, bookName{head, p})
	if len(b.list)-o.from > manyNames {
		b.move(o)
	}
	return true
}

// nameHead packs the end of a name, since names often begin alike, and its
// length.
func nameHead(text []byte) uint64 {
	n := len(text)
	if n >= 8 {
		return binary.LittleEndian.Uint64(text[n-8:])&^0xff | uint64(n)&0xff
	}
	head := uint64(n)
	for _, c := range text {
		head = head<<8 | uint64(c)
	}
	return head
}

// move brings the names of an object that has become large into the table.
func (b *nameBook) move(o *objectNames) {
	o.many = true
	for _, n := range b.list[o.from:] {
		b.insert(o.number, n.place)
	}
	b.list = b.list[:o.from]
}

// insert puts a name into the table; false where its object has it there.
func (b *nameBook) insert(owner uint32, p place) bool {
	if 2*b.used >= len(b.table) {
		b.grow()
	}
	text := b.text(p)
	// The number of the object is mixed in: its names spread anew.
	hash := uint32(maphash.Bytes(b.seed, text)) ^ owner*0x9e3779b1
	mask := uint32(len(b.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		t := &b.table[i]
		if t.owner == 0 {
			*t = tableName{owner, hash, p}
			b.used++
			return true
		}
		if t.hash == hash && t.owner == owner && bytes.Equal(b.text(t.place), text) {
			return false
		}
	}
}

// grow doubles the table. Its seed is random, so that names cannot be chosen
// to meet in one place.
func (b *nameBook) grow() {
	const first = 64
	old := b.table
	if old == nil {
		b.seed = maphash.MakeSeed()
	}
	b.table = make([]tableName, max(first, 2*len(old)))
	mask := uint32(len(b.table) - 1)
	for _, t := range old {
		if t.owner == 0 {
			continue
		}
		i := t.hash & mask
		for b.table[i].owner != 0 {
			i = (i + 1) & mask
		}
		b.table[i] = t
	}
}
