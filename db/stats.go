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
	Format   int    `json:"format"`
	UUID     string `json:"uuid,omitempty"` // see DB.UUID
	Sequence uint64 `json:"sequence"`       // commits so far
	Items    int    `json:"items"`
	// of the folder with all its contents, as du counts: allocated blocks
	DiskBytes   int64             `json:"disk_bytes"`
	MemoryBytes int64             `json:"memory_bytes"` // tables of codes, row sets, caches of the store
	Kernel      string            `json:"kernel"`       // Hamming kernels in use
	Activity    report.Activity   `json:"activity"`     // of this process, since it opened the database
	Collections []CollectionStats `json:"collections"`  // by name

	// DistinctCodes is the sum over the collections.
	DistinctCodes int `json:"distinct_codes"`

	// ObsoleteBytes is the part of DiskBytes that awaits deletion or rewriting, such as tables that a
	// compaction has replaced, and logs whose items are in tables. The space becomes free in the background,
	// or when the reads that use it end.
	ObsoleteBytes int64 `json:"obsolete_bytes"`
}

// CollectionStats are figures about one collection.
type CollectionStats struct {
	Name string `json:"name"`
	// without vectors and anything learned from them; see Schema
	IndexOnly     bool            `json:"index_only,omitempty"`
	Items         int             `json:"items"`
	Labels        int             `json:"labels"` // labels in use
	Modalities    []ModalityStats `json:"modalities,omitempty"`
	Fields        []Field         `json:"fields,omitempty"`
	Trained       bool            `json:"trained"` // true for a codes-only collection
	Space         Space           `json:"space,omitempty"`
	Revision      uint32          `json:"revision,omitempty"`
	Bits          int             `json:"bits,omitempty"`
	CodedItems    int             `json:"coded_items"`    // items with a code
	DistinctCodes int             `json:"distinct_codes"` // distinct codes of items
	MemoryBytes   int64           `json:"memory_bytes"`   // codes, index, row sets, projections, vectors
	IndexBytes    int64           `json:"index_bytes"`    // in it: tables of substrings

	// RerankBytes is the memory, also in MemoryBytes, for ordering hits: projections, of all spaces, and
	// vectors. See Options.RerankCacheBytes.
	RerankBytes int64 `json:"rerank_bytes"`

	// QueryDistances are the distances from queries to their nearest hit, for the calls of Search and
	// SearchAll since the database was opened. Queries with a cursor do not count, nor do queries by Key,
	// because such an item finds itself. Nil without other queries.
	QueryDistances *report.Distances `json:"query_distances,omitempty"`

	// Drift tells how far the latest items are from the training items of the space, and so whether to train
	// again (report.Drift.TrainAgain). It is the drift that the latest update measured; nil if no update has.
	// In a space learned without labels nothing is updated, and MeasuredDrift measures it.
	Drift report.Drift `json:"drift,omitempty"`

	// DiskBytes estimates how many bytes on disk the collection takes, with all its spaces; with DiskSize.
	// The tables of the store have keys of all collections. For each kind of record the estimate adds the
	// sizes of tables that hold only the collection, and of blocks in other tables. If that is little, it
	// does not exceed the size of the records. The latest writes, in the log alone, may be missing. The sum
	// over the collections is about the size of all tables; Stats.DiskBytes has everything.
	DiskBytes int64 `json:"disk_bytes,omitempty"`

	Spaces int `json:"spaces"` // see Collection.Spaces
	// LabelFree: the codes were learned without labels (model.Method.LabelFree). Then items do not teach, and
	// MeasuredDrift measures the items since the training.
	LabelFree bool `json:"label_free,omitempty"`

	Taught  int `json:"taught"`  // items that the projections have learned from
	Pending int `json:"pending"` // items that they have not seen yet

	// VectorIndexes are the indexes of vectors by ascending number, unfinished ones included.
	VectorIndexes []report.VectorIndex `json:"vector_indexes,omitempty"`
}

// ModalityStats has the number of items with a modality.
type ModalityStats struct {
	Modality
	Items   int  `json:"items"`
	Learned bool `json:"learned"` // the model of the space knows it
}

// Stats returns figures about the database and all its collections. It neither waits for writers nor delays
// them, so you can call it often: it takes some microseconds, three more for every hundred thousand codes,
// and some for each label that writes have added or removed since the last call. The first call reads a
// record of each label, milliseconds for each thousand of them, and so does one after a load of many items.
// Damage to such a record is an ErrCorrupt. The figures of the store are as of its last flush or compaction;
// the first call after one may wait for them.
//
// For DiskBytes it asks the file system about each file of the folder, some two microseconds a file, after a
// write or a second. Files that it may not look at do not count. If the file system does not report blocks,
// as on Windows, a file counts with its size.
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

// activity returns the counters of the database.
func (d *DB) activity() report.Activity {
	a := d.state.Activity()
	a.Since, a.LostCommits, a.LastBackup = d.since, d.lost.Load(), d.copier.LastBackup()
	d.search.Activity(&a)
	return a
}

// A Figure is one that Collection.Stats measures only if it is asked to.
type Figure int

// Figures that take time.
const (
	// DiskSize is CollectionStats.DiskBytes. It reads at most some 256 KiB for each kind of record, 5 MB in
	// all: a fraction of a millisecond for a small collection and some milliseconds for any other.
	DiskSize Figure = iota + 1

	// MeasuredDrift is CollectionStats.Drift, in a space learned without labels too. There it measures a
	// sample of the items since the training, in some tens of milliseconds; an index-only collection has no
	// vectors for that (ErrInvalid). Without a model it is ErrNoModel.
	MeasuredDrift
)

// Stats returns figures about the collection, for as much as DB.Stats, and those that also names.
func (c *Collection) Stats(ctx context.Context, also ...Figure) (*CollectionStats, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := look(c, func(v *state.View, cv *state.CollectionView) (*CollectionStats, error) {
		s, err := collectionStats(v, cv)
		if err == nil && slices.Contains(also, DiskSize) {
			s.DiskBytes, err = c.db.state.Engine.CollectionBytes(ctx, v.Snap, cv.ID)
			err = fault.Annotate(err, "the size of collection %q", cv.Name)
		}
		return &s, err
	})
	if err == nil && slices.Contains(also, MeasuredDrift) {
		err = c.readLoaded(ctx, func(v *state.View, cv *state.CollectionView) (err error) {
			s.Drift, err = learn.Drift(ctx, v, cv)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// collectionStats returns the figures of a collection in a view. All but Labels are kept or counted
// in memory.
func collectionStats(v *state.View, cv *state.CollectionView) (CollectionStats, error) {
	labels, err := cv.LabelsInUse(v.Snap)
	if err != nil {
		return CollectionStats{}, fault.Annotate(err, "labels of collection %q", cv.Name)
	}
	s := CollectionStats{
		Name: cv.Name, IndexOnly: cv.IndexOnly, Items: cv.Items,
		Labels: int(labels.GetCardinality()), Fields: fieldsOf(cv.Fields), Bits: cv.Bits,
		Spaces: len(cv.Spaces), MemoryBytes: int64(cv.Live.GetSizeInBytes()),
	}
	for t, m := range cv.Modalities {
		learned := cv.Space != nil && slices.Contains(cv.Space.Positions, t)
		s.Modalities = append(s.Modalities, ModalityStats{modalityOf(m), int(cv.Presence[t].GetCardinality()),
			learned})
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
		s.MemoryBytes += int64(x.Bytes)
		s.VectorIndexes = append(s.VectorIndexes, *x)
	}
	return s, nil
}
