package bucket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	service   = "s3"
	// unsigned stands for the hash of a payload that is not signed.
	unsigned = "UNSIGNED-PAYLOAD"

	dateForm = "20060102"
	timeForm = "20060102T150405Z"

	headerHash  = "X-Amz-Content-Sha256"
	headerDate  = "X-Amz-Date"
	headerToken = "X-Amz-Security-Token"
)

// Keys are what a request is signed with. SessionToken is empty for keys that
// last.
type Keys struct{ AccessKey, SecretKey, SessionToken string }

// sign adds the headers of AWS Signature Version 4 to a request whose path needs
// no escapes and which has no query. All headers that it has are signed.
func sign(r *http.Request, k Keys, region, payloadHash string, at time.Time) {
	at = at.UTC()
	r.Header.Set(headerDate, at.Format(timeForm))
	r.Header.Set(headerHash, payloadHash)
	if k.SessionToken != "" {
		r.Header.Set(headerToken, k.SessionToken)
	}
	names := []string{"host"}
	values := map[string]string{"host": r.URL.Host}
	for name, value := range r.Header {
		name = strings.ToLower(name)
		names = append(names, name)
		values[name] = strings.TrimSpace(strings.Join(value, ","))
	}
	slices.Sort(names)
	signed := strings.Join(names, ";")

	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + r.URL.EscapedPath() + "\n\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + values[name] + "\n")
	}
	canonical.WriteString("\n" + signed + "\n" + payloadHash)
	sum := sha256.Sum256([]byte(canonical.String()))

	scope := strings.Join([]string{at.Format(dateForm), region, service, "aws4_request"}, "/")
	text := strings.Join([]string{algorithm, at.Format(timeForm), scope, hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + k.SecretKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	r.Header.Set("Authorization", algorithm+" Credential="+k.AccessKey+"/"+scope+
		",SignedHeaders="+signed+",Signature="+hex.EncodeToString(mac(key, text)))
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text)) // never fails
	return m.Sum(nil)
}
