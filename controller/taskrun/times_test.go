package taskrun

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prp/controller/workerclient"
)

// answers is a server without a network: the time of each call, and what it gets.
type answers struct {
	began time.Time
	calls []time.Duration
	give  func(n int) (status int, header http.Header, body string)
	// refuse says why there is no answer; nil is for no reason.
	refuse func(n int) error
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	a.calls = append(a.calls, time.Since(a.began))
	status, header, body := a.give(len(a.calls))
	if status == 0 && a.refuse != nil {
		return nil, a.refuse(len(a.calls))
	}
	if status == 0 {
		return nil, errors.New("no answer")
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader([]byte(body)))}, nil
}

// timed is a worker with the times of the page on the clock of a bubble.
func timed(t *testing.T, give func(n int) (int, http.Header, string)) (*worker, *answers) {
	a := &answers{began: time.Now(), give: give}
	cfg := Config{
		TaskRunID: "run", Dir: t.TempDir(), Runner: []string{"x"}, Harness: []string{"x"}, Sandboxed: []string{"x"},
		Updater: &workerclient.WorkerHTTPUpdater{BaseURL: "https://host", Client: &http.Client{Transport: a}},
	}
	if err := cfg.fill(); err != nil {
		t.Fatal(err)
	}
	w := &worker{cfg: cfg, session: "session"}
	w.mask.Store(nil)
	return w, a
}

func seconds(list []time.Duration) []int {
	var out []int
	for _, d := range list {
		out = append(out, int(d/time.Second))
	}
	return out
}

// TestFetchTimes: 503 and network errors are tried again after 1 s, doubling to
// 15 s, for 2 min in all (the worker's order).
func TestFetchTimes(t *testing.T) {
	for name, status := range map[string]int{"503": 503, "no answer": 0} {
		synctest.Test(t, func(t *testing.T) {
			w, a := timed(t, func(int) (int, http.Header, string) { return status, nil, "" })
			_, what, err := w.claim(t.Context())
			want := []int{0, 1, 3, 7, 15, 30, 45, 60, 75, 90, 105, 120}
			if what != notOurs || err == nil || !slices.Equal(seconds(a.calls), want) {
				t.Errorf("%s: %v, calls at %v, want %v", name, err, seconds(a.calls), want)
			}
		})
	}
}

// TestReportTimes: rows 4 and 5. The report is tried for 60 s, and for 15 s after
// a signal; Retry-After is honoured.
func TestReportTimes(t *testing.T) {
	bad := func(int) (int, http.Header, string) { return 503, nil, "" }
	synctest.Test(t, func(t *testing.T) {
		w, a := timed(t, bad)
		err := w.send(t.Context(), "run", workerclient.PatchTaskRunRequest{Status: "FAILED"})
		if took := time.Since(a.began); err == nil || took != time.Minute || len(a.calls) < 6 {
			t.Errorf("%v after %s and %d tries", err, took, len(a.calls))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, a := timed(t, bad)
		ctx, signal := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Second, signal)
		err := w.send(ctx, "run", workerclient.PatchTaskRunRequest{Status: "FAILED"})
		if took := time.Since(a.began); err == nil || took != 35*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, a := timed(t, bad)
		ctx, signal := context.WithCancel(t.Context())
		signal()
		err := w.send(ctx, "run", workerclient.PatchTaskRunRequest{Status: "FAILED"})
		if took := time.Since(a.began); err == nil || took != 15*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, a := timed(t, func(n int) (int, http.Header, string) {
			if n == 1 {
				return 429, http.Header{"Retry-After": {"37"}}, ""
			}
			return 200, nil, ""
		})
		if err := w.send(t.Context(), "run", workerclient.PatchTaskRunRequest{Status: "FAILED"}); err != nil || !slices.Equal(seconds(a.calls), []int{0, 37}) {
			t.Errorf("%v, calls at %v", err, seconds(a.calls))
		}
	})
}

// TestPollTimes: a poll every 5 s with jitter, and every 60 s after a 401 or 403
// until one succeeds (row 8).
func TestPollTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := timed(t, func(n int) (int, http.Header, string) {
			if n == 4 || n == 5 {
				return 399 + 2*n - 6, nil, "" // 401, 403
			}
			return 200, nil, `{"run":{"status":"RUNNING"}}`
		})
		ctx, stop := context.WithCancel(t.Context())
		p := newPoller(w)
		go p.run(ctx)
		for range 7 {
			if o := <-p.seen; o != (observation{}) {
				t.Errorf("a poll saw %+v", o)
			}
		}
		stop()
		synctest.Wait()
		last := time.Duration(0)
		for i, at := range a.calls {
			most := 5 * time.Second
			if i == 4 || i == 5 {
				most = time.Minute
			}
			if d := at - last; d < most*8/10 || d > most*12/10 {
				t.Errorf("poll %d came after %s", i+1, d)
			}
			last = at
		}
	})
}

// TestContact: a person is told once that the server is away and since when, and
// once that it is back; the clock of the wall may jump meanwhile (remote.md rules
// 2 and 9).
func TestContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := timed(t, func(n int) (int, http.Header, string) {
			switch n {
			case 1, 6:
				return 404, nil, "" // an answer is contact
			case 3, 4:
				return 503, nil, ""
			case 2:
				return 0, nil, ""
			}
			return 200, nil, `{"run":{"status":"RUNNING"}}`
		})
		var told []string
		w.cfg.Report = func(text string) { told = append(told, text) }
		ctx, stop := context.WithCancel(t.Context())
		p := newPoller(w)
		go p.run(ctx)
		for range 6 {
			<-p.seen
		}
		stop()
		synctest.Wait()
		since := a.began.Add(a.calls[0]).UTC().Format(time.RFC3339)
		after := (a.calls[4] - a.calls[0]).Round(time.Second).String()
		if len(told) != 2 || !strings.HasPrefix(told[0], "no contact with the server since "+since+": ") || told[1] != "the server answers again, after "+after {
			t.Errorf("told %q, want one away since %s and one back after %s", told, since, after)
		}
	})
}

// TestHurriedPoll: a cancel wins over a signal also where a poll that began before
// the cancel is answered after the signal (the worker's order).
func TestHurriedPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, signalled := make(chan struct{}), make(chan struct{})
		w, _ := timed(t, func(n int) (int, http.Header, string) {
			if n == 1 {
				close(asked)
				<-signalled
				return 200, nil, `{"run":{"status":"RUNNING"}}`
			}
			if n == 2 {
				return 200, nil, `{"run":{"status":"RUNNING","cancel_requested":true}}`
			}
			return 404, nil, ""
		})
		ctx, signal := context.WithCancel(t.Context())
		p := newPoller(w)
		go p.run(ctx)
		defer signal()
		<-asked
		p.hurry()
		close(signalled)
		if first, second := <-p.seen, <-p.seen; first.hurried || first.cancelled || !second.hurried || !second.cancelled {
			t.Errorf("the polls saw %+v and %+v", first, second)
		}
	})
}

// TestUntrustedClaim: row 6. A claim without an answer is looked up, also where the
// server's certificate cannot be verified for a while.
func TestUntrustedClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := timed(t, func(n int) (int, http.Header, string) {
			switch n {
			case 1:
				return 200, nil, `{"run":{"status":"SCHEDULED"}}`
			case 2, 3:
				return 0, nil, ""
			}
			return 200, nil, `{"run":{"status":"RUNNING"},"task":{"session_id":"session"}}`
		})
		a.refuse = func(n int) error {
			if n == 3 {
				return &tls.CertificateVerificationError{Err: errors.New("it has expired")}
			}
			return errors.New("no answer")
		}
		if _, what, err := w.claim(t.Context()); what != ours || err != nil {
			t.Errorf("the run is %d, %v after %v", what, err, a.calls)
		}
	})
}
