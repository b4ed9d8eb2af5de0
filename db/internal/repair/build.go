package repair

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
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
	given    *givenCodes // of a codes-only collection; else nil
}

// build opens the new store as a database, without event listeners, indexer and background
// work, and makes the derived records by the plans. It has all codes in memory, as any open
// database. At the end it rewrites the whole store, and sets r.identity.Sequence.
func (r *repairer) build(plans []plan) (err error) {
	disk, dir := *r.disk, r.path(store.RepairingName)
	// This database sends no events. It keeps no reserve, because room has checked the space for the new
	// store.
	disk.Signals = signal.NewSender(slog.New(slog.DiscardHandler), nil, nil)
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

// adoptedRows is the number of items that one commit puts into their row sets.
const adoptedRows = 1 << 14

// adopt puts all items of a collection into their row sets: live rows, modalities, labels and
// fields.
func (r *repairer) adopt(c state.Collection, p *plan) error {
	var rows []uint32
	var terms []record.Terms
	done := 0
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
		rows, terms = rows[:0], terms[:0]
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
			if rows, terms = append(rows, codec.LastNumber(key)), append(terms, t); err == nil &&
				len(rows) == adoptedRows {
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

// A collection is known by its descriptor, which describes its items: without it no item can be decoded. So
// if a descriptor is lost, the repair looks for the copies that its spaces have. Names follow from
// descriptors, and are written again. TestRepairOfDescriptors of db takes descriptors away.

// mend makes the copied records sound: first the records of the database, then each collection.
func (m *mender) mend() error {
	m.at(0, "collections")
	all, err := m.catalogue()
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := m.collection(d); err != nil {
			return err
		}
	}
	return m.flush()
}

// catalogue mends the names and descriptors of collections and the records of the database. It
// returns the descriptors by ascending number, and deletes what belongs to no collection. Of
// two collections of one name the later one is renamed.
func (m *mender) catalogue() ([]*record.Descriptor, error) {
	names := map[uint32]string{}
	next := uint32(1)
	err := record.ForEach(m.store, []byte{codec.KindName}, func(key, value []byte) error {
		if len(value) == 4 && record.CheckName("collection", string(key[1:])) == nil {
			names[binary.BigEndian.Uint32(value)] = string(key[1:])
		}
		return m.delete(key) // the names of the descriptors are written below
	})
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	var all []*record.Descriptor
	// These are all collections that any key names, even remains of dropped ones: descriptor tells which of
	// them are lost.
	for _, id := range slices.Sorted(maps.Keys(m.collections)) {
		d, err := m.descriptor(id, names)
		if err != nil {
			return nil, err
		}
		if d == nil {
			if err := m.dropCollection(id); err != nil {
				return nil, err
			}
			continue
		}
		if id < record.MaxRows-1 {
			next = max(next, id+1)
		}
		if name := d.Name; taken[name] {
			for i := id; taken[d.Name]; i++ {
				// 200 bytes leave room for the number; the cut may go through a letter.
				short := strings.ToValidUTF8(name[:min(len(name), 200)], "")
				d.Name = fmt.Sprintf("%s-%d", short, i)
			}
			m.found(report.Finding{Collection: d.Name, Record: "descriptor",
				Problem: fmt.Sprintf("another collection is named %q, too: this one is renamed", name)})
		}
		taken[d.Name] = true
		all = append(all, d)
	}
	// Descriptors are written when all names are known.
	for _, d := range all {
		b, err := d.Encode()
		if err == nil {
			err = m.set(codec.CollectionKey(codec.KindCollection, d.ID), b)
		}
		if err == nil {
			err = m.set(codec.NameKey(d.Name), binary.BigEndian.AppendUint32(nil, d.ID))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := m.database(next); err != nil {
		return nil, err
	}
	return all, m.flush()
}

// database mends the records of the database: UUID, sequence, and the number of the next
// collection, which is at least next. It sets m.identity, and reports missing commits.
func (m *mender) database(next uint32) error {
	// No number is used again, even for a dropped collection.
	if b, err := record.Get(m.store, codec.DatabaseKey(codec.RecordNextID)); err != nil {
		return err
	} else if len(b) == 4 {
		next = max(next, binary.BigEndian.Uint32(b))
	}
	b, err := record.Get(m.store, codec.DatabaseKey(codec.RecordSequence))
	if err != nil {
		return err
	}
	i := m.whoami()
	side, err := store.ReadCommits(m.disk.FS, m.dir)
	sideKnown := err == nil && side.UUID == i.UUID
	if len(b) != 8 {
		// Each commit takes one sequence number of the storage engine or more, so newest is
		// no less than the commits since the store was made. A store that began as a copy
		// has had earlier commits: the side file counts them, too.
		next := m.newest
		if sideKnown {
			next = max(next, side.Sequence)
		}
		b = binary.BigEndian.AppendUint64(nil, next)
		m.found(about(codec.DatabaseKey(codec.RecordSequence),
			report.Finding{Record: "commit sequence",
				Problem: fmt.Sprintf("lost: it goes on from %d, no less than there have been", next)}))
	}
	i.Sequence = binary.BigEndian.Uint64(b)
	if _, err := m.missing(i, "of %d to %d, the latest, some or all is missing"); err != nil {
		return err
	}
	m.identity = i
	want := map[byte][]byte{
		codec.RecordSequence: b, codec.RecordNextID: binary.BigEndian.AppendUint32(nil, next),
		codec.RecordUUID: i.UUID[:],
	}
	// Delete unknown records, then write each known one again.
	err = record.ForEach(m.store, []byte{codec.KindDatabase}, func(key, _ []byte) error {
		if want[key[1]] == nil {
			return m.delete(key)
		}
		return nil
	})
	for kind, value := range want {
		if err == nil {
			err = m.set(codec.DatabaseKey(kind), value)
		}
	}
	return err
}

// whoami returns the UUID of the database, without its sequence. If the store has lost it, the side file has
// it, too. If that has lost it as well, the database gets a new one.
func (m *mender) whoami() record.Identity {
	if m.uuid != (record.Identity{}).UUID {
		return record.Identity{UUID: m.uuid}
	}
	if side, err := store.ReadCommits(m.disk.FS, m.dir); err == nil {
		return record.Identity{UUID: side.UUID}
	}
	m.found(about(codec.DatabaseKey(codec.RecordUUID), report.Finding{Record: "UUID",
		Problem: "lost: the database has got a new one"}))
	return record.Identity{UUID: record.NewUUID()}
}

// descriptor returns the descriptor of a collection. If that is lost it returns the copy that
// the descriptor of a space has. Without a copy it returns nil: the collection is lost. It
// reports a loss only if there is evidence that the collection was not dropped: its name, its
// counters, or a lost key range. names are the names of collections, by number.
func (m *mender) descriptor(id uint32, names map[uint32]string) (*record.Descriptor, error) {
	key := codec.CollectionKey(codec.KindCollection, id)
	b, err := record.Get(m.store, key)
	if err != nil {
		return nil, err
	}
	d, err := record.DecodeDescriptor(b)
	if err == nil && d.ID != id {
		err = fmt.Errorf("it is of number %d", d.ID)
	}
	if err == nil {
		return d, nil
	}
	why := "missing"
	if b != nil {
		why = fault.Problem(err)
	}
	// The copy that a space has, before the collection is given up.
	if d, err = m.copiedDescriptor(id); err != nil {
		return nil, err
	}
	if d != nil {
		m.found(about(key, report.Finding{Collection: d.Name, Record: "descriptor",
			Problem: why + ": that which stands beside a space takes its place"}))
		return d, refuseIndexOnly(d)
	}
	// Rests of a dropped collection are no loss.
	counters, err := record.Get(m.store, codec.CollectionKey(codec.KindCounters, id))
	if err != nil {
		return nil, err
	}
	name, named := names[id]
	if b == nil && !named && counters == nil && !m.lostAny(key) {
		return nil, nil
	}
	if !named {
		name = fmt.Sprintf("number %d", id)
	}
	m.found(about(key, report.Finding{Collection: name, Record: "descriptor",
		Problem: why + ", and nothing else tells what items of the collection hold: all of it is lost"}))
	return nil, nil
}

// copiedDescriptor returns the copy of the descriptor of a collection with the most modalities
// and fields, from the descriptors of its spaces; nil if there is none. A copy is as old as the
// last write of its space, and modalities and fields are only ever added.
func (m *mender) copiedDescriptor(id uint32) (latest *record.Descriptor, err error) {
	size := func(d *record.Descriptor) int { return len(d.Modalities) + len(d.Fields) }
	err = record.ForEach(m.store, codec.CollectionKey(codec.KindSpace, id), func(_, value []byte) error {
		// Decode that field by itself: the rest of the space's descriptor may make no sense.
		var space struct {
			Collection json.RawMessage `json:"collection"`
		}
		if json.Unmarshal(value, &space) != nil {
			return nil
		}
		d, err := record.DecodeDescriptor(space.Collection)
		if err == nil && d.ID == id && (latest == nil || size(d) >= size(latest)) {
			latest = d
		}
		return nil
	})
	return latest, err
}

// dropCollection deletes all records of a collection.
func (m *mender) dropCollection(id uint32) error {
	for _, kind := range record.Kinds(record.OfCollection) {
		if err := m.deleteAll(codec.CollectionKey(kind, id)); err != nil {
			return err
		}
	}
	return nil
}
