//go:build unix

package worker

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"prp/controller/devserver"
)

// TestLostOnce: a lost link is told in plain words, each cause once until there
// is another one or a connection in between; the state has the newest.
func TestLostOnce(t *testing.T) {
	p := serve(t, devserver.WorkerConfig{})
	var shut atomic.Bool
	door := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if shut.Load() {
			panic(http.ErrAbortHandler) // closes the connection without an answer
		}
		p.server.ServeHTTP(rw, r)
	}))
	t.Cleanup(door.Close)
	p.cfg.Link.PingEvery = hang // what is on its way makes a reset out of a close
	p.cfg.Link.URL = door.URL + devserver.WorkerPath
	var mu sync.Mutex
	var told []string
	p.cfg.Report = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
	}
	p.start()
	const (
		lost   = "the server has closed the connection without a reason: EOF"
		failed = "cannot connect: " + lost
	)
	var want []string
	for range 2 {
		p.until("a connection", func() bool { return p.server.Connected() && p.worker.State().Connected })
		shut.Store(true)
		before := p.worker.State().Attempts
		p.server.DropLink()
		p.until("more attempts", func() bool { return p.worker.State().Attempts > before+5 })
		if s := p.worker.State(); s.Connected || s.Error != failed {
			t.Errorf("the state is %+v, want the error %q", s, failed)
		}
		shut.Store(false)
		want = append(want, "connected", "not connected: "+lost, "not connected: "+failed)
	}
	p.until("a connection", func() bool { return p.worker.State().Connected })
	p.end()
	mu.Lock()
	defer mu.Unlock()
	if want = append(want, "connected"); !slices.Equal(told, want) {
		t.Errorf("it says %q, want %q", told, want)
	}
}
