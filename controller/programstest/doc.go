// Package programstest builds programs of this module for tests, which start them
// as real processes.
//
// # Duties of the caller
//
// Only tests import it. The TestMain of a package that has [Programs] ends with
// [Programs.Main], or calls [Programs.Remove].
//
// # Invariants
//
// The programs of a package are built once, when the first test asks for them, and
// not at all where none does. Nothing is left on disk.
package programstest
