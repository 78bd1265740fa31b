package console

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// bodyWait bounds how long a request may take to bring its body: it is small
// and comes from the same machine.
const bodyWait = 10 * time.Second

// guard is what every request passes before its route is looked up.
type guard struct {
	next http.Handler
	// token is in the printed address, session in the cookie that it gives.
	// key is what the page has to know beside the cookie: that goes to every
	// port of the host, and key to none but this one.
	token, session, key string
	// cookie is the cookie's name. It has the port in it, since cookies do
	// not know ports and two consoles must not take each other's.
	cookie string
	// bodyWait is the constant of this name, but in tests.
	bodyWait time.Duration
}

// newGuard makes the secrets: 26 characters of base32 each, 130 bits.
func newGuard(next http.Handler, port int) *guard {
	return &guard{
		next: next, token: rand.Text(), session: rand.Text(), key: rand.Text(),
		cookie: fmt.Sprintf("prp_console_%d", port), bodyWait: bodyWait,
	}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	// The order matters: who asks comes before what is asked, and nothing
	// of the body is read for a stranger.
	for _, check := range []func(*http.Request) *refusal{checkSocket, checkHost, checkOrigin} {
		if no := check(r); no != nil {
			turnAway(w, no)
			return
		}
	}
	if r.URL.Path == "/" && r.URL.Query().Has("token") {
		g.enter(w, r)
		return
	}
	if no := checkSite(r); no != nil {
		turnAway(w, no)
		return
	}
	if no := g.checkSession(r); no != nil {
		turnAway(w, no)
		return
	}
	if no := g.takeBody(w, r); no != nil {
		turnAway(w, no)
		return
	}
	g.next.ServeHTTP(w, r)
}

// turnAway refuses a request whose body was not read, and so the connection.
func turnAway(w http.ResponseWriter, no *refusal) {
	w.Header().Set("Connection", "close")
	no.write(w)
}

// secure sets the headers that every answer has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "+
		"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// checkSocket: both ends of the connection are this machine's own.
func checkSocket(r *http.Request) *refusal {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || !isLoopback(local.String()) || !isLoopback(r.RemoteAddr) {
		return refuse(http.StatusForbidden, "socket_not_loopback", "expected both ends of the connection to be loopback")
	}
	return nil
}

func isLoopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// checkHost: the name that the client used is a loopback one, so that a name of
// somebody else that points here is of no use.
func checkHost(r *http.Request) *refusal {
	host := r.Host
	if h, port, err := net.SplitHostPort(host); err == nil && port != "" {
		host = h
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	if strings.EqualFold(host, "localhost") {
		return nil
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" && a.Unmap().IsLoopback() {
		return nil
	}
	return refuse(http.StatusForbidden, "host_not_loopback", fmt.Sprintf("expected a loopback host, got %q", r.Host))
}

// checkOrigin: where a browser names the origin, it is the one of this request.
func checkOrigin(r *http.Request) *refusal {
	given := r.Header["Origin"]
	if len(given) == 0 || len(given) == 1 && given[0] == "http://"+r.Host {
		return nil
	}
	return refuse(http.StatusForbidden, "origin_mismatch", fmt.Sprintf("expected the origin %q, got %q", "http://"+r.Host, given))
}

// checkSite: where a browser tells who asks, it is the page itself or the user.
// "same-site" is refused as well: another port of this machine is same-site.
func checkSite(r *http.Request) *refusal {
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return refuse(http.StatusForbidden, "cross_site", fmt.Sprintf("expected a request of the page itself, got Sec-Fetch-Site %q", site))
		}
	}
	return nil
}

// enter changes the token of the printed address for the cookie and the key. Who
// has the token may come from anywhere, such as a link in a terminal that is
// itself a page: it gets nothing but these and the way to the page. The way is a
// refresh and no redirect, since a browser gives a strict cookie only to a
// navigation that began on its own site. The key is in the fragment, which no
// browser sends; the page takes it from there.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		turnAway(w, methodRefusal(r.Method, http.MethodGet))
		return
	}
	if !same(r.URL.Query().Get("token"), g.token) {
		turnAway(w, needToken())
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Content-Type", contentTypes[".html"])
	_, _ = fmt.Fprintf(w, entered, g.key)
}

// entered leads to the page with the key and leaves the token behind.
const entered = `<!doctype html><html lang="en"><meta charset="utf-8"><title>prp console</title><meta http-equiv="refresh" content="0;url=/#key=%s">
`

// keyHeader is where the page says the key. A page of another origin cannot set
// it: a browser would ask first (a preflight), and is refused.
const keyHeader = "Prp-Console-Key"

// checkSession: the client was given the cookie and, for the interface, the key.
// A browser loads the files of the page without the key; nothing secret is in
// them.
func (g *guard) checkSession(r *http.Request) *refusal {
	if strings.HasPrefix(r.URL.Path, prefix) && !same(r.Header.Get(keyHeader), g.key) {
		return needToken()
	}
	for _, c := range r.CookiesNamed(g.cookie) {
		if same(c.Value, g.session) {
			return nil
		}
	}
	return needToken()
}

func needToken() *refusal {
	return refuse(http.StatusUnauthorized, "token_required", "open the address that the console printed when it was started")
}

// same compares in a time that does not depend on where they differ.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// takeBody reads the body, bounded in size and time, and puts it back whole.
func (g *guard) takeBody(w http.ResponseWriter, r *http.Request) *refusal {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if reads && (r.Body == nil || r.Body == http.NoBody) {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "json_required",
			fmt.Sprintf("expected the content type application/json, got %q", r.Header.Get("Content-Type")))
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(g.bodyWait))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return tooLarge()
	case err != nil:
		return refuse(http.StatusBadRequest, codeInvalidBody, "expected a whole body, got a part of it")
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func tooLarge() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, codeBodyTooLarge, fmt.Sprintf("expected a body of at most %d bytes, got more", maxBody))
}

func methodRefusal(got, want string) *refusal {
	return refuse(http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("expected %s, got %q", want, got))
}
