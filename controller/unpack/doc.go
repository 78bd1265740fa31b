// Package unpack writes the entries of an archive into a new folder, and
// nowhere else (workerclient.md rows 9 and 11).
//
// It knows no hash, no network and no compression. An [Area] is the folder in
// the making: entries go into a staging folder beside the target, and
// [Area.Commit] puts it in the target's place by one rename. Until then the
// target does not change.
//
// # Confinement
//
// A name is relative, in slashes, and has no empty, "." or ".." part. Every
// access goes through an os.Root of the staging folder, a file is never opened
// where something exists, and the folder of an entry has to be a folder and no
// symlink to one. A symlink may have ".." at the beginning of its target only,
// and not more of them than the link has folders above it: so each step of a
// path through links ends in a folder of the tree, whatever other links there
// are. What comes out of an area therefore points at nothing outside.
//
// # Duties of the caller
//
// Each area ends with Commit or [Area.Discard]; Discard after Commit does
// nothing. One goroutine uses an area, and one area has a target at a time: a
// staging folder that an earlier process left is removed by [Open]. Nobody else
// writes to the folder that holds the target. A hash is checked before Commit.
//
// # Invariants
//
// An error leaves nothing but the staging folder, which Discard removes. Limits
// are checked before bytes are written. Memory is bounded by the rules, not by
// what an archive says. Content is not synced to the disk: what a crash of the
// machine can cut is not used again, since the run is gone too.
package unpack
