package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"prp/controller/bridge"
	"prp/controller/devserver"
)

const (
	tokenFile   = "token"
	addressFile = "address"
	// sendRetry is how often send looks for a server and a worker.
	sendRetry = 50 * time.Millisecond
	// headerWait bounds how long a client may take for its request.
	headerWait = 10 * time.Second
	// maxAnswer bounds a line of an answer, in bytes.
	maxAnswer = 4 << 20
)

// devserverOptions are the flags of prp devserver.
type devserverOptions struct {
	dir, addr string
	misbehave list
	wait      time.Duration
	timeoutMS int
	json      bool
}

var devserverCommand = &command{
	name: "devserver", args: "worker | send TOOL [NAME=VALUE...]",
	short: "a small server to try the doors with",
	long: `
Serves on this machine's loopback, so that a door can be tried without a real
server.

'prp devserver worker' is a server for prp worker. It writes a token and its
address into --dir, and prints how a worker connects.

'prp devserver send TOOL NAME=VALUE...' sends a command to the worker that is
connected there and prints the result. A value that is a JSON list, object,
number, true or false is taken as such, anything else as text.

--misbehave KIND:N:WHAT makes the server err at the Nth frame of a kind
(connect, hello, result, progress, command; N 0 is every one): drop, drop-after,
hang, mute, twice or late.

exit status: 0 the server was ended, or the command succeeded; 1 it failed; 2
wrong command line.

  prp devserver worker
  prp devserver send file.read path=README.md limit=100
  prp devserver send command.run 'argv=["go","version"]'`,
	operand: operand{words: func() []string { return []string{"worker", "send"} }},
	flags: func(fs *flag.FlagSet) runFunc {
		o := &devserverOptions{}
		fs.StringVar(&o.dir, "dir", "", "keep token and address in this `directory`")
		fs.StringVar(&o.addr, "addr", defaultAddr, "listen on `host:port` of loopback; port 0 takes a free one")
		fs.Var(&o.misbehave, "misbehave", "err as this `rule` says; may be repeated")
		fs.DurationVar(&o.wait, "wait", 10*time.Second, "with send, wait so `long` for a server and a worker")
		fs.IntVar(&o.timeoutMS, "timeout-ms", 0, "with send, the `number` of milliseconds that the command may take")
		fs.BoolVar(&o.json, "json", false, "with send, print every frame as it is")
		return o.run
	},
}

func (o *devserverOptions) run(s *streams, args []string) int {
	if o.dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return fail(s, "devserver", misuse("expected --dir, since there is no place for it: %s", err))
		}
		o.dir = filepath.Join(base, "prp", "devserver")
	}
	switch {
	case len(args) == 1 && args[0] == "worker":
		return o.serve(s)
	case len(args) >= 2 && args[0] == "send":
		return o.send(s, args[1], args[2:])
	case len(args) > 0 && args[0] == "send":
		return fail(s, "devserver", misuse("expected a tool after send, got none"))
	}
	return fail(s, "devserver", misuse("expected worker or send, got %q", args))
}

func (o *devserverOptions) serve(s *streams) int {
	cfg := devserver.WorkerConfig{Token: rand.Text()}
	for _, text := range o.misbehave {
		r, err := devserver.ParseRule(text)
		if err != nil {
			return fail(s, "devserver", misuse("--misbehave: %s", err))
		}
		cfg.Rules = append(cfg.Rules, r)
	}
	listener, err := listenLoopback(o.addr)
	if err != nil {
		return fail(s, "devserver", err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	if err := o.writeFiles(cfg.Token, address); err != nil {
		return fail(s, "devserver", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	w := devserver.NewWorker(cfg)
	server := &http.Server{Handler: w, ReadHeaderTimeout: headerWait}
	context.AfterFunc(ctx, func() {
		w.Close()
		server.Close()
	})
	fmt.Fprintf(s.out, "prp worker --url ws://%s%s --token-file '%s' --root .\n", address, devserver.WorkerPath, filepath.Join(o.dir, tokenFile))
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fail(s, "devserver", err)
	}
	return exitOK
}

// listenLoopback refuses every address that others could reach.
func listenLoopback(addr string) (net.Listener, error) {
	if _, err := bridge.CheckURL("http://"+addr, false); err != nil {
		return nil, misuse("--addr: %s", err)
	}
	return net.Listen("tcp", addr)
}

// writeFiles writes the address last: whoever finds it finds the token.
func (o *devserverOptions) writeFiles(token, address string) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	for _, f := range [][2]string{{tokenFile, token}, {addressFile, address}} {
		path := filepath.Join(o.dir, f[0])
		if err := os.WriteFile(path+".new", []byte(f[1]+"\n"), 0o600); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

// send sends a command and prints what comes back.
func (o *devserverOptions) send(s *streams, tool string, words []string) int {
	command, err := commandOf(tool, words, o.timeoutMS)
	if err != nil {
		return fail(s, "devserver", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	answer, err := o.post(ctx, command)
	if err != nil {
		return fail(s, "devserver", err)
	}
	defer answer.Close()
	return o.show(s, answer)
}

// commandOf makes a command out of words.
func commandOf(tool string, words []string, timeoutMS int) ([]byte, error) {
	args := map[string]any{}
	for _, word := range words {
		name, text, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, misuse("expected NAME=VALUE, got %q", word)
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			value = text
		} else if _, isText := value.(string); isText || value == nil {
			value = text
		} else {
			value = json.RawMessage(text) // digit for digit
		}
		args[name] = value
	}
	command := map[string]any{"tool": tool, "task_id": "devserver", "args": args}
	if timeoutMS > 0 {
		command["timeout_ms"] = timeoutMS
	}
	return json.Marshal(command)
}

// post waits for a server and a worker, then hands the command over once.
func (o *devserverOptions) post(ctx context.Context, command []byte) (io.ReadCloser, error) {
	deadline := time.Now().Add(o.wait)
	for {
		answer, err := o.try(ctx, command)
		if err == nil || !errors.Is(err, errNotYet) || time.Now().After(deadline) {
			return answer, err
		}
		select {
		case <-time.After(sendRetry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errNotYet is a server or a worker that is not there, so nothing was sent.
var errNotYet = errors.New("not yet")

func (o *devserverOptions) try(ctx context.Context, command []byte) (io.ReadCloser, error) {
	token, err := bridge.ReadSecret(filepath.Join(o.dir, tokenFile))
	address, err2 := bridge.ReadSecret(filepath.Join(o.dir, addressFile))
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("no server has used %s: %w (%w)", o.dir, err, errNotYet)
	}
	url, err := bridge.CheckURL("http://"+address+devserver.SendPath, false)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url.String(), bytes.NewReader(command))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no server at %s: %w", address, errNotYet)
	}
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // it is only shown
	why := strings.TrimSpace(string(text))
	if answer.StatusCode == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("%s: %w", why, errNotYet)
	}
	return nil, fmt.Errorf("the server says: %s", why)
}

// show prints the frames of a command up to its result.
func (o *devserverOptions) show(s *streams, answer io.Reader) int {
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var frame struct {
			Status   string
			Progress *struct{ Message string }
		}
		if err := json.Unmarshal(lines.Bytes(), &frame); err != nil {
			return fail(s, "devserver", err)
		}
		switch {
		case o.json:
			fmt.Fprintf(s.out, "%s\n", lines.Bytes())
		case frame.Progress != nil:
			fmt.Fprintln(s.err, frame.Progress.Message)
		default:
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, lines.Bytes(), "", "  "); err != nil {
				return fail(s, "devserver", err)
			}
			fmt.Fprintf(s.out, "%s\n", pretty.Bytes())
		}
		if frame.Status == "success" {
			return exitOK
		}
		if frame.Status != "" {
			return exitFailed
		}
	}
	err := lines.Err()
	if err == nil {
		err = errors.New("the server has ended before the result")
	}
	return fail(s, "devserver", err)
}
