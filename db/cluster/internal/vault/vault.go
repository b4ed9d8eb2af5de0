// Package vault is the place for the backups of a cluster: a folder that all nodes share, or a prefix of a
// bucket. Each shard has its own repository of backups, shard-0000 and so on, and beside it an entry,
// shard-0000.json, with the newest backup and its position in the log. fddhdb-beam build writes this form,
// too; its databases have no position in a log.
package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/s3"
)

// A Vault is a place for backups. The zero value is none.
type Vault struct{ location string }

// At returns the vault at a location: s3://BUCKET[/PREFIX][?...], see s3.ParseURL, or the path of a folder.
func At(location string) Vault { return Vault{location} }

// IsNone reports whether there is no place for backups.
func (v Vault) IsNone() bool { return v.location == "" }

func (v Vault) String() string { return v.location }

// ErrNone says that the nodes of a cluster have no place for backups.
var ErrNone = fmt.Errorf("%w: no place for backups was given", db.ErrInvalid)

// store returns the store with a name; "" is the store at the top.
func (v Vault) store(ctx context.Context, name string) (backup.Store, error) {
	if v.IsNone() {
		return nil, ErrNone
	}
	if strings.HasPrefix(v.location, "s3://") {
		o, err := s3.ParseURL(v.location)
		if err != nil {
			return nil, err
		}
		o.Prefix = strings.Trim(o.Prefix+"/"+name, "/")
		return s3.Open(ctx, o)
	}
	return backup.Folder(filepath.Join(v.location, name))
}

// An Entry describes the newest backup of a shard.
type Entry struct {
	Cluster string `json:"cluster,omitempty"` // plan.Settings.ID; "" for a database that was built
	Shard   int    `json:"shard"`
	// of the cluster; 0 for a database that was built: as many as are there
	Shards     int    `json:"shards,omitempty"`
	Repository string `json:"repository"`
	Backup     string `json:"backup"` // id
	Items      int    `json:"items"`

	// The backup covers the log at least up to Least, and at most up to Position. Both are 0 for a database
	// that was built and has had no log.
	Position uint64 `json:"position,omitempty"`
	Least    uint64 `json:"least,omitempty"`
}

// maxEntry bounds the bytes of an entry.
const maxEntry = 1 << 16

func repository(shard int) string { return fmt.Sprintf("shard-%04d", shard) }

func (v Vault) Repository(ctx context.Context, shard int) (backup.Store, error) {
	return v.store(ctx, repository(shard))
}

// Put stores the entry of a shard.
func (v Vault) Put(ctx context.Context, e Entry) error {
	e.Repository = repository(e.Shard)
	s, err := v.store(ctx, "")
	if err != nil {
		return err
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.Put(ctx, e.Repository+".json", bytes.NewReader(b), int64(len(b)))
}

// Entry returns the entry of a shard. A missing one is db.ErrNotFound.
func (v Vault) Entry(ctx context.Context, shard int) (e Entry, err error) {
	name := repository(shard) + ".json"
	s, err := v.store(ctx, "")
	if err != nil {
		return e, err
	}
	r, err := s.Get(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf("%w: %s has no %s", db.ErrNotFound, v, name)
	} else if err != nil {
		return e, err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxEntry))
	if err = errors.Join(err, r.Close()); err != nil {
		return e, err
	}
	if err := json.Unmarshal(b, &e); err != nil || e.Shard != shard || e.Backup == "" ||
		e.Repository != repository(shard) || e.Least > e.Position || e.Shards < 0 {
		return e, fmt.Errorf("%w: %s of %s: %.200q", db.ErrInvalid, name, v, b)
	}
	return e, nil
}

// Shards returns the number of shards, at most most, with backups of one cluster or build. It is an error if
// one lacks a backup.
func (v Vault) Shards(ctx context.Context, most int) (n int, err error) {
	first, err := v.Entry(ctx, 0)
	if err != nil {
		return 0, err
	}
	if first.Shards > 0 {
		most = min(most, first.Shards)
	}
	for n = 1; n < most; n++ {
		e, err := v.Entry(ctx, n)
		if err == nil && (e.Cluster != first.Cluster || e.Shards != first.Shards) {
			err = fmt.Errorf("%w: %s of %s is of another cluster", db.ErrNotFound, e.Repository, v)
		}
		if errors.Is(err, db.ErrNotFound) && first.Shards == 0 {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}
