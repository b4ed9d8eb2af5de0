package db

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// installTables is install by way of sorted tables, which also hold the deletion of
// the space before. It commits and shows what it has done itself, and where it fails
// nothing has changed.
func (g *group) installTables(ctx context.Context, d *DB, s *collectionState, result *model.Result, all *coded) error {
	sp := all.space
	modelBytes, statistics, err := s.numberSpace(sp, result)
	if err != nil {
		return err
	}
	sp.Model, sp.Statistics = chunkedOf(modelBytes), chunkedOf(statistics)
	descriptor, err := sp.spaceDescriptor.encode(&result.Report)
	if err != nil {
		return err
	}
	changed, err := g.encodeChanged(s, sp)
	if err != nil {
		return err
	}
	now := all.with(changed, s.changed.Contains)
	t := newBulkTables(d, g.c)
	codes := &bulkSpace{
		collection: s.ID, space: sp, replaces: s.space,
		row: func(i int) uint32 { return now.rows[i] }, encs: now.encs,
	}
	for range sp.views {
		codes.addSet(mih.NewWriter(sp.Bits), 0)
	}
	first, tasks := codes.tasks(t)
	counters := func() codec.Counters {
		n := s.counters
		n.ActiveSpace, n.NextSpace = uint64(sp.ID), uint64(sp.ID)+1
		return codes.counters(n, 0)
	}
	for _, write := range []func(*tableStream) error{
		func(t *tableStream) error { return codes.writeChunks(t, codec.KindModel, modelBytes) },
		func(t *tableStream) error { return codes.writeChunks(t, codec.KindStatistics, statistics) },
		func(t *tableStream) error {
			if err := codes.drop(t, codec.KindSpace); err != nil {
				return err
			}
			return t.set(codec.NumberKey(codec.KindSpace, s.ID, sp.ID), descriptor)
		},
		func(stream *tableStream) error {
			if err := codes.waitNumbered(stream); err != nil {
				return err
			}
			if err := t.writeSequence(stream); err != nil {
				return err
			}
			return stream.set(codec.CollectionKey(codec.KindCounters, s.ID), counters().Append(nil))
		},
	} {
		tasks = append(tasks, t.task(write))
	}
	if err := t.commit(ctx, append(first, tasks...)); err != nil {
		return err
	}
	if s.space != nil {
		g.c.forgetEdits(s)
	}
	n := counters()
	s.setSpace(sp)
	for i, set := range s.sets {
		set.table, set.freshCode = codes.sets[i].table, n.Sets[i].NextCode
	}
	s.counters, s.freshSpace = n, false
	s.counters.Sets = nil
	s.changed = nil
	g.c.publish(g.c.newView())
	return nil
}

// with returns the codes of the rows of c but the stale ones, and those of newer,
// ascending by row. Rows of newer are stale in c.
func (c *coded) with(newer *coded, stale func(row uint32) bool) *coded {
	out := &coded{space: c.space, rows: make([]uint32, 0, len(c.rows)), encs: make([]encoding, 0, len(c.encs))}
	j := 0
	until := func(i int) {
		for ; j < len(newer.rows) && (i == len(c.rows) || newer.rows[j] < c.rows[i]); j++ {
			out.rows, out.encs = append(out.rows, newer.rows[j]), append(out.encs, newer.encs[j])
		}
	}
	for i, row := range c.rows {
		if until(i); !stale(row) {
			out.rows, out.encs = append(out.rows, row), append(out.encs, c.encs[i])
		}
	}
	until(len(c.rows))
	return out
}

// chunkedOf says how a value is cut.
func chunkedOf(b []byte) chunked {
	return chunked{Chunks: uint32((len(b) + chunkBytes - 1) / chunkBytes), Bytes: int64(len(b))}
}

// writeChunks writes a value of the space that is cut.
func (s *bulkSpace) writeChunks(t *tableStream, kind byte, b []byte) error {
	if err := s.drop(t, kind); err != nil {
		return err
	}
	for i := range chunkedOf(b).Chunks {
		n := min(chunkBytes, len(b))
		if err := t.set(codec.ChunkKey(kind, s.collection, s.space.ID, i), b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
