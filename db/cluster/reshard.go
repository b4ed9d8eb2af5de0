package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/db/shard"
)

// A resharding makes databases of new shards from the backups of other ones. It reads one backup after the
// other, and writes the items to a file of their new shard. Then it loads one new shard after the other, and
// stores a backup of it. So its folder has all items once, and the database of one shard.
type resharding struct {
	dir         string
	from, to    vault.Vault
	collections map[string]*reshardedCollection
	indexes     map[string][]byte // marks of what is to be indexed
	files       []*os.File        // by new shard
	entries     []vault.Entry
}

// A reshardedCollection is what any of the backups has of a collection.
type reshardedCollection struct {
	schema db.Schema
	spaces map[db.Space]reshardedSpace
	active db.Space // the latest
}

type reshardedSpace struct {
	revision uint32
	model    []byte // as db.Collection.ExportModel writes it; of the latest revision
}

// reshard stores backups of o.Shards new shards in o.Backups, with all that the backups of the was shards in
// o.From have. Their entries go last: without them nothing can begin with what an interrupted call has left.
func reshard(ctx context.Context, o CreateOptions, was int) (err error) {
	if o.Backups == "" || o.Backups == o.From {
		return fmt.Errorf("%w: %s has backups of %d shards: %d need a place for backups of their own",
			db.ErrInvalid, o.From, was, o.Shards)
	}
	r := &resharding{from: vault.At(o.From), to: vault.At(o.Backups),
		collections: map[string]*reshardedCollection{}, indexes: map[string][]byte{}}
	for number := range o.Shards {
		if e, err := r.to.Entry(ctx, number); err == nil && e.Cluster != "" {
			return fmt.Errorf("%w: %s has backups of a cluster: give the new shards a place of their own",
				db.ErrExists, o.Backups)
		} else if err != nil && !errors.Is(err, db.ErrNotFound) {
			return err
		}
	}
	if r.dir, err = os.MkdirTemp("", "reshard-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	for number := range o.Shards {
		f, err := os.Create(filepath.Join(r.dir, fmt.Sprint("items-", number)))
		if err != nil {
			return err
		}
		defer f.Close()
		r.files = append(r.files, f)
	}
	tell := func(stage string, done, of int) {
		if o.Progress != nil {
			o.Progress(stage, int64(done), int64(of))
		}
	}
	for number := range was {
		tell("read", number, was)
		if err := r.read(ctx, number); err != nil {
			return fmt.Errorf("backup of shard %d: %w", number, err)
		}
	}
	for number := range o.Shards {
		tell("load", number, o.Shards)
		if err := r.load(ctx, number); err != nil {
			return fmt.Errorf("new shard %d: %w", number, err)
		}
	}
	tell("load", o.Shards, o.Shards)
	for _, e := range r.entries {
		e.Shards = o.Shards
		if err := r.to.Put(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// read writes the items of a backup to the files of their new shards.
func (r *resharding) read(ctx context.Context, number int) (err error) {
	e, err := r.from.Entry(ctx, number)
	if err != nil {
		return err
	}
	repository, err := r.from.Repository(ctx, number)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.dir, "was")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	_, err = db.Restore(ctx, repository, dir, nil, db.RestoreOptions{ID: e.Backup, SkipVerify: true})
	if err != nil {
		return err
	}
	d, err := db.Open(dir, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for m, err := range d.Marks(ctx, apply.IndexMarks) {
		if err != nil {
			return err
		}
		r.indexes[m.Name] = m.Value
	}
	names, err := d.Collections()
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := d.Collection(name)
		if err == nil {
			err = r.readCollection(ctx, c)
		}
		if err != nil {
			return fmt.Errorf("collection %q: %w", name, err)
		}
	}
	return nil
}

func (r *resharding) readCollection(ctx context.Context, c *db.Collection) error {
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	is := r.collections[c.Name()]
	if is == nil {
		is = &reshardedCollection{schema: schema, spaces: map[db.Space]reshardedSpace{}}
		r.collections[c.Name()] = is
	} else if fmt.Sprint(is.schema) != fmt.Sprint(schema) {
		return fmt.Errorf("%w: another backup has another schema of it", db.ErrConflict)
	}
	spaces, err := c.Spaces(ctx)
	if err != nil {
		return err
	}
	for _, s := range spaces {
		if s.State == report.SpaceActive {
			is.active = max(is.active, s.Space)
		}
		has, known := is.spaces[s.Space]
		if schema.Bits > 0 || s.State == report.SpaceBuilding || known && has.revision >= s.Revision {
			continue
		}
		of, err := c.InSpace(s.Space, 0)
		if err != nil {
			return err
		}
		var model bytes.Buffer
		if err := of.ExportModel(ctx, &model); err != nil {
			return err
		}
		is.spaces[s.Space] = reshardedSpace{s.Revision, model.Bytes()}
	}
	waiting, bytes := make([][]wire.Change, len(r.files)), make([]int, len(r.files))
	for item, err := range c.Items(ctx, "") {
		if err != nil {
			return err
		}
		to := shard.Of(item.Key, len(r.files))
		waiting[to] = append(waiting[to], wire.Change{Collection: c.Name(), Kind: wire.Put,
			Item: wire.ItemOf(item)})
		if bytes[to] += sizeOf(item); bytes[to] < importBytes {
			continue
		}
		if err := r.write(to, waiting[to]); err != nil {
			return err
		}
		waiting[to], bytes[to] = nil, 0
	}
	for to, changes := range waiting {
		if err := r.write(to, changes); err != nil {
			return err
		}
	}
	return nil
}

// write appends changes to the file of a new shard, behind their length.
func (r *resharding) write(to int, changes []wire.Change) error {
	b, err := (&wire.Op{Kind: wire.Write, Changes: changes}).Encode()
	if err != nil {
		return err
	}
	_, err = r.files[to].Write(append(binary.BigEndian.AppendUint64(nil, uint64(len(b))), b...))
	return err
}

// load makes the database of a new shard, and stores a backup of it.
func (r *resharding) load(ctx context.Context, number int) (err error) {
	dir := filepath.Join(r.dir, "is")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d, err := db.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	all := map[string]*db.Collection{}
	for _, name := range slices.Sorted(maps.Keys(r.collections)) {
		is := r.collections[name]
		c, err := d.CreateCollection(ctx, name, is.schema)
		if err != nil {
			return err
		}
		all[name] = c
		// before the items, which get their codes as they are loaded
		for _, space := range slices.Sorted(maps.Keys(is.spaces)) {
			_, err := c.ImportModel(ctx, bytes.NewReader(is.spaces[space].model),
				db.ImportModelOptions{Space: space, Activate: space == is.active})
			if err != nil {
				return fmt.Errorf("collection %q: %w", name, err)
			}
		}
	}
	n, err := r.fill(ctx, d, all, r.files[number])
	if err != nil {
		return err
	}
	to, err := r.to.Repository(ctx, number)
	if err != nil {
		return err
	}
	m, err := d.Backup(ctx, to, db.BackupOptions{})
	if err != nil {
		return err
	}
	r.entries = append(r.entries, vault.Entry{Shard: number, Backup: m.ID, Items: n})
	return nil
}

// fill stores the items of a file.
func (r *resharding) fill(ctx context.Context, d *db.DB, all map[string]*db.Collection,
	f *os.File) (n int, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	in, b := bufio.NewReader(f), d.NewBatch()
	for name, value := range r.indexes {
		b.Mark(name, value)
	}
	for {
		var size [8]byte
		if _, err := io.ReadFull(in, size[:]); err == io.EOF {
			return n, b.Commit(ctx)
		} else if err != nil {
			return n, err
		}
		data := make([]byte, binary.BigEndian.Uint64(size[:]))
		if _, err := io.ReadFull(in, data); err != nil {
			return n, err
		}
		op, err := wire.DecodeOp(data)
		if err != nil {
			return n, err
		}
		for _, ch := range op.Changes {
			err = cmp.Or(err, b.Put(all[ch.Collection], ch.Item.Item()))
		}
		if n += len(op.Changes); err == nil && b.Full() {
			err = b.Commit(ctx)
			b = d.NewBatch()
		}
		if err != nil {
			return n, err
		}
	}
}
