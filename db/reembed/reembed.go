// Package reembed gives the items of a collection the vectors of another encoder, while searches and writes
// go on with the first ones. The new vectors belong to a second modality.
//
//	err := reembed.Begin(ctx, c, modality, encoders)  // the second modality, whose encoders stand by
//	n, err := reembed.Fill(ctx, d, c, reembed.Options{From: "image", To: "image2", Encode: encode})
//	err = reembed.Switch(ctx, c, "image", "image2", false) // queries that name no modality use it from here on
//	err = reembed.Switch(ctx, c, "image2", "image", false) // and back
//
// Fill reads which items lack a vector from the database itself. So it goes on where it was interrupted, and
// finds items that were put meanwhile without one. Any number of processes may fill at a time; they then do
// some of the work twice.
//
// Invariants: an item never gets a vector of contents that it no longer has, as a write is refused that finds
// another item than the one that was encoded; a switch is one commit (TestFill, TestSwitch).
package reembed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Options are the options of Fill.
type Options struct {
	From string // the modality whose items get vectors
	To   string // the modality of these vectors

	// Encode returns a vector for each item. It owns the items.
	Encode func(ctx context.Context, items []*db.Item) ([]Vector, error)

	// Items is the number of items that Encode gets at once; 0 means 64.
	Items int

	// Progress, if not nil, is called after each commit with the number of items that are done, and of all
	// that lacked a vector at the beginning.
	Progress func(done, of int)
}

// A Vector is dense or sparse, or the reason why an item has none.
type Vector struct {
	Dense  []float32
	Sparse *db.Sparse
	Err    error
}

// Filled says what Fill has done.
type Filled struct {
	Items   int // that got a vector
	Skipped int // that have none because Encode gave none
	Reasons []Reason
}

// A Reason says why an item has no vector.
type Reason struct {
	Key string
	Err error
}

// How much Fill holds in memory.
const (
	chunkItems = 512
	chunkBytes = 64 << 20 // of payloads, fields and vectors
	maxReasons = 20       // that are kept
)

// Begin adds a modality whose encoders stand by, in one commit. If the modality is there it has to be the
// same one, and gets the encoders. Errors: db.ErrInvalid for an encoder of another modality, and for a
// modality with other dimensions.
func Begin(ctx context.Context, c api.Collection, to db.Modality, encoders []db.Encoder) error {
	schema, err := c.Schema(ctx)
	if err != nil {
		return err
	}
	a := db.Alteration{AddModalities: []db.Modality{to}}
	for _, m := range schema.Modalities {
		if m.Name != to.Name {
			continue
		}
		if m.Dim != to.Dim || m.Sparse != to.Sparse {
			return fault.Invalid("modality %q is there already, with %d dimensions: the encoder makes vectors of %d",
				to.Name, m.Dim, to.Dim)
		}
		a.AddModalities = nil
	}
	for _, e := range encoders {
		if e.Modality != to.Name {
			return fault.Invalid("an encoder of modality %q: encoders of %q are expected", e.Modality, to.Name)
		}
		e.Standby = true
		a.Encoders = append(a.Encoders, e)
	}
	return c.Alter(ctx, a)
}

// Fill gives a vector of the modality To to each item that has one of From and none of To, in commits of some
// items. An error of Encode ends it; what is committed stays. An item that Encode gives none is left out,
// until the next Fill. Writes of others go before: an item that changes while it is encoded is encoded again.
func Fill(ctx context.Context, d api.Database, c api.Collection, o Options) (Filled, error) {
	f := filler{Options: o, d: d, c: c, left: map[string]bool{}}
	f.Options.Items = cmp.Or(o.Items, 64)
	where := lacking(o.From, o.To)
	var err error
	if f.of, err = c.Count(ctx, where); err != nil {
		return f.done, err
	}
	for {
		items, err := f.next(ctx, where)
		if err != nil || len(items) == 0 {
			return f.done, err
		}
		for some := range slices.Chunk(items, f.Options.Items) {
			if err := f.fill(ctx, some); err != nil {
				return f.done, err
			}
		}
	}
}

// lacking returns the expression of the items that have a modality and lack another one.
func lacking(from, to string) string {
	has := func(name string) string { return `has("` + strings.ReplaceAll(name, `"`, `""`) + `")` }
	return has(from) + " AND NOT " + has(to)
}

// A filler is a run of Fill.
type filler struct {
	Options
	d    api.Database
	c    api.Collection
	left map[string]bool // keys of items without a vector
	of   int
	done Filled
}

// next returns the next items. They are read in part, as an iteration holds the state in which it began. Each
// part begins with the items that were left out, so it has at least as many others.
func (f *filler) next(ctx context.Context, where string) (items []*db.Item, err error) {
	bytes := 0
	for it, err := range f.c.Items(ctx, where) {
		if err != nil {
			return nil, err
		}
		if f.left[it.Key] {
			continue
		}
		items = append(items, it)
		bytes += len(it.Payload)
		for _, value := range it.Fields {
			if text, ok := value.(string); ok {
				bytes += len(text)
			}
		}
		for _, x := range it.Vectors {
			bytes += 4 * len(x)
		}
		if len(items) == max(chunkItems, len(f.left)) || bytes > chunkBytes {
			break
		}
	}
	return items, nil
}

// fill encodes and stores some items. Those that somebody changes meanwhile stay as they are for now.
func (f *filler) fill(ctx context.Context, items []*db.Item) error {
	vectors, err := f.Encode(ctx, items)
	if err != nil {
		return err
	}
	if len(vectors) != len(items) {
		return fault.Invalid("%d vectors of %d items", len(vectors), len(items))
	}
	made := make([]*db.Item, 0, len(items)) // with the vector alone
	olds := make([]*db.Item, 0, len(items))
	for i, it := range items {
		if vectors[i].Err != nil {
			f.leave(it.Key, vectors[i].Err)
			continue
		}
		with := &db.Item{Key: it.Key}
		if x := vectors[i].Sparse; x != nil {
			with.Sparse = map[string]db.Sparse{f.To: *x}
		} else {
			with.Vectors = map[string][]float32{f.To: vectors[i].Dense}
		}
		made, olds = append(made, with), append(olds, it)
	}
	err = f.store(ctx, made, olds)
	for i := 0; errors.Is(err, db.ErrConflict) && i < len(made); i++ {
		if one := f.store(ctx, made[i:i+1], olds[i:i+1]); !errors.Is(one, db.ErrConflict) && one != nil {
			return one
		}
	}
	if errors.Is(err, db.ErrConflict) {
		err = nil
	}
	if f.Progress != nil && err == nil {
		f.Progress(f.done.Items+f.done.Skipped, max(f.of, f.done.Items+f.done.Skipped))
	}
	return err
}

// store merges vectors into items that still are as they were read, in one commit.
func (f *filler) store(ctx context.Context, made, olds []*db.Item) error {
	if len(made) == 0 {
		return nil
	}
	b := f.d.NewBatch()
	for i, it := range made {
		if err := b.Expect(f.c, it.Key, olds[i]); err != nil {
			return err
		}
		if err := b.Merge(f.c, it); err != nil {
			return fmt.Errorf("item %q: %w", it.Key, err)
		}
	}
	err := b.Commit(ctx)
	if err == nil {
		f.done.Items += len(made)
	}
	return err
}

func (f *filler) leave(key string, why error) {
	f.left[key] = true
	f.done.Skipped++
	if len(f.done.Reasons) < maxReasons {
		f.done.Reasons = append(f.done.Reasons, Reason{key, why})
	}
}

// An IncompleteError says that a modality cannot take the place of another one yet.
type IncompleteError struct {
	From, To string
	Items    int             // that have a vector of From and none of To
	Input    db.EncoderInput // or what From has an encoder of, and To has none
}

func (e *IncompleteError) Error() string {
	if e.Items > 0 {
		who := "1 item has"
		if e.Items > 1 {
			who = fmt.Sprintf("%d items have", e.Items)
		}
		return fmt.Sprintf("%s a vector of %s and none of %s", who, e.From, e.To)
	}
	return fmt.Sprintf("%s has an encoder of input %s, and %s has none", e.From, e.Input, e.To)
}

// Switch makes the encoders of modality to those of queries that name no modality, and lets those of from
// stand by, in one commit. To switch back, exchange the two. It is an *IncompleteError if items or encoders
// are missing, unless incomplete allows that. Errors: db.ErrInvalid if from is unknown, or to has no encoder.
func Switch(ctx context.Context, c api.Collection, from, to string, incomplete bool) error {
	schema, err := c.Schema(ctx)
	if err != nil {
		return err
	}
	var reads []db.EncoderInput // what the encoders of to read
	var changed []db.Encoder
	for _, e := range schema.Encoders {
		if e.Modality == to {
			reads = append(reads, e.Input)
			e.Standby = false
			changed = append(changed, e)
		}
	}
	if len(reads) == 0 || from == to {
		return fault.Invalid("modality %q has no encoder that could take the place of that of %q", to, from)
	}
	if !slices.ContainsFunc(schema.Modalities, func(m db.Modality) bool { return m.Name == from }) {
		return fault.Invalid("unknown modality %q", from)
	}
	for _, e := range schema.Encoders {
		if e.Modality != from {
			continue
		}
		if !incomplete && !slices.Contains(reads, e.Input) {
			return &IncompleteError{From: from, To: to, Input: e.Input}
		}
		e.Standby = true
		changed = append(changed, e)
	}
	if !incomplete {
		n, err := c.Count(ctx, lacking(from, to))
		if err != nil {
			return err
		}
		if n > 0 {
			return &IncompleteError{From: from, To: to, Items: n}
		}
	}
	return c.Alter(ctx, db.Alteration{Encoders: changed})
}
