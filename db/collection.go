package db

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Collection is a handle on one collection of a database; it costs nothing to
// keep. All methods are safe for concurrent use.
type Collection struct {
	db   *DB
	id   uint32     // of the collection; never used again, even after a drop
	name string     // for errors
	pin  *state.Pin // of a snapshot, which owns it; nil: the handle shows the present state

	space, revision uint32 // of the handle, see InSpace; 0: the active space, the present revision
}

// Name returns the name of the collection.
func (c *Collection) Name() string { return c.name }

// ID returns the number of the collection. A collection that is created under the name of a dropped one
// has another number.
func (c *Collection) ID() uint32 { return c.id }

// inside returns the collection in the terms of package state.
func (c *Collection) inside() state.Collection {
	return state.Collection{DB: c.db.state, ID: c.id, Name: c.name}
}

// read calls f with the state of the collection, seen in the space of the handle.
func (c *Collection) read(f func(v *state.View, cv *state.CollectionView) error) error {
	inView := func(v *state.View) error {
		cv, err := v.Collection(c.id, c.name)
		if err == nil {
			cv, err = cv.InSpace(c.space)
		}
		if err == nil {
			cv, err = cv.InRevision(v.Snap, c.revision)
		}
		if err != nil {
			return err
		}
		return f(v, cv)
	}
	if c.pin != nil {
		return c.pin.Read(inView)
	}
	return c.db.state.Read(inView)
}

// look returns the result of f for the state that the handle shows.
func look[T any](c *Collection, f func(v *state.View, cv *state.CollectionView) (T, error)) (T, error) {
	var found, none T
	err := c.read(func(v *state.View, cv *state.CollectionView) (err error) {
		found, err = f(v, cv)
		return err
	})
	if err != nil {
		return none, err
	}
	return found, nil
}

// each returns an iterator over the values that f yields from the state that the handle shows when
// the iteration starts. f returns an error of yield, which means that the caller has left the loop.
func each[T any](c *Collection,
	f func(v *state.View, cv *state.CollectionView, yield func(T) error) error) iter.Seq2[T, error] {
	return yielding(func(yield func(T) error) error {
		return c.read(func(v *state.View, cv *state.CollectionView) error { return f(v, cv, yield) })
	})
}

// yielding returns an iterator over the values that f yields; it ends with the error of f, if any. f
// returns an error of yield, which means that the caller has left the loop.
func yielding[T any](f func(yield func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := f(func(x T) error {
			if !yield(x, nil) {
				return record.ErrStopped
			}
			return nil
		})
		if err = unlessStopped(err); err != nil {
			var none T
			yield(none, err)
		}
	}
}

// unlessStopped returns the error of an iteration, nil if the caller has left the loop early.
func unlessStopped(err error) error {
	if errors.Is(err, record.ErrStopped) {
		return nil
	}
	return err
}

// loaded waits until the codes that the handle shows are in memory. That ends for a snapshot even if its
// collection has been dropped.
func (c *Collection) loaded(ctx context.Context) error {
	all, err := look(c, func(_ *state.View, cv *state.CollectionView) ([]*state.Loading, error) {
		return cv.AppendLoading(nil), nil
	})
	if err != nil {
		return err
	}
	return state.WaitForAll(ctx, all)
}

// writable refuses the collections of snapshots.
func (c *Collection) writable() error {
	if c.pin != nil {
		return fmt.Errorf("%w: collection %q of a snapshot", fault.ErrReadOnly, c.name)
	}
	return c.db.writable()
}

// changeable refuses the collections of snapshots, and index-only copies: these lack the vectors that
// a change of an item, or a training, needs.
func (c *Collection) changeable() error {
	if err := c.writable(); err != nil {
		return err
	}
	return c.db.state.Read(func(v *state.View) error {
		cv, err := v.Collection(c.id, c.name)
		if err != nil {
			return err
		}
		return cv.Changeable()
	})
}

// Schema returns the schema of the collection.
func (c *Collection) Schema() (Schema, error) {
	return look(c, func(_ *state.View, cv *state.CollectionView) (Schema,
		error) {
		return schemaOf(cv.Descriptor), nil
	})
}

// Put stores an item and returns its key, which Put makes if the item has none (see Item.Key).
// An item with the same key is replaced whole. When Put returns, the item is durable (see
// Options.NoSync) and later searches find it. An item with neither a key nor contents is an
// ErrInvalid.
//
// Put costs the encoding of the vectors and one synced commit, which concurrent writers share. A
// new row copies the sets of rows that it joins, at worst a bit for each row of the
// collection. If the collection has labels or indexed fields, Put reads the item that it
// replaces.
func (c *Collection) Put(ctx context.Context, item *Item) (key string, err error) {
	return c.changeOne(ctx, state.PutItem, item)
}

// Merge changes the parts of a stored item that the given item sets, and keeps the others. It sets
// vectors by modality, all labels together, fields one by one, and the payload. nil sets nothing;
// labels or a payload that are empty but not nil are removed. Merge removes no field: Put the item
// for that. If no item has the key, Merge puts it. Merge returns the key, as Put does.
func (c *Collection) Merge(ctx context.Context, item *Item) (key string, err error) {
	return c.changeOne(ctx, state.MergeItem, item)
}

// changeOne commits one change and returns the key of its item.
func (c *Collection) changeOne(ctx context.Context, kind state.ChangeKind,
	item *Item) (key string, err error) {
	if err := c.writable(); err != nil {
		return "", err
	}
	ch := &change{}
	if err := c.check(ch, kind, item); err != nil {
		return "", err
	}
	d := c.db.state
	if err := d.Guard.Enter(); err != nil {
		return "", err
	}
	defer d.Guard.Leave()
	if err := d.Write(ctx, []*state.Change{&ch.Change}, nil); err != nil {
		return "", err
	}
	return ch.item.Key, nil
}

// Delete deletes the items with these keys in one commit, and returns how many existed.
func (c *Collection) Delete(ctx context.Context, keys ...string) (int, error) {
	b := c.db.NewBatch()
	for _, key := range keys {
		b.Delete(c, key)
	}
	if err := b.Commit(ctx); err != nil {
		return 0, err
	}
	return b.found(), nil
}

// Get returns the item with this key, or ErrNotFound.
func (c *Collection) Get(ctx context.Context, key string) (*Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return look(c, func(v *state.View, cv *state.CollectionView) (*Item, error) {
		row, err := cv.Row(v.Snap, key)
		if err != nil {
			return nil, err
		}
		it, err := search.ReadItem(cv, v.Snap, row, key)
		if err != nil {
			return nil, err
		}
		return itemOf(cv, it), nil
	})
}

// CreateCollection creates a collection, durably. A name in use gives ErrExists, an
// impossible schema ErrInvalid.
func (d *DB) CreateCollection(ctx context.Context, name string, schema Schema) (*Collection, error) {
	if err := record.CheckName("collection", name); err != nil {
		return nil, err
	}
	if err := schema.checkMade(); err != nil {
		return nil, err
	}
	desc, err := schema.descriptor(name)
	if err != nil {
		return nil, err
	}
	if err := d.writable(); err != nil {
		return nil, err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	err = d.state.Committer.Do(ctx, 0, func(tx *state.Tx) error { return tx.CreateCollection(desc) })
	if err != nil {
		return nil, err
	}
	d.changed(ctx, event.CollectionCreated, event.Event{Collection: name})
	return &Collection{db: d, id: desc.ID, name: name}, nil
}

// Collection returns the collection of that name, or ErrNotFound.
func (d *DB) Collection(name string) (*Collection, error) {
	v, done, err := d.state.Acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	id, ok := v.IDs.Get(name)
	if !ok {
		return nil, fault.NotFound("collection %q", record.Shortened(name))
	}
	return &Collection{db: d, id: id, name: name}, nil
}

// Collections returns the names of the collections, sorted.
func (d *DB) Collections() ([]string, error) {
	v, done, err := d.state.Acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	names := make([]string, 0, v.Collections.Len())
	for cv := range v.Collections.Values() {
		names = append(names, cv.Name)
	}
	slices.Sort(names)
	return names, nil
}

// EnsureCollection returns the collection of that name, and creates it if there is none; of several
// concurrent calls one creates it. An existing collection must have the modalities and fields of
// the schema, with the same metrics, shared spaces and hash, and may have more; otherwise the error is
// ErrExists and names the difference. The encoders of an existing collection stay, and the call
// costs nothing.
func (d *DB) EnsureCollection(ctx context.Context, name string, schema Schema) (*Collection, error) {
	if err := schema.checkMade(); err != nil {
		return nil, err
	}
	c, err := d.Collection(name)
	if errors.Is(err, fault.ErrNotFound) {
		if c, err = d.CreateCollection(ctx, name, schema); errors.Is(err, fault.ErrExists) {
			c, err = d.Collection(name) // another goroutine was faster
		} else {
			return c, err
		}
	}
	if err != nil {
		return nil, err
	}
	wanted, err := schema.descriptor(name)
	if err != nil {
		return nil, err
	}
	return look(c, func(_ *state.View, cv *state.CollectionView) (*Collection, error) {
		return c, cv.Lacks(wanted)
	})
}

// DropCollection deletes a collection with its items, spaces and models, durably and in one commit, in a time
// that does not depend on its size. The name is free at once; a new collection under it has another number.
// Handles on the dropped collection then give ErrNotFound, and so does a running training or reindexing.
// Without a collection of that name the error is ErrNotFound. Snapshots and reads in progress still see the
// collection. Compactions free its disk space (Compact does so at once), and the end of the last reader frees
// its memory.
func (d *DB) DropCollection(ctx context.Context, name string) error {
	if err := d.writable(); err != nil {
		return err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	var dropped *state.CollectionState
	err := d.state.Committer.Free(ctx, func(tx *state.Tx) error {
		if dropped = tx.Committer.Named(name); dropped == nil {
			return fault.NotFound("collection %q", record.Shortened(name))
		}
		return tx.DropCollection(dropped)
	})
	if err != nil {
		return err
	}
	close(dropped.Gone)
	for _, sp := range dropped.Spaces {
		d.learning.Dropped(dropped.ID, sp.ID)
	}
	d.changed(ctx, event.CollectionDropped, event.Event{Collection: name})
	d.search.Keys.Clear() // of all collections; searches soon load what they need
	return nil
}

// An Alteration adds modalities and fields to a collection, indexes fields, and changes how vectors
// are compared.
type Alteration struct {
	AddModalities []Modality `json:"add_modalities,omitempty"` // not in a codes-only collection
	AddFields     []Field    `json:"add_fields,omitempty"`

	// IndexFields are names of fields to index, so that filters by them are fast. Indexed fields stay
	// indexed.
	IndexFields []string `json:"index_fields,omitempty"`

	// IndexWords are names of fields of strings whose words to index (Field.Words). Such an index stays.
	IndexWords []string `json:"index_words,omitempty"`

	// SpaceOf makes modalities, by name, share a space with another modality; all modalities of both
	// spaces then share one. "" takes a modality out of its space, before any other change.
	SpaceOf map[string]string `json:"space_of,omitempty"`

	// Metrics are new metrics of modalities, by name. They hold for all modalities that share the space.
	Metrics map[string]Metric `json:"metrics,omitempty"`

	// Encoders are set, each in place of the one of its modality and input; one without a command removes
	// that. Other encoders stay. An unknown modality, a command longer than 16 KiB, or a fingerprint longer
	// than 256 bytes is an ErrInvalid. An index-only collection can have them, too.
	Encoders []Encoder `json:"encoders,omitempty"`
}

// Alter adds modalities and fields, indexes fields, sets encoders, and changes metrics and spaces of
// modalities, durably and in one commit. Stored items lack an added modality or field until you write them
// again or merge values into them. Filters can use indexed fields at once. All handles of the collection then
// see the new schema; snapshots and reads in progress keep the old one. Alter removes no modality or field,
// and does not change dimensions or types.
//
// IndexFields and IndexWords take some microseconds an item, while searches and writes go on. Filters read
// the items until all indexes are made; the same commit makes the rest of the alteration. For IndexFields a
// string longer than MaxIndexedBytes is an *ItemError, which names the item. After an error, or the end of
// the context or of the process, no field is indexed, and you can begin again. A collection indexes fields
// for one alteration at a time; another one gives ErrBusy.
//
// Metrics and shared spaces change answers by vectors (see Query), whose cursors are then refused. They do
// not change codes.
//
// Spaces of codes keep the modalities that their models know. Codes ignore a new modality, and queries
// of it give ErrNoModel, until a training has seen labelled items that have it. Query.To can name it at
// once.
//
// A name in use gives ErrExists, an impossible change ErrInvalid, and an index-only collection ErrReadOnly.
// Without these indexes an alteration takes the time of one commit, however large the collection is.
func (c *Collection) Alter(ctx context.Context, a Alteration) error {
	if err := c.writable(); err != nil {
		return err
	}
	if err := c.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer c.db.state.Guard.Leave()
	metrics := map[string]record.Metric{}
	for name, m := range a.Metrics {
		metrics[name] = record.Metric(m)
	}
	modalities, fields := storedModalities(a.AddModalities), storedFields(a.AddFields)
	var indexes []record.FieldIndex
	for _, name := range a.IndexFields {
		indexes = append(indexes, record.FieldIndex{Field: name})
	}
	for _, name := range a.IndexWords {
		indexes = append(indexes, record.FieldIndex{Field: name, Words: true})
	}
	with := func(d *record.Descriptor) (_ *record.Descriptor, err error) {
		if len(modalities)+len(fields)+len(a.SpaceOf)+len(metrics) > 0 || len(indexes) == 0 &&
			len(a.Encoders) == 0 {
			d, err = d.With(modalities, fields, record.Respacing{SpaceOf: a.SpaceOf, Metrics: metrics})
		}
		if err != nil || len(a.Encoders) == 0 {
			return d, err
		}
		all, err := encodersWith(d, storedEncoders(a.Encoders))
		if err != nil {
			return nil, err
		}
		return d.WithEncoders(all)
	}
	var err error
	if len(indexes) > 0 {
		err = c.inside().IndexFields(ctx, indexes, with)
	} else {
		err = c.inside().Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
			d, err := with(s.Descriptor)
			if err != nil {
				return err
			}
			return tx.AlterCollection(s, d)
		})
	}
	if err == nil {
		c.db.changed(ctx, event.CollectionAltered, event.Event{Collection: c.name, Attrs: []slog.Attr{
			slog.Int("modalities", len(a.AddModalities)), slog.Int("fields", len(a.AddFields)),
			slog.Int("spaces", len(a.SpaceOf)), slog.Int("metrics", len(a.Metrics)),
			slog.Int("indexed", len(indexes)), slog.Int("encoders", len(a.Encoders)),
		}})
	}
	return err
}

// A Schema declares the modalities and fields of the items of a collection. A collection with
// modalities is learned: items bring vectors, and training makes their codes. A collection with
// Bits is codes-only: items bring their codes.
type Schema struct {
	Modalities []Modality `json:"modalities,omitempty"`
	Bits       int        `json:"bits,omitempty"` // codes-only: a multiple of 8 from 8 to 4096; else 0
	Fields     []Field    `json:"fields,omitempty"`

	// Hash names the function that makes the codes of a codes-only collection. A program that searches by a
	// picture or a text makes the code of the query by the same function. The command line knows the names of
	// perceptual.Hashes; other names are yours. The database only stores the name: letters, digits, '_', '-'
	// and '.', up to MaxNameBytes. It never changes.
	Hash string `json:"hash,omitempty"`

	// Encoders are programs that make vectors; a modality may have one for each input. Returned schemas have
	// them in the order of modalities.
	Encoders []Encoder `json:"encoders,omitempty"`

	// IndexOnly says, in returned schemas, that the collection is a copy without vectors, see
	// CheckpointOptions.IndexOnly. CreateCollection refuses it with ErrInvalid.
	IndexOnly bool `json:"index_only,omitempty"`
}

// A Modality is one kind of vectors: float32 vectors of Dim dimensions. Vectors of a Sparse modality, such as
// bags of words, are stored and computed by their non-zero numbers; they get the same codes as dense vectors.
//
// Metric and SpaceOf decide how a search compares vectors, see Query. Codes do not depend on them. Modalities
// share a space if their vectors can be compared with each other, as vectors of pictures and texts by one
// encoder. They have the same Dim, the same Sparse and one metric.
type Modality struct {
	Name   string `json:"name"`
	Dim    int    `json:"dim"`
	Sparse bool   `json:"sparse,omitempty"`

	// Metric may be left out: it is then the metric of the other modalities of the space, or
	// Cosine. Returned schemas have "" for Cosine.
	Metric Metric `json:"metric,omitempty"`

	// SpaceOf names another modality of the collection to share a space with. Modalities that share
	// with the same one share with each other. In returned schemas it names the first modality
	// of the space, whose SpaceOf is empty.
	SpaceOf string `json:"space_of,omitempty"`
}

// A Metric is a way to compare vectors. The greater the Similarity, the nearer they are.
type Metric string

// Metrics. The sums are of float64, by ascending dimension, and the results are rounded to float32.
const (
	// Cosine is the cosine of the angle between two vectors, from -1 to 1. It is 0 for a stored
	// vector of zeros; a query by a vector of zeros is an ErrInvalid.
	Cosine Metric = "cosine"
	// Dot is the inner product. Beyond the range of float32 it is the greatest or least float32.
	Dot Metric = "dot"
	// L2 is the Euclidean distance. Items come by its square d, the least first. Similarity is 1 / (1 + d),
	// from 0 to 1; d decides the order even where similarities are equal.
	L2 Metric = "l2"
)

// A Field is a typed attribute of items. A filter by an indexed field reads no items, see
// Query.Where; a filter by another field reads all items.
type Field struct {
	Name    string    `json:"name"`
	Type    FieldType `json:"type"`
	Indexed bool      `json:"indexed,omitempty"`

	// Words makes an index of the words and trigrams of a field of strings. Filters by CONTAINS, LIKE and
	// ILIKE then read few items (see Query.Where), and Query.Words finds items by the field. The index takes
	// about twice the room of the texts, and a put of a text of ten words takes some 0.15 ms more. Of a text
	// of more than 16 KiB it has the words of the first 16 KiB; filters read such a text whole.
	Words bool `json:"words,omitempty"`
}

// A FieldType is the type of the values of a field.
type FieldType string

// The types of fields and, in Go, of their values.
//
// A Time is stored in UTC, truncated to microseconds, of the years 0 to 9999. Text may replace a time.Time:
// 2024-05-01T12:30:00.25+02:00, or its beginning, 2024-05-01 12:30, 2024-05-01, 2024-05 or 2024, which means
// its first moment. Text without an offset is in UTC.
const (
	String FieldType = "string" // string
	Int    FieldType = "int"    // int64
	Float  FieldType = "float"  // float64, finite
	Bool   FieldType = "bool"   // bool
	Time   FieldType = "time"   // time.Time, or its text on the way in
)

// schemaOf returns the schema of a descriptor, in memory of its own.
func schemaOf(d *record.Descriptor) Schema {
	s := Schema{Bits: d.Bits, Modalities: modalitiesOf(d.Modalities), Fields: fieldsOf(d.Fields),
		Hash: d.Hash, IndexOnly: d.IndexOnly}
	for _, e := range d.Encoders {
		s.Encoders = append(s.Encoders,
			Encoder{e.Modality, EncoderInput(e.Input), slices.Clone(e.Command), slices.Clone(e.Fingerprint),
				e.Standby})
	}
	return s
}

// checkMade refuses the schema of a collection that only Checkpoint makes.
func (s *Schema) checkMade() error {
	if s.IndexOnly {
		return fault.Invalid("an index-only collection is made by Checkpoint, from one with vectors")
	}
	return nil
}

// descriptor returns the descriptor of a new collection.
func (s *Schema) descriptor(name string) (*record.Descriptor, error) {
	d := &record.Descriptor{Name: name, Bits: s.Bits, Modalities: storedModalities(s.Modalities),
		Fields: storedFields(s.Fields), Hash: s.Hash}
	if err := d.Check(); err != nil {
		return nil, err
	}
	if err := d.Settle(); err != nil {
		return nil, err
	}
	return d.WithEncoders(storedEncoders(s.Encoders))
}

func storedEncoders(given []Encoder) (all []record.Encoder) {
	for _, e := range given {
		all = append(all, record.Encoder{Modality: e.Modality, Input: record.EncoderInput(e.Input),
			Command: e.Command, Fingerprint: e.Fingerprint, Standby: e.Standby})
	}
	return all
}

// encodersWith returns the encoders of a collection as an alteration leaves them.
func encodersWith(d *record.Descriptor, set []record.Encoder) ([]record.Encoder, error) {
	all := slices.DeleteFunc(slices.Clone(d.Encoders), func(e record.Encoder) bool {
		return slices.ContainsFunc(set, func(x record.Encoder) bool {
			return x.Modality == e.Modality && x.Input == e.Input
		})
	})
	for _, e := range set {
		if len(e.Command) > 0 {
			all = append(all, e)
			continue
		}
		e.Command = []string{"none"} // one that is removed is checked, too
		if _, err := d.WithEncoders([]record.Encoder{e}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func modalitiesOf(stored []record.Modality) (all []Modality) {
	for _, m := range stored {
		all = append(all, modalityOf(m))
	}
	return all
}

func modalityOf(m record.Modality) Modality {
	return Modality{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse, Metric: Metric(m.Metric), SpaceOf: m.SpaceOf}
}

func storedModalities(given []Modality) (all []record.Modality) {
	for _, m := range given {
		all = append(all, record.Modality{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse,
			Metric: record.Metric(m.Metric), SpaceOf: m.SpaceOf})
	}
	return all
}

func fieldsOf(stored []record.Field) (all []Field) {
	for _, f := range stored {
		all = append(all, Field{f.Name, FieldType(f.Type), f.Indexed, f.Words})
	}
	return all
}

func storedFields(given []Field) (all []record.Field) {
	for _, f := range given {
		all = append(all, record.Field{Name: f.Name, Type: record.FieldType(f.Type), Indexed: f.Indexed,
			Words: f.Words})
	}
	return all
}

// An Encoder describes a program, or a service, that makes vectors of a modality from texts or from files, to
// search a collection by these. The database only stores it, with the schema, and in checkpoints, backups and
// index-only copies. The command line runs it (search --text, explore), by the protocol of docs/SHELL.md, and
// only if its user has allowed it. A program in Go calls its encoder itself, and gives Search the vector.
type Encoder struct {
	Modality string       `json:"modality"` // of the vectors that it prints
	Input    EncoderInput `json:"input"`    // kind of its input
	Command  []string     `json:"command"`  // the program or address, and its arguments; no shell is meant

	// Fingerprint, of up to 256 bytes, tells the encoder from others that have the same command. The program
	// that runs encoders makes and compares it; the command line makes it of the vectors of fixed inputs.
	Fingerprint []byte `json:"fingerprint,omitempty"`

	// Standby keeps queries that name no modality from this encoder: its modality is being filled, or is kept
	// to go back to (see package db/reembed). New items get its vectors all the same.
	Standby bool `json:"standby,omitempty"`
}

// An EncoderInput is the kind of input that an encoder reads, one a line.
type EncoderInput string

// The inputs of encoders.
const (
	InputText EncoderInput = "text" // texts
	InputFile EncoderInput = "file" // paths of files
)
