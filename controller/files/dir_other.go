//go:build !linux

package files

// openDir opens a folder inside a root.
var openDir = openRootDir
