//go:build !linux

package sandbox

import "errors"

const notHere = "only Linux has the means"

// Probe says that there is nothing.
func Probe() Host { return Host{Reason: notHere} }

func confine(Rules, string) error { return errors.New(notHere) }

func become(string, []string, []string) error { return errors.New(notHere) }
