package main

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

var versionCommand = &command{
	name:  "version",
	short: "show which build this is",
	long: `
Shows the version of the module, the revision that it was built from, as far as
the build has kept them, and the version of Go and the platform. What was
changed since the revision is told as "modified".`,
	flags: func(*flag.FlagSet) runFunc { return runVersion },
}

func runVersion(s *streams, args []string) int {
	if len(args) > 0 {
		return fail(s, "version", misuse("expected no arguments, got %q", args))
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	fmt.Fprintln(s.out, versionText(info))
	return exitOK
}

// versionText is one line: what is not known is not named.
func versionText(info *debug.BuildInfo) string {
	setting := map[string]string{}
	for _, b := range info.Settings {
		setting[b.Key] = b.Value
	}
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	parts := []string{"prp " + version}
	if r := setting["vcs.revision"]; r != "" {
		part := "revision " + r
		if setting["vcs.modified"] == "true" {
			part += " (modified)"
		}
		parts = append(parts, part)
	}
	return strings.Join(append(parts, info.GoVersion, runtime.GOOS+"/"+runtime.GOARCH), ", ")
}
