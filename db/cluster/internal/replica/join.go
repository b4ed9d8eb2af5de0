package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
)

// join makes the missing database of a shard: by the newest backup if the log continues it, otherwise by the
// backup that the shard started from, or an empty one if the log is complete.
func (r *Replica) join(ctx context.Context) error {
	if there, err := exists(filepath.Join(r.Dir, db.MarkerName)); err != nil {
		return err
	} else if there {
		return os.RemoveAll(r.outdated())
	}
	info, err := r.Journal.Info(ctx)
	if err != nil {
		return err
	}
	base, newest, err := r.base(ctx, info)
	if err != nil {
		return err
	}
	id := base.Base
	if id == "" {
		return nil // Open makes an empty one
	}
	from, err := r.Vault.Repository(ctx, r.Shard)
	if err != nil {
		return err
	}
	start := time.Now()
	dir := r.Dir + ".joining" // until it is complete
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	opts := r.options()
	if _, err := db.Restore(ctx, from, dir, &opts, db.RestoreOptions{ID: id, SkipVerify: true}); err != nil {
		return fmt.Errorf("backup %s of shard %d: %w", id, r.Shard, err)
	}
	if newest {
		r.Log.Info("restored", "backup", id, "took", time.Since(start))
		return r.joined(dir)
	}
	d, err := db.Open(dir, &opts)
	if err != nil {
		return err
	}
	if err := errors.Join(apply.Begin(ctx, d, r.identity(), base.Origin), d.Close()); err != nil {
		return fmt.Errorf("backup %s of shard %d: %w", id, r.Shard, err)
	}
	r.Log.Info("begun with", "backup", id, "took", time.Since(start))
	return r.joined(dir)
}

// joined puts a complete database into its place.
func (r *Replica) joined(dir string) error {
	if err := os.Rename(dir, r.Dir); err != nil {
		return err
	}
	return os.RemoveAll(r.outdated())
}

// base returns the backup that a replica starts from: the newest, which has its own position, or the one that
// the shard started from. No id means an empty database.
func (r *Replica) base(ctx context.Context, log journal.Info) (base plan.Placement, newest bool, err error) {
	base = r.Base()
	if !r.Vault.IsNone() {
		e, err := r.Vault.Entry(ctx, r.Shard)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return base, false, err
		}
		// A backup that may end before the log begins would leave a gap.
		if err == nil && e.Cluster == r.Cluster && e.Least+1 >= log.First && e.Position <= log.Last {
			return plan.Placement{Base: e.Backup}, true, nil
		}
	}
	switch {
	case base.Base != "" && log.First <= base.Origin+1:
		return base, false, nil
	case base.Base == "" && log.First <= 1:
		return base, false, nil
	}
	return base, false, fmt.Errorf(
		"%w: the log begins at %d, and no backup at %q goes so far: back up the shard on a node that has it, or give this node the place of the backups", db.ErrNotFound, log.First, r.Vault)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// outdated is where a database waits that the log has been trimmed beyond, until the backup is restored that
// has all that it has.
func (r *Replica) outdated() string { return r.Dir + ".outdated" }

// aside moves a database away that cannot continue: the log has been trimmed beyond it, or it is of another
// shard, or an operator wants another one. But for the first case the folder stays beside the new one, for
// inspection.
func (r *Replica) aside(why error) error {
	if err := r.close(); err != nil {
		r.Log.Warn("closing the database", "error", err)
	}
	if there, err := exists(r.Dir); !there {
		return err
	}
	to := fmt.Sprintf("%s.left-%s", r.Dir, time.Now().UTC().Format("20060102T150405.000"))
	var gap *apply.GapError
	if errors.As(why, &gap) {
		if to = r.outdated(); os.RemoveAll(to) != nil {
			return fmt.Errorf("remove %s: it is in the way", to)
		}
	}
	if err := os.Rename(r.Dir, to); err != nil {
		return err
	}
	r.Log.Error("the replica does not go on: it begins anew with a backup", "why", why, "moved_to", to)
	return nil
}
