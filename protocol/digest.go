package protocol

import (
	"encoding/binary"
	"hash/maphash"
)

// Digest stands for a text: equal texts have equal digests, and others do not but
// by a chance of 2 to the power of -128. It is keyed with a secret of this process,
// so it is for this process alone and not for a disk. A SHA-256 would bring the
// initialisation of Go's cryptography into every start of a runner and of its
// guardian, a fiftieth of what a short run takes.
type Digest [16]byte

// seeds are the secret: one for each half of a digest.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func digestOfText(text []byte) (d Digest) {
	for i, seed := range seeds {
		binary.NativeEndian.PutUint64(d[8*i:], maphash.Bytes(seed, text))
	}
	return d
}

func digestOfID(id string) (d Digest) {
	for i, seed := range seeds {
		binary.NativeEndian.PutUint64(d[8*i:], maphash.String(seed, id))
	}
	return d
}
