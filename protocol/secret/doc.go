// Package secret reads files that only their owner may read, and hides what
// they hold in texts (prp.md section 5, remote.md rule 7). It stands below the
// runner and the controller, which mask by the same rule.
//
// # Duties of the caller
//
// A text is masked whole: a value that is split over two calls of [Masker.Mask]
// is seen by neither. Who has only a part masks with [Masker.Part] or
// [Masker.Scan].
//
// # Invariants
//
// A masked text has no value of [MinLength] bytes or more in any of the forms
// that [NewMasker] names. Nothing that is given is changed, and no error shows
// what a file holds. The package links no network.
package secret
