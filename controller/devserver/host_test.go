package devserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestPostWithoutAServer: what is missing is told once while it is waited for, and
// the end says that nothing was sent.
func TestPostWithoutAServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	tell := func(why string) {
		told = append(told, why)
		time.AfterFunc(3*retryEvery, cancel)
	}
	_, err := Post(ctx, t.TempDir(), []byte("{}"), time.Hour, tell)
	if !errors.Is(err, ErrNotYet) || len(told) != 1 || !strings.Contains(told[0], "no server has used") {
		t.Errorf("told %q, and then %v", told, err)
	}
}

// TestPostWithAFileForAll: a file that others can read is named, and is not taken
// for a server that is not there yet.
func TestPostWithAFileForAll(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the mode of a file says nothing there")
	}
	host, err := Listen(t.TempDir(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer host.listener.Close()
	for _, name := range []string{tokenFile, addressFile} {
		path := filepath.Join(host.dir, name)
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Post(t.Context(), host.dir, []byte("{}"), time.Hour, nil)
		if err == nil || errors.Is(err, ErrNotYet) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestListenOnLoopbackOnly: another address is refused in words of an address.
func TestListenOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", "example.com:0", ":0", "nonsense"} {
		host, err := Listen(t.TempDir(), addr)
		if err == nil {
			host.listener.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "expected host:port of loopback") || !strings.Contains(err.Error(), addr) {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
