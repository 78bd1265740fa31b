// Package files reads, writes, searches and patches files for a remote door, and
// never outside the roots that it was given (worker.md rows 11 to 15).
//
// It knows no network, no process and no protocol: requests and answers are Go
// values, and a refusal is an [Error] with a code of worker.md row 17.
//
// # Confinement
//
// A path is absolute, or relative to the first root. Its symlinks are resolved
// first; what comes out has to lie inside a root, else [PathNotAllowed]. The
// access itself goes through an os.Root of that root, so that a path which is
// exchanged between the check and the use leads to an error and not outside.
// Only regular files are read or written. A search opens the folder that it
// begins with through the os.Root, and on Linux each name below by descriptor,
// without following any symlink (dir_linux.go says why that is as safe).
//
// # Duties of the caller
//
// A [Space] is closed after its last use. Calls that change the same file do
// not overlap: [Space.Resolve] gives the name to order them by. [Space.Recover]
// is called once, before the first patch, after a start.
//
// # Secrets
//
// A [Mask] hides secrets in what is read, and a search compares lines, names and
// globs with what it shows, and with that alone: nothing that is only in a secret
// is found, or ruled out. The ignore files of git go by the real names. The hash
// and the size of a whole file, an expected hash that fits and a patch that
// applies do tell whether a guess of the whole content, or of whole lines, is
// right. So a file whose secret is short enough to be guessed belongs outside the
// roots, or under a rule of the policy that denies it.
//
// # Invariants
//
// A write replaces a file by a rename or not at all. A patch changes every file
// that it names or none: where it is stopped in the middle, also by SIGKILL,
// Recover brings the old files back. What is replaced or deleted is kept as a
// backup outside the roots. No call keeps more than a file or a result of
// bounded size in memory.
package files
