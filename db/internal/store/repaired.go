package store

import (
	"errors"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A repair makes a new store in repairing/. When that is complete it is renamed to repaired/,
// in one step; then store/ becomes damaged-TIME/, and repaired/ becomes store/. So at any
// moment there is a store/, or a repaired/, or both. Where there is a store/, it counts. Where
// there is none, the process that opens the database next finishes the renaming
// (FinishRepair).
const (
	RepairingName = "repairing"
	RepairedName  = "repaired"
	DamagedPrefix = "damaged-"
)

// FinishRepair puts a store that has been repaired in its place, durably, where an interrupted
// repair has left none there. The folder is locked to write. Mostly it does nothing.
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

// Path returns where the store of a database is. That is store/, but where a repair was
// interrupted in its last step and nobody has opened the database to write since, it is
// repaired/.
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
