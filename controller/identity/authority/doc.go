// Package authority is a small certificate authority and token issuer for
// machines of one's own: a reference server on loopback and the tests need both,
// and nobody wants to type openssl commands to try a door (connector.md row 18).
//
// # Duties of the caller
//
// The folder belongs to one authority. Whoever can read it can be anybody.
//
// # Invariants
//
// Keys are Ed25519 for tokens and P-256 for certificates, which every TLS 1.2
// peer knows. Files with keys are readable by their owner only. A folder that
// has an authority is opened, not replaced, so that what it issued stays good.
package authority
