package devserver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// wire is a connection with its way past the WebSocket library, for what that
// would never do.
type wire struct {
	*websocket.Conn
	tcp net.Conn
}

// seenHijack keeps the TCP connection that is taken out of a request.
type seenHijack struct {
	http.ResponseWriter
	tcp net.Conn
}

// Hijack implements [http.Hijacker].
func (s *seenHijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	tcp, rw, err := http.NewResponseController(s.ResponseWriter).Hijack()
	s.tcp = tcp
	return tcp, rw, err
}

func acceptWire(rw http.ResponseWriter, r *http.Request) (*wire, error) {
	seen := &seenHijack{ResponseWriter: rw}
	ws, err := websocket.Accept(seen, r, nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxFrame)
	return &wire{Conn: ws, tcp: seen.tcp}, nil
}

// reset ends the connection at once: what is on its way in either direction is
// lost.
func (w *wire) reset() {
	if tcp, ok := w.tcp.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0) // else it is only closed
	}
	w.tcp.Close()
}

// cutBytes is how much of a frame that comes is read before it is cut: less
// than any frame of a worker has.
const cutBytes = 16

// readCut reads the next frame, or only its beginning where cut says so.
func (w *wire) readCut(ctx context.Context, cut func() bool) ([]byte, error) {
	_, r, err := w.Reader(ctx)
	if err != nil {
		return nil, err
	}
	if !cut() {
		return io.ReadAll(r)
	}
	_, err = io.ReadFull(r, make([]byte, cutBytes))
	w.reset()
	return nil, errors.Join(errOrdered, err)
}

// writeCut sends the header of a text frame and half of its content, and cuts.
func (w *wire) writeCut(frame []byte) error {
	// RFC 6455, 5.2: a final text frame that is not masked, and its length in
	// 7, 16 or 64 bits.
	head := []byte{0x81}
	switch n := len(frame); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	_, err := w.tcp.Write(append(head, frame[:len(frame)/2]...))
	// Closed, not reset: what was sent arrives.
	return errors.Join(err, w.tcp.Close())
}
