package copies

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// logBytes returns how many bytes of the newest log of a store are in use, while nothing is
// written to the store. It returns 0, for unknown, if commits that are not in tables are in
// more than one log: then it is not certain that the count is that of the newest.
func logBytes(kv *pebble.DB) int64 {
	m := kv.Metrics()
	if m.MemTable.Count != 1 {
		return 0
	}
	return int64(m.WAL.Size)
}

// trimLog cuts the newest log of the copied store in dir to its first bytes, which are in
// use; 0 leaves it alone. Pebble writes a new log over an old one. The rest of the old one
// is as large as the memory for writes, and every backup would store it. The shorter copy
// replaces the log in one step, so that a crash leaves one of the two.
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

// pebbleCheckpoint is pebble.DB.Checkpoint with an error in place of a panic. Pebble panics
// if it cannot sync the new folder. It holds no lock then, and releases everything but a
// handle of that folder, which the garbage collector closes. So the open store stays sound.
func pebbleCheckpoint(kv *pebble.DB, path string) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = p
		default:
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return kv.Checkpoint(path, pebble.WithFlushedWAL())
}
