package state

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// This file keeps the stored records of a code set equal to its table in memory: the code of each row, the
// rows of each code, and the postings of substrings. Each change is made in both at once, so the table is
// always the store after the commit. bulk.spaceCodes writes the same records for many rows;
// db/in_memory_test.go and Verify compare all of them.

// A posting is one number in a posting of a code set, to be taken out. It takes only 16 bytes: a code is in
// one posting for each substring, and a transaction may have millions.
type posting struct {
	set       uint32 // index in Tx.sets
	value     uint32 // of the substring
	n         uint32 // number of the code
	substring uint16 // number of the substring in the cut of record.Split
}

// compare orders postings by their keys, if they are of one set, then by number.
func (a posting) compare(b posting) int {
	return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.substring, b.substring),
		cmp.Compare(a.value, b.value), cmp.Compare(a.n, b.n))
}

// unpost takes the number of a code out of its postings. A code whose postings have not been written has
// none.
func (tx *Tx) unpost(set *CodeSet, n uint32, c codec.Code) {
	if uint64(n) >= set.Posted {
		return
	}
	at := slices.Index(tx.sets, set)
	if at < 0 {
		at = len(tx.sets)
		tx.sets = append(tx.sets, set)
	}
	split := record.Split(set.Bits)
	for j := range split.Len() {
		tx.postings = append(tx.postings, posting{uint32(at), split.Of(c, j), n, uint16(j)})
	}
}

// finishPostings adds the posting edits to the batch in key order, so each lands near the one before in the
// storage engine's tree.
func (tx *Tx) finishPostings() error {
	slices.SortFunc(tx.postings, posting.compare)
	var key []byte
	var numbers []uint32
	for rest := tx.postings; len(rest) > 0; {
		first := rest[0]
		for numbers = numbers[:0]; len(rest) > 0 && rest[0].set == first.set &&
			rest[0].substring == first.substring && rest[0].value == first.value; rest = rest[1:] {
			numbers = append(numbers, rest[0].n)
		}
		key = tx.sets[first.set].AppendPosting(key[:0], first.substring, first.value)
		if err := tx.records.Posting(key, nil, numbers, false); err != nil {
			return err
		}
	}
	return nil
}

// A commit that adds codes writes no postings for them: a code is in one posting for each substring, which
// would be half of the records of a Put. One goroutine, beside the indexer, writes the postings of thousands
// of codes at a time, in the order of their keys. Searches by postings read the codes that have none yet.

// maxPosted bounds the edits of postings in one commit: they take milliseconds, in which writers wait.
const maxPosted = 1 << 14

// PostDue is how many edits of postings are due before they are written.
var PostDue = maxPosted // tests set less

// unposted returns the numbers of the codes whose postings are to be written next, first to end-1; none if
// these would be fewer than due edits.
func (v *CodeSetView) unposted(due int) (first, end uint32) {
	m, codes := record.Split(v.Bits).Len(), int(v.NextCode-v.Posted)
	if v.Table == nil || codes*m < due {
		return 0, 0
	}
	return uint32(v.Posted), uint32(v.Posted) + uint32(min(codes, maxPosted/max(m, 1)))
}

// postDue reports whether postings of some collection are due.
func (d *Database) postDue(of []*CollectionView) bool {
	for _, cv := range of {
		for i := range cv.Spaces {
			if first, end := cv.Spaces[i].Codes.unposted(PostDue); first < end {
				return !d.Committer.readOnly
			}
		}
	}
	return false
}

// runPosting writes postings when they are due, until the context ends.
func (d *Database) runPosting(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.postWanted:
			_ = d.Post(ctx, PostDue) // what fails is an event, and due again at the next change
		}
	}
}

// Post writes the postings of all code sets that miss at least due edits, in one commit after the other. A
// set that fails does not keep the others waiting; the error is also an event. On a full disk it does
// nothing, as searches do not depend on it.
func (d *Database) Post(ctx context.Context, due int) (failed error) {
	bad := map[*CodeSet]bool{}
	for posted := true; posted && !d.Committer.readOnly; {
		if d.Committer.Admit(maxPosted*postingEditBytes, false) != nil {
			return failed
		}
		posted = false
		v := d.Latest()
		for set, cv := range v.CodeSets() {
			first, end := set.unposted(due)
			if first == end || bad[set.Set] {
				continue
			}
			if err := d.postOne(ctx, cv, set, first, end); err != nil {
				bad[set.Set], failed = true, errors.Join(failed, err)
			} else {
				posted = true
			}
		}
		v.Release()
	}
	return failed
}

// postOne is postCodes as an operation.
func (d *Database) postOne(ctx context.Context, cv *CollectionView, set *CodeSetView, first,
	end uint32) error {
	op := d.Signals.BeginInBackground(ctx, event.OpIndex, cv.Name)
	err := work.Safely(func() error { return d.postCodes(ctx, cv, set, first, end) })
	done := set.event()
	done.Level = slog.LevelDebug // as it is frequent
	op.End(err, done)
	return err
}

// postCodes writes the postings of the codes from first to end-1 of a set. It makes them from a view, and so
// keeps the committer only for the commit.
func (d *Database) postCodes(ctx context.Context, cv *CollectionView, set *CodeSetView, first,
	end uint32) error {
	c := d.Committer
	batch := c.kv.NewBatch()
	defer batch.Close()
	records := record.NewWriter(batchSink{batch})
	err := set.Postings(set.Table, first, end, 0, record.Split(set.Bits).Len(),
		func(key []byte, numbers []uint32) error {
			return records.Posting(key, numbers, nil, false)
		})
	if err != nil {
		return err
	}
	return c.Do(ctx, batch.Len(), func(tx *Tx) error {
		s, of := c.States[cv.ID], set.Set
		if s == nil || !s.holds(of) || of.Posted != uint64(first) { // it was dropped, or a bulk load came
			tx.Empty = true
			return nil
		}
		if err := tx.Batch.Apply(batch, nil); err != nil {
			return err
		}
		of.Posted = uint64(end)
		for n := first; n < end; n++ { // codes that have gone since the view
			if set.Table.Cardinality(n) > 0 && of.Table.Table().Cardinality(n) == 0 {
				tx.unpost(of, n, set.Table.Code(n))
			}
		}
		c.Touch(s)
		return nil
	})
}

// SetCodes sets the code and the stored projection of a row in a space; the zero Encoding removes them. It
// changes tables, the batch and the numbers of the space; the caller calls Touch. It cannot fail if the codes
// of the collection are loaded and RoomFor has admitted a new code.
func (tx *Tx) SetCodes(s *CollectionState, sp *SpaceState, row uint32, enc spaces.Encoding) error {
	if err := tx.setCode(s, sp, row, enc); err != nil {
		return err
	}
	if width := sp.ProjectionBytes(); width > 0 {
		projections := tx.rowBlock(s, sp, sp.Codes.CodeKeys, codec.KindProjection, row, width)
		if enc.Projection != nil {
			projections.Set(byte(row), enc.Projection)
		} else {
			projections.Clear(byte(row))
		}
		var direction []byte // nil: the row has none
		if enc.Projection != nil {
			direction = codec.Direction(enc.Projection)
		}
		sp.Directions.put(row, direction)
	}
	return nil
}

// setCode sets the code of a row to given, or removes it if given has none. An unchanged code is marked with
// the present provenance and revision.
func (tx *Tx) setCode(s *CollectionState, sp *SpaceState, row uint32, given spaces.Encoding) error {
	set := sp.Codes
	old, had := set.Table.Table().CodeOf(row)
	same := had && given.Code != nil && slices.Equal(set.Table.Table().Code(old), given.Code)
	if had && !same {
		tx.unlinkCode(set, old, row)
	}
	rowCodes := func() *codec.BlockEdit {
		return tx.rowBlock(s, sp, set.CodeKeys, codec.KindRowCodes, row, codec.RowCodeBytes)
	}
	if given.Code != nil {
		if !same {
			n, isNew, err := set.Table.Number(given.Code)
			if err != nil {
				return err
			}
			tx.linkCode(set, n, row, isNew)
			old = n
		}
		rowCodes().Set(byte(row), codec.RowCode{Code: old, Provenance: given.From,
			Revision: set.in.Revision}.Append(nil))
	} else if had {
		rowCodes().Clear(byte(row))
	}
	return nil
}

// linkCode records that a row has code number n. isNew says that no row has had n before. A single row is
// stored beside the code; with a second row both move to layers of rows.
func (tx *Tx) linkCode(set *CodeSet, n, row uint32, isNew bool) {
	t := set.Table.Table()
	rows := t.Rows(n)
	switch {
	case isNew:
		tx.setCodeEntry(set, n, row)
	case rows.Len() == 1:
		tx.setCodeEntry(set, n, codec.ManyRows)
		for first := range rows.All() {
			tx.setCodeRow(set, n, first, true)
		}
		fallthrough
	default:
		tx.setCodeRow(set, n, row, true)
	}
	set.Table.Add(n, row)
}

// unlinkCode records that a row no longer has code number n. A code without rows loses its postings and, for
// good, its number. If one row is left, it moves back beside the code.
func (tx *Tx) unlinkCode(set *CodeSet, n, row uint32) {
	t := set.Table.Table()
	c := t.Code(n)
	set.Table.Remove(n, row)
	rows := t.Rows(n)
	if rows.Len() == 0 {
		tx.unpost(set, n, c)
		tx.codeBlock(set, n).Clear(byte(n))
		return
	}
	tx.setCodeRow(set, n, row, false)
	if rows.Len() == 1 {
		for last := range rows.All() {
			tx.setCodeRow(set, n, last, false)
			tx.setCodeEntry(set, n, last)
		}
	}
}

// rowBlock returns the edit of the block of a kind in the space that holds a row. Entries have width bytes.
func (tx *Tx) rowBlock(s *CollectionState, sp *SpaceState, k record.CodeKeys, kind byte, row uint32,
	width int) *codec.BlockEdit {
	first := uint64(row) / codec.BlockRows * codec.BlockRows
	return tx.Block(k.Block(kind, row), width, sp.fresh || first >= s.FreshRow)
}

// codeBlock returns the edit of the block for code number n.
func (tx *Tx) codeBlock(set *CodeSet, n uint32) *codec.BlockEdit {
	first := uint64(n) / codec.BlockRows * codec.BlockRows
	return tx.Block(set.Block(codec.KindCodes, n), codec.CodeEntryBytes(set.Bits), first >= set.FreshCode)
}

// setCodeEntry writes the entry of code number n with the row beside it.
func (tx *Tx) setCodeEntry(set *CodeSet, n, row uint32) {
	tx.codeBlock(set, n).Set(byte(n), codec.AppendCodeEntry(nil, set.Table.Table().Code(n), set.Bits, row))
}

// setCodeRow adds a row to the stored rows of a code that several rows have, or takes it out.
func (tx *Tx) setCodeRow(set *CodeSet, n, row uint32, in bool) {
	l := tx.layer(set.RowsKey(n, uint16(row>>16)))
	if in {
		l.Add(uint16(row))
	} else {
		l.Delete(uint16(row))
	}
}

// Each database has one goroutine that indexes new codes. It works on a view, so no caller waits for it, and
// hands its builds to the committer, which shows them with the next view.

// wantIndex wakes the indexer, or makes it look again after its present work.
func (d *Database) wantIndex() {
	select {
	case d.indexWanted <- struct{}{}:
	default: // it has been asked already
	}
}

// RunIndexer indexes due code sets on half of the processors, loads rows for reranking, and maintains indexes
// of vectors, until the context ends. A failed build is reported as an event, and is due again when the
// collection changes next. Beside that it writes postings (runPosting), which must not wait for a long build.
func (d *Database) RunIndexer(ctx context.Context) {
	var posting sync.WaitGroup
	defer posting.Wait()
	posting.Go(func() { d.runPosting(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.indexWanted:
		}
		d.Committer.settle(ctx)
		for began, v := time.Now(), d.Current.Load().Sequence; d.indexOne(ctx); began, v = time.Now(),
			d.Current.Load().Sequence {
			if d.Current.Load().Sequence != v {
				rest(ctx, min(restPerBuild*time.Since(began), maxIndexRest))
			}
		}
		for d.loadRerank(ctx) {
		}
		d.KeepIndexes(ctx, math.MaxInt)
	}
}

// While writers keep coming, the indexer rests restPerBuild times as long as a build took, at most
// maxIndexRest. Otherwise it would, while a database is being filled, build one short tail after the other on
// the processors that the writers need. Meanwhile searches scan the new codes.
const (
	restPerBuild = 16
	maxIndexRest = 250 * time.Millisecond
)

// An import stores one part after the other as tables, and an index built between two parts is mostly rebuilt
// after the last. So the indexer waits until no part has come for restPerTables times as long as the last one
// took, at most maxTablesRest.
const (
	restPerTables = 4
	maxTablesRest = 5 * time.Second
)

// settle returns when no more tables are expected or the context ends.
func (c *Committer) settle(ctx context.Context) {
	for ctx.Err() == nil {
		left := time.Until(time.Unix(0, c.tablesUntil.Load()))
		if left <= 0 {
			return
		}
		rest(ctx, left)
	}
}

// rest returns after d or when the context ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// indexOne runs one due build and reports whether there was one: then there may be another.
func (d *Database) indexOne(ctx context.Context) bool {
	built, err := d.Index(ctx, work.Background(), d.Due)
	return built && err == nil
}

// Index runs one build on so many goroutines and installs it, so that the next view shows it. It runs the
// first build that choose returns for a code set of the present view, active spaces first. choose returns nil
// if a set needs no build; built is false if no set does. Builds wait for each other, as each starts from the
// result of the one before. Readers and writers do not wait.
func (d *Database) Index(ctx context.Context, workers int,
	choose func(*View, *CodeSetView) *mih.Build) (built bool, err error) {
	d.indexing.Lock()
	defer d.indexing.Unlock()
	v := d.Current.Load()
	for !v.Acquire() {
		v = d.Current.Load()
	}
	defer v.Release()
	for set, cv := range v.CodeSets() {
		b := choose(v, set)
		if b == nil {
			continue
		}
		b.Bare, b.Workers = b.Bare || !d.affords(v, set, b), workers
		b.Cells = set.Set.wantsCells.Load()
		op := d.Signals.BeginInBackground(ctx, event.OpIndex, cv.Name)
		done := set.event()
		done.Level = slog.LevelDebug // as it is frequent
		defer func() { op.End(err, done) }()
		if err := work.Safely(func() error { return b.Run(ctx) }); err != nil {
			return false, fault.Annotate(err, "index collection %q", cv.Name)
		}
		return true, d.Committer.Show(ctx, func() error {
			// The space may have been dropped meanwhile. Otherwise no other build was installed of this
			// set since v, as indexing is held.
			if s := d.Committer.States[cv.ID]; s != nil && s.holds(set.Set) {
				set.Set.Table.Install(b)
				d.Committer.Touch(s)
			}
			return nil
		})
	}
	return false, nil
}

// Options.IndexCacheBytes bounds the memory of substring tables. Active spaces come first. Other spaces share
// the rest: they lose their tables when active ones grow, and get them back when they become active. A set
// without tables is searched by scans and by its postings in the store. Codes and rows are always in memory.

// Due returns the next build for a code set of a view, nil if there is none: a segment of its tail, cells or
// tables for segments that lack them, or segments without tables when other sets need the memory.
func (d *Database) Due(v *View, set *CodeSetView) *mih.Build {
	if set.Table == nil {
		return nil
	}
	b := set.Table.Build()
	tables, bare, tail := set.Table.Covered()
	switch {
	case set.standing == spaceBuilding:
		// No search uses the set yet, so its tables are made when it is complete. But it grows by blocks,
		// and a long tail is slow to grow.
		if tail < maxBuildingTail {
			return nil
		}
		b.Bare = true
	case b != nil:
	case set.Set.wantsCells.Load() && set.Table.LacksCells():
		b = set.Table.Rebuild()
	case set.standing == spaceActive && bare > 0:
		if all := set.Table.Rebuild(); d.affords(v, set, all) {
			return all
		}
	case set.standing == spaceStandby && tables > 0 && !d.afford(v, set, set.Table.TableBytes()):
		b = set.Table.Rebuild()
		b.Bare = true
	}
	return b
}

// maxBuildingTail bounds the codes in the tail, outside segments, of a space that is being built.
const maxBuildingTail = 1 << 18

// affords reports whether the tables of a build fit the budget, beside the tables that the set keeps and
// those of the sets with precedence.
func (d *Database) affords(v *View, set *CodeSetView, b *mih.Build) bool {
	return d.afford(v, set, b.TableBytes()+b.KeptBytes())
}

// afford reports whether the tables of a code set may take so many bytes. Active spaces take precedence: for
// them only the tables of active spaces count.
func (d *Database) afford(v *View, set *CodeSetView, bytes int) bool {
	before := v.Tables.all
	if set.standing == spaceActive {
		before = v.Tables.active
	}
	if set.Table != nil {
		before -= set.Table.TableBytes() // it is one of these
	}
	return int64(before+bytes) <= d.tableBytes
}

// indexDue reports whether some collection of a view needs a build, or needs rows for reranking loaded.
func (d *Database) indexDue(v *View, of []*CollectionView) bool {
	for _, cv := range of {
		if d.rerankDue(v, cv) || d.keepDue(cv) {
			return true
		}
		for i := range cv.Spaces {
			if d.Due(v, &cv.Spaces[i].Codes) != nil {
				return true
			}
		}
	}
	return false
}

// IndexSpace indexes all codes that a space has now, with tables as far as the budget goes, on up to workers
// goroutines, one build after the other. It visits each code set once, so it ends however many codes arrive
// meanwhile. A space that has been dropped, or is not loaded, needs no build.
func (d *Database) IndexSpace(ctx context.Context, collection, space uint32, workers int) error {
	done := map[*CodeSet]bool{}
	for {
		built, err := d.Index(ctx, workers, func(v *View, set *CodeSetView) *mih.Build {
			if set.Collection != collection || set.Space != space || set.Table == nil || done[set.Set] {
				return nil
			}
			done[set.Set] = true
			if _, bare, _ := set.Table.Covered(); bare > 0 {
				if all := set.Table.Rebuild(); d.affords(v, set, all) {
					return all
				}
			}
			return set.Table.Build()
		})
		if !built || err != nil {
			return err
		}
	}
}

// TableBytes says how many bytes of memory tables of substrings, or rows for reranking (QuantView), take: of
// one collection, or of all (Catalogue.Tables and Rerank), where With and without keep the sum.
type TableBytes struct {
	active int // of active spaces
	all    int // of all spaces
}

// All returns the sum over all spaces.
func (t TableBytes) All() int { return t.all }

// Add adds the tables of a code set.
func (t *TableBytes) Add(set *CodeSetView) {
	if set.Table != nil {
		t.add(set.Table.TableBytes(), set.standing == spaceActive)
	}
}

func (t *TableBytes) add(bytes int, active bool) {
	t.all += bytes
	if active {
		t.active += bytes
	}
}

func (t TableBytes) plus(other TableBytes) TableBytes {
	return TableBytes{t.active + other.active, t.all + other.all}
}

func (t TableBytes) minus(other TableBytes) TableBytes {
	return TableBytes{t.active - other.active, t.all - other.all}
}
