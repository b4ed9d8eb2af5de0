package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
)

// OpenStore opens the place of backups that a URL names, such as file:///backups or s3://bucket/prefix.
type OpenStore func(ctx context.Context, url string) (backup.Store, error)

// Folder returns a database that this process has open. Close closes it. stores opens the places of
// backups; with nil there are none.
func Folder(d *db.DB, stores OpenStore) Database { return folder{d, stores} }

type folder struct {
	*db.DB
	stores OpenStore
}

// collection is a db.Collection, with a context where other places need one.
type collection struct{ *db.Collection }

func (f folder) Collections(context.Context) ([]string, error) { return f.DB.Collections() }

func (f folder) Collection(_ context.Context, name string) (Collection, error) {
	return ofFolder(f.DB.Collection(name))
}

func (f folder) CreateCollection(ctx context.Context, name string, schema db.Schema) (Collection, error) {
	return ofFolder(f.DB.CreateCollection(ctx, name, schema))
}

func ofFolder(c *db.Collection, err error) (Collection, error) {
	if err != nil {
		return nil, err
	}
	return collection{c}, nil
}

func (f folder) NewBatch() Batch { return batch{f.DB.NewBatch()} }

func (f folder) Mark(_ context.Context, name string) ([]byte, error) { return f.DB.Mark(name) }

func (f folder) Stats(context.Context) (*db.Stats, error) { return f.DB.Stats() }

func (f folder) Backup(ctx context.Context, url string, opt db.BackupOptions) (*backup.Manifest, error) {
	if f.stores == nil {
		return nil, fmt.Errorf("fddhdb: backup to %s: this program has no place for backups: %w", url,
			errors.ErrUnsupported)
	}
	to, err := f.stores(ctx, url)
	if err != nil {
		return nil, err
	}
	return f.DB.Backup(ctx, to, opt)
}

func (c collection) InSpace(_ context.Context, space db.Space, revision uint32) (Collection, error) {
	return ofFolder(c.Collection.InSpace(space, revision))
}

func (c collection) Schema(context.Context) (db.Schema, error) { return c.Collection.Schema() }

func (c collection) Labels(context.Context) ([]string, error) { return c.Collection.Labels() }

func (c collection) SearchRadius(ctx context.Context, q db.Query, radius int) (*db.Result, error) {
	k := q.K
	if k == 0 {
		k = 10
	}
	r, err := c.Collection.SearchRadius(ctx, q, radius)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.First(ctx, k)
}

func (c collection) Encode(_ context.Context, item *db.Item) ([]byte, error) {
	code, _, err := c.Collection.Encode(item)
	return code, err
}

func (c collection) EncodeQuery(ctx context.Context, q db.Query) ([]byte, error) {
	code, _, err := c.Collection.EncodeQuery(ctx, q)
	return code, err
}

// batch is a db.Batch for collections of the interface.
type batch struct{ *db.Batch }

// own returns the db.Collection of a collection of the same place.
func own(c Collection) (*db.Collection, error) {
	if c, is := c.(collection); is {
		return c.Collection, nil
	}
	return nil, fault.Invalid("the collection is of another database")
}

func (b batch) Put(c Collection, item *db.Item) error {
	to, err := own(c)
	if err != nil {
		return err
	}
	return b.Batch.Put(to, item)
}

func (b batch) Merge(c Collection, item *db.Item) error {
	to, err := own(c)
	if err != nil {
		return err
	}
	return b.Batch.Merge(to, item)
}

func (b batch) Delete(c Collection, key string) error {
	to, err := own(c)
	if err != nil {
		return err
	}
	return b.Batch.Delete(to, key)
}

func (b batch) Expect(c Collection, key string, old *db.Item) error {
	to, err := own(c)
	if err != nil {
		return err
	}
	return b.Batch.Expect(to, key, old)
}

func (b batch) RegisterLabels(c Collection, labels []string) error {
	to, err := own(c)
	if err != nil {
		return err
	}
	return b.Batch.RegisterLabels(to, labels)
}
