package state

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A Database is an open database: its store, the committer, the view for new readers, and the indexer. Safe
// for concurrent use, from Run to End.
//
// Package db makes it with New, opens the store, and calls Open and Run. To close, package db stops its
// background work, closes Guard, which waits for all calls, and calls End.
type Database struct {
	Engine     *store.Engine  // Engine.DB is set by Open
	Signals    *signal.Sender // hears of operations and events
	tableBytes int64          // memory for substring tables (Options.IndexCacheBytes); negative: none

	rerankBytes int64 // memory for rows for reranking (Options.RerankCacheBytes); negative: none

	Committer *Committer // made by Open; it runs from Run to End

	// Current is the view for new readers. Only Committer.ended replaces it (setCurrent), at the end of a
	// commit. During an operation nothing is in flight, so Current is the view of the last commit and stays.
	// Elsewhere take a reference with Latest, or with Acquire.
	Current atomic.Pointer[View]

	Guard guard // counts calls, see Acquire
	pins  pins  // views that snapshots and runs hold, see Pin; End releases them

	calls writeFigures // of all writes, for Activity

	// Stopping ends when Close begins: a long call that has entered Guard then gives up. Package db sets it
	// before Open returns.
	Stopping context.Context

	// changed, unless nil, hears which collections differ between a new view and the one before. setCurrent
	// calls it; it must not wait.
	changed func([]*CollectionView)

	indexWanted chan struct{} // asks the indexer to look; holds one
	postWanted  chan struct{} // asks for postings; holds one

	// indexing is held while an index is built, or rows for reranking are loaded, until the committer has
	// installed the result: each build starts from the result of the one before. The committer never takes
	// it.
	indexing sync.Mutex
}

// New returns a database whose store is not yet open. tableBytes bounds the memory of substring tables, and
// rerankBytes that of rows for reranking. changed, unless nil, hears which collections differ between a new
// view and the one before; it must not wait.
func New(engine *store.Engine, signals *signal.Sender, tableBytes, rerankBytes int64,
	changed func([]*CollectionView)) *Database {
	return &Database{Engine: engine, Signals: signals, tableBytes: tableBytes, rerankBytes: rerankBytes,
		changed: changed, indexWanted: make(chan struct{}, 1), postWanted: make(chan struct{}, 1)}
}

// Open reads the state of the store kv, whose last commit has the number sequence, and loads small code sets.
// It starts nothing: until Run only the caller may use the database. It costs the reading of all models, live
// rows and labels. On an error the caller keeps kv.
func (d *Database) Open(kv *pebble.DB, sequence uint64, noSync, readOnly bool) (err error) {
	c := &Committer{
		kv: kv, Log: d.Engine.Log, Admit: d.Engine.Admit, keepUp: d.Engine.KeepUp,
		fullDisk: d.Engine.FullDisk,
		noSync:   noSync, readOnly: readOnly, sequence: sequence,
		queue: make(chan *Request, 64), pending: make(chan *pendingCommit, maxPending),
		finished:    make(chan struct{}),
		rerankBytes: d.rerankBytes, current: d.setCurrent, edits: map[string]int{}, layers: newLayerCounts(),
	}
	c.Tables = func() *store.Tables { return d.Engine.Tables(c.sequence) }
	if c.States, err = loadStates(kv); err != nil {
		return err
	}
	for _, s := range c.States {
		s.loadFewEntries(kv)
		cv := s.publish()
		c.Touch(s)
		if err := d.loadFew(kv, s, cv); err != nil {
			return err
		}
	}
	d.Engine.Log.Work.Figures.Store(store.FiguresOf(kv.Metrics()))
	if !readOnly {
		d.Engine.Reserve.Counts(func() int64 { return int64(kv.Metrics().WAL.Size) })
	}
	d.Engine.DB, d.Committer = kv, c
	return nil
}

// loadFew loads the code sets of a collection with at most LoadAtOnce numbers. Damaged codes are no error
// here: Loading tells the callers that need these codes.
func (d *Database) loadFew(r pebble.Reader, s *CollectionState, cv *CollectionView) (err error) {
	for i, sp := range s.Spaces {
		set := sp.Codes
		if set.opening.NextCode > LoadAtOnce {
			continue
		}
		set.Table, err = loadTable(context.Background(), r, cv, &cv.Spaces[i].Codes, d.tableBytes < 0)
		switch {
		case err == nil:
			set.loading = nil
		case errors.Is(err, fault.ErrCorrupt): // concerns whoever needs these codes
			op := d.Signals.BeginInBackground(context.Background(), event.OpLoad, cv.Name)
			op.End(err, cv.Spaces[i].Codes.event())
			notLoaded(set.loading, err)
		default:
			return err
		}
	}
	return nil
}

// Run starts the committer, which tells keeper, if not nil, which commits are durable. It publishes the first
// view and returns it, to be released.
func (d *Database) Run(keeper *store.Keeper) (first *View) {
	d.Committer.keeper = keeper
	v, changed := d.Committer.view()
	d.Committer.ended(v, changed, false)
	first = d.Latest()
	go d.Committer.run()
	return first
}

// End ends the committer and releases all views, also pinned ones. All calls and background work that make
// requests must have ended. The store stays open.
func (d *Database) End() {
	d.pins.releaseAll()
	close(d.Committer.queue)
	<-d.Committer.finished
	d.Current.Load().Release()
}

// setCurrent gives new readers v, takes over its reference, and drops the reference of the view before.
// changed are the collections that have changed in v. It runs in the committer or in finishAll, never in both
// at once: the committer finishes a commit itself only when nothing is in flight.
func (d *Database) setCurrent(v *View, changed []*CollectionView) {
	old := d.Current.Swap(v)
	if old != nil {
		old.Release()
	}
	// When tables grow or go, the budget may require builds elsewhere.
	if old == nil || old.Tables != v.Tables || v.Rerank.all < old.Rerank.all || d.indexDue(v, changed) {
		d.wantIndex()
	}
	if d.postDue(changed) {
		select {
		case d.postWanted <- struct{}{}:
		default: // it has been asked already
		}
	}
	if d.changed != nil {
		d.changed(changed)
	}
}

// Read gives f the current view, and keeps the view and the database open while f runs. It returns ErrClosed
// or the error of f.
func (d *Database) Read(f func(v *View) error) error {
	v, done, err := d.Acquire()
	if err != nil {
		return err
	}
	defer done()
	return f(v)
}

// Acquire returns the current view and keeps the database open. Call done once, when you are done with the
// view: Close waits for it. The error is ErrClosed.
func (d *Database) Acquire() (v *View, done func(), err error) {
	if err := d.Guard.Enter(); err != nil {
		return nil, nil, err
	}
	v = d.Latest()
	return v, func() { v.Release(); d.Guard.Leave() }, nil
}

// Latest returns the current view with a reference, to be released. The caller has entered
// Guard, or runs in the background between Run and End. It never waits.
func (d *Database) Latest() *View {
	for { // repeats only if the committer replaced the view between the two calls
		if v := d.Current.Load(); v.Acquire() {
			return v
		}
	}
}

// A guard counts running calls, so that Close can wait for them. Calls that begin after Close get an error
// instead of waiting, so a call within another call cannot deadlock with Close.
type guard struct {
	mu     sync.Mutex    // guards the fields below; held for moments
	calls  int           // calls that have entered and not left
	closed bool          // calls get ErrClosed
	idle   chan struct{} // made by Close, closed when the last call leaves
}

// Enter counts a call, which must Leave. If it returns ErrClosed, the call is not counted and must not go on.
// Enter never waits.
func (g *guard) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fault.ErrClosed
	}
	g.calls++
	return nil
}

// Leave ends a call that has entered.
func (g *guard) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 && g.closed {
		close(g.idle)
	}
}

// Calls returns the number of running calls, for tests that wait for some.
func (g *guard) Calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// Close refuses new calls and waits for the running ones. A second Close returns ErrClosed at once. A call
// must not close the guard that it has entered.
func (g *guard) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return fault.ErrClosed
	}
	g.closed, g.idle = true, make(chan struct{})
	if g.calls == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	<-g.idle
	return nil
}

// Compact rewrites the store, and the indexes in memory that contain removed codes, to free the space of
// deleted and replaced data. Progress has the stages "sweep", "rewrite", in bytes of tables, and "index".
func (d *Database) Compact(ctx context.Context, progress event.Progress) error {
	progress("sweep", 0, 0)
	if err := d.sweep(ctx); err != nil {
		return err
	}
	defer d.Engine.Log.Work.Changes.Add(1)
	if err := d.Engine.CompactAll(ctx,
		func(done, total int64) { progress("rewrite", done, total) }); err != nil {
		if failed := d.Engine.Log.Err(); failed != nil {
			return failed
		}
		return fault.Annotate(fault.ReadError(d.Engine.FullDisk(err), "store in %s", d.Engine.Dir), "compact")
	}
	progress("index", 0, 0)
	return d.rebuildAll(ctx)
}

// sweep deletes the keys whose merged edits amount to nothing.
func (d *Database) sweep(ctx context.Context) error {
	from := []byte{0}
	for from != nil {
		err := d.Committer.Free(ctx, func(tx *Tx) (err error) {
			from, err = tx.Sweep(from)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rebuildAll rebuilds the indexes that contain removed codes.
func (d *Database) rebuildAll(ctx context.Context) error {
	done := map[*CodeSet]bool{}
	return d.indexEach(ctx, func(_ *View, set *CodeSetView) *mih.Build {
		if done[set.Set] || set.Table == nil || set.Table.Wasted() == 0 {
			return nil
		}
		done[set.Set] = true
		return set.Table.Rebuild()
	})
}

// IndexAll returns when the codes of all collections are in memory, all due builds have run, and the rows
// for reranking are loaded as far as the memory goes.
func (d *Database) IndexAll(ctx context.Context) error {
	if err := d.indexEach(ctx, d.Due); err != nil {
		return err
	}
	for d.loadRerank(ctx) {
	}
	return ctx.Err()
}

// indexEach waits for the codes of all collections. Then it runs the builds that choose returns, on all
// cores, until choose returns none. See Index.
func (d *Database) indexEach(ctx context.Context, choose func(*View, *CodeSetView) *mih.Build) error {
	if err := d.Loaded(ctx); err != nil {
		return err
	}
	for {
		built, err := d.Index(ctx, work.All(), choose)
		if !built || err != nil {
			return err
		}
	}
}

// SpaceInfo describes a space of the collection. It reads the report of its training.
func (cv *CollectionView) SpaceInfo(r pebble.Reader, sv *SpaceView) (*report.SpaceInfo, error) {
	sp := sv.Space
	info := &report.SpaceInfo{
		Space: report.Space(sp.ID), State: report.SpaceStandby, Previous: sp.ID == cv.Previous,
		Parent: report.Space(sp.Parent), Created: sp.Created, Bits: sp.Bits, Revision: sp.Revision,
		Items: sv.Codes.Coded, Taught: int(sv.Numbers.Taught),
		Pending: int(sv.Pending.GetCardinality()), Recode: int(sv.Recode.GetCardinality()),
		ModelBytes: sp.Model.Bytes, StatisticsBytes: sp.Statistics.Bytes,
		Revisions: []report.RevisionInfo{},
	}
	switch {
	case sv.Numbers.Building:
		info.State = report.SpaceBuilding
		if below := uint32(sv.Numbers.Built); below > 0 {
			info.Built = int(cv.Live.Rank(below - 1))
		}
	case sp.ID == cv.Active:
		info.State = report.SpaceActive
	}
	info.Codes = sv.Codes.Codes
	if sp.Learned == nil {
		return info, nil
	}
	if !sp.Learned.LabelFree() {
		info.Aim = sp.Learned.Aim().String()
	}
	if sp.HasStatistics() && sp.Learned.Aim() != model.AimCodes {
		prior := sp.Learned.Prior()
		info.Prior = &prior
	}
	trained, err := spaces.ReadReport(r, cv.ID, sp.ID)
	if err != nil {
		return nil, err
	}
	if trained != nil {
		if err := json.Unmarshal(trained, &info.Training); err != nil {
			return nil, fault.Corrupt(err, "report of space %d", sp.ID)
		}
		if info.Training != nil {
			info.Training.Aim = sp.Learned.Aim() // reports of earlier versions have none
		}
	}
	if info.Checksum, err = record.Checksum(r, codec.NumberKey(codec.KindModel, cv.ID, sp.ID), 0,
		sp.Model); err != nil {
		return nil, fault.ReadError(err, "model of space %d", sp.ID)
	}
	info.Revisions, err = revisionInfos(sv, r, cv.ID, info)
	return info, err
}

// revisionInfos describes the stored revisions of a space.
func revisionInfos(sv *SpaceView, r pebble.Reader, collection uint32,
	of *report.SpaceInfo) ([]report.RevisionInfo, error) {
	infos := []report.RevisionInfo{}
	for _, d := range sv.Revisions {
		info := d.RevisionInfo
		if info.Bytes, info.Checksum = of.ModelBytes, of.Checksum; d.Model.Chunks > 0 {
			var err error
			info.Bytes = d.Model.Bytes
			if info.Checksum, err = record.Checksum(r, codec.RevisionPrefix(collection, uint32(of.Space),
				d.Revision), 1, d.Model); err != nil {
				return nil, fault.ReadError(err, "revision %d of space %d", d.Revision, of.Space)
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// A histogram counts, for each distance from 0 to the number of bits, the queries of a space whose nearest
// hit has it. Each search makes one atomic addition. The revisions and code sets of the space share the
// histogram. It is empty when the database is opened.
type histogram []atomic.Int64

// Report summarizes the present counts; nil if there were no queries.
func (h histogram) Report() *report.Distances {
	var few [257]int64
	counts := few[:0]
	for d := range h {
		counts = append(counts, h[d].Load())
	}
	return DistancesOf(counts)
}

// DistancesOf summarizes counts[d] queries at each distance d; nil if there were none.
func DistancesOf(counts []int64) *report.Distances {
	n, sum := int64(0), int64(0)
	for d, count := range counts {
		n, sum = n+count, sum+count*int64(d)
	}
	if n == 0 {
		return nil
	}
	within := func(queries int64) int {
		d := 0
		for queries -= counts[0]; queries > 0; queries -= counts[d] {
			d++
		}
		return d
	}
	return &report.Distances{
		Queries: int(n), Mean: float64(sum) / float64(n),
		P50: within((n + 1) / 2), P90: within((9*n + 9) / 10),
	}
}

// writeFigures count finished calls of writers. Safe for concurrent use.
type writeFigures struct {
	writes    signal.Latencies // calls that stored something
	errors    atomic.Uint64
	conflicts atomic.Uint64 // part of errors
}

// Wrote counts a finished write.
func (d *Database) Wrote(call signal.Call, err error) {
	c := &d.calls
	if err != nil {
		c.errors.Add(1)
		if errors.Is(err, fault.ErrConflict) {
			c.conflicts.Add(1)
		}
	} else {
		c.writes.Observe(call.Took())
	}
}

// Activity returns what the database has done and is doing, without the figures of the packages above.
func (d *Database) Activity() report.Activity {
	c, done, e := &d.calls, &d.Committer.Figures, d.Engine
	a := report.Activity{
		Writes: c.writes.Stats(), WriteErrors: c.errors.Load(), Conflicts: c.conflicts.Load(),
		ItemsPut: done.Put.Load(), ItemsDeleted: done.Deleted.Load(),
		Waiting: int(done.Waiting.Load()), Commits: done.Commits.Stats(),
		CommitRequests: done.Requests.Load(),
		CommitBytes:    done.Bytes.Load(), Syncs: done.Syncs.Stats(),
		Cache: e.CacheStats(), Store: e.Stats(),
		Snapshots: d.Pinned(),
		Failed:    e.Log.Failed.Load() != nil, DiskFull: e.Reserve.Full.Load(),
		FreeBytes: e.Reserve.Found.Load(), ReserveBytes: e.Reserve.Left.Load(),
		EventsDropped: d.Signals.Lost(),
	}
	a.Running, a.Operations = d.Signals.Operations.Stats()
	_, ofStore := e.Log.Work.Ended.Stats()
	a.Operations = append(a.Operations, ofStore...)
	slices.SortFunc(a.Operations,
		func(a, b event.OperationStats) int { return strings.Compare(string(a.Op), string(b.Op)) })
	return a
}
