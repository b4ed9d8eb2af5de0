package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A Backed describes a finished backup of a replica.
type Backed struct {
	vault.Entry
	Closed bool `json:"closed,omitempty"` // the shard is being split, and its log was closed by then
}

// Backup stores a backup of the replica in the vault, reads it back, and then writes its entry. The backup
// covers at least the sequence from. An exact backup ends at one sequence, Least and Position: no message is
// applied while it takes its view. If a message is applied in part, that is db.ErrBusy.
func (r *Replica) Backup(ctx context.Context, exact bool, from uint64) (*Backed, error) {
	s := r.state.Load()
	if s == nil || !r.follows.Load() {
		return nil, errNotOpen
	}
	if err := r.wait(ctx, s, &wire.Request{From: from, Wait: mostWait}); err != nil {
		return nil, err
	}
	to, err := r.Vault.Repository(ctx, r.Shard)
	if err != nil {
		return nil, err
	}
	was, err := r.Vault.Entry(ctx, r.Shard)
	if base := r.Base(); err == nil && was.Cluster != "" && was.Cluster != r.Cluster &&
		was.Backup != base.Base {
		return nil, fmt.Errorf("%w: %s has backups of another cluster: give this one a place of its own",
			db.ErrExists, r.Vault)
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
		o.Progress = func(string, int64, int64) { free() } // the view is taken; copying needs no pause
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
		return nil, fmt.Errorf("backup %s of shard %d: %w: %d findings", m.ID, r.Shard, backup.ErrDamaged,
			v.Findings)
	}
	// Another node may have been faster, and have trimmed the log behind a newer backup.
	if now, err := r.Vault.Entry(ctx, r.Shard); err == nil && now.Cluster == r.Cluster &&
		now.Least > e.Least {
		return nil, fmt.Errorf("%w: a newer backup of shard %d, %s, has been made meanwhile", db.ErrConflict,
			r.Shard, now.Backup)
	} else if err != nil && !errors.Is(err, db.ErrNotFound) {
		return nil, err
	}
	return &Backed{e, closed}, r.Vault.Put(ctx, e)
}

// Vacant refuses to split the shard if the place for backups has backups of another cluster under the numbers
// of the parts.
func (r *Replica) Vacant(ctx context.Context) error {
	next := r.Layout.Next()
	var parts []int
	for _, index := range r.Layout.Parts(r.Layout.Index(r.Shard), next) {
		parts = append(parts, next.Number(index))
	}
	return r.Vault.Vacant(ctx, r.Cluster, parts)
}

// items counts the items of all collections that can be counted.
func items(d *db.DB) (n int) {
	names, err := d.Collections()
	if err != nil {
		return 0
	}
	for _, name := range names {
		if c, err := d.Collection(name); err == nil {
			if k, err := c.Count(context.Background(), ""); err == nil {
				n += k
			}
		}
	}
	return n
}
