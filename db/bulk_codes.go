package db

import (
	"context"
	"runtime"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/mih"
)

// bulkCodes writes what is kept of the codes of many rows, none of which has a code
// in the space yet. It is what group.setCode writes for one row after the other.
type bulkCodes struct {
	collection uint32
	space      *space
	replaces   *space // which goes; nil for none
	table      *mih.Writer
	row        func(i int) uint32 // ascending
	codes      codec.Codes        // by item, of a codes-only collection
	encs       []encoding         // by item, of another

	// Blocks from these numbers on have never been written.
	freshRow, freshCode uint64

	firstCode uint32        // that is new
	numbers   []uint32      // of codes, by item
	singles   []uint64      // codes that one row carried before and several now, and that row
	numbered  chan struct{} // closed when these are known
}

// noCode stands for the number of a code where an item has none.
const noCode = 1<<32 - 1

// tasks returns what there is to do, for together, on the way to tables.
func (k *bulkCodes) tasks(t *bulkTables) (number task, write []task) {
	k.numbered = make(chan struct{})
	k.firstCode = k.table.Table().Next()
	m := storedSplit(k.space.Bits).Len()
	parts := min(m, runtime.GOMAXPROCS(0))
	for p := range parts {
		write = append(write, t.task(func(s *tableStream) error { return k.writePostings(s, m*p/parts, m*(p+1)/parts) }))
	}
	return k.number, append(write, t.task(k.writeProjections), t.task(k.writeCodes), t.task(k.writeRowCodes), t.task(k.writeCodeRows))
}

// code returns the code of item i, nil where it has none.
func (k *bulkCodes) code(i int) codec.Code {
	if k.encs != nil {
		return k.encs[i].code
	}
	return k.codes.At(i)
}

// number puts the codes into the table and keeps their numbers.
func (k *bulkCodes) number(ctx context.Context) error {
	t := k.table.Table()
	numbers := make([]uint32, max(k.codes.Len(), len(k.encs)))
	for i := range numbers {
		if i%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c := k.code(i)
		if c == nil {
			numbers[i] = noCode
			continue
		}
		n, isNew, err := k.table.Number(c)
		if err != nil {
			return err
		}
		if !isNew && n < k.firstCode && t.Cardinality(n) == 1 {
			for row := range t.Rows(n).All() {
				k.singles = append(k.singles, uint64(n)<<32|uint64(row))
			}
		}
		k.table.Add(n, k.row(i))
		numbers[i] = n
	}
	slices.Sort(k.singles)
	k.numbers = numbers
	close(k.numbered)
	return nil
}

func (k *bulkCodes) writeRowCodes(t *tableStream) error {
	if err := t.wait(k.numbered); err != nil {
		return err
	}
	if err := k.drop(t, codec.KindRowCodes); err != nil {
		return err
	}
	b := k.blocks(t, codec.KindRowCodes, codec.RowCodeBytes, k.freshRow)
	var entry []byte
	for i, n := range k.numbers {
		if n == noCode {
			continue
		}
		from := codec.ProvenanceGiven
		if k.encs != nil {
			from = k.encs[i].from
		}
		entry = codec.RowCode{Code: n, Provenance: from, Revision: k.space.Revision}.Append(entry[:0])
		if err := b.set(k.row(i), entry); err != nil {
			return err
		}
	}
	return b.flush()
}

func (k *bulkCodes) writeProjections(t *tableStream) error {
	if err := k.drop(t, codec.KindProjection); err != nil {
		return err
	}
	width := k.space.projectionBytes()
	b := k.blocks(t, codec.KindProjection, width, k.freshRow)
	for i, enc := range k.encs {
		if enc.projection != nil && width > 0 {
			if err := b.set(k.row(i), enc.projection); err != nil {
				return err
			}
		}
	}
	return b.flush()
}

// writeCodes writes the new codes with the row that carries each, or with a sign
// that several do, which also replaces the row of older codes.
func (k *bulkCodes) writeCodes(t *tableStream) error {
	if err := t.wait(k.numbered); err != nil {
		return err
	}
	if err := k.drop(t, codec.KindCodes); err != nil {
		return err
	}
	q, table := k.space.Bits, k.table.Table()
	b := k.blocks(t, codec.KindCodes, codec.CodeEntryBytes(q), k.freshCode)
	var entry []byte
	for _, s := range k.singles {
		n := uint32(s >> 32)
		entry = codec.AppendCodeEntry(entry[:0], table.Code(n), q, codec.ManyRows)
		if err := b.set(n, entry); err != nil {
			return err
		}
	}
	for n := k.firstCode; n < table.Next(); n++ {
		row := uint32(codec.ManyRows)
		if rows := table.Rows(n); rows.Len() == 1 {
			for one := range rows.All() {
				row = one
			}
		}
		entry = codec.AppendCodeEntry(entry[:0], table.Code(n), q, row)
		if err := b.set(n, entry); err != nil {
			return err
		}
	}
	return b.flush()
}

// writeCodeRows writes the rows of the codes that several carry.
func (k *bulkCodes) writeCodeRows(t *tableStream) error {
	if err := t.wait(k.numbered); err != nil {
		return err
	}
	if err := k.drop(t, codec.KindCodeRows); err != nil {
		return err
	}
	table := k.table.Table()
	pairs := slices.Clone(k.singles) // code number and row
	for i, n := range k.numbers {
		if n != noCode && table.Cardinality(n) > 1 {
			pairs = append(pairs, uint64(n)<<32|uint64(k.row(i)))
		}
	}
	slices.Sort(pairs)
	for len(pairs) > 0 {
		layer, container := codec.NewLayer(), pairs[0]>>16
		for len(pairs) > 0 && pairs[0]>>16 == container {
			layer.Added.Add(uint32(uint16(pairs[0])))
			pairs = pairs[1:]
		}
		n := uint32(container >> 16)
		key := codec.CodeRowsKey(k.collection, k.space.ID, 0, n, uint16(container))
		if err := putLayer(t, key, layer, n >= k.firstCode); err != nil {
			return err
		}
	}
	return nil
}

// writePostings writes the postings of the new codes for some of the substrings,
// by sorting the numbers of the codes by substring.
func (k *bulkCodes) writePostings(t *tableStream, from, to int) error {
	if err := t.wait(k.numbered); err != nil {
		return err
	}
	if from == 0 {
		if err := k.drop(t, codec.KindSubstring); err != nil {
			return err
		}
	}
	table := k.table.Table()
	split, count := storedSplit(k.space.Bits), int(table.Next()-k.firstCode)
	codes := make([]uint16, count)
	sorted := make([]uint32, count)
	key := codec.SubstringKey(k.collection, k.space.ID, 0, 0, 0)
	var value []byte
	for j := from; j < to; j++ {
		ends := make([]uint32, 1<<split.Width(j)+1)
		for i := range codes {
			codes[i] = uint16(split.Of(table.Code(k.firstCode+uint32(i)), j))
			ends[int(codes[i])+1]++
		}
		for v := range len(ends) - 1 {
			ends[v+1] += ends[v]
		}
		for i, v := range codes {
			sorted[ends[v]] = k.firstCode + uint32(i)
			ends[v]++
		}
		begin := uint32(0)
		for v, end := range ends[:len(ends)-1] {
			if begin == end {
				continue
			}
			key = codec.AppendSubstringKey(key[:0], k.collection, k.space.ID, 0, uint16(j), uint32(v))
			value = codec.AppendPosting(value[:0], sorted[begin:end], nil)
			if err := t.put(key, value, k.firstCode == 0); err != nil {
				return err
			}
			begin = end
		}
	}
	return nil
}

// blocks returns a stream for blocks of the space.
func (k *bulkCodes) blocks(t *tableStream, kind byte, width int, fresh uint64) *blockStream {
	return newBlockStream(t, codec.SpaceBlockKey(kind, k.collection, k.space.ID, 0, 0), width, fresh)
}
