//go:build !linux

package main

import (
	"runtime"
	"testing"
)

func TestBlackBox(t *testing.T) {
	t.Skipf("the suite looks at processes through /proc; it is for linux, this is %s", runtime.GOOS)
}
