// Package identity is who a door is towards its server (connector.md row 18): a
// client certificate and a JSON Web Token, both from files that somebody else
// renews while runs go on.
//
// # Duties of the caller
//
// The caller gives [Certificate.Use] to the TLS configuration and [Token.Get] to
// each upgrade and request, and makes a new connection when [Token.Renewed]
// returns. It shows what it is told: a file that is wrong is not an error while
// the last good one is valid.
//
// # Invariants
//
// A file is looked at whenever it is used, so that no exchange is missed. What
// is presented was whole, belonged together and was valid by this machine's
// clock. A token is not verified here: that is for the server, which has the
// key. Only its claims are read, so that a person is told what is wrong before
// the server refuses without a word. No error and nothing that is told shows a
// key or a token.
package identity
