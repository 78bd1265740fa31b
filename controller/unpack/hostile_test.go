package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestSparse: a few bytes that stand for many.
func TestSparse(t *testing.T) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	// The library writes no sparse entries, so that this one is put together.
	record := func(s string) []byte { return append([]byte(s), zeros(512-len(s))...) }
	pax := "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n25 GNU.sparse.name=large\n30 GNU.sparse.realsize=524288\n"
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "x", Mode: 0o644, Size: 512})
	header := out.Bytes()[:512]
	extended := bytes.Clone(header)
	extended[156] = 'x'
	copy(extended[124:136], "00000000143\x00") // 99 bytes, in octal
	if len(pax) != 99 {
		t.Fatalf("the records have %d bytes", len(pax))
	}
	checksum(extended)
	packed := join(extended, record(pax), header, record("0\n"), zeros(1024))
	_, err := try(t, wide, bytes.NewReader(packed))
	if err == nil || !strings.Contains(err.Error(), "sparse") {
		t.Errorf("got %v, want a refusal of sparse entries", err)
	}
}

// checksum fills in the sum of a header.
func checksum(h []byte) {
	copy(h[148:156], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	for i := range 6 {
		h[153-i] = '0' + byte(sum&7)
		sum >>= 3
	}
	h[154], h[155] = 0, ' '
}

// TestHeadersForEver: a stream of extended headers that never comes to an
// entry ends.
func TestHeadersForEver(t *testing.T) {
	packed := archive(entry{tar.TypeReg, strings.Repeat("n", 300), "x"})
	extended := packed[:1024] // the header of an extension, and its record
	if extended[156] != 'x' {
		t.Fatalf("the archive begins with an entry of type %q, want an extension", extended[156])
	}
	endless := &repeating{unit: extended}
	_, err := try(t, wide, endless)
	var refused *Refused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "headers of more than") {
		t.Errorf("got %v, want a refusal of the headers", err)
	}
	if endless.n > 2*maxHeader {
		t.Errorf("%d bytes were read, want at most %d", endless.n, 2*maxHeader)
	}
}

// repeating is a stream without an end.
type repeating struct {
	unit []byte
	n    int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.unit[r.n%len(r.unit):])
	r.n += n
	return n, nil
}
