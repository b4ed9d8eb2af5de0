package command

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
)

// An importID tells imports apart. A command that was interrupted goes on when one with the same
// command and files comes.
type importID struct {
	command string // hash of the paths of the files, and of the flags that matter
	files   string // hash of the sizes of the files, and of when they were modified
}

// harmlessFlags are flags that may differ when an import goes on. The collection is in the name of
// the mark.
var harmlessFlags = []string{"init", "json", "mode", "from-row", "on-error", "collection"}

// idOf returns what identifies the import. It is zero if the import cannot go on, because a file
// is standard input or not a regular file.
func idOf(cmd *cobra.Command, in *source.Files, o *importOptions) importID {
	if o.fromStdin() > 0 {
		return importID{}
	}
	command, files := sha256.New(), sha256.New()
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
		fmt.Fprintf(command, "%s=%s\n", f.Name, value)
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
			return importID{}
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return importID{}
		}
		fmt.Fprintf(command, "%s:%s\n", abs, member)
		fmt.Fprintf(files, "%d %d\n", info.Size(), info.ModTime().UnixNano())
	}
	hash := func(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:12]) }
	return importID{hash(command), hash(files)}
}

// wasInterrupted reports whether the collection has a mark of this import.
func (l *loader) wasInterrupted(d *db.DB) bool {
	c, err := d.Collection(l.o.collection)
	if err != nil {
		return false
	}
	mark, err := l.markIn(d, c)
	return err == nil && mark != nil
}
