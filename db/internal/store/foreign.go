package store

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// backupsName is the file that makes a folder a repository of backups.
const backupsName = "fddhdb-backups.json"

// Foreign returns the ErrNotDatabase for a folder with other content, in which no database may be created. It
// names what the folder seems to hold.
func Foreign(fsys vfs.FS, dir string) error {
	return fmt.Errorf("%w: %s holds something else%s", fault.ErrNotDatabase, dir, resembling(fsys, dir))
}

// resembling names what a folder seems to hold, as the end of a sentence; "" if unknown.
func resembling(fsys vfs.FS, dir string) string {
	names, err := fsys.List(dir)
	if err != nil {
		return ""
	}
	named := func(name string) bool { return slices.Contains(names, name) }
	prefixed := func(prefix string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	above := fsys.PathDir(dir)
	switch {
	case prefixed("marker.manifest."):
		if fsys.PathBase(dir) == StoreName {
			if CheckMarker(fsys, above) == nil {
				return fmt.Sprintf(": it is the store of the database in %s: open that", above)
			}
		}
		return ": a Pebble store that is no database of fddhdb"
	case named(backupsName):
		return ": a repository of backups: restore one of them"
	case named("CURRENT") && named("IDENTITY"):
		return ": a RocksDB database"
	case named("CURRENT") && prefixed("MANIFEST-"):
		return ": a LevelDB database, or an old one of RocksDB or Pebble"
	}
	return ""
}

// fileKind names the kind of database that a file is, by its first bytes; "" if unknown, or if it is a
// folder.
func fileKind(fsys vfs.FS, path string) string {
	f, err := fsys.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var head [32]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	switch b := string(head[:n]); {
	case strings.HasPrefix(b, "SQLite format 3\x00"):
		return "an SQLite database"
	case n >= 20 && b[16:20] == "\xed\xda\x0c\xed":
		return "a bbolt database"
	}
	return ""
}

// fileAsFolder returns the ErrNotDatabase for a path that should be a folder and is a file; nil if it is no
// file.
func fileAsFolder(fsys vfs.FS, path string) error {
	info, err := fsys.Stat(path)
	if err != nil || info.IsDir() {
		return nil
	}
	kind := fileKind(fsys, path)
	if kind == "" {
		kind = "a file"
	}
	return fmt.Errorf("%w: %s is %s; a database is a folder", fault.ErrNotDatabase, path, kind)
}
