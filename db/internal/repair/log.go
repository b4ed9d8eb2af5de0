package repair

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// What was written last stands in logs alone, until a flush makes tables of it. A log is a sequence
// of batches, and a batch is a commit of Pebble: it counts as a whole, or not at all. Checksums show
// where the log is damaged.

// readLogs reads the versions that stand in the logs and in no table yet, into memory: as much
// as the memory tables of the store held. Behind damage the rest of a log is lost, and
// reported; the next log is read nevertheless. It returns a source of all versions, and one for
// each table that a log names as ingested. Call it when all tables have begun: it needs newest.
func (s *salvage) readLogs() ([]source, error) {
	m := &memorySource{}
	var out []source
	logs := s.store.logs
	for i, log := range logs {
		one, tables := &memorySource{}, []source(nil)
		read := func() error { return s.readLog(log, one, &tables) }
		// A panic over damaged bytes is an error, too. A second try begins with nothing, so that no
		// version counts twice.
		err := work.Safely(read)
		if err != nil && !errors.Is(err, errTorn) && !unreadable(err) { // a failed read may succeed the second time
			one, tables = &memorySource{}, nil
			err = work.Safely(read)
		}
		m.versions, out = append(m.versions, one.versions...), append(out, tables...)
		// A torn end of the last log is no damage: the process has ended in a write.
		if err == nil || errors.Is(err, errTorn) && i == len(logs)-1 {
			continue
		}
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		s.found(report.Finding{Record: fmt.Sprintf("log %06d", uint64(log.Num)), Problem: "what follows in it cannot be read, and is lost: " + fault.Problem(err)})
	}
	m.sort()
	return append(out, m), nil
}

// errTorn says that a log ends in the middle of a write.
var errTorn = errors.New("it ends in the middle of a write")

// readLog reads one log: its versions into m, and a source into out for each table that it
// names as ingested. What it has read before an error counts.
func (s *salvage) readLog(log wal.LogicalLog, m *memorySource, out *[]source) error {
	r := log.OpenForRead()
	defer r.Close()
	for {
		record, _, err := r.NextRecord()
		var repr []byte
		if err == nil {
			repr, err = io.ReadAll(record)
		}
		switch {
		// Pebble returns EOF where a log ends as it should, ErrUnexpectedEOF where a write is cut
		// off.
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return errTorn
		case err != nil:
			return err
		}
		if err := s.readBatch(repr, uint64(log.Num), m, out); err != nil {
			return err
		}
	}
}

// readBatch reads a batch of a log, in Pebble's form: all of it, or nothing. log is the number
// of the log. Entries are numbered from the sequence number of the batch on.
func (s *salvage) readBatch(repr []byte, log uint64, m *memorySource, out *[]source) error {
	header, ok := batchrepr.ReadHeader(repr)
	if !ok {
		return errors.New("a write without a header")
	}
	if !s.store.listed && uint64(header.SeqNum) <= s.newest {
		// It stands in the tables already. Ingested tables have no numbers without a
		// manifest, so that it would hide newer versions in these.
		return nil
	}
	seq := uint64(header.SeqNum)
	var versions []version
	var deletions []deletion
	var tables []*tableSource
	reader := batchrepr.Read(repr)
	for {
		kind, key, value, ok, err := reader.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch kind {
		case pebble.InternalKeyKindLogData:
			continue // it has no number
		case pebble.InternalKeyKindRangeDelete:
			deletions = append(deletions, deletion{slices.Clone(key), slices.Clone(value), seq})
		// The store was to take over a table. The manifest may not have it yet.
		case pebble.InternalKeyKindIngestSST:
			number, n := binary.Uvarint(key)
			if n <= 0 {
				return errors.New("a table without a number")
			}
			f := damagedTable{number: number, path: s.store.fs.PathJoin(s.store.dir, fmt.Sprintf("%06d.sst", number))}
			f.transforms.SyntheticSeqNum = sstable.SyntheticSeqNum(seq)
			tables = append(tables, &tableSource{salvage: s, damagedTable: &f})
		default:
			versions = append(versions, version{slices.Clone(key), seq, math.MaxUint64, kind, slices.Clone(value)})
		}
		seq++
	}
	// All entries could be read: now the batch counts, as a whole.
	m.versions = append(m.versions, versions...)
	s.deletions = append(s.deletions, deletions...)
	for _, t := range tables {
		if !s.store.listed {
			break // all tables in the folder are sources already
		}
		if err := t.begin(); err != nil {
			return err
		}
		*out = append(*out, t)
	}
	return nil
}
