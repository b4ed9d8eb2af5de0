package copies

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// CheckpointOptions say which part of a database is copied. The zero value is everything.
type CheckpointOptions struct {
	Collection string         // the only one that is copied; "": all
	IndexOnly  bool           // vectors, and all that only learning needs, are left out
	Progress   event.Progress // hears of bytes where not everything is copied; may be nil
}

// Checkpoint writes a view into the folder dir, which must not exist yet. A copy of everything
// has all commits until now, those after the view too, except where the database is
// read-only. One that leaves something out has a UUID of its own.
func (c *Copier) Checkpoint(ctx context.Context, v *state.View, dir string, opt CheckpointOptions) error {
	if err := c.db.Engine.Log.Err(); err != nil {
		return err
	}
	x, err := c.newExtract(v, opt)
	if err != nil {
		return err
	}
	if x != nil && (opt.Collection != "" || opt.IndexOnly) && c.identity.Format >= record.FormatIdentity {
		x.identity.UUID = record.NewUUID() // it is another database: its backups must not pass for those of this one
	}
	return store.NewFolder(c.cfg.FS, dir, func(path string) error {
		if x != nil {
			return x.writeFolder(ctx, path)
		}
		return store.Create(c.cfg.FS, path, func(made string) (record.Identity, error) { return c.checkpointStore(ctx, made) }, nil)
	})
}

// checkpointStore makes a store at path with everything that this one has at one moment, and
// returns its identity. Pebble decides which tables to take before it copies its log. Tables
// that are ingested in between would be missing, while a later commit is there. So it runs in
// the committer, which does nothing else meanwhile.
func (c *Copier) checkpointStore(ctx context.Context, path string) (record.Identity, error) {
	i := c.identity
	if err := c.db.Engine.Log.Err(); err != nil {
		return i, err
	}
	// Otherwise the next backup would store in tables again what this one stores as log.
	if err := c.db.Engine.FlushAll(ctx); err != nil {
		return i, err
	}
	var log int64
	if err := c.roomToCopy(path); err != nil {
		return i, err
	}
	err := c.db.Committer.Look(ctx, func() error {
		i.Sequence = c.db.Committer.Sequence
		err := pebbleCheckpoint(c.db.Engine.DB, path)
		log = logBytes(c.db.Engine.DB)
		if failed := c.db.Engine.Log.Err(); failed != nil {
			return failed // the store has gone on without its files
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

// roomToCopy returns an error if there is no room for a checkpoint at path. It needs room
// where the file system has no hard links, as tables are copied there. The folder above path
// exists.
func (c *Copier) roomToCopy(path string) error {
	fsys := c.cfg.FS
	link := path + ".link"
	if err := fsys.Link(fsys.PathJoin(c.db.Engine.Dir, store.MarkerName), link); err == nil {
		return fsys.Remove(link)
	}
	dir := fsys.PathDir(path)
	room := &store.Reserve{FS: fsys, Dir: dir, Path: dir, Want: c.cfg.ReserveBytes}
	return room.Admit(int64(c.db.Engine.DB.Metrics().DiskSpaceUsage()), false)
}
