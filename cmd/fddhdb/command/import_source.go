package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// An importSource identifies an import: the command goes on with an interrupted import
// of the same source.
type importSource struct {
	Flags []string     `json:"flags"` // flags that matter
	Files []sourceFile `json:"files"`
}

// A sourceFile is the current state of a file.
type sourceFile struct {
	Path     string    `json:"path"`
	Member   string    `json:"member,omitempty"` // NAME of FILE.npz:NAME
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// harmlessFlags are flags that may differ when an import goes on.
var harmlessFlags = []string{"init", "json", "mode", "restart", "collection"} // staged imports belong to a collection

// sourceOf returns the source of the import, "" if it is unknown because a file is not
// a regular one.
func sourceOf(cmd *cobra.Command, in *source.Files, o *importOptions) string {
	var s importSource
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(harmlessFlags, f.Name) {
			return
		}
		value := f.Value.String()
		if list, ok := f.Value.(*flags.NamedList); ok { // those of --vectors are files, which come below
			for _, n := range list.List {
				if value += n.Name + ","; f.Name != "vectors" {
					value += n.Value + ","
				}
			}
		}
		s.Flags = append(s.Flags, f.Name+"="+value)
	})
	var paths []string
	for _, source := range in.Together {
		paths = append(paths, source.Path())
	}
	if o.names != "" {
		paths = append(paths, o.names)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		member := ""
		if err != nil { // FILE.npz:NAME
			if i := strings.LastIndexByte(path, ':'); i > 0 {
				path, member = path[:i], path[i+1:]
				info, err = os.Stat(path)
			}
		}
		if err != nil || !info.Mode().IsRegular() {
			return ""
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return ""
		}
		s.Files = append(s.Files, sourceFile{abs, member, info.Size(), info.ModTime().UTC()})
	}
	b, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(b)
}

// printStaged prints the staged items of interrupted imports.
func (e *env) printStaged(staged []db.StagedImport) {
	for _, im := range staged {
		e.Printf("\nan interrupted import %shas staged %s, last on %s: the same import goes on with it, and compact removes it\n",
			into(im), term.Size(im.Bytes), im.Touched.Local().Format(time.DateTime))
	}
}

// into returns the name of the collection of an import.
func into(im db.StagedImport) string {
	if im.Collection == "" {
		return ""
	}
	return fmt.Sprintf("into collection %q ", im.Collection)
}

// isStaged reports whether this import was interrupted before.
func (l *loader) isStaged(ctx context.Context, d *db.DB) bool {
	staged, err := d.StagedImports(ctx)
	return err == nil && l.source != "" && slices.ContainsFunc(staged, func(im db.StagedImport) bool {
		return im.Collection == l.o.collection && im.Source == l.source
	})
}
