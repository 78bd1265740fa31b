// Package coreplugin has the pin of a plugin: which release a run materializes,
// resolved by the server.
//
// # Duties of the caller
//
// Whoever downloads a release compares it with [Pin.Digest] before it is used
// (workerclient.md row 9).
//
// # Invariants
//
// A pin is a plain value and is never resolved further.
package coreplugin

// Pin is one release of a plugin.
type Pin struct {
	Name    string
	Version string
	// Digest is "sha256:" and 64 hexadecimal digits of the packed file.
	Digest string
}
