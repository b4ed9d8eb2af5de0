package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// join makes the database of a shard that the node does not have yet: empty, where the log begins at its
// beginning, or else by the newest backup, if the log goes on behind it, or by the one that the shard began
// with.
func (r *Replica) join(ctx context.Context) error {
	if there, err := exists(filepath.Join(r.Dir, db.MarkerName)); there || err != nil {
		return err
	}
	info, err := r.Journal.Info(ctx)
	if err != nil {
		return err
	}
	base, newest, err := r.base(ctx, info)
	if err != nil {
		return err
	}
	id, of := base.Base, r.Shard
	if id == "" {
		return nil // Open makes an empty one
	}
	if base.Split {
		of = r.Parent
	}
	from, err := r.Vault.Repository(ctx, of)
	if err != nil {
		return err
	}
	start := time.Now()
	dir := r.Dir + ".joining" // until it is complete
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	opts := r.Options
	if _, err := db.Restore(ctx, from, dir, &opts, db.RestoreOptions{ID: id, SkipVerify: true}); err != nil {
		return fmt.Errorf("backup %s of shard %d: %w", id, of, err)
	}
	if newest {
		r.Log.Info("restored", "backup", id, "took", time.Since(start))
		return os.Rename(dir, r.Dir)
	}
	d, err := db.Open(dir, &opts)
	if err != nil {
		return err
	}
	begin := apply.Begin
	if base.Split {
		begin = apply.Continue
	}
	if err := errors.Join(begin(ctx, d, r.identity(), base.Origin), d.Close()); err != nil {
		return fmt.Errorf("backup %s of shard %d: %w", id, of, err)
	}
	r.Log.Info("begun with", "backup", id, "took", time.Since(start))
	return os.Rename(dir, r.Dir)
}

// base returns the backup that a replica begins with: the newest, which has a position of its own, or the one
// that the shard began with. No id means an empty database.
func (r *Replica) base(ctx context.Context, log journal.Info) (base plan.Placement, newest bool, err error) {
	base = r.Base()
	if !r.Vault.IsNone() {
		e, err := r.Vault.Entry(ctx, r.Shard)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return base, false, err
		}
		// One that may end before the log begins would leave a gap.
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
	return base, false, fmt.Errorf("%w: the log begins at %d, and no backup at %q goes so far: back up the shard on a node that has it, or give this node the place of the backups", db.ErrNotFound, log.First, r.Vault)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// aside moves a database away that does not go on: the log has been trimmed beyond it, or is another one.
// Whoever looks into that finds it beside the new one.
func (r *Replica) aside(why error) error {
	if err := r.close(); err != nil {
		r.Log.Warn("closing the database", "error", err)
	}
	to := fmt.Sprintf("%s.left-%s", r.Dir, time.Now().UTC().Format("20060102T150405.000"))
	if err := os.Rename(r.Dir, to); err != nil {
		return err
	}
	r.Log.Error("the replica does not go on: it begins anew with a backup", "why", why, "moved_to", to)
	return nil
}

// A Backed says what a backup of a replica has come to.
type Backed struct {
	vault.Entry
	Manifest *backup.Manifest `json:"manifest"`
	Closed   bool             `json:"closed,omitempty"` // the shard is being split, and its log was closed by then
}

// Backup stores a backup of the replica in the vault, reads it again, and then says so in its entry. If it is to
// be exact Least and Position are one sequence, to which it goes: while it takes its view nothing is applied. Where
// a message has been applied in part that is db.ErrBusy. It goes to the sequence from at least.
func (r *Replica) Backup(ctx context.Context, exact bool, from uint64) (*Backed, error) {
	s := r.state.Load()
	if s == nil || !r.follows.Load() {
		return nil, errNotOpen
	}
	if err := wait(ctx, s, &wire.Request{From: from, Wait: mostWait}); err != nil {
		return nil, err
	}
	to, err := r.Vault.Repository(ctx, r.Shard)
	if err != nil {
		return nil, err
	}
	was, err := r.Vault.Entry(ctx, r.Shard)
	if base := r.Base(); err == nil && was.Cluster != "" && was.Cluster != r.Cluster && was.Backup != base.Base {
		return nil, fmt.Errorf("%w: %s has backups of another cluster: give this one a place of its own", db.ErrExists, r.Vault)
	} else if err != nil && !errors.Is(err, db.ErrNotFound) {
		return nil, err
	}
	e := vault.Entry{Cluster: r.Cluster, Shard: r.Shard, First: r.Layout.First, Shards: r.Layout.Shards}
	o, free := db.BackupOptions{}, func() {}
	if exact {
		between, cancel := context.WithTimeout(ctx, mostWait*time.Millisecond)
		free, err = s.Between(between)
		cancel()
		if err != nil {
			return nil, err
		}
		defer free()
		o.Progress = func(string, int64, int64) { free() } // it copies what it has taken
	}
	e.Least = s.Position().Seq
	closed := s.Closed() > 0
	m, err := s.DB.Backup(ctx, to, o)
	if err != nil {
		return nil, err
	}
	e.Backup, e.Position, e.Items = m.ID, s.Position().Seq, items(s.DB)
	if exact {
		e.Position = e.Least
	}
	v, err := backup.Verify(ctx, to, backup.VerifyOptions{ID: m.ID}, func(f backup.Finding) error {
		return fmt.Errorf("%w: %s", backup.ErrDamaged, f)
	})
	if err != nil {
		return nil, fmt.Errorf("backup %s of shard %d: %w", m.ID, r.Shard, err)
	}
	if v.Findings > 0 {
		return nil, fmt.Errorf("backup %s of shard %d: %w: %d findings", m.ID, r.Shard, backup.ErrDamaged, v.Findings)
	}
	m.Files = nil
	// Somebody else may have been faster, and have trimmed the log behind a newer one.
	if now, err := r.Vault.Entry(ctx, r.Shard); err == nil && now.Cluster == r.Cluster && now.Least > e.Least {
		return nil, fmt.Errorf("%w: a newer backup of shard %d, %s, has been made meanwhile", db.ErrConflict, r.Shard, now.Backup)
	} else if err != nil && !errors.Is(err, db.ErrNotFound) {
		return nil, err
	}
	return &Backed{e, m, closed}, r.Vault.Put(ctx, e)
}

// Vacant refuses to split the shard where the place for backups has some of another cluster under the numbers of the
// parts.
func (r *Replica) Vacant(ctx context.Context) error {
	next := r.Layout.Next()
	var parts []int
	for _, index := range r.Layout.Parts(r.Layout.Index(r.Shard), next) {
		parts = append(parts, next.Number(index))
	}
	return r.Vault.Vacant(ctx, r.Cluster, parts)
}

// items counts the items of all collections, as far as they can be counted.
func items(d *db.DB) (n int) {
	names, err := d.Collections()
	if err != nil {
		return 0
	}
	for _, name := range names {
		if c, err := d.Collection(name); err == nil {
			if k, err := c.Count(); err == nil {
				n += k
			}
		}
	}
	return n
}
