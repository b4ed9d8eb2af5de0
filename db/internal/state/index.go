package state

import (
	"cmp"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// This file keeps the records of a code set in step with its table in memory: which code a row
// has, the codes, which rows carry each, and the postings of their substrings. Each change is
// made in both at once, so that the table is always what the store will be after the commit.
// bulk.spaceCodes writes the same records for many rows; db/in_memory_test.go and Verify
// compare all of them.

// A postingChange adds the number of a code to a posting of a code set, or takes it out. It
// takes 16 bytes, as a code has one for each substring and a transaction may have millions.
type postingChange struct {
	set       uint32 // its place in Tx.sets
	value     uint32 // of the substring
	n         uint32 // number of the code
	substring uint16 // number of the substring in the cut of record.Split
	out       bool   // takes the number out
}

// compare orders changes by the posting and then by the number, those of one set as
// their keys are.
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

// setPosting adds the number of a code to its postings, one for each substring of c, or takes
// it out. Codes enter their postings when the first row gets them and leave with the last, so
// that most writes, whose codes are there already, touch no posting.
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

// finishPostings adds the edits of postings to the batch, in the order of their
// keys: then each is near the one before in the tree that the storage engine puts
// them into.
func (tx *Tx) finishPostings() error {
	slices.SortFunc(tx.postings, postingChange.compare)
	var key []byte
	var added, deleted []uint32
	for rest := tx.postings; len(rest) > 0; {
		first := rest[0]
		added, deleted = added[:0], deleted[:0]
		for len(rest) > 0 && rest[0].samePosting(first) {
			// A number that the transaction has added may be taken out again, never the
			// other way round: numbers are not used twice.
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

// SetCodes makes enc the code of the row in a space, and its stored
// projection; the zero Encoding takes away the code that it has. It changes tables, the batch
// and the numbers of the space; the caller calls Touch. The codes of the collection must be
// loaded, and RoomFor has to have admitted a new code: then there is no error.
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

// setCode makes the code of given that of the row, or takes the code away where given
// has none. A code that stays the same is marked with the present provenance and revision.
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

// linkCode records that a row carries code number n, which isNew says that no row has carried
// before. The row stands beside the code as long as it is the only one; with a second one both
// move to layers of rows.
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

// unlinkCode records that a row does not carry code number n any more. A code that no row
// carries loses its postings and its number for ever; one row that is left moves back beside
// the code.
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

// rowBlock returns the edit of the block of a kind of the space that holds a row. Entries have
// width bytes.
func (tx *Tx) rowBlock(s *CollectionState, sp *SpaceState, k record.CodeKeys, kind byte, row uint32, width int) *codec.BlockEdit {
	first := uint64(row) / codec.BlockRows * codec.BlockRows
	return tx.Block(k.Block(kind, row), width, sp.fresh || first >= s.FreshRow)
}

// codeBlock returns the edit of the block that has, or is to have, code number n.
func (tx *Tx) codeBlock(set *CodeSet, n uint32) *codec.BlockEdit {
	first := uint64(n) / codec.BlockRows * codec.BlockRows
	return tx.Block(set.Block(codec.KindCodes, n), codec.CodeEntryBytes(set.Bits), first >= set.FreshCode)
}

// setCodeEntry writes the entry of code number n, with the row that stands beside it.
func (tx *Tx) setCodeEntry(set *CodeSet, n, row uint32) {
	tx.codeBlock(set, n).Set(byte(n), codec.AppendCodeEntry(nil, set.Table.Table().Code(n), set.Bits, row))
}

// setCodeRow adds a row to the stored rows of a code that several carry, or
// takes it out.
func (tx *Tx) setCodeRow(set *CodeSet, n, row uint32, in bool) {
	l := tx.layer(set.RowsKey(n, uint16(row>>16)))
	if in {
		l.Add(uint16(row))
	} else {
		l.Delete(uint16(row))
	}
}
