//go:build unix

package files

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// roomy is a bound of content that nothing here reaches.
const roomy = 16 << 20

func read(s *Space, path string) (*ReadResult, error) {
	return s.Read(context.Background(), ReadRequest{Path: path}, roomy, nil)
}

// TestOutside: whatever a path says, nothing outside the roots is reached.
func TestOutside(t *testing.T) {
	s, dir := space(t, map[string]string{"in.txt": "in", "sub/a": "a"})
	outside := filepath.Join(t.TempDir(), "out.txt")
	write(t, outside, "out")
	for link, target := range map[string]string{
		"link": outside, "dirlink": filepath.Dir(outside), "rel": "../" + filepath.Base(dir) + "/../" + filepath.Base(filepath.Dir(outside)),
		"new": filepath.Join(filepath.Dir(outside), "made"), "loop": "loop", "inner": filepath.Join(dir, "in.txt"), "innerdir": "sub",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{outside, "link", "dirlink/out.txt", "dirlink/made", "../out", "sub/../../x", "/etc/passwd", "new", "loop", filepath.Join(dir, "..", "x")} {
		_, err := read(s, path)
		refused(t, "read "+path, err, PathNotAllowed)
		text := "x"
		_, err = s.Write(t.Context(), WriteRequest{Path: path, Content: &text, Mode: ModeOverwrite})
		refused(t, "write "+path, err, PathNotAllowed)
		_, err = s.Search(t.Context(), SearchRequest{Path: path, Query: "x"}, roomy, nil)
		refused(t, "search "+path, err, PathNotAllowed)
	}
	for _, path := range []string{"in.txt", "./sub/../in.txt", filepath.Join(dir, "in.txt"), "inner", "innerdir/../in.txt"} {
		if r, err := read(s, path); err != nil || r.Content != "in" {
			t.Errorf("%s: %v, %v", path, r, err)
		}
	}
	if b, _ := os.ReadFile(outside); string(b) != "out" {
		t.Errorf("the file outside is %q", b)
	}
	none, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = read(none, "/etc/passwd")
	refused(t, "without a root", err, PathNotAllowed)
}

// TestExchangedPath: a folder that turns into a symlink to the outside between
// the check and the use never leads there.
func TestExchangedPath(t *testing.T) {
	s, dir := space(t, map[string]string{"d/f": "in"})
	outside := t.TempDir()
	write(t, filepath.Join(outside, "f"), "out")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		d, real := filepath.Join(dir, "d"), filepath.Join(dir, "real")
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(d, real)
			os.Symlink(outside, d)
			os.Remove(d)
			os.Rename(real, d)
		}
	})
	seen, tries := 0, 2000
	if testing.Short() {
		tries = 500
	}
	text := "new"
	for range tries {
		if r, err := read(s, "d/f"); err == nil {
			seen++
			if r.Content == "out" {
				t.Error("the file outside was read")
				break
			}
		}
		s.Write(t.Context(), WriteRequest{Path: "d/f", Content: &text, Mode: ModeOverwrite})
	}
	close(stop)
	swapper.Wait()
	if b, err := os.ReadFile(filepath.Join(outside, "f")); string(b) != "out" {
		t.Errorf("the file outside is %q, %v", b, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside there are %v", entries)
	}
	if seen == 0 {
		t.Error("no read came through, so nothing was tried")
	}
}

// TestSpecialFiles: what is no file is refused at once.
func TestSpecialFiles(t *testing.T) {
	s, dir := space(t, map[string]string{"d/x": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	old, _ := os.Getwd()
	t.Chdir(dir) // the path of a socket is short
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: "socket"}); err != nil {
		t.Fatal(err)
	}
	t.Chdir(old)
	text := "x"
	for _, path := range []string{"fifo", "socket", "d", "."} {
		_, err := read(s, path)
		refused(t, "read "+path, err, NotAFile)
		_, err = s.Write(t.Context(), WriteRequest{Path: path, Content: &text, Mode: ModeOverwrite})
		refused(t, "write "+path, err, NotAFile)
	}
	for _, path := range []string{"none", "d/x/y", "none/x"} {
		_, err := read(s, path)
		refused(t, "read "+path, err, NotFound)
	}
	r, err := s.Search(t.Context(), SearchRequest{Query: "x", Kind: KindName}, roomy, nil)
	if err != nil || len(r.Matches) != 1 || r.Matches[0].File != "d/x" {
		t.Errorf("a search beside a FIFO: %+v, %v", r, err)
	}
}

// TestExchangedForFIFO: what has become a FIFO after it was looked at is not
// waited for, neither as a folder nor as a file.
func TestExchangedForFIFO(t *testing.T) {
	s, dir := space(t, nil)
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := s.roots[0]
	tries := map[string]func() bool{"contentHash": func() bool { return contentHash(root, "fifo") != hashOf(nil) }}
	if runtime.GOOS == "linux" { // dir.go says why
		tries["openDir"] = func() bool { _, err := openDir(root.Root, "fifo"); return err == nil }
	}
	for name, open := range tries {
		ended := make(chan bool, 1)
		go func() { ended <- open() }()
		select {
		case taken := <-ended:
			if taken {
				t.Errorf("%s takes a FIFO", name)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s waits for somebody who writes", name)
		}
	}
}

// TestReadParts: offset and limit in bytes, size and hash of the whole file.
func TestReadParts(t *testing.T) {
	whole := "aé☃\r\nend"
	s, _ := space(t, map[string]string{"f": whole, "bin": "a\x00b", "latin": "caf\xe9 x", "empty": ""})
	for _, tt := range []struct {
		r        ReadRequest
		content  string
		encoding string
		next     int64 // 0: the end
	}{
		{ReadRequest{Path: "f"}, whole, UTF8, 0},
		{ReadRequest{Path: "f", Limit: 3}, "aé", UTF8, 3},
		{ReadRequest{Path: "f", Limit: 2}, "a", UTF8, 1},                  // cut at a character
		{ReadRequest{Path: "f", Limit: 5}, "aé", UTF8, 3},                 // as well
		{ReadRequest{Path: "f", Offset: 2, Limit: 1}, "\xa9", Base64, 3},  // inside one
		{ReadRequest{Path: "f", Offset: 6, Limit: 9}, "\r\nend", UTF8, 0}, // CRLF stays
		{ReadRequest{Path: "f", Offset: 99}, "", UTF8, 0},
		{ReadRequest{Path: "bin"}, "a\x00b", Base64, 0},
		{ReadRequest{Path: "latin"}, "caf\xe9 x", Base64, 0},
		{ReadRequest{Path: "f", Limit: 1, Encoding: Base64}, "a", Base64, 1},
		{ReadRequest{Path: "empty"}, "", UTF8, 0},
	} {
		r, err := s.Read(t.Context(), tt.r, roomy, nil)
		if err != nil {
			t.Errorf("%+v: %v", tt.r, err)
			continue
		}
		got := r.Content
		if r.Encoding == Base64 {
			b, err := base64.StdEncoding.DecodeString(got)
			if err != nil {
				t.Error(err)
			}
			got = string(b)
		}
		next := int64(0)
		if r.NextOffset != nil {
			next = *r.NextOffset
		}
		if got != tt.content || r.Encoding != tt.encoding || next != tt.next || r.Bytes != int64(len(tt.content)) {
			t.Errorf("%+v: %+v", tt.r, r)
		}
		if tt.r.Path == "f" && (r.Size != int64(len(whole)) || r.SHA256 != hashOf([]byte(whole))) {
			t.Errorf("%+v: size %d, hash %s", tt.r, r.Size, r.SHA256)
		}
	}
	for _, r := range []ReadRequest{{Path: "f", Offset: -1}, {Path: "f", Limit: MaxRead + 1}, {Path: "f", Encoding: "latin1"}, {Path: ""}, {Path: "a\x00b"}} {
		_, err := s.Read(t.Context(), r, roomy, nil)
		refused(t, "read", err, InvalidRequest)
	}
}

// TestReadFitsFrame: content that needs escapes is cut to fit.
func TestReadFitsFrame(t *testing.T) {
	s, _ := space(t, map[string]string{"f": strings.Repeat("\x01", 10000), "b": strings.Repeat("\x00", 10000)})
	r, err := s.Read(t.Context(), ReadRequest{Path: "f"}, 600, nil)
	if err != nil || r.Bytes != 100 || r.NextOffset == nil || *r.NextOffset != 100 {
		t.Errorf("text: %+v, %v", r, err)
	}
	r, err = s.Read(t.Context(), ReadRequest{Path: "b"}, 600, nil)
	if err != nil || len(r.Content) > 600 || r.NextOffset == nil || *r.NextOffset != r.Bytes {
		t.Errorf("binary: %+v, %v", r, err)
	}
}

// TestReadHuge: a file of 2 GiB without content costs no memory, and a read
// ends with its context.
func TestReadHuge(t *testing.T) {
	s, dir := space(t, map[string]string{"f": "begin"})
	if err := os.Truncate(filepath.Join(dir, "f"), 2<<30); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Read(ctx, ReadRequest{Path: "f"}, roomy, nil); err != context.DeadlineExceeded {
		t.Errorf("the read ended with %v", err)
	}
	text := "x"
	_, err := s.Write(t.Context(), WriteRequest{Path: "f", Content: &text, Mode: ModeAppend})
	refused(t, "append to a huge file", err, TooLarge)
}

func TestTextLength(t *testing.T) {
	for _, text := range []string{"", "abc", "é☃\n\"\\", "<&>\u2028\x7f", strings.Repeat("ab\n", 50)} {
		for most := range 40 {
			n := textLength([]byte(text), most)
			if !utf8.ValidString(text[:n]) || n > most {
				t.Errorf("%q to %d: %d", text, most, n)
			}
		}
	}
}
