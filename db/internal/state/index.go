package state

import (
	"cmp"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// This file keeps the stored records of a code set equal to its table in memory: the code of each row, the
// rows of each code, and the postings of substrings. Each change is made in both at once, so the table is
// always the store after the commit. bulk.spaceCodes writes the same records for many rows;
// db/in_memory_test.go and Verify compare all of them.

// A postingChange adds the number of a code to a posting of a code set, or takes it out. It takes only 16
// bytes: a code has one for each substring, and a transaction may have millions.
type postingChange struct {
	set       uint32 // index in Tx.sets
	value     uint32 // of the substring
	n         uint32 // number of the code
	substring uint16 // number of the substring in the cut of record.Split
	out       bool   // takes the number out
}

// compare orders changes by posting, then by number. Within a set that is the order of keys.
func (a postingChange) compare(b postingChange) int {
	switch {
	case a.set != b.set:
		return cmp.Compare(a.set, b.set)
	case a.substring != b.substring:
		return cmp.Compare(a.substring, b.substring)
	case a.value != b.value:
		return cmp.Compare(a.value, b.value)
	}
	return cmp.Compare(a.n, b.n)
}

// samePosting reports whether both change the same posting.
func (a postingChange) samePosting(b postingChange) bool {
	return a.value == b.value && a.substring == b.substring && a.set == b.set
}

// postingEditBytes estimates what one edit takes in a batch.
const postingEditBytes = 32

// setPosting adds the number of a code to its postings, one for each substring of c, or takes it out. A code
// enters its postings with its first row and leaves with the last, so most writes, whose codes exist, touch
// no posting.
func (tx *Tx) setPosting(set *CodeSet, n uint32, c codec.Code, in bool) {
	at := slices.Index(tx.sets, set)
	if at < 0 {
		at = len(tx.sets)
		tx.sets = append(tx.sets, set)
	}
	split := record.Split(set.Bits)
	for j := range split.Len() {
		tx.postings = append(tx.postings, postingChange{uint32(at), split.Of(c, j), n, uint16(j), !in})
	}
}

// finishPostings adds the posting edits to the batch in key order, so each lands near the one before in the
// storage engine's tree.
func (tx *Tx) finishPostings() error {
	slices.SortFunc(tx.postings, postingChange.compare)
	var key []byte
	var added, deleted []uint32
	for rest := tx.postings; len(rest) > 0; {
		first := rest[0]
		added, deleted = added[:0], deleted[:0]
		for len(rest) > 0 && rest[0].samePosting(first) {
			// The transaction may take out a number that it has added, never the reverse: numbers are not
			// reused.
			n, out := rest[0].n, false
			for ; len(rest) > 0 && rest[0].n == n && rest[0].samePosting(first); rest = rest[1:] {
				out = out || rest[0].out
			}
			if out {
				deleted = append(deleted, n)
			} else {
				added = append(added, n)
			}
		}
		key = tx.sets[first.set].AppendPosting(key[:0], first.substring, first.value)
		if err := tx.records.Posting(key, added, deleted, false); err != nil {
			return err
		}
	}
	return nil
}

// SetCodes sets the code and the stored projection of a row in a space; the zero Encoding removes them. It
// changes tables, the batch and the numbers of the space; the caller calls Touch. It cannot fail if the codes
// of the collection are loaded and RoomFor has admitted a new code.
func (tx *Tx) SetCodes(s *CollectionState, sp *SpaceState, row uint32, enc spaces.Encoding) error {
	if err := tx.setCode(s, sp, row, enc); err != nil {
		return err
	}
	if width := sp.ProjectionBytes(); width > 0 {
		projections := tx.rowBlock(s, sp, sp.Codes.CodeKeys, codec.KindProjection, row, width)
		if enc.Projection != nil {
			projections.Set(byte(row), enc.Projection)
		} else {
			projections.Clear(byte(row))
		}
		var direction []byte // nil: the row has none
		if enc.Projection != nil {
			direction = codec.Direction(enc.Projection)
		}
		sp.Directions.put(row, direction)
	}
	return nil
}

// setCode sets the code of a row to given, or removes it if given has none. An unchanged code is marked with
// the present provenance and revision.
func (tx *Tx) setCode(s *CollectionState, sp *SpaceState, row uint32, given spaces.Encoding) error {
	set := sp.Codes
	old, had := set.Table.Table().CodeOf(row)
	same := had && given.Code != nil && slices.Equal(set.Table.Table().Code(old), given.Code)
	if had && !same {
		tx.unlinkCode(set, old, row)
	}
	rowCodes := func() *codec.BlockEdit {
		return tx.rowBlock(s, sp, set.CodeKeys, codec.KindRowCodes, row, codec.RowCodeBytes)
	}
	if given.Code != nil {
		if !same {
			n, isNew, err := set.Table.Number(given.Code)
			if err != nil {
				return err
			}
			tx.linkCode(set, n, row, isNew)
			old = n
		}
		rowCodes().Set(byte(row), codec.RowCode{Code: old, Provenance: given.From, Revision: set.in.Revision}.Append(nil))
	} else if had {
		rowCodes().Clear(byte(row))
	}
	return nil
}

// linkCode records that a row has code number n. isNew says that no row has had n before. A single row is
// stored beside the code; with a second row both move to layers of rows.
func (tx *Tx) linkCode(set *CodeSet, n, row uint32, isNew bool) {
	t := set.Table.Table()
	rows := t.Rows(n)
	switch {
	case isNew:
		tx.setPosting(set, n, t.Code(n), true)
		tx.setCodeEntry(set, n, row)
	case rows.Len() == 1:
		tx.setCodeEntry(set, n, codec.ManyRows)
		for first := range rows.All() {
			tx.setCodeRow(set, n, first, true)
		}
		fallthrough
	default:
		tx.setCodeRow(set, n, row, true)
	}
	set.Table.Add(n, row)
}

// unlinkCode records that a row no longer has code number n. A code without rows loses its postings and, for
// good, its number. If one row is left, it moves back beside the code.
func (tx *Tx) unlinkCode(set *CodeSet, n, row uint32) {
	t := set.Table.Table()
	c := t.Code(n)
	set.Table.Remove(n, row)
	rows := t.Rows(n)
	if rows.Len() == 0 {
		tx.setPosting(set, n, c, false)
		tx.codeBlock(set, n).Clear(byte(n))
		return
	}
	tx.setCodeRow(set, n, row, false)
	if rows.Len() == 1 {
		for last := range rows.All() {
			tx.setCodeRow(set, n, last, false)
			tx.setCodeEntry(set, n, last)
		}
	}
}

// rowBlock returns the edit of the block of a kind in the space that holds a row. Entries have width bytes.
func (tx *Tx) rowBlock(s *CollectionState, sp *SpaceState, k record.CodeKeys, kind byte, row uint32, width int) *codec.BlockEdit {
	first := uint64(row) / codec.BlockRows * codec.BlockRows
	return tx.Block(k.Block(kind, row), width, sp.fresh || first >= s.FreshRow)
}

// codeBlock returns the edit of the block for code number n.
func (tx *Tx) codeBlock(set *CodeSet, n uint32) *codec.BlockEdit {
	first := uint64(n) / codec.BlockRows * codec.BlockRows
	return tx.Block(set.Block(codec.KindCodes, n), codec.CodeEntryBytes(set.Bits), first >= set.FreshCode)
}

// setCodeEntry writes the entry of code number n with the row beside it.
func (tx *Tx) setCodeEntry(set *CodeSet, n, row uint32) {
	tx.codeBlock(set, n).Set(byte(n), codec.AppendCodeEntry(nil, set.Table.Table().Code(n), set.Bits, row))
}

// setCodeRow adds a row to the stored rows of a code that several rows have, or takes it out.
func (tx *Tx) setCodeRow(set *CodeSet, n, row uint32, in bool) {
	l := tx.layer(set.RowsKey(n, uint16(row>>16)))
	if in {
		l.Add(uint16(row))
	} else {
		l.Delete(uint16(row))
	}
}
