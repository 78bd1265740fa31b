package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
)

// TestLost: what has happened comes first, then the cause; what differs between
// two connections is left out, and the error stays reachable.
func TestLost(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50123}
	there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}
	network := func(op, call string, cause error) error {
		return &net.OpError{Op: op, Net: "tcp", Source: here, Addr: there, Err: os.NewSyscallError(call, cause)}
	}
	resolve := func(e net.DNSError) error {
		e.Name = "nowhere.example"
		return &net.OpError{Op: "dial", Net: "tcp", Err: &e}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{io.EOF, "the server has closed the connection without a reason: EOF"},
		{io.ErrUnexpectedEOF, "the server has closed the connection without a reason: EOF"},
		{websocket.CloseError{Code: 1001}, "the server has closed the connection: status 1001"},
		{websocket.CloseError{Code: 1008, Reason: "a \n reason"}, `the server has closed the connection: status 1008, "a \n reason"`},
		{websocket.ErrMessageTooBig, "the server has sent a frame above the limit: message too big"},
		{context.DeadlineExceeded, "the server does not answer: timeout"},
		{os.ErrDeadlineExceeded, "the server does not answer: timeout"},
		{net.ErrClosed, "the connection is closed: use of closed network connection"},
		{network("dial", "connect", syscall.ECONNREFUSED), "no server is listening at 127.0.0.1:7: " + syscall.ECONNREFUSED.Error()},
		{network("dial", "connect", syscall.ENETUNREACH), "there is no way to 127.0.0.1:7: " + syscall.ENETUNREACH.Error()},
		{network("read", "read", syscall.ECONNRESET), "the server has cut the connection: " + syscall.ECONNRESET.Error()},
		{network("write", "write", syscall.EPIPE), "the server has cut the connection: " + syscall.EPIPE.Error()},
		{network("read", "read", syscall.EIO), "the connection has failed: " + syscall.EIO.Error()},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "the connection has failed: tls: bad certificate"},
		{resolve(net.DNSError{Err: "no such host", Server: "192.0.2.1:53", IsNotFound: true}), `the name "nowhere.example" is not found: no such host`},
		{resolve(net.DNSError{Err: "read udp 192.0.2.2:50123->192.0.2.1:53: i/o timeout", IsTimeout: true}), `the name "nowhere.example" is not found: the resolver does not answer`},
		{errors.New("something else"), "layers: something else"},
	} {
		err := fmt.Errorf("layers: %w", c.err)
		got := Lost(err)
		if got.Error() != c.want {
			t.Errorf("%v: got %q, want %q", err, got, c.want)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v: the error is not reachable any more", err)
		}
		if again := Lost(fmt.Errorf("cannot connect: %w", got)).Error(); again != "cannot connect: "+c.want {
			t.Errorf("%v: said twice: %q", err, again)
		}
	}
	if err := Lost(nil); err != nil {
		t.Errorf("nothing is %v", err)
	}
	if err := Lost(context.Canceled); err != context.Canceled {
		t.Errorf("a cancel is %v", err)
	}
}

// TestLinkLost: what the state says of a server that ends a connection, with and
// without a close frame, and of one that is gone.
func TestLinkLost(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*websocket.Conn)
		want string
	}{
		{"without a word", func(ws *websocket.Conn) { ws.CloseNow() }, "the server has closed the connection without a reason: EOF"},
		{"with a reason", func(ws *websocket.Conn) { ws.Close(websocket.StatusGoingAway, "a restart") }, `the server has closed the connection: status 1001, "a restart"`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), hang)
		defer cancel()
		url := server(t, func(_ int, ws *websocket.Conn, _ *http.Request) {
			if _, _, err := ws.Read(ctx); err == nil {
				c.end(ws)
			}
		})
		l := quick(t, url)
		l.cfg.PingEvery = hang // what is on its way makes a reset out of a close
		l.cfg.Changed = func(s LinkState) {
			if s.Error != "" {
				cancel()
			}
		}
		l.Run(ctx, func(ctx context.Context, conn *Conn) error {
			if err := conn.Write(ctx, []byte("end")); err != nil {
				return err
			}
			return read(ctx, conn)
		})
		if got := l.State().Error; got != c.want {
			t.Errorf("%s: the state says %q, want %q", c.name, got, c.want)
		}
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := gone.Addr().String()
	gone.Close()
	_, err = quick(t, "http://"+address).Connect(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "cannot connect: no server is listening at "+address+": ") {
		t.Errorf("nobody there: %v", err)
	}
}
