package command

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
)

// versionJSON is the --json form of version.
type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source; "" if unknown
	Time     string `json:"time"`     // of that revision
	Modified bool   `json:"modified"` // the source was changed after the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Format   int    `json:"format"` // of databases
	Kernel   string `json:"kernel"` // Hamming kernels of this machine
}

func versionCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of fddhdb",
		GroupID: groupOther,
		Long: usage.Prose(`
			Version prints what a report of a fault should say: the version of fddhdb, what
			it was built from and with, and the newest format of databases that it reads.`),
		Example: usage.Example(`
			fddhdb version --json`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("version does not know what to do with %q", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return e.printVersion(o.json)
		},
	}
	o.registerJSON(cmd)
	return cmd
}

func (e *env) printVersion(asJSON bool) error {
	v := version(debug.ReadBuildInfo())
	if asJSON {
		return e.PrintJSON(v)
	}
	e.Printf("fddhdb %s\n", v.Version)
	if v.Revision != "" {
		changed := ""
		if v.Modified {
			changed = ", changed since"
		}
		e.Printf("source %s of %s%s\n", v.Revision, v.Time, changed)
	}
	e.Printf("%s %s, kernel %s, database format %d\n", v.Go, v.Platform, v.Kernel, v.Format)
	return nil
}

func version(info *debug.BuildInfo, ok bool) versionJSON {
	v := versionJSON{
		Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Format: db.Format, Kernel: codec.KernelName(),
	}
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
