package db

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A targetMender is what is known of the codes of one target of a space.
type targetMender struct {
	record.CodeKeys
	rows  byBlock[carriedCode] // the code of a row: first as it is stored, then as it is to be
	codes numberedCodes
}

// numberedCodes are codes with numbers, which they keep. Each has one.
type numberedCodes struct {
	size   int
	seed   maphash.Seed
	by     map[uint64]uint32 // hash -> number, or that of a code with the same hash: then the next hash
	blocks map[uint32][]byte // codes by block, one after the other
	there  *roaring.Bitmap
	same   map[uint32]uint32 // numbers of codes that have another number, too
	next   uint64
}

func newNumberedCodes(bits int) numberedCodes {
	return numberedCodes{
		size: codec.Bytes(bits), seed: maphash.MakeSeed(),
		by: map[uint64]uint32{}, blocks: map[uint32][]byte{}, there: roaring.New(), same: map[uint32]uint32{},
	}
}

// at returns the place of a code, nil where its block is not there.
func (x *numberedCodes) at(n uint32) []byte {
	block := x.blocks[n/codec.BlockRows]
	if block == nil {
		return nil
	}
	return block[int(n%codec.BlockRows)*x.size:][:x.size]
}

// of returns the code with a number, nil if there is none.
func (x *numberedCodes) of(n uint32) []byte {
	if !x.there.Contains(n) {
		return nil
	}
	return x.at(n)
}

// find returns the number of a code, or the hash under which it is to be put.
func (x *numberedCodes) find(code []byte) (n uint32, hash uint64, found bool) {
	hash = maphash.Bytes(x.seed, code)
	for {
		n, taken := x.by[hash]
		if !taken {
			return 0, hash, false
		}
		if string(x.at(n)) == string(code) {
			return n, hash, true
		}
		hash++
	}
}

// put adds a code with a number, and returns that, or the one that it has already.
func (x *numberedCodes) put(n uint32, code []byte) uint32 {
	other, hash, found := x.find(code)
	if found {
		if other != n {
			x.same[n] = other
		}
		return other
	}
	if x.blocks[n/codec.BlockRows] == nil {
		x.blocks[n/codec.BlockRows] = make([]byte, codec.BlockRows*x.size)
	}
	copy(x.at(n), code)
	x.by[hash] = n
	x.there.Add(n)
	x.next = max(x.next, uint64(n)+1)
	return n
}

// number returns the number of a code, a new one where it has none.
func (x *numberedCodes) number(code []byte) (uint32, error) {
	if n, _, found := x.find(code); found {
		return n, nil
	}
	if x.next >= record.MaxRows-1 {
		return 0, fmt.Errorf("%w: codes of a space", fault.ErrFull)
	}
	return x.put(uint32(x.next), code), nil
}

// readCodes reads which code the items have for a target, and the codes. claims, if not
// nil, hears of rows that stand beside codes.
func (c *collectionMender) readCodes(k record.CodeKeys, n codec.SpaceCounters, claims func(row, number uint32)) (*targetMender, error) {
	v := &targetMender{CodeKeys: k, codes: newNumberedCodes(k.Bits)}
	named := roaring.New()
	err := c.blocks(v.Prefix(codec.KindRowCodes), func(_ []byte, first uint32, b codec.Block) error {
		for i := range b.Len() {
			row := first + uint32(b.Offset(i))
			if rc, err := codec.DecodeRowCode(b.Entry(i)); err == nil && c.items.Contains(row) {
				*v.rows.put(row) = carriedCode{rc.Code, rc.Revision, rc.Provenance, carriedOnce}
				named.Add(rc.Code)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var next uint64 // as it is stored
	for _, set := range n.Sets {
		if set.View == k.Target {
			next = set.NextCode
		}
	}
	code := codec.NewCode(k.Bits)
	err = c.blocks(v.Prefix(codec.KindCodes), func(_ []byte, first uint32, b codec.Block) error {
		for i := range b.Len() {
			number := first + uint32(b.Offset(i))
			row, err := codec.DecodeCodeEntry(code, k.Bits, b.Entry(i))
			if err != nil || number >= record.MaxRows-1 || uint64(number) >= next && !named.Contains(number) && claims == nil {
				continue
			}
			v.codes.put(number, b.Entry(i)[:v.codes.size])
			if claims != nil && row != codec.ManyRows {
				claims(row, number)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if next <= 2*v.codes.next+1<<16 { // else it is damaged
		v.codes.next = max(v.codes.next, next)
	}
	v.rows.each(func(_ uint32, x *carriedCode) {
		if other, is := v.codes.same[x.number]; is && x.state != carriedNone {
			x.number = other
		}
	})
	return v, nil
}

// give makes a code that of a row.
func (v *targetMender) give(row uint32, code []byte, from codec.Provenance, revision uint32) error {
	n, err := v.codes.number(code)
	if err == nil {
		*v.rows.put(row) = carriedCode{n, revision, from, carriedOnce}
	}
	return err
}

// stored returns the code of a row, and what stands beside it; nil where there is none.
func (v *targetMender) stored(row uint32) ([]byte, carriedCode) {
	x := v.rows.get(row)
	if x == nil || x.state == carriedNone {
		return nil, carriedCode{}
	}
	code := v.codes.of(x.number)
	if code == nil {
		return nil, carriedCode{}
	}
	return code, *x
}

// take takes the code of a row away.
func (v *targetMender) take(row uint32) {
	if x := v.rows.get(row); x != nil {
		x.state = carriedNone
	}
}

// write writes everything that is stored of the codes, and returns the counters.
func (v *targetMender) write(newStream func() *store.Stream) (n codec.CodeCounters, err error) {
	n = codec.CodeCounters{View: v.Target, NextCode: v.codes.next}
	var pairs []uint64 // code number and row
	blocks := bulk.NewBlockStream(newStream(), v.Block(codec.KindRowCodes, 0), codec.RowCodeBytes, 0)
	defer func() { blocks.Stream.Finish() }()
	var entry []byte
	v.rows.each(func(row uint32, x *carriedCode) {
		if x.state == carriedNone || err != nil {
			return
		}
		pairs = append(pairs, uint64(x.number)<<32|uint64(row))
		entry = codec.RowCode{Code: x.number, Provenance: x.from, Revision: x.revision}.Append(entry[:0])
		err = blocks.Set(row, entry)
	})
	if err = errors.Join(err, blocks.Flush()); err != nil {
		return n, err
	}
	n.Coded = uint64(len(pairs))
	slices.Sort(pairs)
	codes := bulk.NewBlockStream(newStream(), v.Block(codec.KindCodes, 0), codec.CodeEntryBytes(v.Bits), 0)
	many := newStream()
	defer func() { codes.Stream.Finish(); many.Finish() }()
	var numbers []uint32
	code := codec.NewCode(v.Bits)
	for len(pairs) > 0 {
		number, end := uint32(pairs[0]>>32), 1
		for end < len(pairs) && uint32(pairs[end]>>32) == number {
			end++
		}
		row := uint32(pairs[0])
		if end > 1 {
			row = codec.ManyRows
			if err := v.writeCarriers(many, pairs[:end]); err != nil {
				return n, err
			}
		}
		code.SetBytes(v.codes.of(number))
		entry = codec.AppendCodeEntry(entry[:0], code, v.Bits, row)
		if err := codes.Set(number, entry); err != nil {
			return n, err
		}
		numbers, pairs = append(numbers, number), pairs[end:]
	}
	n.Codes = uint64(len(numbers))
	if err := codes.Flush(); err != nil {
		return n, err
	}
	return n, v.writePostings(newStream(), numbers)
}

// writeCarriers writes the rows of a code that several have.
func (v *targetMender) writeCarriers(t *store.Stream, pairs []uint64) error {
	for len(pairs) > 0 {
		l, container := codec.NewLayer(), pairs[0]>>16
		for len(pairs) > 0 && pairs[0]>>16 == container {
			l.Added.Add(uint32(uint16(pairs[0])))
			pairs = pairs[1:]
		}
		if err := bulk.PutLayer(t, v.CodeKeys.RowsKey(uint32(container>>16), uint16(container)), l, true); err != nil {
			return err
		}
	}
	return nil
}

// writePostings writes the postings of codes.
func (v *targetMender) writePostings(t *store.Stream, numbers []uint32) error {
	defer t.Finish()
	split := record.Split(v.Bits)
	code := codec.NewCode(v.Bits)
	sorted := make([]uint64, len(numbers)) // substring and number
	var key, value []byte
	var posting []uint32
	for j := range split.Len() {
		for i, n := range numbers {
			code.SetBytes(v.codes.of(n))
			sorted[i] = uint64(split.Of(code, j))<<32 | uint64(n)
		}
		slices.Sort(sorted)
		for rest := sorted; len(rest) > 0; {
			substring := rest[0] >> 32
			posting = posting[:0]
			for len(rest) > 0 && rest[0]>>32 == substring {
				posting = append(posting, uint32(rest[0]))
				rest = rest[1:]
			}
			key = v.AppendPosting(key[:0], uint16(j), uint32(substring))
			value = codec.AppendPosting(value[:0], posting, nil)
			if err := t.Set(key, value); err != nil {
				return err
			}
		}
	}
	return nil
}
