package store

import (
	"errors"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A repair makes a new store in repairing/. A complete store is renamed to repaired/, in one step. Then
// store/ becomes damaged-TIME/, and repaired/ becomes store/. So at any moment store/ or repaired/ exists, or
// both. If store/ exists, it counts. If not, the process that opens the database next finishes the renaming
// (FinishRepair).
const (
	RepairingName = "repairing"
	RepairedName  = "repaired"
	DamagedPrefix = "damaged-"
)

// FinishRepair moves a repaired store to its place, durably, if an interrupted repair has left no store
// there. The folder is locked to write. Mostly it does nothing.
func FinishRepair(fsys vfs.FS, dir string) error {
	store, repaired := fsys.PathJoin(dir, StoreName), fsys.PathJoin(dir, RepairedName)
	for path, wanted := range map[string]bool{store: false, repaired: true} {
		_, err := fsys.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if (err == nil) != wanted {
			return nil
		}
	}
	if err := fsys.Rename(repaired, store); err != nil {
		return err
	}
	return SyncDir(fsys, dir)
}

// Path returns the path of the store of a database: store/. If a repair was interrupted in its last step and
// the database was not opened to write since, it is repaired/.
func Path(fsys vfs.FS, dir string) string {
	path, repaired := fsys.PathJoin(dir, StoreName), fsys.PathJoin(dir, RepairedName)
	if _, err := fsys.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path
	}
	if _, err := fsys.Stat(repaired); err != nil {
		return path
	}
	return repaired
}
