package copies

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// logBytes returns how many bytes the log of a store has that nobody writes to; 0 where
// there is more than one whose commits are not all in tables.
func logBytes(kv *pebble.DB) int64 {
	m := kv.Metrics()
	if m.MemTable.Count != 1 {
		return 0
	}
	return int64(m.WAL.Size)
}

// trimLog cuts off what is behind the first bytes, which are those in use, in the newest
// log of a copied store. Pebble writes a new log over an old one, whose rest, as large as
// the memory for writes, every backup would store.
func trimLog(fsys vfs.FS, dir string, bytes int64) error {
	logs, err := wal.Scan(wal.Dir{FS: fsys, Dirname: dir})
	if err != nil || len(logs) == 0 || bytes == 0 {
		return err
	}
	_, path := logs[len(logs)-1].SegmentLocation(0)
	info, err := fsys.Stat(path)
	switch {
	case err != nil:
		return err
	case info.Size() < bytes:
		return fault.Corrupt(fmt.Errorf("%d bytes of %d", info.Size(), bytes), "log %s", path)
	case info.Size() == bytes:
		return nil
	}
	short := path + ".tmp"
	if err := vfs.LimitedCopy(fsys, path, short, bytes); err != nil {
		return err
	}
	if err := fsys.Rename(short, path); err != nil {
		return err
	}
	return store.SyncDir(fsys, dir)
}

// pebbleCheckpoint is pebble.DB.Checkpoint, which panics where the new folder cannot be
// synced. It holds no lock there, and lets go of what it does hold, but for a handle of
// that folder, which the garbage collector closes.
func pebbleCheckpoint(kv *pebble.DB, path string, options []pebble.CheckpointOption) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = p
		default:
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return kv.Checkpoint(path, options...)
}
