package copies

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Copier copies an open database: into a new folder, or into a repository of backups. A
// database has one, as it remembers the tables that the last backup stored. It is safe for
// concurrent use. The caller keeps the database open during a call. But for tables its
// fields never change.
type Copier struct {
	db       *state.Database // belongs to the caller
	cfg      *store.Config   // of the open database; copies are on its file system, too
	identity record.Identity // of the database as it was opened: Sequence has grown since then
	// a copy of everything is then an extract, as Pebble's checkpoint would write to the store
	readOnly bool
	tables   backedUp // what Backup remembers; has its own lock

	last atomic.Pointer[report.LastBackup] // nil: Backup has made none
}

// New returns the Copier of a database whose state has been opened. It keeps cfg.
func New(db *state.Database, cfg *store.Config, i record.Identity, readOnly bool) *Copier {
	return &Copier{db: db, cfg: cfg, identity: i, readOnly: readOnly}
}

// LastBackup returns what the last Backup has made; nil where there was none. It is the
// caller's.
func (c *Copier) LastBackup() *report.LastBackup {
	b := c.last.Load()
	if b == nil {
		return nil
	}
	own := *b
	return &own
}

// CheckpointOptions say which part of a database is copied. The zero value is everything. The type has the
// fields of db.CheckpointOptions, which is converted to it.
type CheckpointOptions struct {
	Collection string         // name of the only collection to copy; "": all
	IndexOnly  bool           // leave out vectors and all that only learning needs
	Progress   event.Progress // of an extract: bytes, of about so many, in the stage "copy"; may be nil
}

// Checkpoint makes a database in the folder dir, which must not exist yet. The caller holds
// a reference to the view v.
//
// A copy of everything is Pebble's checkpoint: it has all commits until now, also those
// after the view, the UUID of this database, and links to its tables. In a read-only
// database it is an extract, of the view. A copy that leaves something out is always an
// extract, has a UUID of its own and shares nothing. See db.Checkpoint for what each costs.
//
// dir is there when the copy is complete and durable, or not at all. The caller adds to
// errors what they are about.
func (c *Copier) Checkpoint(ctx context.Context, v *state.View, dir string, opt CheckpointOptions) error {
	if err := c.db.Engine.Log.Err(); err != nil {
		return err
	}
	x, err := c.newExtract(v, opt)
	if err != nil {
		return err
	}
	if x != nil && (opt.Collection != "" || opt.IndexOnly) {
		x.identity.UUID = record.NewUUID() // its backups must not pass for backups of this database
	}
	return store.NewFolder(c.cfg.FS, dir, func(path string) error {
		if x != nil {
			return x.writeFolder(ctx, path)
		}
		return store.Create(c.cfg.FS, path,
			func(made string) (record.Identity, error) { return c.checkpointStore(ctx, made) }, nil)
	})
}

// checkpointStore makes a store at path with everything that this one has at one moment, and
// returns its identity. path must not exist, and the folder above it must.
//
// Pebble decides which tables to take before it copies its log. Tables that are ingested in
// between would be missing, while a later commit is there. So the checkpoint runs in the
// committer, which does nothing else meanwhile: writers wait, readers do not. The flush
// before it, and cutting the log after it, do not need the committer.
func (c *Copier) checkpointStore(ctx context.Context, path string) (record.Identity, error) {
	i := c.identity
	if err := c.db.Engine.Log.Err(); err != nil {
		return i, err
	}
	// Without the flush, data that is only in the log would be stored twice: as a log now, and as tables by
	// the next backup.
	if err := c.db.Engine.FlushAll(ctx); err != nil {
		return i, err
	}
	var log int64
	if err := c.roomToCopy(path); err != nil {
		return i, err
	}
	err := c.db.Committer.Look(ctx, func() error {
		i.Sequence = c.db.Committer.Sequence()
		err := pebbleCheckpoint(c.db.Engine.DB, path)
		log = logBytes(c.db.Engine.DB)
		if failed := c.db.Engine.Log.Err(); failed != nil {
			return failed // after a vital failure the copy may lack commits
		}
		return err
	})
	if err == nil {
		err = trimLog(c.cfg.FS, path, log)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return i, err
}

// roomToCopy returns an error if a checkpoint at path would leave less free space than the
// reserve. If a hard link from the database can be made there, tables are linked and need
// no room; else all of the store is copied. The folder above path exists.
func (c *Copier) roomToCopy(path string) error {
	fsys := c.cfg.FS
	// Whether links work cannot be asked, only tried. The marker is a small file that every
	// database has.
	link := path + ".link"
	if err := fsys.Link(fsys.PathJoin(c.db.Engine.Dir, store.MarkerName), link); err == nil {
		return fsys.Remove(link)
	}
	dir := fsys.PathDir(path)
	room := &store.Reserve{FS: fsys, Dir: dir, Path: dir, Want: c.cfg.ReserveBytes}
	return room.Admit(int64(c.db.Engine.DB.Metrics().DiskSpaceUsage()), false)
}

// logBytes returns how many bytes of the newest log of a store are in use, while nothing is written to the
// store. It returns 0, for unknown, if commits that are not in tables are in more than one log: then the
// count may include older logs.
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
