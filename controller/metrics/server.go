package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"prp/controller/bridge"
)

const (
	// requestWait bounds a request and its answer: both are small and local.
	requestWait = 10 * time.Second
	// idleWait is longer than the usual time between two scrapes.
	idleWait = 2 * time.Minute
	// maxHeader bounds the head of a request, in bytes.
	maxHeader = 16 << 10
)

// Door is a link that is told of.
type Door struct {
	// Name is the door's, such as "connector".
	Name string
	// State is the link's state now.
	State func() bridge.LinkState
}

// Config says what is told.
type Config struct {
	// Addr is host:port on loopback; port 0 is any.
	Addr  string
	Doors []Door
	// Families gives further metrics, such as runs by state. Nil is none. Their
	// names must not begin with "prp_door_" or "process_".
	Families func() []Family
}

// Server serves both pages.
type Server struct {
	cfg      Config
	process  *Process
	listener net.Listener
}

// Listen takes the address, which has to be on loopback. Serve has to follow.
func Listen(cfg Config) (*Server, error) {
	if _, err := bridge.CheckURL("http://"+cfg.Addr, false); err != nil {
		return nil, fmt.Errorf("metrics: expected a host:port on loopback, got %q", cfg.Addr)
	}
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if !isLoopback(listener.Addr().String()) {
		listener.Close()
		return nil, fmt.Errorf("metrics: expected an address on loopback, got %q", listener.Addr())
	}
	return &Server{cfg: cfg, process: NewProcess(), listener: listener}, nil
}

// Address is host:port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Serve answers until ctx ends, then returns nil.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{
		Handler: guard(s.routes()), MaxHeaderBytes: maxHeader,
		ReadTimeout: requestWait, WriteTimeout: requestWait, IdleTimeout: idleWait,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /metrics", s.metrics)
	return mux
}

// healthDoor is a door on the page /healthz.
type healthDoor struct {
	Door string `json:"door"`
	// State is "connected" or "disconnected".
	State       string     `json:"state"`
	Since       time.Time  `json:"since"`
	LastContact *time.Time `json:"last_contact,omitempty"`
	Error       string     `json:"error,omitempty"`
}

// health answers 200 as long as this process can answer, since a supervisor that
// takes a lost link for a dead process would kill the runs that go on without it
// (remote.md rule 1). Whether all doors are connected is in the text.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	page := struct {
		Status string       `json:"status"`
		Doors  []healthDoor `json:"doors"`
	}{Status: "ok", Doors: []healthDoor{}}
	for _, d := range s.cfg.Doors {
		state := d.State()
		h := healthDoor{Door: d.Name, State: "connected", Since: state.Since.UTC(), Error: state.Error}
		if !state.Connected {
			h.State, page.Status = "disconnected", "degraded"
		}
		if !state.LastContact.IsZero() {
			at := state.LastContact.UTC()
			h.LastContact = &at
		}
		page.Doors = append(page.Doors, h)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page) // the client may be gone
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	families := append(s.doors(), s.process.families()...)
	if s.cfg.Families != nil {
		families = append(families, s.cfg.Families()...)
	}
	var text strings.Builder
	if err := Write(&text, families); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", ContentType)
	_, _ = w.Write([]byte(text.String())) // the client may be gone
}

// doors are the links as metrics.
func (s *Server) doors() []Family {
	families := []Family{
		{Name: "prp_door_connected", Help: "1 where the door is connected to its server, else 0.", Kind: Gauge},
		{Name: "prp_door_last_contact_timestamp_seconds", Help: "When the server was last heard, in seconds since 1970.", Kind: Gauge},
		{Name: "prp_door_dials_total", Help: "Attempts to connect.", Kind: Counter},
		{Name: "prp_door_connections_total", Help: "Attempts that succeeded.", Kind: Counter},
	}
	for _, d := range s.cfg.Doors {
		state := d.State()
		connected := 0.0
		if state.Connected {
			connected = 1
		}
		values := []float64{connected, float64(state.LastContact.UnixMilli()) / 1000, float64(state.Attempts), float64(state.Connections)}
		for i, v := range values {
			if i == 1 && state.LastContact.IsZero() {
				continue // never is no time
			}
			families[i].Samples = append(families[i].Samples, Sample{Labels: []Label{{"door", d.Name}}, Value: v})
		}
	}
	return families
}

// guard lets only this machine's own programs in, as the guard of the console
// does: a name of somebody else that points here is of no use, and no page of
// another site reads the figures.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		if err := allowed(r); err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func allowed(r *http.Request) error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || !isLoopback(local.String()) || !isLoopback(r.RemoteAddr) {
		return errors.New("expected both ends of the connection to be loopback")
	}
	if !loopbackHost(r.Host) {
		return fmt.Errorf("expected a loopback host, got %q", r.Host)
	}
	if origin := r.Header["Origin"]; len(origin) > 0 && (len(origin) > 1 || origin[0] != "http://"+r.Host) {
		return fmt.Errorf("expected the origin %q, got %q", "http://"+r.Host, origin)
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return fmt.Errorf("expected a request of the user, got Sec-Fetch-Site %q", site)
		}
	}
	return nil
}

func isLoopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// loopbackHost reports whether a Host header names this machine.
func loopbackHost(host string) bool {
	if h, port, err := net.SplitHostPort(host); err == nil && port != "" {
		host = h
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.Zone() == "" && a.Unmap().IsLoopback()
}
