package repair

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// The derived records come from the code that writes them in any database. The new store is
// opened as a database that was closed while spaces were being built. Transactions put the
// items into their row sets, and builders make the codes of all items.

// A plan lists the derived records that build has to make for one collection. conclude makes the plan, which
// never changes after that.
type plan struct {
	of       *record.Descriptor // of the collection
	presence []*roaring.Bitmap  // by modality: the rows that have it
	spaces   []uint32           // the learned spaces, which have no codes yet
	// the spaces to activate when all are complete, one after the other: the last stays
	activate []uint32
	given    *givenCodes           // of a codes-only collection; else nil
	indexes  []*record.VectorIndex // the indexes of vectors that there were, to be made again
}

// build opens the new store as a database, without event listeners, indexer and background
// work, and makes the derived records by the plans. It has all codes in memory, as any open
// database. At the end it rewrites the whole store, and sets r.identity.Sequence.
func (r *repairer) build(plans []plan) (err error) {
	disk, dir := *r.disk, r.path(store.RepairingName)
	// This database sends no events. It keeps no reserve, because room has checked the space for the new
	// store.
	disk.Signals = signal.NewSender(slog.New(slog.DiscardHandler), nil)
	disk.ReserveBytes = -1
	disk.Room = store.NewReserve(&disk, dir)
	disk.Cache = pebble.NewCache(disk.CacheBytes)
	defer disk.Cache.Unref()
	d := state.New(store.NewEngine(&disk, dir), disk.Signals, -1, -1, nil)
	kv, err := store.OpenDatabase(dir, &disk, d.Engine.Log, false)
	if err != nil {
		return err
	}
	defer func() {
		err = cmp.Or(err, kv.Close(), d.Engine.Log.Err())
	}()
	// without syncs: closing makes everything durable
	if err := d.Open(kv, r.identity.Sequence, true, false); err != nil {
		return err
	}
	d.Stopping = r.ctx
	first := d.Run(nil)
	defer d.End()
	// There are no codes to load yet. Load tells the calls that wait for codes (Loaded) that they
	// are there.
	d.Load(r.ctx, first)
	first.Release()
	learning := learn.New(d, 0, 0)
	for _, p := range plans {
		if err := r.buildOne(learning.Of(state.Collection{DB: d, ID: p.of.ID, Name: p.of.Name}),
			&p); err != nil {
			return err
		}
	}
	// Rewrite everything, so that no deleted or replaced version stays, which the next repair might bring
	// back.
	r.at(0, "compacting")
	if err := d.Engine.FlushAll(r.ctx); err != nil {
		return err
	}
	if err := d.Engine.Rewrite(r.ctx, []byte{0}, []byte{0xff}); err != nil {
		return err
	}
	r.identity.Sequence = d.Current.Load().Sequence
	return nil
}

// buildOne makes the derived records of one collection, and activates its spaces.
func (r *repairer) buildOne(c learn.Collection, p *plan) error {
	if err := c.Loaded(r.ctx); err != nil {
		return err
	}
	if err := r.adopt(c.Collection, p); err != nil {
		return err
	}
	if p.given != nil {
		r.done.CodesKept += len(p.given.rows)
		return r.storeGiven(c.Collection, p.given)
	}
	for _, x := range p.indexes {
		r.at(0, "collection %s: index of vectors", c.Name)
		if _, err := c.IndexVectors(r.ctx, x.Modality, learn.IndexOptions{Recall: x.Recall,
			Seed: x.Seed}); err != nil {
			return err
		}
	}
	for _, id := range p.spaces {
		stage := fmt.Sprintf("collection %s: codes of space %d", c.Name, id)
		items, err := c.Rebuild(r.ctx, id, func(_ string, done, _ int64) { r.at(int(done), "%s", stage) })
		if err != nil {
			return err
		}
		r.done.CodesMade += items
	}
	// All spaces are complete now, so any may become active.
	for _, id := range p.activate {
		err := c.Do(r.ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
			if sp := s.SpaceByID(id); sp != s.Active() {
				tx.Activate(s, sp)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// One commit puts this many items into their row sets, or fewer with longer changes.
const (
	adoptedRows  = 1 << 14
	adoptedBytes = 64 << 20
)

// adopt puts all items of a collection into their row sets: live rows, modalities, labels and
// fields.
func (r *repairer) adopt(c state.Collection, p *plan) error {
	var rows []uint32
	var terms []record.Terms
	done, bytes := 0, 0
	flush := func() error {
		r.at(done, "collection %s: sets of rows", c.Name)
		err := c.Do(r.ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
			for i, row := range rows {
				tx.Adopt(s, row, p.presence, terms[i])
			}
			tx.Committer.Touch(s)
			return nil
		})
		done += len(rows)
		rows, terms, bytes = rows[:0], terms[:0], 0
		return err
	}
	err := record.ForEach(c.DB.Engine.DB, codec.CollectionKey(codec.KindItem, c.ID),
		func(key, value []byte) error {
			// readItems has decoded it before: this error cannot be mended.
			rec, err := codec.DecodeItemRecord(value)
			if err != nil {
				return err
			}
			t, err := p.of.Terms(rec.Labels, rec.Fields)
			rows, terms, bytes = append(rows, codec.LastNumber(key)), append(terms, t), bytes+t.Bytes()
			if err == nil && (len(rows) == adoptedRows || bytes > adoptedBytes) {
				err = flush()
			}
			return err
		})
	if err == nil && len(rows) > 0 {
		err = flush()
	}
	return err
}

// givenRows is the number of given codes that one commit stores.
const givenRows = 1 << 16

// storeGiven stores the codes of a codes-only collection, as tables.
func (r *repairer) storeGiven(c state.Collection, g *givenCodes) error {
	for from := 0; from < len(g.rows); from += givenRows {
		r.at(from, "collection %s: codes", c.Name)
		rows := g.rows[from:min(from+givenRows, len(g.rows))]
		var encs []spaces.Encoding
		for i := range rows {
			encs = append(encs, spaces.Encoding{Code: g.codes.At(from + i), From: codec.ProvenanceGiven})
		}
		err := c.Load(r.ctx, func(tx *state.Tx, s *state.CollectionState) error {
			// The one space of the collection, which mendGiven has written without codes.
			sp := s.Active()
			if err := sp.RoomFor(uint64(len(rows))); err != nil {
				return err
			}
			return bulk.StoreCodes(r.ctx, tx.Committer, work.All(), s, sp, sp.Numbers, rows, encs)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
