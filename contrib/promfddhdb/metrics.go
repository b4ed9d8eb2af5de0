package promfddhdb

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

// A kind is a type of metric.
type kind string

const (
	gauge     kind = "gauge"
	counter   kind = "counter"
	histogram kind = "histogram"
)

func (k kind) value() prometheus.ValueType {
	if k == counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// A metric is one of the metrics of a Collector. collect calls send with each of its
// values, and the values of its labels.
type metric struct {
	name    string
	kind    kind
	help    string
	labels  []string
	collect func(s *db.Stats, send func(value any, labels ...string))
}

// of returns a metric with one value.
func of(name string, k kind, help string, value func(s *db.Stats) any) metric {
	return metric{name, k, help, nil, func(s *db.Stats, send func(any, ...string)) { send(value(s)) }}
}

// ofCollections returns a metric with one value for each collection.
func ofCollections(name, help string, value func(c *db.CollectionStats) any) metric {
	return metric{name, gauge, help, []string{"collection"}, func(s *db.Stats, send func(any, ...string)) {
		for i := range s.Collections {
			send(value(&s.Collections[i]), s.Collections[i].Name)
		}
	}}
}

// operations are all operations of a database. Each has its counters from the start,
// with the value 0: nobody would see a rise of a counter that begins with its first
// failure.
var operations = []event.Op{
	event.OpLoad, event.OpIndex, event.OpRerank, event.OpTrain, event.OpImportModel, event.OpUpdate,
	event.OpReindex, event.OpVectorIndex, event.OpBulkLoad,
	event.OpCompact, event.OpBackup, event.OpCheckpoint, event.OpVerify, event.OpFlush, event.OpCompaction,
}

// ofOperations returns a counter with one value for each operation.
func ofOperations(name, help string, value func(o *event.OperationStats) any) metric {
	return metric{name, counter, help, []string{"op"}, func(s *db.Stats, send func(any, ...string)) {
		for _, op := range operations {
			o := event.OperationStats{Op: op}
			for _, has := range s.Activity.Operations {
				if has.Op == op {
					o = has
				}
			}
			send(value(&o), string(op))
		}
	}}
}

var metrics = []metric{
	{"fddhdb_up", gauge, "1 while the database is open and has figures.", nil, nil},
	of("fddhdb_failed", gauge, "1 when the database refuses writes until it is opened again.",
		func(s *db.Stats) any { return s.Activity.Failed }),
	of("fddhdb_opened_timestamp_seconds", gauge, "When the database was opened, in Unix time.",
		func(s *db.Stats) any { return float64(s.Activity.Since.UnixNano()) / 1e9 }),
	of("fddhdb_lost_commits", gauge, "Commits that were durable and are missing, until that is acknowledged.",
		func(s *db.Stats) any { return s.Activity.LostCommits }),

	{"fddhdb_search_seconds", histogram, "Time of searches that were answered, by plan.",
		[]string{"op", "plan"},
		func(s *db.Stats, send func(any, ...string)) {
			for i := range s.Activity.Searches {
				x := &s.Activity.Searches[i]
				send(&x.Latencies, string(x.Op), x.Plan)
			}
		}},
	of("fddhdb_search_errors_total", counter, "Searches that returned an error.",
		func(s *db.Stats) any { return s.Activity.SearchErrors }),
	of("fddhdb_search_hits_total", counter, "Items that searches have returned.",
		func(s *db.Stats) any { return s.Activity.Hits }),

	of("fddhdb_write_seconds", histogram, "Time of writes, until they are durable.",
		func(s *db.Stats) any { return &s.Activity.Writes }),
	of("fddhdb_write_errors_total", counter, "Writes that returned an error.",
		func(s *db.Stats) any { return s.Activity.WriteErrors }),
	of("fddhdb_write_conflicts_total", counter, "Of these, conflicts of conditional writes.",
		func(s *db.Stats) any { return s.Activity.Conflicts }),
	of("fddhdb_items_put_total", counter, "Items that were put or merged.",
		func(s *db.Stats) any { return s.Activity.ItemsPut }),
	of("fddhdb_items_deleted_total", counter, "Items that were deleted.",
		func(s *db.Stats) any { return s.Activity.ItemsDeleted }),
	of("fddhdb_writes_waiting", gauge, "Writes that wait for their commit.",
		func(s *db.Stats) any { return s.Activity.Waiting }),
	of("fddhdb_commit_seconds", histogram, "Time of commits.",
		func(s *db.Stats) any { return &s.Activity.Commits }),
	of("fddhdb_commit_requests_total", counter, "Writes that commits have carried out.",
		func(s *db.Stats) any { return s.Activity.CommitRequests }),
	of("fddhdb_commit_bytes_total", counter, "Bytes that commits have written to the log.",
		func(s *db.Stats) any { return s.Activity.CommitBytes }),
	of("fddhdb_sync_seconds", histogram, "Time that commits have waited for the disk.",
		func(s *db.Stats) any { return &s.Activity.Syncs }),
	of("fddhdb_commits", gauge, "Number of the last commit.",
		func(s *db.Stats) any { return s.Sequence }),

	of("fddhdb_disk_bytes", gauge, "Disk space of the folder of the database, as du counts.",
		func(s *db.Stats) any { return s.DiskBytes }),
	of("fddhdb_obsolete_bytes", gauge, "Of these, what awaits deletion.",
		func(s *db.Stats) any { return s.ObsoleteBytes }),
	of("fddhdb_disk_free_bytes", gauge, "Free space of the file system when a write last looked.",
		func(s *db.Stats) any { return s.Activity.FreeBytes }),
	of("fddhdb_disk_reserve_bytes", gauge, "Free space below which writes are refused.",
		func(s *db.Stats) any { return s.Activity.ReserveBytes }),
	of("fddhdb_disk_full", gauge, "1 while writes are refused for want of space.",
		func(s *db.Stats) any { return s.Activity.DiskFull }),
	of("fddhdb_memory_bytes", gauge, "Memory of codes, indexes, row sets and the caches of the store.",
		func(s *db.Stats) any { return s.MemoryBytes }),
	of("fddhdb_cache_bytes", gauge, "Memory of the cache of stored blocks.",
		func(s *db.Stats) any { return s.Activity.Cache.Bytes }),
	of("fddhdb_cache_hits_total", counter, "Blocks that were found in the cache.",
		func(s *db.Stats) any { return s.Activity.Cache.Hits }),
	of("fddhdb_cache_misses_total", counter, "Blocks that were read from the file system.",
		func(s *db.Stats) any { return s.Activity.Cache.Misses }),
	of("fddhdb_key_cache_bytes", gauge, "Memory of the keys of items that searches have found.",
		func(s *db.Stats) any { return s.Activity.KeyCacheBytes }),
	of("fddhdb_key_cache_misses_total", counter, "Blocks of keys that searches had to read.",
		func(s *db.Stats) any { return s.Activity.KeyCacheMisses }),
	of("fddhdb_snapshots", gauge, "Snapshots and results by radius that are open.",
		func(s *db.Stats) any { return s.Activity.Snapshots }),

	of("fddhdb_store_tables", gauge, "Tables of the store.",
		func(s *db.Stats) any { return s.Activity.Store.Tables }),
	of("fddhdb_store_read_amplification", gauge, "Tables that a read may have to look at.",
		func(s *db.Stats) any { return s.Activity.Store.ReadAmplification }),
	of("fddhdb_store_compaction_debt_bytes", gauge, "Bytes that compactions have yet to rewrite, about.",
		func(s *db.Stats) any { return s.Activity.Store.CompactionDebtBytes }),
	of("fddhdb_store_stalled", gauge, "1 while the store makes writers wait.",
		func(s *db.Stats) any { return s.Activity.Store.Stalled }),
	of("fddhdb_store_stall_seconds", histogram, "Time for which the store has made writers wait.",
		func(s *db.Stats) any { return &s.Activity.Store.Stalls }),

	{"fddhdb_operations_running", gauge, "Long operations that are going on.", []string{"op"},
		func(s *db.Stats, send func(any, ...string)) {
			running := map[event.Op]int{}
			for _, op := range operations {
				running[op] = 0
			}
			for _, o := range s.Activity.Running {
				running[o.Op]++
			}
			running[event.OpFlush] = s.Activity.Store.Flushing
			running[event.OpCompaction] = s.Activity.Store.Compacting
			for op, n := range running {
				send(n, string(op))
			}
		}},
	ofOperations("fddhdb_operations_done_total", "Long operations that have ended well.",
		func(o *event.OperationStats) any { return o.Done }),
	ofOperations("fddhdb_operations_failed_total", "Long operations that have failed.",
		func(o *event.OperationStats) any { return o.Failed }),
	ofOperations("fddhdb_operations_cancelled_total", "Long operations that were cancelled.",
		func(o *event.OperationStats) any { return o.Cancelled }),
	ofOperations("fddhdb_operations_seconds_total", "Time of long operations that have ended.",
		func(o *event.OperationStats) any { return o.Duration.Seconds() }),
	{"fddhdb_last_backup_timestamp_seconds", gauge, "When the last backup since opening began, in Unix time.",
		nil,
		func(s *db.Stats, send func(any, ...string)) {
			if b := s.Activity.LastBackup; b != nil {
				send(float64(b.Time.UnixNano()) / 1e9)
			}
		}},
	{"fddhdb_last_backup_bytes", gauge, "Bytes of the last backup since opening.", nil,
		func(s *db.Stats, send func(any, ...string)) {
			if b := s.Activity.LastBackup; b != nil {
				send(b.BytesTotal)
			}
		}},
	of("fddhdb_events_dropped_total", counter, "Events that a listener or a logger was too slow for.",
		func(s *db.Stats) any { return s.Activity.EventsDropped }),

	ofCollections("fddhdb_collection_items", "Items of a collection.",
		func(c *db.CollectionStats) any { return c.Items }),
	ofCollections("fddhdb_collection_coded_items", "Items that have a code.",
		func(c *db.CollectionStats) any { return c.CodedItems }),
	ofCollections("fddhdb_collection_distinct_codes", "Distinct codes.",
		func(c *db.CollectionStats) any { return c.DistinctCodes }),
	ofCollections("fddhdb_collection_memory_bytes", "Memory of codes, index and row sets.",
		func(c *db.CollectionStats) any { return c.MemoryBytes }),
	ofCollections("fddhdb_collection_index_bytes", "Of these, the index.",
		func(c *db.CollectionStats) any { return c.IndexBytes }),
	ofCollections("fddhdb_collection_pending_items", "Items that the projections have not seen.",
		func(c *db.CollectionStats) any { return c.Pending }),
	ofCollections("fddhdb_collection_space", "Number of the active space, 0 without one.",
		func(c *db.CollectionStats) any { return int(c.Space) }),
	ofCollections("fddhdb_collection_revision", "Revision of the active space.",
		func(c *db.CollectionStats) any { return int(c.Revision) }),
	{"fddhdb_collection_drift", gauge,
		"How far the items that came last are from those of the training: train again above 0.2.",
		[]string{"collection", "modality"}, func(s *db.Stats, send func(any, ...string)) {
			for _, c := range s.Collections {
				for name, x := range c.Drift {
					send(x, c.Name, name)
				}
			}
		}},
	{"fddhdb_collection_query_distance", gauge, "Mean distance from queries to the nearest hit, in bits.",
		[]string{"collection"}, func(s *db.Stats, send func(any, ...string)) {
			for _, c := range s.Collections {
				if c.QueryDistances != nil {
					send(c.QueryDistances.Mean, c.Name)
				}
			}
		}},
}
