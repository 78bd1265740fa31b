package s3

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// chunkSize is how much is signed at once, in bytes; it bounds the memory. The
// published example has this size, and stores want at least 8 KiB.
const chunkSize = 64 << 10

// chunkHead is the length of a chunk's head and end without its size, in bytes:
// ";chunk-signature=", 64 digits and two line ends.
const chunkHead = len(";chunk-signature=") + 2*sha256.Size + 4

// errSize is a reader that has not as many bytes as were said.
var errSize = errors.New("the bytes are not as many as were announced")

// chunkedLength is the length of size bytes with their signatures.
func chunkedLength(size int64) int64 {
	frame := func(n int64) int64 { return n + int64(len(strconv.FormatInt(n, 16))+chunkHead) }
	length := size/chunkSize*frame(chunkSize) + frame(0)
	if rest := size % chunkSize; rest > 0 {
		length += frame(rest)
	}
	return length
}

// chunkReader signs what it reads piece by piece, each signature over the one
// before, so that a stream whose hash is not known beforehand cannot be changed
// on its way. The last piece is empty.
type chunkReader struct {
	sign     signer
	previous string
	from     io.Reader
	left     int64
	raw      []byte
	out      []byte
	done     bool
}

func newChunkReader(s signer, seed string, r io.Reader, size int64) *chunkReader {
	return &chunkReader{sign: s, previous: seed, from: r, left: size, raw: make([]byte, chunkSize)}
}

// Read implements io.Reader.
func (c *chunkReader) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		if c.done {
			return 0, io.EOF
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

func (c *chunkReader) fill() error {
	want := min(c.left, chunkSize)
	n, err := io.ReadFull(c.from, c.raw[:want])
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("expected %d more, got %d: %w", c.left, n, errSize)
		}
		return err
	}
	c.left -= want
	if c.done = want == 0; c.done {
		if n, _ := io.ReadFull(c.from, c.raw[:1]); n > 0 {
			return fmt.Errorf("expected the end, got more: %w", errSize)
		}
	}
	data := sha256.Sum256(c.raw[:want])
	text := strings.Join([]string{
		chunkAlgorithm, c.sign.at.UTC().Format(timeForm), c.sign.scope(), c.previous, emptyHash, hex.EncodeToString(data[:]),
	}, "\n")
	c.previous = hex.EncodeToString(mac(c.sign.key(), text))
	out := make([]byte, 0, int(want)+chunkHead+16)
	out = strconv.AppendInt(out, want, 16)
	out = append(out, ";chunk-signature="+c.previous+"\r\n"...)
	out = append(out, c.raw[:want]...)
	c.out = append(out, "\r\n"...)
	return nil
}
