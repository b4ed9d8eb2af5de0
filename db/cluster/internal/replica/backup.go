package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
)

// Backup stores a backup of the replica in the vault, reads it back, and then writes its entry. The backup
// has all messages that the log had when Backup was called.
func (r *Replica) Backup(ctx context.Context) (*vault.Entry, error) {
	r.backing.Lock() // so that entries come in the order of their backups
	defer r.backing.Unlock()
	log, err := r.Journal.Info(ctx)
	if err != nil {
		return nil, err
	}
	s, err := r.caughtUp(ctx, log.Last)
	if err != nil {
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
	e := vault.Entry{Cluster: r.Cluster, Shard: r.Shard, Shards: r.Shards}
	e.Least = s.Position().Seq
	m, err := s.DB.Backup(ctx, to, db.BackupOptions{})
	if err != nil {
		return nil, err
	}
	e.Backup, e.Position, e.Items = m.ID, s.Position().Seq, items(s.DB)
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
	return &e, r.Vault.Put(ctx, e)
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
