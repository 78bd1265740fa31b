//go:build !linux

package process

// Options has no switches on this platform.
type Options struct{}
