// Package plugin checks and unpacks the archive of a plugin release
// (workerclient.md row 9).
//
// An archive is a gzip-compressed tar (.tar.gz) or a zip, known by its first
// bytes. Its SHA-256 has to be the one of the pin before anything is unpacked.
//
// # Duties of the caller
//
// The pin comes from the server's list, not from where the bytes come from. The
// target of [Install] is a folder of its own, as package unpack says.
//
// # Invariants
//
// The whole plugin is unpacked or nothing. It has at most [MaxFiles] files,
// [MaxFileBytes] each and [MaxBytes] in all, and packed [MaxPacked]. Files are
// 0644, or 0755 where one may execute them, folders 0755; times and owners are
// not kept. Names mean the same on every system, and stay in the folder:
// absolute and escaping ones, symlinks, hard links, devices, duplicates, and
// names that differ in case alone are refused. Memory is bounded by the packed
// size, which is kept as a whole; a zip of nothing but names takes about eight
// times as much while they are read.
package plugin
