package db

import (
	"context"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// Stats are figures about a database.
type Stats struct {
	Format      int               `json:"format"`
	UUID        string            `json:"uuid,omitempty"` // see DB.UUID
	Sequence    uint64            `json:"sequence"`       // commits so far
	Items       int               `json:"items"`
	DiskBytes   int64             `json:"disk_bytes"`   // of the folder and all that is in it, as du counts: allocated blocks
	MemoryBytes int64             `json:"memory_bytes"` // tables of codes, row sets, caches of the store
	Kernel      string            `json:"kernel"`       // Hamming kernels in use
	Activity    Activity          `json:"activity"`     // of this process, since it opened the database
	Collections []CollectionStats `json:"collections"`  // by name

	// DistinctCodes is the sum over the collections.
	DistinctCodes int `json:"distinct_codes"`

	// ObsoleteBytes are those of DiskBytes that await deletion or are written again, such as
	// tables that a compaction has replaced, and logs whose items are in tables: they go in
	// the background, or when the reads that use them end.
	ObsoleteBytes int64 `json:"obsolete_bytes"`
}

// CollectionStats are figures about one collection.
type CollectionStats struct {
	Name          string          `json:"name"`
	IndexOnly     bool            `json:"index_only,omitempty"` // without vectors, and without what is learned from them; see Schema
	Items         int             `json:"items"`
	Labels        int             `json:"labels"` // that items have
	Modalities    []ModalityStats `json:"modalities,omitempty"`
	Fields        []Field         `json:"fields,omitempty"`
	Trained       bool            `json:"trained"` // true for a codes-only collection
	Space         Space           `json:"space,omitempty"`
	Revision      uint32          `json:"revision,omitempty"`
	Bits          int             `json:"bits,omitempty"`
	CodedItems    int             `json:"coded_items"`    // that have a code
	DistinctCodes int             `json:"distinct_codes"` // that some item has; the sum over the views
	MemoryBytes   int64           `json:"memory_bytes"`   // codes, index, row sets, projections, vectors
	IndexBytes    int64           `json:"index_bytes"`    // in it: tables of substrings

	// RerankBytes is the memory, also in MemoryBytes, of what puts hits in order: projections,
	// of all spaces, and vectors. See Options.RerankCacheBytes.
	RerankBytes int64 `json:"rerank_bytes"`

	// QueryDistances are the distances from queries to their nearest hit, for the calls of
	// Search and SearchAll since the database was opened. Queries with a cursor do not
	// count, nor do queries by Key, as such an item finds itself. Nil if there were no others.
	QueryDistances *report.Distances `json:"query_distances,omitempty"`

	// Drift is that of the latest update that has measured it; nil if none has. See Collection.Drift.
	Drift Drift `json:"drift,omitempty"`

	Spaces int `json:"spaces"` // see Collection.Spaces
	// LabelFree: the codes were learned without labels (model.Method.LabelFree): nothing is
	// taught or pending, and Collection.Drift measures items that have come since.
	LabelFree bool `json:"label_free,omitempty"`

	Taught  int `json:"taught"`  // items that the projections have learned from
	Pending int `json:"pending"` // items that they have not seen yet

	// VectorIndexes are the indexes of vectors, without what was measured. See
	// Collection.VectorIndexes.
	VectorIndexes []VectorIndex `json:"vector_indexes,omitempty"`
}

// ModalityStats says how many items have a modality.
type ModalityStats struct {
	Modality
	Items   int  `json:"items"`
	Learned bool `json:"learned"` // the model of the space knows it
}

// Stats returns figures about the database and all its collections. It waits for no writer
// and keeps none waiting, so that it can be called as often as anybody likes: it takes some
// microseconds, three more for every hundred thousand codes, and some for each label that writes since
// the last call have given to items or taken from them. The
// first call reads a record of each label, milliseconds for each thousand of them, and so does one
// after a load of many items, or after labels were merged. Damage to such a record is an ErrCorrupt. What the
// store says of itself is as of its last flush or compaction; the first call after one may wait until
// the store has noted that.
//
// For DiskBytes it asks the file system about each file of the folder, some two microseconds
// a file: where something has been written since the last call, or a second has passed. Files
// that it is not allowed to look at do not count, and where the file system does not tell of
// blocks, as on Windows, a file counts with its size.
func (d *DB) Stats() (*Stats, error) {
	v, done, err := d.state.Acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	disk := d.disk.Now(d.opts.FS, d.dir, v.Sequence, d.state.Engine.Log.Work.Changes.Load())
	store, a := d.state.Engine.Log.Work.Look(d.state.Engine.DB), d.activity()
	s := &Stats{
		Format: record.Format, UUID: d.UUID(), Sequence: v.Sequence, Kernel: codec.KernelName(),
		DiskBytes: disk, MemoryBytes: a.Cache.Bytes + store.Memory, ObsoleteBytes: store.Obsolete,
		Collections: make([]CollectionStats, 0, v.Collections.Len()), Activity: a,
	}
	for cv := range v.Collections.Values() {
		cs, err := collectionStats(v, cv)
		if err != nil {
			return nil, err
		}
		s.Items += cs.Items
		s.DistinctCodes += cs.DistinctCodes
		s.MemoryBytes += cs.MemoryBytes
		s.Collections = append(s.Collections, cs)
	}
	slices.SortFunc(s.Collections, func(a, b CollectionStats) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// activity returns what has been counted.
func (d *DB) activity() Activity {
	a := d.state.Activity()
	a.Since, a.LostCommits, a.LastBackup = d.since, d.lost.Load(), d.copier.LastBackup()
	d.search.Activity(&a)
	return a
}

// Stats returns figures about the collection, for as much as DB.Stats.
func (c *Collection) Stats() (*CollectionStats, error) {
	return look(c, func(v *state.View, cv *state.CollectionView) (*CollectionStats, error) {
		s, err := collectionStats(v, cv)
		return &s, err
	})
}

// DiskBytes estimates how many bytes on disk are the collection's, all its spaces included.
// The store keeps keys of all collections in the same tables. Of each kind of record it takes
// the sizes of the tables that hold nothing else, and of the blocks in other tables; where
// that is little, not more than the records have. So much of it as stands in the log alone,
// the latest writes, may be missing. The sum over the collections is about what the tables of
// the store have, see Stats.DiskBytes for all.
//
// It reads at most some 256 KiB for each kind of record, 5 MB in all: a fraction of a millisecond
// for a small collection and some milliseconds for any other.
func (c *Collection) DiskBytes(ctx context.Context) (int64, error) {
	return look(c, func(v *state.View, cv *state.CollectionView) (int64, error) {
		n, err := c.db.state.Engine.CollectionBytes(ctx, v.Snap, cv.ID)
		return n, fault.Annotate(err, "the size of collection %q", cv.Name)
	})
}

// collectionStats returns the figures of a collection in a view. All but Labels are kept or counted
// in memory.
func collectionStats(v *state.View, cv *state.CollectionView) (CollectionStats, error) {
	labels, err := cv.LabelsInUse(v.Snap)
	if err != nil {
		return CollectionStats{}, fault.Annotate(err, "labels of collection %q", cv.Name)
	}
	s := CollectionStats{
		Name: cv.Name, IndexOnly: cv.IndexOnly, Items: cv.Items, Labels: int(labels.GetCardinality()), Fields: fieldsOf(cv.Fields), Bits: cv.Bits,
		Spaces: len(cv.Spaces), MemoryBytes: int64(cv.Live.GetSizeInBytes()),
	}
	for t, m := range cv.Modalities {
		learned := cv.Space != nil && slices.Contains(cv.Space.Positions, t)
		s.Modalities = append(s.Modalities, ModalityStats{modalityOf(m), int(cv.Presence[t].GetCardinality()), learned})
		s.MemoryBytes += int64(cv.Presence[t].GetSizeInBytes())
	}
	if cv.Space != nil {
		s.Trained, s.Space, s.Revision, s.Bits = true, Space(cv.Space.ID), cv.Space.Revision, cv.Space.Bits
		s.LabelFree = cv.Space.Learned != nil && cv.Space.Learned.LabelFree()
		s.CodedItems, s.DistinctCodes = cv.Codes.Coded, cv.Codes.Codes
		if cv.Codes.Table != nil {
			m := cv.Codes.Table.Memory()
			s.MemoryBytes += int64(m.Codes + m.Tables + m.Rows)
			s.IndexBytes = int64(m.Tables)
		}
		s.Taught, s.Pending = int(cv.Numbers.Taught), int(cv.Pending.GetCardinality())
		s.QueryDistances = cv.Distances.Report()
		s.Drift = learn.LatestDrift(cv.Revisions)
	}
	for _, sp := range cv.Spaces {
		s.RerankBytes += int64(sp.Directions.Bytes())
	}
	for _, v := range cv.Vectors {
		s.RerankBytes += int64(v.Bytes())
	}
	s.MemoryBytes += s.RerankBytes
	for i := range cv.Indexes {
		x := cv.Indexes[i].Report(cv)
		x.Measured, x.Seconds = nil, nil
		s.MemoryBytes += int64(x.Bytes)
		s.VectorIndexes = append(s.VectorIndexes, *x)
	}
	return s, nil
}
