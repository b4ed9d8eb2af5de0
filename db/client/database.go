package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Collections implements api.Database, as do the methods below.
func (d *Database) Collections(ctx context.Context) ([]string, error) {
	out, err := ask[rest.Collections](ctx, d, "/collections", nil)
	if err != nil {
		return nil, err
	}
	return out.Collections, nil
}

func (d *Database) Collection(ctx context.Context, name string) (api.Collection, error) {
	return d.collection(ctx, name, "")
}

// collection asks for a collection, with the parameters of a space.
func (d *Database) collection(ctx context.Context, name, view string) (*Collection, error) {
	path := "/collections/" + escape(name)
	out, err := ask[rest.Collection](ctx, d, path+view, nil)
	if err != nil {
		return nil, err
	}
	return &Collection{d: d, name: out.Name, id: out.ID, path: path, view: view, schema: out.Schema}, nil
}

func (d *Database) CreateCollection(ctx context.Context, name string, schema db.Schema) (api.Collection,
	error) {
	path, out := "/collections/"+escape(name), rest.Collection{}
	if err := d.do(ctx, call{method: http.MethodPut, path: path}, schema, &out); err != nil {
		return nil, err
	}
	return &Collection{d: d, name: out.Name, id: out.ID, path: path, schema: out.Schema}, nil
}

func (d *Database) DropCollection(ctx context.Context, name string) error {
	return d.do(ctx, call{method: http.MethodDelete, path: "/collections/" + escape(name)}, nil, nil)
}

func (d *Database) Mark(ctx context.Context, name string) ([]byte, error) {
	out, err := ask[rest.Mark](ctx, d, "/marks/"+escape(name), nil)
	if err != nil {
		return nil, err
	}
	return out.Value, nil
}

func (d *Database) Stats(ctx context.Context) (*db.Stats, error) {
	return ask[db.Stats](ctx, d, "", nil)
}

func (d *Database) WaitForIndex(ctx context.Context) error {
	_, err := ask[db.Stats](ctx, d, "?loaded=true", nil)
	return err
}

func (d *Database) Compact(ctx context.Context) error {
	_, err := work[struct{}](ctx, d, call{path: ":compact"}, nil, nil, nil)
	return err
}

func (d *Database) Verify(ctx context.Context, opt db.VerifyOptions,
	found func(report.Finding) error) (*report.Verification, error) {
	out, err := work[rest.Verification](ctx, d, call{path: ":verify", twice: true}, opt, opt.Progress,
		func(_ string, data []byte) error {
			var f report.Finding
			if err := json.Unmarshal(data, &f); err != nil || found == nil {
				return err
			}
			return found(f)
		})
	if err != nil {
		return nil, err
	}
	out.Verification.Findings = out.Findings
	return out.Verification, nil
}

func (d *Database) Backup(ctx context.Context, url string, opt db.BackupOptions) (*backup.Manifest, error) {
	return work[backup.Manifest](ctx, d, call{path: ":backup"}, rest.Backup{URL: url, BackupOptions: opt},
		opt.Progress, nil)
}

// A Batch collects changes for one request.
type Batch struct {
	d     *Database
	lines bytes.Buffer
	n     int
	keys  []string
	err   error // the first one; Commit returns it
	done  bool
	once  bool // the changes cannot be made twice
}

// fullBytes is the size from which a batch is full.
const fullBytes = 8 << 20

// NewBatch implements api.Database.
func (d *Database) NewBatch() api.Batch { return &Batch{d: d} }

// add adds a change. Every later call returns the first error.
func (b *Batch) add(c api.Collection, x rest.Change) error {
	if b.err == nil {
		b.err = b.encode(c, x)
	}
	return b.err
}

func (b *Batch) encode(c api.Collection, x rest.Change) error {
	if b.done {
		return errCommitted
	}
	if c != nil {
		own, err := b.own(c)
		if err != nil {
			return err
		}
		x.Collection = own.name
	}
	e := json.NewEncoder(&b.lines)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		return fault.Invalid("%w", err)
	}
	if x.Mark == nil && x.Expect == nil {
		b.n++
	}
	return nil
}

var errCommitted = fault.Invalid("the batch has been committed")

// own returns the collection, which has to be of the same database.
func (b *Batch) own(c api.Collection) (*Collection, error) {
	if own, is := c.(*Collection); is && own.d == b.d {
		return own, nil
	}
	return nil, fault.Invalid("the collection is of another database")
}

// item adds an item that is put or merged. It is checked against the schema as this handle has read it; where
// that refuses the item, the present schema decides.
func (b *Batch) item(c api.Collection, it *db.Item, merge bool) error {
	own, err := b.own(c)
	if b.err == nil && err == nil && own.schema.CheckItem(it, merge) != nil {
		// the server may know more modalities and fields by now
		var now db.Schema
		if now, err = own.Schema(context.Background()); err == nil {
			err = now.CheckItem(it, merge)
		}
	}
	switch {
	case b.err != nil:
		return b.err
	case err != nil:
		b.err = err
		return err
	case merge:
		return b.add(c, rest.Change{Merge: rest.NewItem(it)})
	}
	b.once = b.once || it.Key == ""
	return b.add(c, rest.Change{Put: rest.NewItem(it)})
}

// Put implements api.Batch, as do the methods below.
func (b *Batch) Put(c api.Collection, item *db.Item) error { return b.item(c, item, false) }

func (b *Batch) Merge(c api.Collection, item *db.Item) error { return b.item(c, item, true) }

func (b *Batch) Delete(c api.Collection, key string) error {
	return b.add(c, rest.Change{Delete: &key})
}

func (b *Batch) Expect(c api.Collection, key string, old *db.Item) error {
	b.once = true
	return b.add(c, rest.Change{Expect: &rest.Expectation{Key: key, Item: rest.NewItem(old)}})
}

func (b *Batch) RegisterLabels(c api.Collection, labels []string) error {
	if len(labels) == 0 {
		return b.err
	}
	return b.add(c, rest.Change{Labels: labels})
}

func (b *Batch) Mark(name string, value []byte) error {
	return b.add(nil, rest.Change{Mark: &rest.Mark{Name: name, Value: value}})
}

func (b *Batch) Len() int   { return b.n }
func (b *Batch) Full() bool { return b.lines.Len() >= fullBytes }

func (b *Batch) Commit(ctx context.Context) error {
	if b.err != nil {
		return b.err
	}
	if b.done {
		return errCommitted
	}
	b.done = true
	var out rest.Written
	err := b.d.do(ctx, call{method: http.MethodPost, path: ":write", body: b.lines.Bytes(),
		kind: "application/x-ndjson", twice: !b.once}, nil, &out)
	b.keys = out.Keys
	return err
}

func (b *Batch) Keys() []string { return b.keys }
