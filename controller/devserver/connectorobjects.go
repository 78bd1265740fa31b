package devserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"time"

	"prp/controller/bridge"
)

const (
	// urlLife is how long the URL of an artifact is good (row 14).
	urlLife = 300 * time.Second
	// maxObject bounds an artifact, in bytes: it is kept in memory.
	maxObject = 64 << 20
)

// object is an artifact.
type object struct {
	name, contentType string
	key               string // of its URL
	until             time.Time
	body              []byte
	stored            bool
	// size and sum are what the connector has told of its upload.
	size int64
	sum  string
}

// uploadURL gives a URL for an artifact. A request that comes again gets the
// same artifact.
func (c *Connector) uploadURL(p *peer, f ConnectorFrame) []any {
	var m struct {
		Name        string `json:"name"`
		ContentType string `json:"content_type"`
	}
	_ = bridge.Decode(f.Raw, &m) // it was parsed before
	id := "artifact_" + f.ID
	o := c.objects[id]
	if o == nil {
		o = &object{name: m.Name, contentType: m.ContentType}
		c.objects[id] = o
	}
	address, err := c.presign(p, o, http.MethodPut, id)
	if err != nil {
		return []any{noURL(f, err)}
	}
	return []any{map[string]any{"reply_to": f.ID, "upload_url": address, "artifact_id": id}}
}

// presign gives the URL of an artifact; the lock is held.
func (c *Connector) presign(p *peer, o *object, method, id string) (string, error) {
	if c.cfg.Presign != nil {
		return c.cfg.Presign(method, id)
	}
	return o.sign(p.base, id), nil
}

func noURL(f ConnectorFrame, err error) connectorError {
	return connectorError{Type: "error", Code: 5001, Message: "the URL cannot be signed: " + err.Error(), ReplyTo: f.ID}
}

// uploaded takes note of what a store elsewhere has; the lock is held.
func (c *Connector) uploaded(f ConnectorFrame) {
	var m struct {
		ArtifactID string `json:"artifact_id"`
		SizeBytes  int64  `json:"size_bytes"`
		SHA256     string `json:"sha256"`
	}
	_ = bridge.Decode(f.Raw, &m) // it was parsed before
	if o := c.objects[m.ArtifactID]; o != nil && c.cfg.Presign != nil {
		o.stored, o.size, o.sum = true, m.SizeBytes, m.SHA256
	}
}

func (o *object) sign(base, id string) string {
	o.key, o.until = rand.Text(), time.Now().Add(urlLife)
	return base + ObjectsPath + id + "?key=" + o.key
}

func (c *Connector) downloadURL(p *peer, f ConnectorFrame) []any {
	var m struct {
		ArtifactID string `json:"artifact_id"`
	}
	_ = bridge.Decode(f.Raw, &m) // it was parsed before
	o := c.objects[m.ArtifactID]
	if o == nil || !o.stored {
		return []any{connectorError{Type: "error", Code: 4001, Message: "there is no such artifact", ReplyTo: f.ID}}
	}
	address, err := c.presign(p, o, http.MethodGet, m.ArtifactID)
	if err != nil {
		return []any{noURL(f, err)}
	}
	size, sum := o.size, o.sum
	if c.cfg.Presign == nil {
		raw := sha256.Sum256(o.body)
		size, sum = int64(len(o.body)), hex.EncodeToString(raw[:])
	}
	return []any{map[string]any{
		"reply_to": f.ID, "artifact_id": m.ArtifactID, "download_url": address, "size_bytes": size, "sha256": sum,
	}}
}

// PutObject stores an artifact.
func (c *Connector) PutObject(id string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[id] = &object{name: id, body: body, stored: true}
}

// Object is an artifact that was uploaded under a name; false where there is none.
func (c *Connector) Object(name string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		if o.name == name && o.stored {
			return o.body, true
		}
	}
	return nil, false
}

// serveObject is the store of the artifacts. The key in the URL is all that it
// asks for; the connector's own identity has no business here.
func (c *Connector) serveObject(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		http.Error(rw, "a token was sent where it does not belong", http.StatusBadRequest)
		return
	}
	c.ordered(rw, r, strings.ToLower(r.Method), c.moveObject)
}

func (c *Connector) moveObject(rw http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	o := c.objects[strings.TrimPrefix(r.URL.Path, ObjectsPath)]
	good := o != nil && time.Now().Before(o.until) &&
		subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("key")), []byte(o.key)) == 1
	var body []byte
	if good {
		body = o.body
	}
	c.mu.Unlock()
	switch {
	case !good:
		http.Error(rw, "the signature is not good", http.StatusForbidden)
	case r.Method == http.MethodGet:
		_, _ = rw.Write(body) // the client sees that it is short
	case r.Method == http.MethodPut:
		c.putObject(rw, r, o)
	default:
		http.Error(rw, "expected GET or PUT", http.StatusMethodNotAllowed)
	}
}

func (c *Connector) putObject(rw http.ResponseWriter, r *http.Request, o *object) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxObject))
	if err != nil {
		http.Error(rw, "the body is not whole", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.body, o.stored = body, true
	c.notify()
}
