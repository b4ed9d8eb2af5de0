package verify

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// Four kinds of records of a space have to agree:
//
//   - codes of rows: by row, the number of its code, and the source of the code;
//   - codes: by number, the bits, and beside them the one row that carries the code, or codec.ManyRows;
//   - rows of codes: by number and container, the rows of a code that several carry;
//   - postings: by substring and value, the numbers of the codes that have it, below CodeCounters.Posted.
//
// A code whose last row has gone is deleted, so each stored code has a row.

// A codesRead has what checkCodes has read of the codes of a space.
type codesRead struct {
	*spaceVerifier
	record.CodeKeys
	distinct    uint64
	many        *roaring.Bitmap // codes that several rows carry
	once, twice *roaring.Bitmap // codes that so many rows of codes name, or more
	hashes      []hashedCode    // of all codes, the first time
}

// A hashedCode is the hash and the number of a code.
type hashedCode struct {
	hash uint64
	n    uint32
}

// checkCodes compares the codes of rows with codes and rows of codes, and codes with postings.
func (s *spaceVerifier) checkCodes() {
	c := &codesRead{spaceVerifier: s, CodeKeys: s.codeKeys(), many: roaring.New(), once: roaring.New(),
		twice: roaring.New()}
	codesKnown, rowsKnown := false, false
	s.compare(func(f *comparison) {
		c.distinct, c.once, c.twice = 0, roaring.New(), roaring.New()
		s.begin("codes")
		codesKnown = c.readCodes(f)
		c.readCarriers(f)
		s.begin("codes of rows")
		rowsKnown = c.readRowCodes(f)
		s.begin("postings")
		c.readPostings(f)
	})
	if codesKnown && c.distinct != s.n.Codes {
		s.badCounters("%d distinct codes in space %d, it says %d", c.distinct, s.id, s.n.Codes)
	}
	if rowsKnown && s.coded.GetCardinality() != s.n.Coded {
		s.badCounters("%d items have a code in space %d, it says %d", s.coded.GetCardinality(), s.id,
			s.n.Coded)
	}
	for it := roaring.AndNot(c.many, c.twice).Iterator(); it.HasNext() && s.err == nil; {
		if n := it.Next(); !s.lostAny(c.AllRows(n)) {
			s.bad(c.RowsKey(n, 0), 0, "fewer than two, and several are to carry it")
		}
	}
	for it := roaring.AndNot(c.once, c.many).Iterator(); codesKnown && it.HasNext() && s.err == nil; {
		s.bad(c.RowsKey(it.Next(), 0), 0, "one row stands beside the code itself, or there is no such code")
	}
	c.findEqual()
	s.begin("rows without a code")
	s.checkUncoded()
}

// codeKeys tells where the codes of the space are.
func (s *spaceVerifier) codeKeys() record.CodeKeys {
	return record.CodeKeys{Collection: s.ID, Space: s.id, Bits: s.sp.Bits}
}

// tellCode tells that a row has a code.
func (c *codesRead) tellCode(f *comparison, side int, row, n uint32) {
	f.tell(side, fact{codec.KindCodes, row, uint64(n)}, func() (primary, derived place) {
		derived = place{c.Block(codec.KindCodes, n), n}
		if c.many.Contains(n) {
			derived = place{c.RowsKey(n, uint16(row>>16)), 0}
		}
		return place{c.Block(codec.KindRowCodes, row), row}, derived
	})
}

// tellPosting tells that a code has a value in one of its substrings.
func (c *codesRead) tellPosting(f *comparison, side int, n uint32, table uint16, value uint32) {
	f.tell(side, fact{codec.KindSubstring, n, uint64(table)<<32 | uint64(value)}, func() (_, _ place) {
		return place{c.Block(codec.KindCodes, n), n},
			place{codec.SubstringKey(c.ID, c.id, table, value), 0}
	})
}

// readCodes reads the codes. An entry of the right length counts as a code even if something is wrong with
// it, so that rows and postings which name it are no further findings.
func (c *codesRead) readCodes(f *comparison) (complete bool) {
	q := c.CodeKeys.Bits
	code, split := codec.NewCode(q), record.Split(q)
	seed := maphash.MakeSeed()
	c.hashes = nil
	return c.entries(c.Prefix(codec.KindCodes), func(key []byte, n uint32, entry []byte) {
		row, err := codec.DecodeCodeEntry(code, q, entry)
		if err != nil {
			c.undecoded(key, n, err)
			return
		}
		if uint64(n) >= c.n.NextCode {
			c.bad(key, n, "the next one is %d", c.n.NextCode)
		}
		c.distinct++
		c.hashes = append(c.hashes, hashedCode{maphash.Bytes(seed, entry[:codec.Bytes(q)]), n})
		for j := 0; uint64(n) < c.n.Posted && j < split.Len(); j++ {
			c.tellPosting(f, byPrimary, n, uint16(j), split.Of(code, j))
		}
		if row == codec.ManyRows {
			c.many.Add(n)
		} else {
			c.tellCode(f, byDerived, row, n)
		}
	})
}

// readCarriers reads the rows of codes that several rows carry. Rows come and go by merges: a layer may be
// left with none, until a compaction removes it.
func (c *codesRead) readCarriers(f *comparison) {
	c.walk(c.Prefix(codec.KindCodeRows), func(key, value []byte) {
		n, container := codec.CodeRowsKeyParts(key)
		rows := c.layer(key, value, container)
		if rows == nil || rows.IsEmpty() {
			return
		}
		if rows.GetCardinality() > 1 || c.once.Contains(n) {
			c.twice.Add(n)
		}
		c.once.Add(n)
		for it := rows.Iterator(); it.HasNext(); {
			c.tellCode(f, byDerived, it.Next(), n)
		}
	})
}

// readRowCodes reads and checks which code each row has. An entry of the right length that says
// something wrong still counts as the code of the row.
func (c *codesRead) readRowCodes(f *comparison) (complete bool) {
	return c.entries(c.Prefix(codec.KindRowCodes), func(key []byte, row uint32, entry []byte) {
		if len(entry) != codec.RowCodeBytes {
			c.undecoded(key, row, fmt.Errorf("%d bytes, not %d", len(entry), codec.RowCodeBytes))
			return
		}
		rc, err := codec.DecodeRowCode(entry)
		if err == nil {
			err = c.checkRowCode(row, rc)
		}
		if err != nil {
			c.bad(key, row, "%s", fault.Problem(err))
		}
		c.coded.Add(row)
		if rc.Provenance != codec.ProvenanceLabels {
			c.unlabelled.Add(row)
		}
		if c.revisions[rc.Revision] == nil {
			c.revisions[rc.Revision] = roaring.New()
		}
		c.revisions[rc.Revision].Add(row)
		c.tellCode(f, byPrimary, row, rc.Code)
	})
}

// checkRowCode checks the code entry of a row without other records: the item exists, and revision, code
// number and provenance are possible.
func (s *spaceVerifier) checkRowCode(row uint32, rc codec.RowCode) error {
	switch {
	case s.dead(row):
		return errors.New("the row has no item")
	case rc.Revision == 0 || uint64(rc.Revision) > s.n.Revision:
		return fmt.Errorf("of revision %d, the one in use is %d", rc.Revision, s.n.Revision)
	case uint64(rc.Code) >= s.n.NextCode:
		return fmt.Errorf("code number %d, the next one is %d", rc.Code, s.n.NextCode)
	}
	// From ProvenanceModality on the code is the projection of one modality, by its position.
	ok, p := false, rc.Provenance
	switch {
	case s.CodesOnly():
		ok = p == codec.ProvenanceGiven
	case p == codec.ProvenanceLabels, p == codec.ProvenanceFused:
		ok = true
	case p >= codec.ProvenanceModality && s.sp.Trained != nil:
		ok = slices.Contains(s.sp.Positions, int(p-codec.ProvenanceModality))
	case p >= codec.ProvenanceModality:
		ok = int(p-codec.ProvenanceModality) < len(s.Modalities)
	}
	if !ok {
		return fmt.Errorf("unknown provenance %d", p)
	}
	return nil
}

// readPostings reads the postings of all substrings. Numbers of a posting ascend, as decoding checks.
func (c *codesRead) readPostings(f *comparison) {
	split := record.Split(c.CodeKeys.Bits)
	var numbers []uint32
	c.walk(c.Prefix(codec.KindSubstring), func(key, value []byte) {
		table, substring := codec.SubstringKeyParts(key)
		if int(table) >= split.Len() {
			c.bad(key, 0, "codes have %d substrings", split.Len())
			return
		}
		_, _, err := codec.DecodePosting(value)
		if err == nil {
			numbers, err = codec.AppendPostingCodes(numbers[:0], value)
		}
		if err != nil {
			c.undecoded(key, 0, err)
			return
		}
		for _, n := range numbers {
			c.tellPosting(f, byDerived, n, table, substring)
		}
	})
}

// findEqual reports codes that have two numbers.
func (c *codesRead) findEqual() {
	slices.SortFunc(c.hashes, func(a, b hashedCode) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.n, b.n))
	})
	for i := 1; i < len(c.hashes) && c.err == nil; i++ {
		a, b := c.hashes[i-1], c.hashes[i]
		if a.hash != b.hash {
			continue
		}
		// Hashes may be equal by chance.
		x, aerr := c.Code(c.snap, a.n, 0)
		y, berr := c.Code(c.snap, b.n, 0)
		if aerr == nil && berr == nil && slices.Equal(x, y) {
			c.bad(c.Block(codec.KindCodes, b.n), b.n, "it is the same code as number %d", a.n)
		}
	}
}

// checkUncoded looks at rows without a code, and reports the rows that should have one. Rows that wait for
// another code need none yet, nor do rows that a builder has not reached. In a codes-only collection each
// live row has a code; elsewhere it depends on labels and features.
func (s *spaceVerifier) checkUncoded() {
	rows := roaring.AndNot(s.live, s.coded)
	rows.AndNot(s.recode)
	if s.n.Building {
		rows.RemoveRange(s.n.Built, 1<<32) // how far the builder has got
	}
	for it := rows.Iterator(); it.HasNext() && s.err == nil; {
		row := it.Next()
		if key := s.blockAt(codec.KindRowCodes)(row); !s.lost(key) && (s.CodesOnly() || s.hasCode(row)) {
			s.bad(key, row, "missing")
		}
	}
}

// hasCode reports whether an item should have a code; an unreadable item should not. An item with a label
// that the model knows should. The code of any other item was made of its features, by the revision in use
// when the item was written, which may not be the present one. That revision gave no code if it gave no
// projection: features far from all anchors get neither. So such an item should have a code only if the
// present revision gives one, and a projection is stored.
func (s *spaceVerifier) hasCode(row uint32) bool {
	if !s.readable || s.lost(s.itemAt(row)) {
		return false
	}
	it, err := s.item(row)
	if err != nil {
		return false
	}
	enc, err := s.sp.Encode(it.vectors, it.labels, nil)
	if err != nil || enc.Code == nil {
		return false
	}
	return enc.From == codec.ProvenanceLabels || s.projection(row) != nil
}

// projection returns the stored projection of a row; nil: there is none, or it cannot be read.
func (s *spaceVerifier) projection(row uint32) (b []byte) {
	_ = record.BlockEntry(s.snap, s.blockAt(codec.KindProjection)(row), row, func(entry []byte) error {
		b = slices.Clone(entry)
		return nil
	})
	return b
}

// Records may agree with each other and be wrong all the same: the features of an item may belong to another
// one. Only the model tells. Deep verification encodes every item again, with the revision that its code
// names, and compares. Codes that no kept revision can make again count as unchecked, and are no findings.

// A verifiedItem has the parts of an item that its codes are made of.
type verifiedItem struct {
	row     uint32
	vectors []model.Vector // by modality of the collection; none in an index-only collection
	labels  []uint32       // numbers, ascending
}

// item reads the parts of an item that its codes are made of. An error means that the item cannot be read;
// earlier checks have reported that.
func (c *collectionVerifier) item(row uint32) (*verifiedItem, error) {
	rec, err := record.ReadItem(c.snap, c.ID, row)
	if err != nil {
		return nil, err
	}
	c.done.Records++
	it := &verifiedItem{row: row, vectors: make([]model.Vector, len(c.Modalities)), labels: rec.Labels}
	for t, m := range c.Modalities {
		// A search goes by the set of the modality, and so does this: features without it have been
		// reported.
		if c.IndexOnly || !c.presence[t].Contains(row) {
			continue
		}
		x, found, err := record.ReadVector(c.snap, c.ID, row, t, m)
		if err == nil && !found {
			err = errors.New("missing")
		}
		if err != nil {
			return nil, err
		}
		c.done.Records++
		it.vectors[t] = x
	}
	return it, nil
}

// recomputedBlock is the number of items that are encoded together.
const recomputedBlock = 1024

// recompute makes the codes and projections of all coded rows again, each with the revision that its code
// names, and compares. One revision encodes many items together, on all cores.
func (s *spaceVerifier) recompute() {
	s.begin("codes made again")
	for _, revision := range slices.Sorted(maps.Keys(s.revisions)) {
		var items []*verifiedItem
		for rows := s.revisions[revision].Iterator(); rows.HasNext() && s.err == nil; {
			it, err := s.item(rows.Next())
			if err != nil { // reported before
				s.done.CodesUnchecked++
			} else {
				items = append(items, it)
			}
			if len(items) == recomputedBlock || !rows.HasNext() {
				s.recomputeItems(s.kept[revision], items)
				items = items[:0]
				s.look()
			}
		}
	}
}

// recomputeItems makes and compares the codes of items. If the revision is not kept, which sp nil says, or
// features are missing, only codes made of labels can be compared: all revisions give them the same.
func (s *spaceVerifier) recomputeItems(sp *spaces.Space, items []*verifiedItem) {
	if s.IndexOnly {
		sp = nil
	}
	encs := make([]spaces.Encoding, len(items))
	if sp != nil {
		failed := -1
		err := sp.EncodeAll(s.ctx, work.All(), encs, func(i int) ([]model.Vector, []uint32) {
			return items[i].vectors, items[i].labels
		}, func(i int, err error) error {
			failed = i
			return err
		})
		if s.err = cmp.Or(s.err, s.ctx.Err()); s.err == nil && err != nil {
			s.bad(s.itemAt(items[failed].row), 0, "its code cannot be made: %s", fault.Problem(err))
			s.done.CodesUnchecked += len(items)
			return
		}
	}
	for i, it := range items {
		enc := &encs[i]
		if code := codec.NewCode(s.sp.Bits); sp == nil && s.sp.Learned.LabelCode(code, it.labels) {
			enc.Code, enc.From = code, codec.ProvenanceLabels
		}
		labelled := !s.unlabelled.Contains(it.row)
		switch {
		case s.recode.Contains(it.row): // a label has grown since: the code is outdated
			s.done.CodesUnchecked++
		case sp == nil && enc.Code == nil && labelled:
			s.bad(s.blockAt(codec.KindRowCodes)(it.row), it.row,
				"of labels, and it has none that the model knows")
		case sp == nil && enc.Code == nil:
			s.done.CodesUnchecked++
		default:
			s.done.CodesChecked++
			s.compareCode(sp, it, enc)
		}
		if sp != nil {
			s.compareProjection(it.row, enc.Projection)
		}
	}
}

// compareCode compares the stored code of an item, and its source, with the result of encoding.
func (s *spaceVerifier) compareCode(sp *spaces.Space, it *verifiedItem, want *spaces.Encoding) {
	k := s.codeKeys()
	rc, found, err := k.RowCode(s.snap, it.row)
	if err != nil || !found {
		return // reported before
	}
	key := k.Block(codec.KindRowCodes, it.row)
	switch {
	case want.Code == nil:
		s.bad(key, it.row, "it has one, and neither features nor labels give one")
		return
	// Another provenance explains another code, so it is the one finding.
	case rc.Provenance != want.From:
		s.bad(key, it.row, "of provenance %d, not %d", rc.Provenance, want.From)
		return
	}
	code, err := k.Code(s.snap, rc.Code, it.row)
	if err != nil || slices.Equal(code, want.Code) {
		return
	}
	if want.From == codec.ProvenanceLabels {
		s.bad(key, it.row, "it is not that of its labels: %d bits differ", codec.Distance(code, want.Code))
	} else if wrong := wrongBits(sp, it, code); wrong > 0 {
		s.bad(key, it.row, "it is not that of its features: %d bits differ", wrong)
	}
}

// tieTolerance bounds the numbers of a projection whose sign may depend on the order of summation, as a part
// of the largest number: kernels for other processors sum in another order.
const tieTolerance = 1e-4

// wrongBits returns the number of bits in which a code differs from the signs of the fused projection of an
// item. Bits whose sign may depend on rounding do not count.
func wrongBits(sp *spaces.Space, it *verifiedItem, code codec.Code) (wrong int) {
	e := sp.Encoders.Get().(*spaces.Encoder)
	defer sp.Encoders.Put(e)
	if _, err := e.Project([][]model.Vector{it.vectors}); err != nil {
		return sp.Bits
	}
	fused, _ := e.Fuse(0)
	largest := 0.0
	for _, z := range fused {
		largest = max(largest, math.Abs(z))
	}
	want := codec.PackSigns(codec.NewCode(sp.Bits), fused)
	for j, z := range fused {
		if code.Bit(j) != want.Bit(j) && math.Abs(z) > tieTolerance*largest {
			wrong++
		}
	}
	return wrong
}

// compareProjection compares the stored projection of a row with the one that encoding gives, nil for none.
func (s *spaceVerifier) compareProjection(row uint32, want []byte) {
	key := s.blockAt(codec.KindProjection)(row)
	if s.lost(key) {
		return
	}
	switch entry := s.projection(row); {
	case entry == nil && want != nil:
		s.bad(key, row, "missing, and its features give one")
	case entry != nil && want == nil:
		s.bad(key, row, "its features give none")
	case len(entry) != len(want):
		// checkProjection has reported the length.
	case !sameProjection(entry, want):
		s.bad(key, row, "it is not that of its features")
	}
}

// sameProjection reports whether two stored projections of the same length are equal but for rounding, which
// may move a number by one. It skips the first four bytes, the length of the vector: checkProjection has
// compared that with the numbers.
func sameProjection(entry, want []byte) bool {
	for j := 4; j < len(want); j++ {
		if d := int(int8(entry[j])) - int(int8(want[j])); d < -1 || d > 1 {
			return false
		}
	}
	return true
}
