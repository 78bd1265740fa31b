package devserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
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
}

// uploadURL gives a URL for an artifact. A request that comes again gets the
// same artifact.
func (c *Connector) uploadURL(p *peer, f ConnectorFrame) []any {
	var m struct {
		Name        string `json:"name"`
		ContentType string `json:"content_type"`
	}
	_ = json.Unmarshal(f.Raw, &m) // it was parsed before
	id := "artifact_" + f.ID
	o := c.objects[id]
	if o == nil {
		o = &object{name: m.Name, contentType: m.ContentType}
		c.objects[id] = o
	}
	return []any{map[string]any{"reply_to": f.ID, "upload_url": o.sign(p.base, id), "artifact_id": id}}
}

func (o *object) sign(base, id string) string {
	o.key, o.until = rand.Text(), time.Now().Add(urlLife)
	return base + ObjectsPath + id + "?key=" + o.key
}

func (c *Connector) downloadURL(p *peer, f ConnectorFrame) []any {
	var m struct {
		ArtifactID string `json:"artifact_id"`
	}
	_ = json.Unmarshal(f.Raw, &m) // it was parsed before
	o := c.objects[m.ArtifactID]
	if o == nil || !o.stored {
		return []any{connectorError{Type: "error", Code: 4001, Message: "there is no such artifact", ReplyTo: f.ID}}
	}
	sum := sha256.Sum256(o.body)
	return []any{map[string]any{
		"reply_to": f.ID, "artifact_id": m.ArtifactID, "download_url": o.sign(p.base, m.ArtifactID),
		"size_bytes": len(o.body), "sha256": hex.EncodeToString(sum[:]),
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
