package db

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// givenCodes are the codes of a collection whose items bring them. Nothing makes these
// again, but much of them is stored twice: rows name codes and codes rows, and postings
// hold the codes substring by substring.
type givenCodes struct{ *targetMender }

// readGiven reads the codes of a codes-only collection; items whose code is lost go.
func (c *collectionMender) readGiven() error {
	if !c.CodesOnly() {
		return nil
	}
	c.stage("codes")
	n := codec.SpaceCounters{ID: 1, Revision: 1}
	for _, stored := range c.counters.Spaces {
		if stored.ID == 1 {
			n = stored
		}
	}
	sp, err := c.givenSpace()
	if err != nil {
		return err
	}
	v, err := c.readTwice(sp.Keys(c.ID, record.SharedTarget), n, carriedCode{0, 1, codec.ProvenanceGiven, carriedOnce})
	if err != nil {
		return err
	}
	c.given = &givenCodes{v}
	for it := c.items.Clone().Iterator(); it.HasNext(); {
		row := it.Next()
		code, x := v.stored(row)
		if code != nil {
			x.from, x.revision = codec.ProvenanceGiven, 1
			*v.rows.Put(row) = x
			continue
		}
		v.take(row)
		if err := c.loseGiven(row); err != nil {
			return err
		}
	}
	return nil
}

// readTwice reads the codes of a target, and finds those of which part is lost where they
// are stored again. also is what is known of a row that only a code names.
func (c *collectionMender) readTwice(k record.CodeKeys, n codec.SpaceCounters, also carriedCode) (*targetMender, error) {
	claimed := map[uint32]uint32{} // by row
	claim := func(row, number uint32) {
		if c.items.Contains(row) {
			claimed[row] = number
		}
	}
	v, err := c.readCodes(k, n, claim)
	if err != nil {
		return nil, err
	}
	err = record.ForEach(c.store, k.Prefix(codec.KindCodeRows), func(key, value []byte) error {
		number, container := codec.CodeRowsKeyParts(key)
		if l, err := codec.DecodeLayer(value); err == nil {
			for it := l.Added.Iterator(); it.HasNext(); {
				claim(uint32(container)<<16|it.Next(), number)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	missing := map[uint32][]uint32{} // rows, by number of a code that is to be found
	for it := c.items.Iterator(); it.HasNext(); {
		row := it.Next()
		x := v.rows.Get(row)
		has := x != nil && x.state != carriedNone
		number, is := claimed[row]
		if same, twice := v.codes.same[number]; twice {
			number = same
		}
		switch {
		case has && v.codes.of(x.number) != nil:
			if is && number != x.number {
				c.bad(fmt.Sprintf("code of row %d", row), v.Block(codec.KindRowCodes, row), "the row has code number %d, and number %d is to be that of the row: the first one counts", x.number, number)
			}
		case is && v.codes.of(number) != nil:
			also.number = number
			*v.rows.Put(row) = also
		case has:
			missing[x.number] = append(missing[x.number], row)
		case is:
			also.number = number
			*v.rows.Put(row) = also
			missing[number] = append(missing[number], row)
		}
	}
	return v, c.findCodes(v, missing)
}

// givenSpace returns the one space of a codes-only collection.
func (c *collectionMender) givenSpace() (*spaces.Space, error) {
	sp, err := spaces.Read(c.store, c.Descriptor, 1, 1)
	if err == nil {
		return sp, nil
	}
	d := spaces.Stored{ID: 1, Bits: c.Bits, Created: spaces.Now()}
	if err := c.writeSpace(d, nil); err != nil {
		return nil, err
	}
	return spaces.New(d, nil, nil)
}

// findCodes finds codes that are lost by the postings of all their substrings, and
// gives them to rows.
func (c *collectionMender) findCodes(v *targetMender, missing map[uint32][]uint32) error {
	if len(missing) == 0 {
		return nil
	}
	type partial struct {
		code  codec.Code
		known []bool // by substring
		twice bool
	}
	bits := v.Bits
	split := record.Split(bits)
	found := map[uint32]*partial{}
	var numbers []uint32
	err := record.ForEach(c.store, v.Prefix(codec.KindSubstring), func(key, value []byte) (err error) {
		j, substring := codec.SubstringKeyParts(key)
		if int(j) >= split.Len() || uint64(substring)>>split.Width(int(j)) != 0 {
			return nil
		}
		if _, _, err := codec.DecodePosting(value); err != nil {
			return nil
		}
		if numbers, err = codec.AppendPostingCodes(numbers[:0], value); err != nil {
			return nil
		}
		from := 0
		for i := range int(j) {
			from += split.Width(i)
		}
		for _, n := range numbers {
			if missing[n] == nil {
				continue
			}
			p := found[n]
			if p == nil {
				p = &partial{code: codec.NewCode(bits), known: make([]bool, split.Len())}
				found[n] = p
			}
			p.twice = p.twice || p.known[j]
			p.known[j] = true
			for b := range split.Width(int(j)) {
				if substring>>b&1 == 1 {
					p.code.Flip(from + b)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(found)) {
		p := found[n]
		if p.twice || slices.Contains(p.known, false) {
			continue
		}
		number := v.codes.put(n, p.code.AppendBytes(nil, bits))
		for _, row := range missing[n] {
			v.rows.Get(row).number = number
		}
	}
	return nil
}

// loseGiven deletes an item whose code is lost.
func (c *collectionMender) loseGiven(row uint32) error {
	block := codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows)
	key := ""
	err := record.BlockEntry(c.store, block, row, func(entry []byte) error {
		key = string(entry)
		return nil
	})
	if err != nil {
		return err
	}
	c.bad(rowName("item", row), codec.NumberKey(codec.KindItem, c.ID, row), "lost: its code is; its key is %q", key)
	if err := c.dropItem(row); err != nil {
		return err
	}
	if err := c.delete(codec.ItemKey(c.ID, key)); err != nil {
		return err
	}
	return c.clearBlock(block, -1, byte(row))
}

// writeGiven writes the codes of a codes-only collection.
func (c *collectionMender) writeGiven() (codec.SpaceCounters, error) {
	n := codec.SpaceCounters{ID: 1, Revision: 1}
	for _, kind := range spaceKinds {
		prefix := codec.NumberKey(kind, c.ID, 1)
		if kind == codec.KindSpace {
			continue
		}
		if err := c.deleteAll(prefix); err != nil {
			return n, err
		}
	}
	if err := c.flush(); err != nil {
		return n, err
	}
	t := c.engine.Tables(0)
	err := c.take(t, t.Task(func(s *store.Stream) error {
		set, err := c.given.write(func() *store.Stream { return &store.Stream{Ctx: s.Ctx, Tables: t} })
		n.Sets, n.Coded = []codec.CodeCounters{set}, set.Coded
		return err
	}))
	return n, err
}
