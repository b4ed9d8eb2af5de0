package db

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// Options tune a database. A nil *Options and zero fields mean the defaults.
type Options struct {
	// MustExist makes Open refuse, with ErrNotDatabase, a folder that holds no
	// database yet, instead of creating one there.
	MustExist bool

	// ReadOnly opens a database that is there for reading: nothing in its folder changes,
	// which may be on a medium that cannot be written to. Writes, and whatever else
	// would be stored, give ErrReadOnly, and nothing goes on in the background but loading.
	// Several processes can have a database open so at a time, while none can that writes.
	// What a crash left in the log is read, but stays there, so that each Open reads it again.
	ReadOnly bool

	// CacheBytes is the size of the cache of stored blocks; 64 MiB by default. In a database
	// that is written to it may become twice as large while little is waiting to be written
	// into tables, at most 64 MiB larger.
	CacheBytes int64

	// IndexCacheBytes bounds the memory of the tables that make searches fast,
	// of all collections together: some 30 bytes a code of 128 bits. 4 GiB by
	// default, negative for none. The codes of segments that would exceed it are
	// searched by reading them, or within a radius by the tables on disk. The
	// codes themselves and which items carry them, some 35 bytes each, are in
	// memory in any case.
	IndexCacheBytes int64

	// RerankCacheBytes bounds the memory of what puts hits in order, of all collections
	// together: the projections of items, a byte a bit of the code for each item; and the
	// vectors, with a byte a dimension, of modalities that a search has compared since opening
	// (see RerankAuto). 1 GiB by default, negative for none. What would exceed it, of the latest
	// items, each search that needs it reads from the store. Answers are the same.
	RerankCacheBytes int64

	// KeyCacheBytes bounds the memory for keys of items that searches have
	// found; 256 MiB by default.
	KeyCacheBytes int64

	// UpdateItems, if positive, makes the active space of a collection learn from what
	// is written, in the background, whenever so many items have been: see
	// Collection.Update, with TeacherAuto. UpdateInterval, if positive, does so at this
	// interval where anything has been written. By default projections change only when
	// Update is called.
	UpdateItems    int
	UpdateInterval time.Duration

	// NoSync lets writes of items return before they are on stable storage: a
	// crash, of the process too, may lose the latest ones, in reverse order, and
	// never part of one. Close makes all durable. New collections, alterations, trainings,
	// DeleteWhere and batches of many thousand new items are synced, and with them
	// what was written before.
	NoSync bool

	// ReserveBytes is how much of the file system stays free: writes that would take
	// it, and what begins a bulk load, a training, a reindexing or a compaction that
	// would, give a *DiskFullError (ErrDiskFull) until there is room again, while
	// readers go on. What frees space, deletions and drops, may take it but for 64 KiB. By
	// default 256 MiB, or a twentieth of the file system where that is less; negative
	// for none. File systems that cannot tell what is free are not looked at.
	ReserveBytes int64

	// Logger gets the events of the database; see event.Event. Nothing by default.
	Logger *slog.Logger

	// EventListener, if not nil, hears of them as well.
	EventListener event.Listener

	// Tracer, if not nil, makes spans of what the database does.
	Tracer event.Tracer

	// FS is the file system; that of the operating system by default.
	FS vfs.FS
}

// settings are the options of a database with their defaults, and what follows from them.
type settings struct {
	Options
	disk store.Config
}

// The sizes of caches by default.
const (
	cacheBytes       = 64 << 20
	indexCacheBytes  = 4 << 30
	rerankCacheBytes = 1 << 30
	keyCacheBytes    = 256 << 20
)

// ShareCaches returns the options of each of n databases of one program that share the caches of o.
// CacheBytes, IndexCacheBytes, RerankCacheBytes and KeyCacheBytes are divided by n, or the default is where
// they are 0. The results are at least 8, 16, 8 and 4 MiB, or the whole cache if that is less. Negative
// values stay, and with n of 1 or less o is returned as it is.
func ShareCaches(o Options, n int) Options {
	for _, cache := range []struct {
		bytes          *int64
		whole, atLeast int64
	}{{&o.CacheBytes, cacheBytes, 8 << 20}, {&o.IndexCacheBytes, indexCacheBytes, 16 << 20}, {&o.RerankCacheBytes, rerankCacheBytes, 8 << 20}, {&o.KeyCacheBytes, keyCacheBytes, 4 << 20}} {
		whole := cmp.Or(*cache.bytes, cache.whole)
		if whole > 0 && n > 1 {
			*cache.bytes = max(whole/int64(n), min(whole, cache.atLeast))
		}
	}
	return o
}

// withDefaults returns the options, which may be nil, with their defaults, and a sender of
// events made from them.
func (o *Options) withDefaults() settings {
	var out settings
	if o != nil {
		out.Options = *o
	}
	if out.CacheBytes <= 0 {
		out.CacheBytes = cacheBytes
	}
	if out.IndexCacheBytes == 0 {
		out.IndexCacheBytes = indexCacheBytes
	}
	if out.RerankCacheBytes == 0 {
		out.RerankCacheBytes = rerankCacheBytes
	}
	if out.KeyCacheBytes <= 0 {
		out.KeyCacheBytes = keyCacheBytes
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	if out.FS == nil {
		out.FS = vfs.Default
	}
	out.FS = store.WithKinds(out.FS)
	out.disk = store.Config{
		FS: out.FS, CacheBytes: out.CacheBytes, ReserveBytes: out.ReserveBytes,
		Signals: signal.NewSender(out.Logger, out.EventListener, out.Tracer),
	}
	return out
}

// Limits on what an item, and a batch, may hold.
const (
	MaxKeyBytes     = record.MaxKeyBytes     // key, in bytes of UTF-8: 1 KiB
	MaxNameBytes    = record.MaxNameBytes    // names of collections, modalities, fields: 256
	MaxLabelBytes   = record.MaxLabelBytes   // one label: 1 KiB
	MaxLabels       = record.MaxLabels       // labels of one item: 4096
	MaxFieldBytes   = record.MaxFieldBytes   // one string field: 1 MiB
	MaxIndexedBytes = record.MaxIndexedBytes // one string field that is indexed: 1 KiB
	MaxPayloadBytes = record.MaxPayloadBytes // payload: 64 MiB
	MaxDim          = record.MaxDim          // dimensions of a modality: 1,048,576
	MaxModalities   = record.MaxModalities   // modalities of a collection: 256
	MaxFields       = record.MaxFields       // fields of a collection: 1024
	MaxBatchBytes   = record.MaxBatchBytes   // all items of one Batch: 1 GiB
	MaxBulkBytes    = record.MaxBulkBytes    // the same where all are new items of one collection: 4 GiB
)
