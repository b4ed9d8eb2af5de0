package event

import (
	"bytes"
	"context"
	"log/slog"
	"time"
)

// A Listener is called with every Event of a database. One goroutine at a time calls
// it, in the order in which things happened, shortly after. The database needs that
// goroutine for nothing else. So a listener may take its time and may use the database.
// It must not close the database, as Close waits for the listener. While it is busy up
// to 1,024 events wait for it and for Options.Logger; below warnings at most 512.
// Further ones are dropped, and counted in Activity.EventsDropped.
//
// The context is that of the call that caused the event, for its values; it may have
// ended. The event belongs to the listener. A listener that panics, or ends its
// goroutine as t.FailNow does, is not called again; Options.Logger gets a message about
// it.
type Listener func(ctx context.Context, e *Event)

// An Event is a step of an operation, or an incident of a database. docs/OPERATIONS.md
// lists the events that a program may want to act upon, with their fields; other fields
// are zero. Options.Logger gets the same events: the name is the message, and the
// fields are attributes with the names that are given here in quotes.
type Event struct {
	Name  Name       // one of the constants, or NameOf an Op and a Phase
	Time  time.Time  // when it happened, which is before the listener is called
	Level slog.Level // level for Options.Logger

	// What an operation is doing. A flush or compaction of the store has only events of its
	// end, and no number.
	Op    Op    // the operation; "" for an incident
	Phase Phase // step of the Op; "" for an incident
	// number of the Op since the database was opened, the same from begin to end; "operation"
	Operation uint64

	// What the event is about.
	Dir        string // folder of the database; "dir"
	Collection string // name of the collection; "collection"; "" if it is about the whole database
	Space      uint32 // number of the space, a db.Space; "space"; 0 if it is about none
	Revision   uint32 // revision of the space; "revision"; 0 if it is about none

	// The progress of an operation (PhaseProgress; see Progress), or its result (PhaseDone).
	Stage       string        // stage of a running Op; "stage"
	Done, Total int64         // progress within the stage; "done", "total"
	Items       int64         // number of items; "items"
	Bytes       int64         // number of bytes; "bytes"
	Duration    time.Duration // duration of an ended Op; "duration"
	Err         error         // why an Op has failed, or what has happened; "error"; nil if it is no failure

	Attrs []slog.Attr // further attributes, which docs/OPERATIONS.md names; do not write to them
}

// A Name identifies the kind of an event. Names do not change between versions, so that
// programs may compare them.
type Name string

// A Phase is a step of an Op.
type Phase string

// Phases. Begin is followed by Done or by Failed; a cancelled Op ends with Failed.
// Progress comes at most once a second, and when the stage changes.
const (
	PhaseBegin    Phase = "begin"
	PhaseProgress Phase = "progress"
	PhaseDone     Phase = "done"
	PhaseFailed   Phase = "failed"
)

// An Op is a kind of operation, with one name in events, Stats and metrics.
type Op string

// Long operations. Each has events and figures in Activity.
const (
	OpLoad        Op = "load"        // loading the codes of a space into memory, after Open
	OpIndex       Op = "index"       // building the tables of substrings in memory
	OpTrain       Op = "train"       // Collection.Train
	OpVectorIndex Op = "vectorindex" // Collection.IndexVectors
	OpUpdate      Op = "update"      // Collection.Update, or the update of Options.UpdateItems
	OpImportModel Op = "importmodel" // Collection.ImportModel
	OpReindex     Op = "reindex"     // Collection.Reindex, or its continuation after Open
	OpBulkLoad    Op = "bulkload"    // loading many new items of a Batch
	OpCompact     Op = "compact"     // DB.Compact
	OpBackup      Op = "backup"      // DB.Backup
	OpRestore     Op = "restore"     // Restore
	OpCheckpoint  Op = "checkpoint"  // DB.Checkpoint
	OpVerify      Op = "verify"      // DB.Verify

	OpRerank Op = "rerank" // loading what puts hits in order into memory, a part at a time
)

// Operations of the store itself. Each has events when it has ended, and figures in
// Activity.
const (
	OpFlush      Op = "flush"      // writing memory tables to disk
	OpCompaction Op = "compaction" // merging tables
)

// Calls that are short: each has figures in Activity.
const (
	OpSearch       Op = "search"        // Collection.Search
	OpSearchRadius Op = "search_radius" // Collection.SearchRadius: finding the codes
	OpSearchAll    Op = "search_all"    // Collection.SearchAll
	OpWrite        Op = "write"         // Batch.Commit, Put, PutIf, Merge, Delete and DeleteWhere
)

// Incidents of a database.
const (
	Opened            Name = "fddhdb.database.opened"
	Closed            Name = "fddhdb.database.closed"
	Failed            Name = "fddhdb.database.failed"  // see ErrFailed
	DiskFull          Name = "fddhdb.disk.full"        // writes are refused
	DiskFreed         Name = "fddhdb.disk.freed"       // writes go on
	CommitsMissing    Name = "fddhdb.commits.missing"  // see Recovery
	CommitsUnknown    Name = "fddhdb.commits.unknown"  // see Recovery.Problem
	CommitsUnkept     Name = "fddhdb.commits.unkept"   // the side file cannot be written
	Corruption        Name = "fddhdb.corruption.found" // in a table of the store
	Stalled           Name = "fddhdb.writes.stalled"   // the store makes writers wait
	Resumed           Name = "fddhdb.writes.resumed"   // writers go on
	CollectionCreated Name = "fddhdb.collection.created"
	CollectionAltered Name = "fddhdb.collection.altered"
	CollectionDropped Name = "fddhdb.collection.dropped"
	LabelRenamed      Name = "fddhdb.label.renamed"
	SpaceActivated    Name = "fddhdb.space.activated" // by Activate or Rollback
	SpaceDropped      Name = "fddhdb.space.dropped"
	StatisticsUnkept  Name = "fddhdb.statistics.unkept" // Close could not store them; they are computed again
	StoreMessage      Name = "fddhdb.store.message"     // for the diagnosis of the storage engine
	StoreError        Name = "fddhdb.store.error"       // an error of the storage engine, which goes on
	ListenerPanicked  Name = "fddhdb.listener.panicked" // the listener is not called any more
)

// NameOf returns the name of the events of an Op in a Phase, such as fddhdb.train.done.
func NameOf(op Op, p Phase) Name { return "fddhdb." + Name(op) + "." + Name(p) }

// Attributes returns the attributes with which Options.Logger logs the event: its fields that
// are not zero, under the names in quotes, and Attrs; done and total only, but always, of
// PhaseProgress. Name, Time, Level, Op and Phase are not among them. The slice is the caller's.
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

// MarshalJSON implements json.Marshaler, in the form in which slog.JSONHandler logs the event:
// {"time", "level", "msg"}, where msg is the name, and the Attributes.
func (e Event) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	r := slog.NewRecord(e.Time, e.Level, string(e.Name), 0)
	r.AddAttrs(e.Attributes()...)
	err := slog.NewJSONHandler(&b, nil).Handle(context.Background(), r)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}
