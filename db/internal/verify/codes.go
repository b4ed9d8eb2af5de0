package verify

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// A codeVerifier looks at the codes of a space. Four kinds of records must agree:
//
//   - codes of rows: by row, the number of its code, and what that was made of;
//   - codes: by number, the bits, and beside them the one row that carries the code, or
//     codec.ManyRows;
//   - rows of codes: by number and container, the rows of a code that several carry;
//   - postings: by substring and value, the numbers of the codes that have it.
//
// A code whose last row has gone is deleted, so each stored code has a row. The verifier holds
// the first two in memory, and stays until the space is done.
type codeVerifier struct {
	*spaceVerifier
	record.CodeKeys                             // keys of the codes
	rows            record.ByBlock[carriedCode] // by row: its code, 12 bytes; set by readRows
	codes           record.ByBlock[storedCode]  // by code number: what is known of it, 8 bytes; set by readCodes
	bytes           map[uint32][]byte           // by block number: the bits of its 256 codes, one after the other
}

// A carriedCode is what a row says of its code.
type carriedCode struct {
	number   uint32           // of the code
	revision uint32           // that the code was made with
	from     codec.Provenance // what it was made of
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

// checkCodes looks at the codes. It returns the verifier, as recompute and projections need
// what it has read.
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

// prefix returns what the keys of a kind begin with.
func (c *codeVerifier) prefix(kind byte) []byte { return c.CodeKeys.Prefix(kind) }

// readRows reads and checks which code each row has. An entry of the right length that says
// something wrong still counts as the code of the row.
func (c *codeVerifier) readRows() {
	complete := c.entries(c.prefix(codec.KindRowCodes), c.about("codes of rows"), func(key []byte, row uint32, entry []byte) {
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

// checkRowCode checks what a row says of its code by itself: the item exists, and revision, code number and
// provenance are possible.
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
	complete := c.entries(c.prefix(codec.KindCodes), c.about("codes"), func(key []byte, n uint32, entry []byte) {
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
		c.missing(fmt.Sprintf("code of row %d", row), c.Block(codec.KindCodes, x.number), "code number %d does not name the row", x.number)
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
		c.walkPrefix(c.postingKey(uint16(j), 0)[:len(prefix)+2], c.about("postings"), func(key, value []byte) {
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
					c.missing(what, c.Block(codec.KindCodes, n), "code number %d is in it, and there is none", n)
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
				c.missing(fmt.Sprintf("posting %d of substring %d", substring, j), c.postingKey(uint16(j), substring), "code number %d is not in it", n)
			}
		})
	}
	c.walk(c.postingKey(uint16(split.Len()), 0), codec.PrefixEnd(prefix), c.about("postings"), func(key, _ []byte) {
		table, substring := codec.SubstringKeyParts(key)
		c.bad(fmt.Sprintf("posting %d of substring %d", substring, table), key, "codes have %d substrings", split.Len())
	})
}

// postingKey returns the key of the posting of a value, substring, in the table of a substring.
func (c *codeVerifier) postingKey(table uint16, substring uint32) []byte {
	return codec.SubstringKey(c.ID(), c.spaceID(), table, substring)
}

// checkUncoded looks at rows that could have a code and have none. It reports
// those that should. Rows that wait for another code, and those that a builder has not
// reached, need none yet.
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

// hasCode reports whether an item should have a code; one that cannot be read
// should not. With a label that the model knows it should. Without, its code was made of its
// features by the revision in use when it was written, which may not be the present one. That
// revision has given it no code if it has given it no projection: features that are far from
// all anchors get neither. So such an item should have a code only if the present revision
// gives one, and a projection is stored.
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
