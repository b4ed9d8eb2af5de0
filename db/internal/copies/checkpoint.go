package copies

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// CheckpointOptions say which part of a database is copied. The zero value is everything.
// The fields are those of db.CheckpointOptions, which is converted to this type.
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
		return store.Create(c.cfg.FS, path, func(made string) (record.Identity, error) { return c.checkpointStore(ctx, made) }, nil)
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
	// What is only in the log now would be stored twice: as a log now, and as tables by the
	// next backup.
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
