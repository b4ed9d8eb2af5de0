package bulk

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/mih"
)

// codeRecords is the part of spaceCodes for the codes, without projections. The task
// number changes the table of codes; the other tasks wait for it and only read.
type codeRecords struct {
	record.CodeKeys             // keys of the codes in the store
	of              *spaceCodes // that it is a part of

	table     *mih.Writer // of the code set; changed by number, and by rollback
	before    *mih.Table  // what table was before, for rollback
	freshCode uint64      // a block whose first code number is freshCode or more has never been written
	firstCode uint32      // number of the first new code

	// number sets these and then closes numbered.
	numbers  []uint32 // by item: number of its code, or noCode
	singles  []uint64 // code number << 32 | row: older codes that this one row carried before, and now others too; ascending
	numbered chan struct{}
}

// noCode stands for the number of a code if an item has none. No code has this number.
const noCode = 1<<32 - 1

// number is the task that adds the rows to the table of codes, in memory, and keeps the
// number of each item's code. New codes get numbers in the order of the items, as a
// transaction would give them. The error is mih.ErrFull, or the end of ctx.
//
// The codes in singles change their form in the store: the row that stood beside the code
// moves to a layer, and codec.ManyRows takes its place.
func (k *codeRecords) number(ctx context.Context) error {
	t := k.table.Table()
	numbers := make([]uint32, k.of.codes.len())
	for i := range numbers {
		numbers[i] = noCode
	}
	err := k.of.codes.eachCode(func(i int, c codec.Code) error {
		if i%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, isNew, err := k.table.Number(c)
		if err != nil {
			return err
		}
		// An older code of one row gets another row now: it becomes one of the singles. The second
		// time it has more rows, and is one already.
		if !isNew && n < k.firstCode && t.Cardinality(n) == 1 {
			for row := range t.Rows(n).All() {
				k.singles = append(k.singles, uint64(n)<<32|uint64(row))
			}
		}
		k.table.Add(n, k.of.row(i))
		numbers[i] = n
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(k.singles)
	k.numbers = numbers
	close(k.numbered)
	return nil
}

// writeRowCodes writes the number of each row's code, in blocks by row.
func (k *codeRecords) writeRowCodes(t *store.Stream) error {
	if err := t.Wait(k.numbered); err != nil {
		return err
	}
	b := newBlockStream(t, k.Block(codec.KindRowCodes, 0), codec.RowCodeBytes, k.of.freshRow)
	var entry []byte
	for i, n := range k.numbers {
		if n == noCode {
			continue
		}
		from := k.of.codes.from(i)
		entry = codec.RowCode{Code: n, Provenance: from, Revision: k.of.space.Revision}.Append(entry[:0])
		if err := b.set(k.of.row(i), entry); err != nil {
			return err
		}
	}
	return b.flush()
}

// writeCodes writes the new codes, in blocks by number. Beside a code stands the row that
// carries it, or codec.ManyRows. It also writes the singles, which had their row there.
func (k *codeRecords) writeCodes(t *store.Stream) error {
	if err := t.Wait(k.numbered); err != nil {
		return err
	}
	q, table := k.Bits, k.table.Table()
	b := newBlockStream(t, k.Block(codec.KindCodes, 0), codec.CodeEntryBytes(q), k.freshCode)
	var entry []byte
	// Their numbers are below firstCode, so these blocks come first.
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

// writeCodeRows writes the rows of the codes that several rows carry, a layer for each code
// and container: the new rows, and the first row of each of the singles, which has not been
// in a layer yet.
func (k *codeRecords) writeCodeRows(t *store.Stream) error {
	if err := t.Wait(k.numbered); err != nil {
		return err
	}
	table := k.table.Table()
	pairs := slices.Clone(k.singles) // code number << 32 | row
	for i, n := range k.numbers {
		if n != noCode && table.Cardinality(n) > 1 {
			pairs = append(pairs, uint64(n)<<32|uint64(k.of.row(i)))
		}
	}
	// Sorted pairs are in the order of the keys: by code number, and then by the container of
	// the row, which pair >> 16 has together.
	slices.Sort(pairs)
	for len(pairs) > 0 {
		layer, container := codec.NewLayer(), pairs[0]>>16
		for len(pairs) > 0 && pairs[0]>>16 == container {
			layer.Added.Add(uint32(uint16(pairs[0])))
			pairs = pairs[1:]
		}
		n := uint32(container >> 16)
		key := k.RowsKey(n, uint16(container))
		if err := putLayer(t, key, layer, n >= k.firstCode); err != nil {
			return err
		}
	}
	return nil
}

// writePostings writes the postings of the new codes for the substrings from to to-1: for
// each value of a substring the numbers of the codes that have it. It sorts the codes by
// value with a counting sort, in 6 bytes a code and 4 bytes for each value, of which there
// are at most 65,536. Codes that were there have their postings.
func (k *codeRecords) writePostings(t *store.Stream, from, to int) error {
	if err := t.Wait(k.numbered); err != nil {
		return err
	}
	table := k.table.Table()
	split, count := record.Split(k.Bits), int(table.Next()-k.firstCode)
	codes := make([]uint16, count)
	sorted := make([]uint32, count)
	var key []byte
	for j := from; j < to; j++ {
		// ends[v+1] counts the codes with value v, then ends[v] is where they begin in sorted,
		// and at last where they end.
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
			key = k.AppendPosting(key[:0], uint16(j), uint32(v))
			// If there were codes before, a posting may be there, and this one is merged with it.
			if err := t.Records.Posting(key, sorted[begin:end], nil, k.firstCode == 0); err != nil {
				return err
			}
			begin = end
		}
	}
	return nil
}
