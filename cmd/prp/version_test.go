package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestVersion: what the build knows is named, and nothing else.
func TestVersion(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	set := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for want, info := range map[string]debug.BuildInfo{
		"prp (devel), go1.26, " + platform: {GoVersion: "go1.26"},
		"prp v1.2.3, revision abc, go1.26, " + platform: {
			GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"},
			Settings: []debug.BuildSetting{set("vcs", "git"), set("vcs.revision", "abc"), set("vcs.modified", "false")},
		},
		"prp (devel), revision abc (modified), go1.26, " + platform: {
			GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"},
			Settings: []debug.BuildSetting{set("vcs.revision", "abc"), set("vcs.modified", "true")},
		},
	} {
		if got := versionText(&info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
