//go:build !linux

package process

// Options has no switches on this platform.
type Options struct{}

// Hide does nothing on this platform.
func Hide() error { return nil }
