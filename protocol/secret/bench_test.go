package secret

import (
	"encoding/json"
	"strings"
	"testing"
)

// BenchmarkMask masks 64 KiB of text without a secret, as most of it is: plain
// lines, and JSON inside JSON, which has an escape every few bytes.
//
//	go test -run '^$' -bench Mask ./protocol/secret
func BenchmarkMask(b *testing.B) {
	m := NewMasker([]string{
		"ghp_0123456789abcdefghijklmnopqrstuvwxyz", `pass"word/with+more`,
		strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 26),
	})
	line := `time=2026-01-02T03:04:05Z level=info msg="GET /path/to/it?x=1&y=2" path=C:/a/b status=200 Me and my pipes` + "\n"
	plain := strings.Repeat(line, 64<<10/len(line))
	quoted, err := json.Marshal(plain)
	if err != nil {
		b.Fatal(err)
	}
	twice, err := json.Marshal(string(quoted))
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain": plain, "json": string(quoted), "twice": string(twice[:64<<10]), "unicode": strings.Repeat(`\u0070\u0061ss \ud83d\ude00`, 64<<10/27),
	} {
		b.Run(name, func(b *testing.B) {
			in := []byte(text)
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if got := m.Mask(in); len(got) != len(in) {
					b.Fatal("it has a secret")
				}
			}
		})
	}
}
