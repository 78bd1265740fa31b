// Package checkpoint turns a folder into one file and back: the payload format
// tar.zst.v1 of workspace checkpoints (workerclient.md row 11).
//
// # The format
//
// One zstd stream with one tar archive. It has folders, files and symlinks, by
// their relative names in the order of the bytes of the names, with content,
// permission bits and modification times. The top folder is no entry. Owners are zero,
// setuid, setgid and sticky bits are stripped, the time of a symlink is zero:
// restoring could not set it everywhere. A file with several names is stored
// under each of them. A header has an extension (PAX) only where something does
// not fit without: a part of a second, a long name, one that is not ASCII.
//
// The same tree gives the same bytes: the compressor has fixed options, its
// bytes do not depend on the number of processors, and a restored tree is the
// same tree. Another version of the compressor may give other bytes, which
// restore to the same tree.
//
// # Duties of the caller
//
// Nobody changes a tree while it is captured; where somebody does, [Capture]
// ends with an error or has what was read. The result of a failed Capture is
// thrown away. Payload numbers that come from a server are given to [Restore]
// as they are: it checks the bytes against them. A [PayloadStore] is safe for
// several goroutines.
//
// # Invariants
//
// What cannot be stored (sockets, devices, pipes, symlinks that are absolute or
// lead outside) is an error that names it and never left out in silence.
// Restore makes the whole folder or nothing (package unpack). Memory does not
// depend on the size of files, and by no more than their names on their number.
package checkpoint
