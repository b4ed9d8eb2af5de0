package event

import (
	"context"
	"log/slog"
	"time"
)

// A Listener hears of what goes on in a database: see Event. It is called by one
// goroutine at a time, in the order in which things have happened, a moment later, and
// never by one that the database needs for anything else: it may take its time and may use
// the database, but must not close it, as Close waits until it has heard of everything.
// While it takes long up to 1,024 events wait for it and for Options.Logger, and at most
// 512 where they are no warnings or errors; those beyond are dropped, and counted in
// Activity.EventsDropped.
//
// The context is that of the call that the event comes from, for what it carries; it may
// have ended. The event is the listener's own. A listener that panics, or ends its goroutine
// as t.FailNow does, is left out of what follows, and Options.Logger hears of it.
type Listener func(ctx context.Context, e *Event)

// An Event is a step of something that a database does, or something that has happened to
// it. Those that a program may want to act upon are in docs/OPERATIONS.md, with the fields
// that each has; what an event does not have is zero. Options.Logger gets the same
// events: the name is the message, and the fields are attributes of the names that are
// given here.
type Event struct {
	Name  Name       // which never changes; "fddhdb.OP.PHASE" where it is about an Op
	Time  time.Time  // when it has happened
	Level slog.Level // at which Options.Logger gets it

	Op        Op     // what the database does; "" where something has happened to it
	Phase     Phase  // of the Op
	Operation uint64 // number of that Op since the database was opened, from its begin to its end; "operation"

	Dir        string // of the database, "dir"
	Collection string // "collection"; "" of the database as a whole
	Space      uint32 // "space"
	Revision   uint32 // "revision"

	Stage       string        // of an Op that goes on; "stage"
	Done, Total int64         // how much of what is done in that stage; "done", "total"
	Items       int64         // that it was about; "items"
	Bytes       int64         // "bytes"
	Duration    time.Duration // of an Op that has ended; "duration"
	Err         error         // "error"

	Attrs []slog.Attr // what else there is to say; not to be written to
}

// A Name says what has happened.
type Name string

// A Phase is a step of an Op.
type Phase string

// Phases. Begin is followed by Done or by Failed, which is also what becomes of an Op that
// is cancelled; progress is told of once a second at most, and when the stage changes.
const (
	PhaseBegin    Phase = "begin"
	PhaseProgress Phase = "progress"
	PhaseDone     Phase = "done"
	PhaseFailed   Phase = "failed"
)

// An Op is something that a database does, under one name in events, spans, Stats and
// metrics.
type Op string

// What takes long: there are events, a span and figures in Activity of each.
const (
	OpLoad       Op = "load"       // codes of a space come into memory, after Open
	OpIndex      Op = "index"      // tables of substrings in memory are built
	OpTrain      Op = "train"      // Collection.Train
	OpUpdate     Op = "update"     // Collection.Update, or that of Options.UpdateItems
	OpReindex    Op = "reindex"    // Collection.Reindex, or what Open goes on with
	OpBulkLoad   Op = "bulkload"   // many new items, of a Batch or an Import
	OpCompact    Op = "compact"    // DB.Compact
	OpBackup     Op = "backup"     // DB.Backup
	OpRestore    Op = "restore"    // Restore
	OpCheckpoint Op = "checkpoint" // DB.Checkpoint
	OpVerify     Op = "verify"     // DB.Verify
)

// What the store does by itself: there are events when it has ended, and figures in Activity.
const (
	OpFlush      Op = "flush"      // what is in memory only is written into tables
	OpCompaction Op = "compaction" // tables are merged
)

// Calls that are short: there is a span of each, and figures in Activity.
const (
	OpSearch       Op = "search"        // Collection.Search
	OpSearchRadius Op = "search_radius" // Collection.SearchRadius: finding the codes
	OpCountRadius  Op = "count_radius"  // Collection.CountRadius
	OpSearchAll    Op = "search_all"    // Collection.SearchAll
	OpNeighbors    Op = "neighbors"     // Collection.Neighbors, until nobody reads on; without its time
	OpWrite        Op = "write"         // Batch.Commit, Put, PutIf, Merge, Delete and DeleteWhere
)

// What happens to a database.
const (
	Opened            Name = "fddhdb.database.opened"
	Closed            Name = "fddhdb.database.closed"
	Failed            Name = "fddhdb.database.failed"  // see ErrFailed
	DiskFull          Name = "fddhdb.disk.full"        // writes are refused
	DiskFreed         Name = "fddhdb.disk.freed"       // and go on
	CommitsMissing    Name = "fddhdb.commits.missing"  // see Recovery
	CommitsUnknown    Name = "fddhdb.commits.unknown"  // see Recovery.Problem
	CommitsUnkept     Name = "fddhdb.commits.unkept"   // the side file cannot be written
	Corruption        Name = "fddhdb.corruption.found" // in a table of the store
	Stalled           Name = "fddhdb.writes.stalled"   // the store makes writers wait
	Resumed           Name = "fddhdb.writes.resumed"   // and lets them go on
	CollectionCreated Name = "fddhdb.collection.created"
	CollectionAltered Name = "fddhdb.collection.altered"
	CollectionDropped Name = "fddhdb.collection.dropped"
	SpaceActivated    Name = "fddhdb.space.activated" // by Activate or Rollback
	SpaceDropped      Name = "fddhdb.space.dropped"
	StatisticsUnkept  Name = "fddhdb.statistics.unkept" // Close could not store them: they are made again
	ImportLeft        Name = "fddhdb.import.left"       // what was staged could not be removed yet
	StoreMessage      Name = "fddhdb.store.message"     // for whoever looks into the storage engine
	StoreError        Name = "fddhdb.store.error"       // which it has met, and goes on
	ListenerPanicked  Name = "fddhdb.listener.panicked" // it hears of nothing any more
)

// NameOf returns the name of the events of an Op.
func NameOf(op Op, p Phase) Name { return "fddhdb." + Name(op) + "." + Name(p) }

// Attributes returns what is logged of an event.
func (e *Event) Attributes() []slog.Attr {
	all := make([]slog.Attr, 0, 12+len(e.Attrs))
	text := func(key, value string) {
		if value != "" {
			all = append(all, slog.String(key, value))
		}
	}
	number := func(key string, value int64) {
		if value != 0 {
			all = append(all, slog.Int64(key, value))
		}
	}
	text("dir", e.Dir)
	text("collection", e.Collection)
	number("operation", int64(e.Operation))
	number("space", int64(e.Space))
	number("revision", int64(e.Revision))
	text("stage", e.Stage)
	if e.Phase == PhaseProgress {
		all = append(all, slog.Int64("done", e.Done), slog.Int64("total", e.Total))
	}
	number("items", e.Items)
	number("bytes", e.Bytes)
	all = append(all, e.Attrs...)
	if e.Duration != 0 {
		all = append(all, slog.Duration("duration", e.Duration))
	}
	if e.Err != nil {
		all = append(all, slog.Any("error", e.Err))
	}
	return all
}
