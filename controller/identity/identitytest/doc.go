// Package identitytest gives tests certificates and tokens, good and bad, as
// files (connector.md row 18). It is an authority in a folder of the test; every
// method fails the test instead of returning an error.
//
// # Duties of the caller
//
// Only tests import it.
package identitytest
