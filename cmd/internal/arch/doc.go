// Package arch holds the rules of the house as tests: which package may import
// which, where processes, networks, flags and build tags may stand, what the
// top level contains, and that every package says what it is.
//
// A new package needs a row in the table of rooms, so a rule of its own that it
// keeps; a package without one fails the tests. A rule is changed by changing
// its row, in the same commit as the code that needs it.
//
// It has no code outside its tests and is imported by nobody.
package arch
