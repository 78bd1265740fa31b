package workerclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// post is a call of a [server] from its begin to its end.
type post struct {
	text       string
	began, end time.Duration // since the server began
	err        error
}

// server is an inner sender on the clock of a synctest bubble.
type server struct {
	t     testing.TB
	start time.Time
	// answer says how long a post takes and how it ends; nil is at once and
	// well.
	answer func(n int, text string) (time.Duration, error)

	mu     sync.Mutex
	posts  []post
	flight int
	flush  int
}

func (s *server) SendDelta(ctx context.Context, id, delta string) error {
	s.mu.Lock()
	s.flight++
	if s.flight > 1 {
		s.t.Errorf("%d posts are in flight", s.flight)
	}
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > callTimeout {
		s.t.Errorf("the post has the deadline %v, %v", deadline, ok)
	}
	began, n := time.Since(s.start), len(s.posts)
	s.posts = append(s.posts, post{text: delta, began: began})
	s.mu.Unlock()
	var err error
	if s.answer != nil {
		var takes time.Duration
		takes, err = s.answer(n, delta)
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight--
	s.posts[n].end, s.posts[n].err = time.Since(s.start), err
	return err
}

func (s *server) Flush(context.Context, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush++
	return nil
}

// got is the text of the posts that succeeded.
func (s *server) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, p := range s.posts {
		if p.err == nil && p.end >= p.began {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

func (s *server) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, p := range s.posts {
		list = append(list, fmt.Sprintf("%s %d", p.began, len(p.text)))
	}
	return strings.Join(list, ", ")
}

// debounced runs f in a bubble with a sender, and stops the sender.
func debounced(t *testing.T, answer func(n int, text string) (time.Duration, error), f func(t *testing.T, s *server, d *DebouncedStreamSender)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, start: time.Now(), answer: answer}
		d := &DebouncedStreamSender{Inner: s}
		f(t, s, d)
		d.Stop()
	})
}

func put(t *testing.T, d *DebouncedStreamSender, text string) {
	t.Helper()
	if err := d.SendDelta(t.Context(), "run", text); err != nil {
		t.Errorf("SendDelta: %v", err)
	}
}

func flush(t *testing.T, d *DebouncedStreamSender) {
	t.Helper()
	if err := d.Flush(t.Context(), "run"); err != nil {
		t.Errorf("Flush: %v", err)
	}
}

func wantPosts(t *testing.T, s *server, want string) {
	t.Helper()
	synctest.Wait()
	if got := s.list(); got != want {
		t.Errorf("posts at, of bytes: %s\nwant %s", got, want)
	}
}

// TestTrickle: row 1. A text waits 80 ms from its first byte on, and what comes
// meanwhile does not put it off.
func TestTrickle(t *testing.T) {
	debounced(t, nil, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		for range 10 {
			put(t, d, "ab")
			time.Sleep(30 * time.Millisecond)
		}
		time.Sleep(time.Second)
		wantPosts(t, s, "80ms 6, 170ms 6, 260ms 6, 350ms 2")
		put(t, d, "c")
		time.Sleep(time.Second)
		wantPosts(t, s, "80ms 6, 170ms 6, 260ms 6, 350ms 2, 1.38s 1")
		if s.got() != strings.Repeat("ab", 10)+"c" {
			t.Errorf("the server has %q", s.got())
		}
	})
}

// TestBurst: row 1. 512 bytes do not wait; while a post is in flight everything
// else does, and goes out as one.
func TestBurst(t *testing.T) {
	slow := func(int, string) (time.Duration, error) { return 50 * time.Millisecond, nil }
	debounced(t, slow, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, strings.Repeat("a", 511))
		wantPosts(t, s, "")
		put(t, d, "a")
		wantPosts(t, s, "0s 512")
		put(t, d, "c")
		time.Sleep(time.Second)
		wantPosts(t, s, "0s 512, 80ms 1")
	})
	debounced(t, slow, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, strings.Repeat("a", 512))
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		put(t, d, strings.Repeat("b", 600))
		put(t, d, "c")
		time.Sleep(time.Second)
		wantPosts(t, s, "0s 512, 50ms 601")
	})
}

// TestSlowServer: a post that takes longer than the interval: what waits goes
// out as soon as it has ended.
func TestSlowServer(t *testing.T) {
	slow := func(int, string) (time.Duration, error) { return 300 * time.Millisecond, nil }
	debounced(t, slow, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, "a")
		time.Sleep(90 * time.Millisecond)
		put(t, d, "b")
		time.Sleep(90 * time.Millisecond)
		put(t, d, "c")
		time.Sleep(2 * time.Second)
		wantPosts(t, s, "80ms 1, 380ms 2")
	})
}

// TestOverrides: row 1. IntervalMs and MaxBytes hold where they are above 0.
func TestOverrides(t *testing.T) {
	debounced(t, nil, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		d.IntervalMs, d.MaxBytes = 500, 3
		put(t, d, "ab")
		time.Sleep(time.Second)
		put(t, d, "abc")
		wantPosts(t, s, "500ms 2, 1s 3")
	})
	debounced(t, nil, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		d.IntervalMs, d.MaxBytes = -1, -1
		put(t, d, "ab")
		time.Sleep(time.Second)
		wantPosts(t, s, "80ms 2")
	})
}

// TestSplit: row 1. A delta above 64 KiB is split, not inside a character.
func TestSplit(t *testing.T) {
	debounced(t, nil, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		text := "a" + strings.Repeat("\u2603", 65536) // 196609 bytes
		put(t, d, text)
		time.Sleep(time.Second)
		wantPosts(t, s, "0s 65536, 0s 65535, 0s 65535, 80ms 3")
		if s.got() != text {
			t.Error("the text is another one")
		}
		for _, p := range s.posts {
			if strings.ContainsRune(p.text, 0xfffd) {
				t.Error("a character was cut")
			}
		}
	})
}

// TestCharacters: row 1. A character that came in pieces goes out as a whole,
// and its beginning only with a flush.
func TestCharacters(t *testing.T) {
	debounced(t, nil, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, "a\xe2\x98")
		time.Sleep(time.Second)
		wantPosts(t, s, "80ms 1")
		put(t, d, "\x83b")
		time.Sleep(time.Second)
		wantPosts(t, s, "80ms 1, 1.08s 4")
		put(t, d, "\xf0\x9f")
		time.Sleep(time.Second)
		wantPosts(t, s, "80ms 1, 1.08s 4")
		flush(t, d)
		put(t, d, "\xff\xff") // no beginning of anything
		time.Sleep(time.Second)
		wantPosts(t, s, "80ms 1, 1.08s 4, 3s 2, 3.08s 2")
	})
}

// TestFlush: row 2. It waits for the post in flight and for the buffer, and is
// bounded by its context.
func TestFlush(t *testing.T) {
	slow := func(int, string) (time.Duration, error) { return 300 * time.Millisecond, nil }
	debounced(t, slow, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, "a")
		time.Sleep(100 * time.Millisecond)
		put(t, d, "b")
		flush(t, d)
		if took := time.Since(s.start); took != 680*time.Millisecond || s.got() != "ab" || s.flush != 1 {
			t.Errorf("after %s the server has %q, and %d flushes", took, s.got(), s.flush)
		}
		flush(t, d) // nothing is left
		if took := time.Since(s.start); took != 680*time.Millisecond {
			t.Errorf("a flush of nothing took until %s", took)
		}
		put(t, d, "c")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := d.Flush(ctx, "run"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a flush that is too short returned %v", err)
		}
		time.Sleep(time.Second)
		if s.got() != "abc" {
			t.Errorf("after a flush that was too short the server has %q", s.got())
		}
	})
}

// failing is a server whose first n posts of a text fail.
func failing(n int, err error) func(int, string) (time.Duration, error) {
	seen := 0
	return func(int, string) (time.Duration, error) {
		if seen++; seen <= n {
			return 0, err
		}
		return 0, nil
	}
}

// TestTries: row 3. A post that fails is tried again after 200 ms, 1 s and 3 s,
// then its text is dropped and counted, and the next one is posted.
func TestTries(t *testing.T) {
	away := errors.New("no answer")
	debounced(t, failing(3, away), func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, "a")
		flush(t, d)
		wantPosts(t, s, "0s 1, 200ms 1, 1.2s 1, 4.2s 1")
		if s.got() != "a" || d.Dropped() != 0 {
			t.Errorf("the server has %q, %d bytes are dropped", s.got(), d.Dropped())
		}
	})
	debounced(t, failing(4, away), func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, "lost")
		synctest.Wait()
		time.Sleep(time.Second)
		put(t, d, "kept")
		if err := d.Flush(t.Context(), "run"); !errors.Is(err, away) {
			t.Errorf("Flush returned %v", err)
		}
		wantPosts(t, s, "80ms 4, 280ms 4, 1.28s 4, 4.28s 4, 4.28s 4")
		if s.got() != "kept" || d.Dropped() != 4 {
			t.Errorf("the server has %q, %d bytes are dropped", s.got(), d.Dropped())
		}
		flush(t, d) // the error was told
	})
}

// TestRefused: an answer that another try does not change is not tried again;
// 404 and 409 end the stream (wire).
func TestRefused(t *testing.T) {
	for status, tt := range map[int]struct {
		posts string
		ends  bool
		drops int64
	}{
		400: {"0s 4, 0s 1", false, 4}, 401: {"0s 4, 0s 1", false, 4}, 413: {"0s 4, 0s 1", false, 4},
		404: {"0s 4", true, 5}, 409: {"0s 4", true, 5},
		429: {"0s 4, 200ms 4, 200ms 1", false, 0}, 500: {"0s 4, 200ms 4, 200ms 1", false, 0}, 503: {"0s 4, 200ms 4, 200ms 1", false, 0},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			debounced(t, failing(1, &StatusError{Operation: "post", Status: status}), func(t *testing.T, s *server, d *DebouncedStreamSender) {
				put(t, d, "text")
				err := d.Flush(t.Context(), "run")
				if (err != nil) != (tt.drops > 0) {
					t.Errorf("Flush returned %v", err)
				}
				err = d.SendDelta(t.Context(), "run", "x")
				if (err != nil) != tt.ends {
					t.Errorf("SendDelta returned %v", err)
				}
				_ = d.Flush(t.Context(), "run") // the posts tell
				wantPosts(t, s, tt.posts)
				if d.Dropped() != tt.drops {
					t.Errorf("%d bytes are dropped, want %d", d.Dropped(), tt.drops)
				}
			})
		})
	}
}

// TestCancel: what was taken is sent also when its context ends; a context that
// has ended gives nothing.
func TestCancel(t *testing.T) {
	debounced(t, nil, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		ctx, cancel := context.WithCancel(t.Context())
		if err := d.SendDelta(ctx, "run", "a"); err != nil {
			t.Error(err)
		}
		cancel()
		if err := d.SendDelta(ctx, "run", "b"); !errors.Is(err, context.Canceled) {
			t.Errorf("SendDelta returned %v", err)
		}
		time.Sleep(time.Second)
		wantPosts(t, s, "80ms 1")
		if d.Dropped() != 0 {
			t.Errorf("%d bytes are dropped", d.Dropped())
		}
	})
}

// TestStop: a shutdown ends the post in flight, drops and counts what waits,
// wakes who flushes, and leaves no goroutine: the bubble would not end.
func TestStop(t *testing.T) {
	hang := func(int, string) (time.Duration, error) { return time.Hour, nil }
	debounced(t, hang, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, strings.Repeat("a", 600))
		synctest.Wait()
		put(t, d, "bc")
		flushed := make(chan error, 1)
		go func() { flushed <- d.Flush(context.Background(), "run") }()
		synctest.Wait()
		d.Stop()
		if err := <-flushed; !errors.Is(err, context.Canceled) {
			t.Errorf("Flush returned %v", err)
		}
		if d.Dropped() != 602 || time.Since(s.start) != 0 {
			t.Errorf("%d bytes are dropped after %s", d.Dropped(), time.Since(s.start))
		}
		if err := d.SendDelta(t.Context(), "run", "d"); !errors.Is(err, errStopped) {
			t.Errorf("SendDelta returned %v", err)
		}
		d.Stop()
	})
}

// TestFull: what waits is bounded (remote.md rule 10).
func TestFull(t *testing.T) {
	hang := func(int, string) (time.Duration, error) { return time.Hour, nil }
	debounced(t, hang, func(t *testing.T, s *server, d *DebouncedStreamSender) {
		put(t, d, strings.Repeat("a", 512))
		synctest.Wait()
		piece := strings.Repeat("b", maxWaiting/4)
		for range 4 {
			put(t, d, piece)
		}
		if err := d.SendDelta(t.Context(), "run", "c"); !errors.Is(err, errFull) || d.Dropped() != 1 {
			t.Errorf("SendDelta returned %v, %d bytes are dropped", err, d.Dropped())
		}
	})
}

// TestRuns: each run has its own order, post and end.
func TestRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &server{t: t, start: time.Now()}, &server{t: t, start: time.Now()}
		a.answer = failing(1, &StatusError{Status: http.StatusConflict})
		d := &DebouncedStreamSender{Inner: byRun{"a": a, "b": b}}
		defer d.Stop()
		for _, id := range []string{"a", "b"} {
			if err := errors.Join(d.SendDelta(t.Context(), id, id+"1"), d.SendDelta(t.Context(), id, id+"2")); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		if a.got() != "" || b.got() != "b1b2" || d.Dropped() != 4 {
			t.Errorf("the servers have %q and %q, %d bytes are dropped", a.got(), b.got(), d.Dropped())
		}
	})
}

type byRun map[string]*server

func (b byRun) SendDelta(ctx context.Context, id, delta string) error {
	return b[id].SendDelta(ctx, id, delta)
}
func (b byRun) Flush(ctx context.Context, id string) error { return b[id].Flush(ctx, id) }
