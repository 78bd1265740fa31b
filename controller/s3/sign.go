package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Words of AWS Signature Version 4. The published description is in the S3 API
// reference, "Authenticating Requests (AWS Signature Version 4)".
const (
	algorithm      = "AWS4-HMAC-SHA256"
	chunkAlgorithm = "AWS4-HMAC-SHA256-PAYLOAD"
	timeForm       = "20060102T150405Z"
	dayForm        = "20060102"

	// emptyHash is the SHA-256 of nothing.
	emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	// unsigned stands for the hash in a presigned URL: who makes it does not
	// know the bytes.
	unsigned = "UNSIGNED-PAYLOAD"
	// chunked stands for the hash of bytes that are signed piece by piece.
	chunked = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
)

// signer signs for one account, region and service at one time.
type signer struct {
	access, secret, token string
	region, service       string
	at                    time.Time
}

func (s *signer) scope() string {
	return s.at.UTC().Format(dayForm) + "/" + s.region + "/" + s.service + "/aws4_request"
}

// key derives the day's signing key.
func (s *signer) key() []byte {
	k := mac([]byte("AWS4"+s.secret), s.at.UTC().Format(dayForm))
	for _, part := range []string{s.region, s.service, "aws4_request"} {
		k = mac(k, part)
	}
	return k
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sign returns the signature of a canonical request.
func (s *signer) sign(canonical string) string {
	text := strings.Join([]string{algorithm, s.at.UTC().Format(timeForm), s.scope(), hexSum(canonical)}, "\n")
	return hex.EncodeToString(mac(s.key(), text))
}

// signHeader signs a request with all headers that it has now, and returns the
// signature.
func (s *signer) signHeader(r *http.Request, payload string) string {
	r.Header.Set("X-Amz-Date", s.at.UTC().Format(timeForm))
	r.Header.Set("X-Amz-Content-Sha256", payload)
	if s.token != "" {
		r.Header.Set("X-Amz-Security-Token", s.token)
	}
	headers := map[string]string{"host": r.URL.Host}
	for name, values := range r.Header {
		trimmed := make([]string, len(values))
		for i, v := range values {
			trimmed[i] = strings.Join(strings.Fields(v), " ")
		}
		headers[strings.ToLower(name)] = strings.Join(trimmed, ",")
	}
	canonical, names := canonicalRequest(r.Method, r.URL, headers, payload)
	signature := s.sign(canonical)
	r.Header.Set("Authorization", algorithm+" Credential="+s.access+"/"+s.scope()+
		",SignedHeaders="+names+",Signature="+signature)
	return signature
}

// presign adds the signature to the query of an address.
func (s *signer) presign(method string, u *url.URL, life time.Duration) {
	q := u.Query()
	q.Set("X-Amz-Algorithm", algorithm)
	q.Set("X-Amz-Credential", s.access+"/"+s.scope())
	q.Set("X-Amz-Date", s.at.UTC().Format(timeForm))
	q.Set("X-Amz-Expires", strconv.FormatInt(int64(life/time.Second), 10))
	q.Set("X-Amz-SignedHeaders", "host")
	if s.token != "" {
		q.Set("X-Amz-Security-Token", s.token)
	}
	u.RawQuery = canonicalQuery(q)
	canonical, _ := canonicalRequest(method, u, map[string]string{"host": u.Host}, unsigned)
	u.RawQuery += "&X-Amz-Signature=" + s.sign(canonical)
}

// canonicalRequest is the text that is signed, and the names of its headers.
func canonicalRequest(method string, u *url.URL, headers map[string]string, payload string) (text, names string) {
	sorted := slices.Sorted(maps.Keys(headers))
	names = strings.Join(sorted, ";")
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	var b strings.Builder
	for _, line := range []string{method, path, canonicalQuery(u.Query())} {
		b.WriteString(line + "\n")
	}
	for _, name := range sorted {
		b.WriteString(name + ":" + headers[name] + "\n")
	}
	b.WriteString("\n" + names + "\n" + payload)
	return b.String(), names
}

// canonicalQuery sorts by name, then value, and escapes as [escape] does.
func canonicalQuery(q url.Values) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		values := slices.Sorted(slices.Values(q[name]))
		for _, v := range values {
			pairs = append(pairs, escape(name, false)+"="+escape(v, false))
		}
	}
	return strings.Join(pairs, "&")
}

// escape encodes every byte that is not unreserved (RFC 3986), in upper-case
// hex; package url does so for neither paths nor queries. A path keeps its "/".
func escape(s string, path bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
		if plain || path && c == '/' {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', digits[c>>4], digits[c&15]})
	}
	return b.String()
}
