// Package python has the client for Python: one file, fddhdb.py, which the command prints and servers hand
// out.
//
// It holds no state and starts no goroutine.
package python

import (
	_ "embed"
	"io"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
)

// Path is where servers hand out the client.
const Path = "/client/fddhdb.py"

//go:embed fddhdb.py
var source string

// unversioned is how the file gives its version before Source puts in that of the program.
const unversioned = `__version__ = "0.dev0"`

// Source returns the file, with the version of this program.
func Source() string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	return strings.Replace(source, unversioned, `__version__ = "`+Version(version)+`"`, 1)
}

// ServeHTTP answers a request for the file.
func ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/x-python; charset=utf-8")
	_, _ = io.WriteString(w, Source())
}

// semantic is a version of a Go module: numbers, what comes before a release, a pseudo-version, and what the
// builder has added.
var semantic = regexp.MustCompile(`^v(\d+\.\d+\.)(\d+)(?:-(alpha|beta|rc)\.?(\d+))?` +
	`(?:[-.](?:(0)\.)?(\d{14})-([0-9a-f]{12}))?(?:\+([0-9a-z.]+))?$`)

// Version returns the version of a Go module in the form of Python (PEP 440): v1.2.3-rc.1 is 1.2.3rc1, and a
// version of a commit after a release, as v1.2.4-0.20260304050608-0123456789ab, is
// 1.2.4.dev20260304050608+0123456789ab. Python sorts them as Go does. Anything else is 0.dev0.
func Version(version string) string {
	m := semantic.FindStringSubmatch(version)
	if m == nil {
		return "0.dev0"
	}
	numbers, patch, stage, n, after, at, commit, build := m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8]
	v := numbers + patch
	if stage != "" {
		v += map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[stage] + n
	}
	if at != "" {
		if stage != "" && after != "" { // the commit comes after this release candidate
			v += ".post0"
		}
		v += ".dev" + at
	}
	var local []string
	for _, part := range []string{commit, build} {
		if part != "" {
			local = append(local, part)
		}
	}
	if len(local) > 0 {
		v += "+" + strings.Join(local, ".")
	}
	return v
}
