//go:build !linux

package process

// Hide does nothing on this platform.
func Hide() error { return nil }
