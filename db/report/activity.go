package report

import (
	"time"

	"github.com/fddhdb/fddhdb/db/event"
)

// Activity is what a database has done since it was opened, and what it is doing. Counts
// only grow. docs/OPERATIONS.md says what to make of them.
type Activity struct {
	Since time.Time `json:"since"` // when it was opened

	// Searches are the calls that were answered, by Op and by the plan that was carried out;
	// those without any are left out. SearchAll has no plan.
	Searches     []SearchStats `json:"searches,omitempty"`
	SearchErrors uint64        `json:"search_errors"` // calls that returned an error
	Hits         uint64        `json:"hits"`          // items that Search and SearchAll have returned

	// calls that stored something, from the call until it is durable
	Writes       event.Latencies `json:"writes,omitzero"`
	WriteErrors  uint64          `json:"write_errors"`
	Conflicts    uint64          `json:"conflicts"` // among these: ErrConflict, as it is meant to be
	ItemsPut     uint64          `json:"items_put"` // put and merged
	ItemsDeleted uint64          `json:"items_deleted"`

	// writes that wait for their commit, and what else waits with them
	Waiting        int             `json:"waiting"`
	Commits        event.Latencies `json:"commits,omitzero"` // but bulk loads
	CommitRequests uint64          `json:"commit_requests"`
	CommitBytes    uint64          `json:"commit_bytes"`   // that they have written to the log
	Syncs          event.Latencies `json:"syncs,omitzero"` // waiting for the disk, in Commits

	Cache          CacheStats `json:"cache"`
	KeyCacheBytes  int64      `json:"key_cache_bytes"`
	KeyCacheMisses uint64     `json:"key_cache_misses"` // blocks of 256 keys that were read

	Snapshots int `json:"snapshots"` // Snapshots and Runs that are open

	Store      StoreStats               `json:"store"`
	Running    []event.RunningOperation `json:"running,omitempty"`    // as they have begun
	Operations []event.OperationStats   `json:"operations,omitempty"` // by Op
	LastBackup *LastBackup              `json:"last_backup,omitempty"`

	Failed   bool `json:"failed"`    // see ErrFailed
	DiskFull bool `json:"disk_full"` // the last write was refused for want of space
	// on the file system, when a write last looked; 0: none has, or it is not known
	FreeBytes     int64  `json:"free_bytes"`
	ReserveBytes  int64  `json:"reserve_bytes"`  // of these, that are kept free
	LostCommits   uint64 `json:"lost_commits"`   // in Recovery.Losses
	EventsDropped uint64 `json:"events_dropped"` // see event.Listener
}

// A SearchStats is about the calls of one Op that were answered by one plan.
type SearchStats struct {
	Op   event.Op `json:"op"`
	Plan string   `json:"plan,omitempty"`
	event.Latencies
}

// CacheStats are those of the cache of stored blocks, see Options.CacheBytes.
type CacheStats struct {
	Bytes  int64 `json:"bytes"`
	Hits   int64 `json:"hits"`
	Misses int64 `json:"misses"`
}

// LastBackup is the last one that DB.Backup has made since the database was opened, of all
// of it or of one collection.
type LastBackup struct {
	ID         string    `json:"id"`
	Time       time.Time `json:"time"`     // when it began
	Sequence   uint64    `json:"sequence"` // commits that are in it
	BytesTotal int64     `json:"bytes_total"`
	BytesNew   int64     `json:"bytes_new"`
}

// StoreStats are figures about the store, Pebble.
type StoreStats struct {
	Tables    int   `json:"tables"`
	LiveBytes int64 `json:"live_bytes"` // of tables and logs that count
	// tables, or rows of them, that a read may have to look at
	ReadAmplification int `json:"read_amplification"`
	// that compactions have yet to rewrite, about
	CompactionDebtBytes int64           `json:"compaction_debt_bytes"`
	Flushing            int             `json:"flushing"`        // flushes that are going on
	Compacting          int             `json:"compacting"`      // compactions, likewise
	Stalled             bool            `json:"stalled"`         // writers wait for these
	Stalls              event.Latencies `json:"stalls,omitzero"` // that have ended
}

// An Explain tells how a query was answered.
type Explain struct {
	// "vectors" where nothing is trained: Scanned vectors were compared, Compared of them read; "cells" by an
	// index of vectors
	Plan       string `json:"plan"`
	Substrings []int  `json:"substrings"` // tables of each segment of the index; empty where there is none
	Probes     int    `json:"probes"`     // buckets, postings, or cells, that were looked up
	// codes in them, each time one is there; of cells, vectors that may be hits
	Candidates int  `json:"candidates"`
	Compared   int  `json:"compared"`  // of these, read and compared with the query
	Scanned    int  `json:"scanned"`   // codes read one after the other
	Tail       int  `json:"tail"`      // among them those that are not indexed yet
	Abandoned  bool `json:"abandoned"` // lookups, or an index of vectors, were given up for a scan of all
	Codes      int  `json:"codes"`     // distinct codes found
	Hits       int  `json:"hits"`      // items returned
	Distinct   int  `json:"distinct"`  // codes in the collection

	// Rerank is what puts the hits in order: projection, asymmetric or none; "vectors within codes" where
	// vectors decide between items that share a code; "vectors" where they decide alone.
	Rerank string `json:"rerank"`

	// Where nothing is trained, the metric, and the modalities whose vectors were compared with that
	// of the query; else absent.
	Metric     string   `json:"metric,omitempty"`
	Modalities []string `json:"modalities,omitempty"`

	// Recall is what an index of vectors is expected to find of the first K; absent where the answer is
	// exact.
	Recall float64 `json:"recall,omitempty"`

	// DamagedIndexes are the modalities whose index of vectors cannot be read, so that all of their vectors
	// were compared.
	DamagedIndexes []string `json:"damaged_indexes,omitempty"`

	// OutgrownIndexes are the modalities of which so many vectors have come, changed or gone since their
	// index was made that all of their vectors were compared (VectorIndex.Outgrown).
	OutgrownIndexes []string `json:"outgrown_indexes,omitempty"`

	// ScannedFields are the fields that the filter compares and that have no index: their values are read
	// from the items, unless a search in the same state has left the rows of the filter.
	ScannedFields []string `json:"scanned_fields,omitempty"`

	// Predicted is the time of finding the codes for each plan that could have
	// been chosen, in microseconds; of a k-NN search by lookups only its
	// beginning, as the rest depends on what is found.
	Predicted map[string]float64 `json:"predicted_us"`

	EncodeUS  float64 `json:"encode_us"`  // from the query to its code
	SearchUS  float64 `json:"search_us"`  // finding the codes
	ResolveUS float64 `json:"resolve_us"` // items of the codes, in order, with keys
	KeysUS    float64 `json:"keys_us"`    // of ResolveUS, reading the keys
}
