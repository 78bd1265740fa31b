package bridge

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckURL: remote.md rules 6 and 11.
func TestCheckURL(t *testing.T) {
	for _, tt := range []struct {
		url   string
		plain bool
		want  string // part of the error, empty for none
	}{
		{"wss://example.com/x", false, ""},
		{"https://example.com/x", false, ""},
		{"ws://127.0.0.1:1/x", false, ""},
		{"ws://[::1]:1/x", false, ""},
		{"ws://localhost:1/x", false, ""},
		{"ws://example.com/x", false, "not loopback"},
		{"http://10.0.0.1/x", false, "not loopback"},
		{"ws://localhost.example.com/x", false, "not loopback"},
		{"ws://example.com/x", true, ""},
		{"wss://user:secretpw@example.com/x", false, "without a name or password"},
		{"ftp://example.com", false, "expected ws, wss"},
		{"wss:///x", false, "with a host"},
		{"wss://secretpw\x7f", false, "cannot be read"},
	} {
		_, err := CheckURL(tt.url, tt.plain)
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%q: %v, want %q", tt.url, err, tt.want)
		case err != nil && strings.Contains(err.Error(), "secretpw"):
			t.Errorf("%q: the error shows it: %v", tt.url, err)
		}
	}
}

func TestTLS(t *testing.T) {
	c, err := TLS{}.Config()
	if err != nil || c.MinVersion != tls.VersionTLS12 || c.InsecureSkipVerify {
		t.Errorf("the default is %+v, %v", c, err)
	}
	if _, err := (TLS{CertFile: "x"}).Config(); err == nil {
		t.Error("a certificate without a key is taken")
	}
	empty := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (TLS{CAFile: empty}).Config(); err == nil {
		t.Error("a CA file without a certificate is taken, which would leave the system's roots")
	}
}

func TestReadSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for _, tt := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{" token\n", 0o600, "token"}, {"token", 0o644, ""}, {"\n", 0o600, ""}, {"a\nb", 0o600, ""},
	} {
		os.Remove(path)
		if err := os.WriteFile(path, []byte(tt.text), tt.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadSecret(path)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q with mode %o: %q, %v", tt.text, tt.mode, got, err)
		}
	}
}
