package console

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ask is a request as it goes over the wire, byte by byte.
type ask struct {
	method, path string
	head         []string // instead of, or beside, the usual head
	noHost       bool
	key          string // of the page, where it is not the right one; "none" is none
	body         string
}

// raw sends a request on a socket of its own and returns the answer.
func (l *live) raw(a ask, cookie string) (*http.Response, string) {
	l.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.base, "http://"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(hang))
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", a.method, a.path)
	if !a.noHost {
		fmt.Fprintf(&b, "Host: %s\r\n", strings.TrimPrefix(l.base, "http://"))
	}
	if cookie != "" {
		fmt.Fprintf(&b, "Cookie: %s\r\n", cookie)
	}
	switch a.key {
	case "none":
	case "":
		fmt.Fprintf(&b, "%s: %s\r\n", keyHeader, l.server.guard.key)
	default:
		fmt.Fprintf(&b, "%s: %s\r\n", keyHeader, a.key)
	}
	for _, h := range a.head {
		b.WriteString(h + "\r\n")
	}
	b.WriteString("\r\n" + a.body)
	if _, err := io.WriteString(conn, b.String()); err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		l.t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp, string(text)
}

// cookie is what the printed address has given.
func (l *live) cookie() string {
	return l.server.guard.cookie + "=" + l.server.guard.session
}

const jsonHead = "Content-Type: application/json"

func chunked(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	return b.String() + "0\r\n\r\n"
}

// refusals has a row for each rule of the guard, given with a cookie.
func refusals(host string) []struct {
	name string
	ask  ask
	want int
	code string
} {
	big := strings.Repeat("x", maxBody+1)
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d", n) }
	const runs = prefix + "/runs"
	return []struct {
		name string
		ask  ask
		want int
		code string
	}{
		{"a host of somebody else", ask{method: "GET", path: runs, noHost: true, head: []string{"Host: evil.example"}}, 403, "host_not_loopback"},
		{"a host that begins like ours", ask{method: "GET", path: runs, noHost: true, head: []string{"Host: 127.0.0.1.evil.example:80"}}, 403, "host_not_loopback"},
		{"a host below localhost", ask{method: "GET", path: runs, noHost: true, head: []string{"Host: a.localhost"}}, 403, "host_not_loopback"},
		{"the unspecified address as host", ask{method: "GET", path: runs, noHost: true, head: []string{"Host: 0.0.0.0"}}, 403, "host_not_loopback"},
		{"a host in the request line", ask{method: "GET", path: "http://evil.example" + runs}, 403, "host_not_loopback"},
		{"an origin of somebody else", ask{method: "GET", path: runs, head: []string{"Origin: http://evil.example"}}, 403, "origin_mismatch"},
		{"the null origin", ask{method: "POST", path: runs, head: []string{"Origin: null", jsonHead, length(2)}, body: "{}"}, 403, "origin_mismatch"},
		{"our origin on another port", ask{method: "GET", path: runs, head: []string{"Origin: http://127.0.0.1:1"}}, 403, "origin_mismatch"},
		{"our origin with another scheme", ask{method: "GET", path: runs, head: []string{"Origin: https://" + host}}, 403, "origin_mismatch"},
		{"two origins", ask{method: "GET", path: runs, head: []string{"Origin: http://" + host, "Origin: http://" + host}}, 403, "origin_mismatch"},
		{"a preflight of somebody else", ask{method: "OPTIONS", path: runs, head: []string{"Origin: http://evil.example", "Access-Control-Request-Method: POST"}}, 403, "origin_mismatch"},
		{"cross-site", ask{method: "GET", path: runs, head: []string{"Sec-Fetch-Site: cross-site"}}, 403, "cross_site"},
		{"same-site, another port", ask{method: "GET", path: runs, head: []string{"Sec-Fetch-Site: same-site"}}, 403, "cross_site"},
		{"a site that is not known", ask{method: "GET", path: runs, head: []string{"Sec-Fetch-Site: friendly"}}, 403, "cross_site"},
		{"an action without a content type", ask{method: "POST", path: runs, head: []string{length(2)}, body: "{}"}, 415, "json_required"},
		{"an action as a form", ask{method: "POST", path: runs, head: []string{"Content-Type: text/plain", length(2)}, body: "{}"}, 415, "json_required"},
		{"an action without a body", ask{method: "POST", path: runs}, 415, "json_required"},
		{"a long body", ask{method: "POST", path: runs, head: []string{jsonHead, length(len(big))}, body: big}, 413, "body_too_large"},
		{"a long body that never comes", ask{method: "POST", path: runs, head: []string{jsonHead, length(1 << 40)}}, 413, "body_too_large"},
		{"a long body in chunks", ask{method: "POST", path: runs, head: []string{jsonHead, "Transfer-Encoding: chunked"}, body: chunked(big[:9000], big[9000:])}, 413, "body_too_large"},
		{"a long body of a read", ask{method: "GET", path: runs, head: []string{jsonHead, length(len(big))}, body: big}, 413, "body_too_large"},
	}
}

// TestGuard: each refusal has its code, whatever the method and the path, known
// or not, and comes before the route is looked up.
func TestGuard(t *testing.T) {
	l := serve(t, withScripts(t, "happy-path"), "127.0.0.1:0")
	host := strings.TrimPrefix(l.base, "http://")
	for _, tt := range refusals(host) {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"", prefix + "/nowhere", prefix + "//runs/../x", "/", "/styles.css"} {
				a := tt.ask
				if path != "" {
					a.path = strings.Replace(a.path, prefix+"/runs", path, 1)
				}
				resp, body := l.raw(a, l.cookie())
				if resp.StatusCode != tt.want || code(t, []byte(body)) != tt.code {
					t.Errorf("%s %s: got %d %s, want %d %s", a.method, a.path, resp.StatusCode, body, tt.want, tt.code)
				}
				checkHeaders(t, resp)
			}
		})
	}
	if n := len(l.server.runs.list()); n != 0 {
		t.Errorf("%d runs were started", n)
	}
}

// checkHeaders: what every answer has.
func checkHeaders(t *testing.T, resp *http.Response) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	csp := resp.Header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the content security policy is %q", csp)
	}
	if resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("an answer is offered to other origins")
	}
}

// TestAllowed is the control of TestGuard: what it refuses is refused for its
// one fault only.
func TestAllowed(t *testing.T) {
	l := serve(t, withScripts(t), "127.0.0.1:0")
	host := strings.TrimPrefix(l.base, "http://")
	_, port, _ := net.SplitHostPort(host)
	full := strings.Repeat(" ", maxBody-2) + "{}"
	for _, tt := range []struct {
		name string
		ask  ask
		want int
	}{
		{"plain", ask{method: "GET", path: prefix + "/runs"}, 200},
		{"our origin", ask{method: "GET", path: prefix + "/runs", head: []string{"Origin: http://" + host, "Sec-Fetch-Site: same-origin"}}, 200},
		{"typed by the user", ask{method: "GET", path: "/", head: []string{"Sec-Fetch-Site: none"}}, 200},
		{"localhost", ask{method: "GET", path: prefix + "/runs", noHost: true, head: []string{"Host: LocalHost:" + port}}, 200},
		{"another loopback address", ask{method: "GET", path: prefix + "/runs", noHost: true, head: []string{"Host: 127.9.9.9"}}, 200},
		{"IPv6", ask{method: "GET", path: prefix + "/runs", noHost: true, head: []string{"Host: [::1]:" + port}}, 200},
		{"a body of the whole length", ask{
			method: "POST", path: prefix + "/runs",
			head: []string{"Content-Type: application/json; charset=utf-8", fmt.Sprintf("Content-Length: %d", maxBody)}, body: full,
		}, 404},
		{"and in chunks", ask{
			method: "POST", path: prefix + "/runs",
			head: []string{jsonHead, "Transfer-Encoding: chunked"}, body: chunked(full[:1], full[1:9000], full[9000:]),
		}, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := l.raw(tt.ask, l.cookie())
			if resp.StatusCode != tt.want {
				t.Errorf("got %d %s, want %d", resp.StatusCode, body, tt.want)
			}
			checkHeaders(t, resp)
		})
	}
}

// TestKey: whoever has the cookie alone, as a server on another port has it to
// which the browser went, can read and do nothing.
func TestKey(t *testing.T) {
	l := serve(t, withScripts(t, "happy-path"), "127.0.0.1:0")
	g := l.server.guard
	const body = `{"kind":"script","name":"happy-path"}`
	for _, key := range []string{"none", "x", g.token, g.session, g.key + "x"} {
		for _, a := range []ask{
			{method: "GET", path: prefix + "/runs"},
			{method: "GET", path: prefix + "/runs?key=" + g.key},
			{method: "GET", path: "/api%2FlocalRunner/runs"},
			{method: "POST", path: prefix + "/runs", head: []string{jsonHead, fmt.Sprintf("Content-Length: %d", len(body))}, body: body},
			{method: "GET", path: prefix},
			{method: "GET", path: prefix + "/nowhere"},
		} {
			a.key = key
			resp, answer := l.raw(a, l.cookie())
			if resp.StatusCode != 401 || code(t, []byte(answer)) != "token_required" {
				t.Errorf("%s %s with the key %q: got %d %s", a.method, a.path, key, resp.StatusCode, answer)
			}
		}
	}
	if n := len(l.server.runs.list()); n != 0 {
		t.Errorf("%d runs were started", n)
	}
	for _, path := range []string{"/", "/main.js", "/api.js", schemaPath} {
		resp, answer := l.raw(ask{method: "GET", path: path, key: "none"}, l.cookie())
		if resp.StatusCode != 200 || strings.Contains(answer, g.key) || strings.Contains(answer, g.token) {
			t.Errorf("%s: got %d, or a secret is in it", path, resp.StatusCode)
		}
	}
}

// TestToken: nothing is served without the cookie, and only the token gives it.
func TestToken(t *testing.T) {
	l := serve(t, withScripts(t), "127.0.0.1:0")
	g := l.server.guard
	for _, tt := range []struct{ name, path, cookie string }{
		{"no cookie", prefix + "/runs", ""},
		{"no cookie for the page", "/", ""},
		{"no cookie for a script", "/main.js", ""},
		{"another value", prefix + "/runs", g.cookie + "=x"},
		{"no value", prefix + "/runs", g.cookie + "="},
		{"another name", prefix + "/runs", "prp_console=" + g.session},
		{"the token is no cookie", prefix + "/runs", g.cookie + "=" + g.token},
		{"a wrong token", "/?token=x", ""},
		{"an empty token", "/?token=", ""},
		{"the token elsewhere", prefix + "/runs?token=" + g.token, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := l.raw(ask{method: "GET", path: tt.path}, tt.cookie)
			if resp.StatusCode != 401 || code(t, []byte(body)) != "token_required" {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
			if len(resp.Cookies()) > 0 {
				t.Error("a cookie was given")
			}
		})
	}
	resp, body := l.raw(ask{method: "GET", path: "/?token=" + g.token, head: []string{"Sec-Fetch-Site: cross-site"}}, "")
	cookies := resp.Cookies()
	if resp.StatusCode != 200 || len(cookies) != 1 {
		t.Fatalf("the token: got %d, %d cookies", resp.StatusCode, len(cookies))
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %s", c)
	}
	if !strings.Contains(body, `content="0;url=/#key=`+g.key+`"`) {
		t.Errorf("the way to the page has no key: %s", body)
	}
	if strings.Contains(body, g.token) || strings.Contains(body, g.session) || strings.Contains(body, "<script") {
		t.Errorf("the way to the page tells more than the way: %s", body)
	}
	if resp, _ := l.raw(ask{method: "POST", path: "/?token=" + g.token, head: []string{"Content-Length: 0"}}, ""); resp.StatusCode != 405 {
		t.Errorf("POST of the token: got %d, want 405", resp.StatusCode)
	}
}

// TestHalfBody: a body that does not come is not waited for for ever.
func TestHalfBody(t *testing.T) {
	s, err := New(withScripts(t))
	if err != nil {
		t.Fatal(err)
	}
	l := serveServer(t, s, "127.0.0.1:0")
	l.server.guard.bodyWait = 50 * time.Millisecond
	resp, body := l.raw(ask{method: "POST", path: prefix + "/runs", head: []string{jsonHead, "Content-Length: 10"}, body: "{"}, l.cookie())
	if resp.StatusCode != 400 || code(t, []byte(body)) != codeInvalidBody {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

// TestBroadAddress: a console that listens everywhere still serves loopback
// only, and an address that cannot be reached from loopback is refused.
func TestBroadAddress(t *testing.T) {
	l := serve(t, withScripts(t), "0.0.0.0:0")
	if status, _ := l.do("GET", prefix+"/runs", ""); status != 200 {
		t.Errorf("over loopback: %d", status)
	}
	outside := outsideAddress(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(l.base, "http://"))
	l.base = "http://" + net.JoinHostPort(outside, port)
	resp, body := l.raw(ask{method: "GET", path: prefix + "/runs", noHost: true, head: []string{"Host: localhost"}}, l.cookie())
	if resp.StatusCode != 403 || code(t, []byte(body)) != "socket_not_loopback" {
		t.Errorf("over %s: got %d %s", outside, resp.StatusCode, body)
	}
	s, err := New(withScripts(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Listen(net.JoinHostPort(outside, "0")); err == nil {
		t.Errorf("listening on %s alone is of no use, and was allowed", outside)
	}
}

// TestCheckAddress: what can never be listened on is told before anything is.
func TestCheckAddress(t *testing.T) {
	for _, good := range []string{"127.0.0.1:0", "[::1]:8080", "localhost:65535", ":0", "0.0.0.0:1", "[::]:0"} {
		if err := CheckAddress(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "127.0.0.1", "1:2:3", "localhost:http", "localhost:65536", "localhost:-1", "192.0.2.1:0", "[2001:db8::1]:0"} {
		if err := CheckAddress(bad); err == nil || !strings.Contains(err.Error(), strconv.Quote(bad)) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// outsideAddress is an address of this machine that is not loopback.
func outsideAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// TestSocketRule: each end of the socket counts, by itself.
func TestSocketRule(t *testing.T) {
	for _, tt := range []struct {
		local, remote string
		ok            bool
	}{
		{"127.0.0.1:80", "127.0.0.1:5", true},
		{"[::1]:80", "[::1]:5", true},
		{"[::ffff:127.0.0.1]:80", "127.8.8.8:5", true},
		{"127.0.0.1:80", "192.0.2.1:5", false},
		{"192.0.2.1:80", "127.0.0.1:5", false},
		{"192.0.2.1:80", "192.0.2.1:5", false},
		{"127.0.0.1:80", "", false},
		{"127.0.0.1:80", "@", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r = r.WithContext(contextWithLocal(tt.local))
		r.RemoteAddr = tt.remote
		if got := checkSocket(r) == nil; got != tt.ok {
			t.Errorf("from %q to %q: allowed is %t, want %t", tt.remote, tt.local, got, tt.ok)
		}
	}
	if checkSocket(httptest.NewRequest("GET", "/", nil)) == nil {
		t.Error("a request without a socket was allowed")
	}
}
