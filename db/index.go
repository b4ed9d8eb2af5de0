package db

import (
	"cmp"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/mih"
)

// This file keeps what is stored of the codes of a space in step with the table
// in memory: which code a row has, the codes, which rows carry each, and the
// postings of their substrings.

// storedSplit returns how codes of q bits are cut for the stored postings: into
// 16 bits each, whatever their number, as postings cannot be cut anew when a
// collection grows. With a million codes a posting has some 15 numbers.
func storedSplit(q int) mih.Split { return mih.NewSplit(q, (q+15)/16) }

// A postingChange adds the number of a code to a posting of the active space of a
// collection, or takes it out.
type postingChange struct {
	collection, value, n uint32
	substring            uint16
	out                  bool
}

// compare orders changes by the key of the posting and then by the number.
func (a postingChange) compare(b postingChange) int {
	switch {
	case a.collection != b.collection:
		return cmp.Compare(a.collection, b.collection)
	case a.substring != b.substring:
		return cmp.Compare(a.substring, b.substring)
	case a.value != b.value:
		return cmp.Compare(a.value, b.value)
	}
	return cmp.Compare(a.n, b.n)
}

// samePosting reports whether both change the same posting.
func (a postingChange) samePosting(b postingChange) bool {
	return a.value == b.value && a.substring == b.substring && a.collection == b.collection
}

// postingEditBytes estimates what one edit takes in a batch.
const postingEditBytes = 32

// setPosting adds the number of a code to its postings, or takes it out.
func (g *group) setPosting(s *collectionState, n uint32, c codec.Code, in bool) {
	split := storedSplit(s.space.Bits)
	for j := range split.Len() {
		g.postings = append(g.postings, postingChange{s.ID, split.Of(c, j), n, uint16(j), !in})
	}
}

// finishPostings adds the edits of postings to the batch, in the order of their
// keys: then each is near the one before in the tree that the storage engine puts
// them into.
func (g *group) finishPostings() error {
	slices.SortFunc(g.postings, postingChange.compare)
	var key, value []byte
	var added, deleted []uint32
	for rest := g.postings; len(rest) > 0; {
		first := rest[0]
		added, deleted = added[:0], deleted[:0]
		for len(rest) > 0 && rest[0].samePosting(first) {
			// A number that the group has added may be taken out again, never the
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
		s := g.c.states[first.collection]
		key = codec.AppendSubstringKey(key[:0], s.ID, s.space.ID, 0, first.substring, first.value)
		value = codec.AppendPosting(value[:0], added, deleted)
		if err := g.batch.Merge(key, value, nil); err != nil {
			return err
		}
	}
	return nil
}

// setCode makes enc the code of the row; an empty one takes away the code that
// it has.
func (g *group) setCode(s *collectionState, row uint32, enc encoding) error {
	if s.space == nil {
		return nil
	}
	old, had := s.table.Table().CodeOf(row)
	same := had && enc.code != nil && slices.Equal(s.table.Table().Code(old), enc.code)
	if had && !same {
		g.unlinkCode(s, old, row)
	}
	rowCodes := func() *codec.BlockEdit { return g.spaceBlock(codec.KindRowCodes, s, row, codec.RowCodeBytes) }
	if enc.code != nil {
		if !same {
			n, isNew, err := s.table.Number(enc.code)
			if err != nil {
				return err
			}
			g.linkCode(s, n, row, isNew)
			old = n
		}
		rowCodes().Set(byte(row), codec.RowCode{Code: old, Provenance: enc.from, Revision: s.space.Revision}.Append(nil))
	} else if had {
		rowCodes().Clear(byte(row))
	}
	if width := s.space.projectionBytes(); width > 0 {
		projections := g.spaceBlock(codec.KindProjection, s, row, width)
		if enc.projection != nil {
			projections.Set(byte(row), enc.projection)
		} else {
			projections.Clear(byte(row))
		}
	}
	return nil
}

// linkCode records that a row carries code number n.
func (g *group) linkCode(s *collectionState, n, row uint32, isNew bool) {
	t := s.table.Table()
	rows := t.Rows(n)
	switch {
	case isNew:
		g.setPosting(s, n, t.Code(n), true)
		g.setCodeEntry(s, n, row)
	case rows.Len() == 1:
		g.setCodeEntry(s, n, codec.ManyRows)
		for first := range rows.All() {
			g.setCodeRow(s, n, first, true)
		}
		fallthrough
	default:
		g.setCodeRow(s, n, row, true)
	}
	s.table.Add(n, row)
}

// unlinkCode records that a row does not carry code number n any more.
func (g *group) unlinkCode(s *collectionState, n, row uint32) {
	t := s.table.Table()
	c := t.Code(n)
	s.table.Remove(n, row)
	rows := t.Rows(n)
	if rows.Len() == 0 {
		g.setPosting(s, n, c, false)
		g.codeBlock(s, n).Clear(byte(n))
		return
	}
	g.setCodeRow(s, n, row, false)
	if rows.Len() == 1 {
		for last := range rows.All() {
			g.setCodeRow(s, n, last, false)
			g.setCodeEntry(s, n, last)
		}
	}
}

func (g *group) codeBlock(s *collectionState, n uint32) *codec.BlockEdit {
	return g.spaceBlock(codec.KindCodes, s, n, codec.CodeEntryBytes(s.space.Bits))
}

func (g *group) setCodeEntry(s *collectionState, n, row uint32) {
	g.codeBlock(s, n).Set(byte(n), codec.AppendCodeEntry(nil, s.table.Table().Code(n), s.space.Bits, row))
}

// setCodeRow adds a row to the stored rows of a code that several carry, or
// takes it out.
func (g *group) setCodeRow(s *collectionState, n, row uint32, in bool) {
	l := g.layer(codec.CodeRowsKey(s.ID, s.space.ID, 0, n, uint16(row>>16)))
	if in {
		l.Add(uint16(row))
	} else {
		l.Delete(uint16(row))
	}
}
