package verify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// A codeVerifier checks the codes of a space. Four kinds of records must agree:
//
//   - codes of rows: by row, the number of its code, and the source of the code;
//   - codes: by number, the bits, and beside them the one row that carries the code, or codec.ManyRows;
//   - rows of codes: by number and container, the rows of a code that several carry;
//   - postings: by substring and value, the numbers of the codes that have it.
//
// A code whose last row has gone is deleted, so each stored code has a row. The verifier holds the first two
// in memory, and stays until the space is done.
type codeVerifier struct {
	*spaceVerifier
	record.CodeKeys                             // keys of the codes
	rows            record.ByBlock[carriedCode] // by row: its code, 12 bytes; set by readRows
	// by code number: the facts found so far, 8 bytes; set by readCodes
	codes record.ByBlock[storedCode]
	// by block number: the bits of its 256 codes, one after the other
	bytes map[uint32][]byte
}

// A carriedCode is the stored entry of a row: its code.
type carriedCode struct {
	number   uint32           // of the code
	revision uint32           // that the code was made with
	from     codec.Provenance // its source
	state    byte             // carriedNone, carriedOnce or carriedTwice
}

// The states of the code of a row. The zero value is the state of a row that was never put.
const (
	carriedNone  = iota // the row has no code
	carriedOnce         // the row names a code, which has not named the row yet
	carriedTwice        // and the code names the row: the two agree
)

// A storedCode has the facts about a code that other records are compared with. Its bits are in
// codeVerifier.bytes.
type storedCode struct {
	there, many bool   // it is stored; and has codec.ManyRows beside it
	table       uint16 // 1 + the last substring in whose postings it has been found; 0: in none
	rows        uint32 // rows that it names so far
}

// checkCodes checks the codes. It returns the verifier, because recompute and projections need its contents.
func (s *spaceVerifier) checkCodes() *codeVerifier {
	c := &codeVerifier{spaceVerifier: s, CodeKeys: s.Space.Keys(s.ID()), bytes: map[uint32][]byte{}}
	c.begin("codes of rows")
	// The order: rows name their codes; codes and layers name their rows, and the two are compared
	// on the way; then codes among each other, and codes with postings; last the rows that name no
	// code.
	c.readRows()
	c.begin("codes")
	c.readCodes()
	c.readCarriers()
	c.compare()
	c.distinct()
	c.begin("postings")
	c.checkPostings()
	c.begin("rows without a code")
	c.checkUncoded()
	return c
}

// prefix returns the common prefix of all keys of a kind.
func (c *codeVerifier) prefix(kind byte) []byte { return c.CodeKeys.Prefix(kind) }

// readRows reads and checks which code each row has. An entry of the right length that says
// something wrong still counts as the code of the row.
func (c *codeVerifier) readRows() {
	complete := c.entries(c.prefix(codec.KindRowCodes), c.about("codes of rows"),
		func(key []byte, row uint32, entry []byte) {
			what := fmt.Sprintf("code of row %d", row)
			rc, err := codec.DecodeRowCode(entry)
			if err == nil {
				err = c.checkRowCode(row, rc)
			}
			if err != nil {
				c.bad(what, key, "%s", fault.Problem(err))
			}
			if len(entry) != codec.RowCodeBytes { // nothing can be read from it
				return
			}
			c.coded.Add(row)
			if rc.Provenance != codec.ProvenanceLabels {
				c.unlabelled.Add(row)
			}
			*c.rows.Put(row) = carriedCode{rc.Code, rc.Revision, rc.Provenance, carriedOnce}
		})
	if complete && c.coded.GetCardinality() != c.n.Coded {
		c.badCounters("%d items have a code, it says %d", c.coded.GetCardinality(), c.n.Coded)
	}
}

// checkRowCode checks the code entry of a row without other records: the item exists, and revision, code
// number and provenance are possible.
func (c *codeVerifier) checkRowCode(row uint32, rc codec.RowCode) error {
	switch {
	case c.dead(row):
		return fmt.Errorf("the row has no item")
	case rc.Revision == 0 || uint64(rc.Revision) > c.n.Revision:
		return fmt.Errorf("of revision %d, the one in use is %d", rc.Revision, c.n.Revision)
	case uint64(rc.Code) >= c.n.NextCode:
		return fmt.Errorf("code number %d, the next one is %d", rc.Code, c.n.NextCode)
	}
	ok := false
	switch p := rc.Provenance; {
	case c.CodesOnly():
		ok = p == codec.ProvenanceGiven
	// Fused: the weighted sum of the projections of several modalities. From ProvenanceModality on
	// it is the projection of one, by its position in the collection.
	case p == codec.ProvenanceLabels, p == codec.ProvenanceFused:
		ok = true
	case p >= codec.ProvenanceModality && c.Trained != nil:
		ok = slices.Contains(c.Positions, int(p-codec.ProvenanceModality))
	case p >= codec.ProvenanceModality:
		ok = int(p-codec.ProvenanceModality) < len(c.Modalities)
	}
	if !ok {
		return fmt.Errorf("unknown provenance %d", rc.Provenance)
	}
	return nil
}

// readCodes reads the codes, and checks the rows that stand beside them.
func (c *codeVerifier) readCodes() {
	q, distinct := c.CodeKeys.Bits, uint64(0)
	size := codec.Bytes(q)
	code := codec.NewCode(q)
	// An entry of the right length counts as a code even if something is wrong with it, so
	// that rows and postings which name it are no further findings.
	complete := c.entries(c.prefix(codec.KindCodes), c.about("codes"),
		func(key []byte, n uint32, entry []byte) {
			row, err := codec.DecodeCodeEntry(code, q, entry)
			if err == nil && uint64(n) >= c.n.NextCode {
				err = fmt.Errorf("the next one is %d", c.n.NextCode)
			}
			if err != nil {
				c.bad(codeName(n), key, "%s", fault.Problem(err))
			}
			if len(entry) != codec.CodeEntryBytes(q) {
				return
			}
			distinct++
			x := c.codes.Put(n)
			x.there, x.many = true, row == codec.ManyRows
			block := c.bytes[n/codec.BlockRows]
			if block == nil {
				block = make([]byte, codec.BlockRows*size)
				c.bytes[n/codec.BlockRows] = block
			}
			copy(block[n%codec.BlockRows*uint32(size):], entry[:size])
			if !x.many {
				c.carries(key, n, row)
			}
		})
	if complete && distinct != c.n.Codes {
		c.badCounters("%d distinct codes, it says %d", distinct, c.n.Codes)
	}
}

// codeName names a code in findings.
func codeName(n uint32) string { return fmt.Sprintf("code number %d", n) }

// code copies code number n, which is there, to into and returns that.
func (c *codeVerifier) code(into codec.Code, n uint32) codec.Code {
	size := uint32(codec.Bytes(c.CodeKeys.Bits))
	into.SetBytes(c.bytes[n/codec.BlockRows][n%codec.BlockRows*size:][:size])
	return into
}

// carries notes that code number n names a row, and reports it unless the row has that code
// and no code has named it before. key is the key of the naming record.
func (c *codeVerifier) carries(key []byte, n, row uint32) {
	c.codes.Put(n).rows++
	block := c.Block(codec.KindRowCodes, row)
	switch x := c.rows.Get(row); {
	case x == nil || x.state == carriedNone:
		c.missing(codeName(n), block, "row %d is to carry it, and has no code", row)
	case x.number != n:
		c.bad(codeName(n), key, "row %d is to carry it, and has code number %d", row, x.number)
	case x.state == carriedTwice:
		c.bad(codeName(n), key, "row %d is named twice", row)
	default:
		x.state = carriedTwice
	}
}

// readCarriers reads the rows of codes that several rows carry, which must have
// codec.ManyRows beside them.
func (c *codeVerifier) readCarriers() {
	c.walkPrefix(c.prefix(codec.KindCodeRows), c.about("rows of codes"), func(key, value []byte) {
		n, container := codec.CodeRowsKeyParts(key)
		l, err := codec.DecodeLayer(value)
		if err != nil {
			c.bad("rows of "+codeName(n), key, "%s", fault.Problem(err))
			c.lose(key)
			return
		}
		// Rows come and go by merges: a layer may be left with none, until a compaction removes it.
		if l.Added.IsEmpty() {
			return
		}
		if x := c.codes.Get(n); x == nil || !x.there {
			c.missing("rows of "+codeName(n), c.Block(codec.KindCodes, n), "there is no such code")
			return
		} else if !x.many {
			c.bad("rows of "+codeName(n), key, "one row stands beside the code itself")
			return
		}
		for it := l.Added.Iterator(); it.HasNext() && c.err == nil; {
			c.carries(key, n, uint32(container)<<16|it.Next())
		}
	})
}

// compare reports codes that say that several rows carry them and name fewer than two, and
// rows that no code has named.
func (c *codeVerifier) compare() {
	c.codes.Each(func(n uint32, x *storedCode) {
		if prefix := c.AllRows(n); x.many && x.rows < 2 && c.err == nil && !c.lostAny(prefix) {
			c.bad("rows of "+codeName(n), prefix, "%d, and several are to carry it", x.rows)
		}
	})
	c.rows.Each(func(row uint32, x *carriedCode) {
		// A layer of the code that could not be read may name the row.
		if x.state != carriedOnce || c.err != nil || c.lostAny(c.AllRows(x.number)) {
			return
		}
		c.missing(fmt.Sprintf("code of row %d", row), c.Block(codec.KindCodes, x.number),
			"code number %d does not name the row", x.number)
	})
}

// distinct reports codes that have two numbers. It sorts hashes of all codes, 16 bytes each,
// and compares the codes whose hashes are equal.
func (c *codeVerifier) distinct() {
	type hashed struct {
		hash uint64
		n    uint32
	}
	seed, size := maphash.MakeSeed(), uint32(codec.Bytes(c.CodeKeys.Bits))
	var all []hashed
	of := func(n uint32) []byte { return c.bytes[n/codec.BlockRows][n%codec.BlockRows*size:][:size] }
	c.codes.Each(func(n uint32, x *storedCode) {
		if x.there {
			all = append(all, hashed{maphash.Bytes(seed, of(n)), n})
		}
	})
	slices.SortFunc(all, func(a, b hashed) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.n, b.n))
	})
	for i := 1; i < len(all) && c.err == nil; i++ {
		// Hashes may be equal by chance, so compare the bytes.
		if a, b := all[i-1], all[i]; a.hash == b.hash && string(of(a.n)) == string(of(b.n)) {
			c.bad(codeName(b.n), c.Block(codec.KindCodes, b.n), "it is the same code as number %d", a.n)
		}
	}
}

// checkPostings looks at the postings of all substrings, one substring after the other: each
// code is in the posting of its value and in no other. Numbers of a posting ascend, as
// decoding checks, so none is there twice.
func (c *codeVerifier) checkPostings() {
	// One substring at a time, so that one number for each code is enough to know in which postings
	// it was found (storedCode.table).
	split := record.Split(c.CodeKeys.Bits)
	prefix := c.prefix(codec.KindSubstring)
	var numbers []uint32
	code := codec.NewCode(c.CodeKeys.Bits)
	for j := range split.Len() {
		c.walkPrefix(c.postingKey(uint16(j), 0)[:len(prefix)+2], c.about("postings"),
			func(key, value []byte) {
				_, substring := codec.SubstringKeyParts(key)
				what := fmt.Sprintf("posting %d of substring %d", substring, j)
				var err error
				if _, _, err = codec.DecodePosting(value); err == nil {
					numbers, err = codec.AppendPostingCodes(numbers[:0], value)
				}
				if err == nil && uint64(substring)>>split.Width(j) != 0 {
					err = fmt.Errorf("substring %d has %d bits", j, split.Width(j))
				}
				if err != nil {
					c.bad(what, key, "%s", fault.Problem(err))
					c.lose(key)
					return
				}
				for _, n := range numbers {
					x := c.codes.Get(n)
					switch {
					case x == nil || !x.there:
						c.missing(what, c.Block(codec.KindCodes, n),
							"code number %d is in it, and there is none",
							n)
					case split.Of(c.code(code, n), j) != substring:
						c.bad(what, key, "code number %d is in it, which has %d there", n, split.Of(code, j))
					default:
						x.table = uint16(j) + 1
					}
				}
			})
		c.codes.Each(func(n uint32, x *storedCode) {
			if x.there && x.table != uint16(j)+1 && c.err == nil {
				substring := split.Of(c.code(code, n), j)
				c.missing(fmt.Sprintf("posting %d of substring %d", substring, j),
					c.postingKey(uint16(j), substring), "code number %d is not in it", n)
			}
		})
	}
	c.walk(c.postingKey(uint16(split.Len()), 0), codec.PrefixEnd(prefix), c.about("postings"),
		func(key, _ []byte) {
			table, substring := codec.SubstringKeyParts(key)
			c.bad(fmt.Sprintf("posting %d of substring %d", substring, table), key,
				"codes have %d substrings",
				split.Len())
		})
}

// postingKey returns the key of the posting of a value, substring, in the table of a substring.
func (c *codeVerifier) postingKey(table uint16, substring uint32) []byte {
	return codec.SubstringKey(c.ID(), c.spaceID(), table, substring)
}

// checkUncoded looks at rows without a code, and reports the rows that should have one. Rows that wait for
// another code need none yet, nor do rows that a builder has not reached.
func (c *codeVerifier) checkUncoded() {
	limit := uint64(math.MaxUint32)
	if c.n.Building {
		limit = c.n.Built // how far the builder has got
	}
	for it := c.live.Iterator(); it.HasNext() && c.err == nil; {
		row := it.Next()
		if uint64(row) >= limit {
			break
		}
		if x := c.rows.Get(row); x != nil && x.state != carriedNone || c.recode.Contains(row) {
			continue
		}
		// In a codes-only collection each live row has a code. Elsewhere it depends on labels and
		// features.
		if !c.CodesOnly() && !c.hasCode(row) {
			continue
		}
		c.missing(fmt.Sprintf("code of row %d", row), c.Block(codec.KindRowCodes, row), "missing")
	}
}

// hasCode reports whether an item should have a code; an unreadable item should not. An item with a label
// that the model knows should. The code of any other item was made of its features, by the revision in use
// when the item was written, which may not be the present one. That revision gave no code if it gave no
// projection: features far from all anchors get neither. So such an item should have a code only if the
// present revision gives one, and a projection is stored.
func (c *codeVerifier) hasCode(row uint32) bool {
	if !c.readable || c.lost(codec.NumberKey(codec.KindItem, c.ID(), row)) {
		return false
	}
	it, err := c.item(row)
	if err != nil {
		return false
	}
	if c.IndexOnly { // there are no features
		return c.Learned.LabelCode(codec.NewCode(c.CodeKeys.Bits), it.labels)
	}
	enc, err := c.space().Encode(it.vectors, it.labels, nil)
	if err != nil || enc.Code == nil {
		return false
	}
	return enc.From == codec.ProvenanceLabels || c.hasProjection(row)
}

// hasProjection reports whether a projection of the row is stored and can be read.
func (s *spaceVerifier) hasProjection(row uint32) bool {
	found := false
	err := record.BlockEntry(s.snap, s.projectionKey(row), row, func([]byte) error {
		found = true
		return nil
	})
	return err == nil && found
}

// space returns the space. CodeKeys has a field Space too, its number.
func (c *codeVerifier) space() *spaces.Space { return c.spaceVerifier.Space }

// Records may agree with each other and be wrong all the same: the features of an item may belong to another
// one. Only the model tells. Deep verification encodes every item again, with the revision that its code
// names, and compares. It reads all features, and costs about as much as encoding all items. Codes that no
// kept revision can make again count as unchecked, and are no findings.

// A verifiedItem has the parts of an item that its codes are made of.
type verifiedItem struct {
	row     uint32
	vectors []model.Vector // by modality of the collection; none in an index-only collection
	labels  []uint32       // numbers, ascending
}

// item reads the parts of an item that its codes are made of. An error means that the item cannot be read;
// earlier checks have reported that.
func (c *collectionVerifier) item(row uint32) (*verifiedItem, error) {
	rec, err := record.ReadItem(c.snap, c.Descriptor.ID, row)
	if err != nil {
		return nil, err
	}
	c.done.Records++
	it := &verifiedItem{row: row, vectors: make([]model.Vector, len(c.Modalities)), labels: rec.Labels}
	if c.IndexOnly {
		return it, nil
	}
	for t, m := range c.Modalities {
		// A search goes by the set of the modality, and so does this: features without it have been
		// reported.
		if !c.presence[t].Contains(row) {
			continue
		}
		x, found, err := record.ReadVector(c.snap, c.Descriptor.ID, row, t, m)
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

// recomputedBlock is the number of items that are read before their codes are made.
const recomputedBlock = 1024

// recompute makes the codes and projections of all coded rows again, each with the revision that its code
// names, and compares. It gathers items by revision, because one revision encodes many items together, on all
// cores.
func (s *spaceVerifier) recompute(codes *codeVerifier) {
	s.begin("codes made again")
	// Items that wait to be encoded, recomputedBlock at most in all revisions together.
	byRevision := map[uint32][]*verifiedItem{}
	held := 0
	flush := func(revision uint32) {
		items := byRevision[revision]
		held -= len(items)
		delete(byRevision, revision)
		s.recomputeItems(codes, revision, items)
	}
	for rows := s.coded.Iterator(); rows.HasNext() && s.err == nil; {
		row := rows.Next()
		revision := codes.rows.Get(row).revision
		it, err := s.item(row)
		if err != nil { // reported before
			s.done.CodesUnchecked++
			continue
		}
		byRevision[revision] = append(byRevision[revision], it)
		if held++; held == recomputedBlock {
			for revision := range byRevision {
				flush(revision)
			}
			s.look()
		}
	}
	for revision := range byRevision {
		flush(revision)
	}
}

// A recomputedItem is the result of encoding an item.
type recomputedItem struct {
	enc   spaces.Encoding
	fused []float64 // the projection whose signs are the code; nil for a code made of labels
	err   error     // encoding has failed; the rest is zero
}

// recomputeItems makes and compares the codes of items of one revision. If the revision is not kept, or
// features are missing, only codes made of labels can be compared.
func (s *spaceVerifier) recomputeItems(codes *codeVerifier, revision uint32, items []*verifiedItem) {
	if s.err != nil {
		return
	}
	sp := s.kept[revision]
	switch {
	// The revision is not kept: its projections are gone, and labels alone can be compared.
	case sp == nil:
		s.recomputeLabels(codes, items)
		return
	case s.IndexOnly:
		s.compareLabels(codes, sp, items)
		return
	}
	out := make([]recomputedItem, len(items))
	runs := (len(items) + spaces.EncodeRun - 1) / spaces.EncodeRun
	err := work.ParallelBy(s.ctx, work.All(), 1, runs, func(run int) error {
		from, to := run*spaces.EncodeRun, min((run+1)*spaces.EncodeRun, len(items))
		recomputeRun(sp, items[from:to], out[from:to])
		return nil
	})
	if err != nil {
		s.err = err
		return
	}
	for i, it := range items {
		s.compareItem(codes, it, &out[i])
	}
}

// recomputeRun makes the codes of up to spaces.EncodeRun items, in one of several goroutines.
func recomputeRun(s *spaces.Space, items []*verifiedItem, out []recomputedItem) {
	e := s.Encoders.Get().(*spaces.Encoder)
	defer s.Encoders.Put(e)
	vectors := make([][]model.Vector, len(items))
	for i, it := range items {
		vectors[i] = it.vectors
	}
	if _, err := e.Project(vectors); err != nil {
		for i := range items { // one by one, to find the item that the error is about
			if _, err := e.Project(vectors[i : i+1]); err != nil {
				out[i].err = err
				continue
			}
			recomputeItem(s, e, 0, items[i], &out[i])
		}
		return
	}
	for i, it := range items {
		recomputeItem(s, e, i, it, &out[i])
	}
}

// recomputeItem makes the codes of an item, which is number i of the items that e has projected.
func recomputeItem(s *spaces.Space, e *spaces.Encoder, i int, it *verifiedItem, out *recomputedItem) {
	out.enc = s.EncodingOf(e, i, it.vectors, it.labels)
	if out.enc.Code != nil && out.enc.From != codec.ProvenanceLabels {
		// Fuse returns memory of the encoder, which the next call fills again.
		z, _ := e.Fuse(i)
		out.fused = slices.Clone(z)
	}
}

// compareItem compares the codes and the projection of an item with the stored ones.
func (s *spaceVerifier) compareItem(codes *codeVerifier, it *verifiedItem, got *recomputedItem) {
	if got.err != nil {
		s.done.CodesUnchecked++
		s.bad(rowName("item", it.row), codec.NumberKey(codec.KindItem, s.ID(), it.row),
			"its code cannot be made: %s", fault.Problem(got.err))
		return
	}
	if s.recode.Contains(it.row) { // a label of it has grown since: its code is outdated
		s.done.CodesUnchecked++
	} else {
		s.done.CodesChecked++
		codes.compareCode(it.row, got.enc.Code, got.enc.From, got.fused)
	}
	s.compareProjection(it.row, got.enc.Projection)
}

// tieTolerance bounds the numbers of a projection whose sign may depend on the order of summation, as a part
// of the largest number: kernels for other processors sum in another order.
const tieTolerance = 1e-4

// compareCode compares the stored code of a row, and its source, with the result of encoding. fused is the
// projection whose signs are the code; nil for a code made of labels.
func (c *codeVerifier) compareCode(row uint32, want codec.Code, from codec.Provenance, fused []float64) {
	x := c.rows.Get(row)
	if x == nil || x.state == carriedNone {
		return // checkUncoded has looked at that
	}
	what, key := fmt.Sprintf("code of row %d", row), c.Block(codec.KindRowCodes, row)
	if want == nil {
		c.bad(what, key, "it has one, and neither features nor labels give one")
		return
	}
	// Another provenance explains another code, so it is the one finding.
	if x.from != from {
		c.bad(what, key, "of provenance %d, not %d", x.from, from)
		return
	}
	if stored := c.codes.Get(x.number); stored == nil || !stored.there {
		return // reported before
	}
	code := c.code(codec.NewCode(c.CodeKeys.Bits), x.number)
	wrong := wrongBits(code, want, fused)
	switch {
	case wrong == 0:
	case fused == nil:
		c.bad(what, key, "it is not that of its labels: %d bits differ", wrong)
	default:
		c.bad(what, key, "it is not that of its features: %d bits differ", wrong)
	}
}

// wrongBits returns the number of bits in which code and want differ. If want has the signs of fused, bits
// whose sign may depend on rounding do not count; see tieTolerance. fused is nil for a code made of labels:
// then all bits count.
func wrongBits(code, want codec.Code, fused []float64) int {
	if fused == nil {
		return codec.Distance(code, want)
	}
	largest := 0.0
	for _, z := range fused {
		largest = max(largest, math.Abs(z))
	}
	wrong := 0
	for j, z := range fused {
		if code.Bit(j) != want.Bit(j) && math.Abs(z) > tieTolerance*largest {
			wrong++
		}
	}
	return wrong
}

// compareProjection compares the stored projection of a row with the one that encoding gives,
// nil for none. Rows ascend within a revision, so it keeps the block that it has read last.
func (s *spaceVerifier) compareProjection(row uint32, want []byte) {
	key := s.projectionKey(row)
	if s.lost(key) {
		return
	}
	what := fmt.Sprintf("projection of row %d", row)
	if !bytes.Equal(s.lastProjections.key, key) {
		b, err := record.Get(s.snap, key)
		var block codec.Block
		if err == nil && b != nil {
			block, err = codec.DecodeBlock(b)
		}
		if err != nil {
			return // reported before
		}
		s.lastProjections.key, s.lastProjections.block = key, block
	}
	entry, found := s.lastProjections.block.Lookup(byte(row))
	switch {
	case !found && want != nil:
		s.bad(what, key, "missing, and its features give one")
	case found && want == nil:
		s.bad(what, key, "its features give none")
	case !found || len(entry) != len(want):
		// There should be none, or checkProjection has reported the length.
	case !sameProjection(entry, want):
		s.bad(what, key, "it is not that of its features")
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

// recomputeLabels checks items whose revision is not kept. All revisions of a space give labels the same
// codes, so it compares with the present one. An item with these codes counts as checked, any other as
// unchecked, because its code cannot be made again.
func (s *spaceVerifier) recomputeLabels(codes *codeVerifier, items []*verifiedItem) {
	want, code := codec.NewCode(s.Bits()), codec.NewCode(s.Bits())
	for _, it := range items {
		same := s.Learned.LabelCode(want, it.labels)
		x := codes.rows.Get(it.row)
		stored := codes.codes.Get(x.number)
		if same && x.from == codec.ProvenanceLabels && stored != nil && stored.there &&
			slices.Equal(codes.code(code, x.number), want) {
			s.done.CodesChecked++
		} else {
			s.done.CodesUnchecked++
		}
	}
}
