package state

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Labels numbers the labels of a collection by first appearance, from 0 on. Numbers are never reused, so
// views share one Labels: no record of an older view has the id of a later label, and CollectionView.Names
// has the labels of the view. To rename a label the committer makes another Labels (Renamed), and older views
// keep theirs. All methods are safe for concurrent use; only the committer adds labels.
type Labels struct {
	mu    sync.RWMutex      // guards the fields below
	ids   map[string]uint32 // by name
	names []string          // by id; only appended to, so that All may share it
}

// NewLabels returns a numbering without labels.
func NewLabels() *Labels { return &Labels{ids: map[string]uint32{}} }

// Lookup returns the ids of the known names, ascending and each once, in a new slice.
func (l *Labels) Lookup(names []string) []uint32 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var ids []uint32
	for _, name := range names {
		if id, ok := l.ids[name]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ID returns the id of a label, and whether it exists.
func (l *Labels) ID(name string) (uint32, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	id, ok := l.ids[name]
	return id, ok
}

// Name returns the name of a label, and whether the label exists.
func (l *Labels) Name(id uint32) (string, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if int(id) >= len(l.names) {
		return "", false
	}
	return l.names[id], true
}

// All returns the present names by id. The slice is shared: do not write to it.
func (l *Labels) All() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.names[:len(l.names):len(l.names)]
}

// Add returns the id of the name, a new id if it has none, and whether it is new. Only the committer calls
// it, and stores the new label in the same commit.
func (l *Labels) Add(name string) (id uint32, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok := l.ids[name]
	if !ok {
		id = uint32(len(l.names))
		l.ids[name] = id
		l.names = append(l.names, name)
	}
	return id, !ok
}

// Renamed returns a copy in which the label id has another name. If another label has that name, it becomes a
// record.NoLabel. It costs a copy of all names.
func (l *Labels) Renamed(id uint32, name string) *Labels {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := &Labels{ids: maps.Clone(l.ids), names: slices.Clone(l.names)}
	delete(out.ids, out.names[id])
	if other, taken := out.ids[name]; taken {
		out.names[other] = record.NoLabel(other)
		out.ids[out.names[other]] = other
	}
	out.names[id], out.ids[name] = name, id
	return out
}

// Count returns the number of labels.
func (l *Labels) Count() int { return len(l.All()) }

// labelsInUse caches the ids of the labels that items of a view have. Stats and completions often ask for
// them, and a view never changes. A later view starts from the cache of an earlier one.
type labelsInUse struct {
	ids atomic.Pointer[roaring.Bitmap] // do not write to it; nil: not read yet
	mu  sync.Mutex                     // held while they are read

	// Ids of an earlier view, and the labels whose sets of rows have changed since. nil: unknown.
	base, changed *roaring.Bitmap
}

// next returns the labelsInUse of the view after the view of l. l may be nil. changed has the labels whose
// sets of rows have changed since; nil: any may have.
func (l *labelsInUse) next(changed *roaring.Bitmap) *labelsInUse {
	const most = 1000 // changed labels: beyond that reading all of them takes not much longer
	switch {
	case l == nil || changed == nil:
		return new(labelsInUse)
	case changed.IsEmpty():
		return l
	}
	base := l.ids.Load()
	if base == nil && l.base != nil {
		base, changed = l.base, roaring.Or(l.changed, changed)
	}
	if base == nil || changed.GetCardinality() > most {
		return new(labelsInUse)
	}
	return &labelsInUse{base: base, changed: changed}
}

// LabelsInUse returns the ids of the labels that items have, in a bitmap that must not be written to. The
// first call reads one record a label; if an earlier view has been asked, only the records of labels changed
// since. r reads the snapshot of the view.
func (cv *CollectionView) LabelsInUse(r pebble.Reader) (*roaring.Bitmap, error) {
	l := cv.inUse
	if ids := l.ids.Load(); ids != nil {
		return ids, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ids := l.ids.Load(); ids != nil {
		return ids, nil
	}
	ids := roaring.New()
	if l.base == nil {
		all, err := record.LabelsInUse(r, cv.ID)
		if err != nil {
			return nil, err
		}
		ids.AddMany(all)
	} else {
		ids = l.base.Clone()
		for it := l.changed.Iterator(); it.HasNext(); {
			id := it.Next()
			used, err := record.LabelInUse(r, cv.ID, id)
			if err != nil {
				return nil, err
			}
			if ids.Add(id); !used {
				ids.Remove(id)
			}
		}
	}
	l.ids.Store(ids)
	return ids, nil
}

// ForgetLabelsInUse says that any label may be in use in the next view, as after a commit of tables.
func (s *CollectionState) ForgetLabelsInUse() { s.relabelled = nil }

// A row that has taught the projections of a space has a lesson there: the codes that it taught. When the row
// changes or goes, the lesson becomes a retraction in the queue of retractions of the space, with the
// features that taught. The online step then subtracts it from the statistics. Both records are in the commit
// of the write, so the statistics never lose a row or count one twice: at any commit they are the stored
// statistics, plus the lessons of later revisions, minus the queued retractions of lessons that they include.
// db/update_test.go and a deep Verify compare them with statistics computed from scratch.

// Learn records that a row has taught the lesson l in a space where it has none yet. fresh says that its
// block has never been written. The caller calls Touch.
func (tx *Tx) Learn(sp *SpaceState, row uint32, l codec.Lesson, fresh bool) {
	tx.Block(codec.LessonsKey(sp.collection, sp.ID, row), -1, fresh).Set(byte(row), l.Append(nil))
	sp.Numbers.Taught++
}

// QueueRetraction appends a retraction to the queue of a space. Unlearn does that for a row with a stored
// lesson; call it if the space never stored the lesson. The caller calls Touch.
func (tx *Tx) QueueRetraction(sp *SpaceState, d *codec.Retraction) error {
	key := codec.RetractionKey(sp.collection, sp.ID, sp.Numbers.NextRetraction)
	sp.Numbers.NextRetraction++
	return tx.Batch.Set(key, d.Append(nil), nil)
}

// teaches reports whether the change may affect learning, as it has vectors or labels.
func (ch *Change) teaches() bool {
	return ch.Kind != MergeItem || ch.Item.Vectors != nil || ch.Item.Labels != nil
}

// recodes reports whether a row waits for another code in some space (SpaceState.Recode). The next write of
// the row makes that code, and the row has to teach again.
func (s *CollectionState) recodes(row uint32) bool {
	return slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return sp.Recode.B.Contains(row) })
}

// FetchTaught reads the lesson of a row in each space, with its stored features, for Unlearn, unless the
// transaction knows it. It is part of resolving a request: it only reads. It returns about how many bytes the
// retractions may take.
func (tx *Tx) FetchTaught(s *CollectionState, row uint32) (bytes int, err error) {
	for _, sp := range s.Spaces {
		at := spaceRow{s.ID, sp.ID, row}
		d, known := tx.retractions[at]
		if !known && sp.HasStatistics() {
			l, found, err := record.ReadLesson(tx.Committer.kv, s.ID, sp.ID, sp.Bits, row)
			if err != nil {
				return 0, err
			}
			if found {
				if d, err = record.Retraction(tx.Committer.kv, s.Descriptor, sp.Positions, row,
					l); err != nil {
					return 0, err
				}
			}
			tx.retractions[at] = d
		}
		if d != nil {
			bytes += len(d.Codes) + 5*len(d.Labels)
			for _, f := range d.Features {
				bytes += len(f.Record)
			}
		}
	}
	return bytes, nil
}

// Unlearn removes the lesson of a row in a space and queues a retraction. FetchTaught has read the lesson;
// without one Unlearn does nothing. The caller calls Touch.
func (tx *Tx) Unlearn(sp *SpaceState, row uint32) error {
	at := spaceRow{sp.collection, sp.ID, row}
	d := tx.retractions[at]
	if d == nil {
		return nil
	}
	tx.retractions[at] = nil
	tx.Block(codec.LessonsKey(sp.collection, sp.ID, row), -1, false).Clear(byte(row))
	sp.Numbers.Taught--
	return tx.QueueRetraction(sp, d)
}

// SetOnline adds a row to a set of the online step of a space (codec.SetPending or codec.SetRecode), in
// memory and in the store, or takes it out. If nothing changes, it costs nothing. The caller calls Touch.
func (tx *Tx) SetOnline(sp *SpaceState, set byte, row uint32, in bool) {
	into := sp.onlineRows(set)
	if into.B.Contains(row) == in {
		return
	}
	l := tx.layer(codec.OnlineRowsKey(sp.collection, sp.ID, set, uint16(row>>16)))
	if in {
		into.Edit().Add(row)
		l.Add(uint16(row))
	} else {
		into.Edit().Remove(row)
		l.Delete(uint16(row))
	}
}
