package s3

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The account and time of the published examples: Amazon S3 API Reference,
// "Examples: Signature Calculations in AWS Signature Version 4".
func exampleSigner() signer {
	return signer{
		access: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		region: "us-east-1", service: "s3", at: time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC),
	}
}

func request(t *testing.T, method, address string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	// As [Store.address] does.
	r.URL.RawPath = escape(r.URL.Path, true)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// TestSignHeader: the published examples of requests with a header.
func TestSignHeader(t *testing.T) {
	const host = "https://examplebucket.s3.amazonaws.com"
	for _, tt := range []struct {
		name, payload, want, names string
		r                          *http.Request
	}{
		{
			"get object", emptyHash, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
			"host;range;x-amz-content-sha256;x-amz-date",
			request(t, "GET", host+"/test.txt", "Range", "bytes=0-9"),
		},
		{
			"put object", hexSum("Welcome to Amazon S3."), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
			"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
			request(t, "PUT", host+"/test$file.text", "Date", "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class", "REDUCED_REDUNDANCY"),
		},
		{
			"get lifecycle", emptyHash, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
			"host;x-amz-content-sha256;x-amz-date", request(t, "GET", host+"/?lifecycle"),
		},
		{
			"list objects", emptyHash, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
			"host;x-amz-content-sha256;x-amz-date", request(t, "GET", host+"/?max-keys=2&prefix=J"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := exampleSigner()
			if got := s.signHeader(tt.r, tt.payload); got != tt.want {
				t.Errorf("the signature is %s, want %s", got, tt.want)
			}
			want := "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=" +
				tt.names + ",Signature=" + tt.want
			if got := tt.r.Header.Get("Authorization"); got != want {
				t.Errorf("the header is %q, want %q", got, want)
			}
		})
	}
}

// TestPresign: the published example of a presigned URL.
func TestPresign(t *testing.T) {
	u, err := url.Parse("https://examplebucket.s3.amazonaws.com/test.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := exampleSigner()
	s.presign(http.MethodGet, u, 24*time.Hour)
	const want = "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z" +
		"&X-Amz-Expires=86400&X-Amz-SignedHeaders=host" +
		"&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
	if got := u.String(); got != want {
		t.Errorf("the address is\n%s, want\n%s", got, want)
	}
}

// TestSignChunks: the published example of an upload in pieces, 65 KiB of "a".
func TestSignChunks(t *testing.T) {
	const size = 65 << 10
	r := request(t, "PUT", "https://s3.amazonaws.com/examplebucket/chunkObject.txt",
		"X-Amz-Storage-Class", "REDUCED_REDUNDANCY", "Content-Encoding", "aws-chunked",
		"X-Amz-Decoded-Content-Length", "66560", "Content-Length", "66824")
	s := exampleSigner()
	seed := s.signHeader(r, chunked)
	if want := "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"; seed != want {
		t.Fatalf("the first signature is %s, want %s", seed, want)
	}
	text, err := io.ReadAll(newChunkReader(s, seed, strings.NewReader(strings.Repeat("a", size)), size))
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 66824 || chunkedLength(size) != 66824 {
		t.Errorf("the length is %d, told as %d, want 66824", len(text), chunkedLength(size))
	}
	rest := string(text)
	for _, want := range []string{
		"10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" + strings.Repeat("a", 64<<10) + "\r\n",
		"400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" + strings.Repeat("a", 1<<10) + "\r\n",
		"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n",
	} {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, want); !ok {
			t.Fatalf("the next piece begins with %.90q, want %.90q", rest, want)
		}
	}
	if rest != "" {
		t.Errorf("after the last piece comes %q", rest)
	}
}
