package repair

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// A tableSource has what can be read of a table. Where a block of it is damaged the
// source goes on behind that.
type tableSource struct {
	*damagedTable
	salvage *salvage
	r       *sstable.Reader
	it      sstable.Iterator
	begins  []byte // the first key; nil: none can be read
	now     version
	more    bool
}

// begin finds out where the table begins and what it deletes, and closes it again.
func (t *tableSource) begin() (err error) {
	if err := t.open(); err != nil {
		return err
	}
	if t.r == nil {
		return nil
	}
	if t.more {
		t.begins = slices.Clone(t.now.key)
	}
	err = work.Safely(t.readDeletions)
	if err != nil && t.salvage.ctx.Err() == nil {
		t.salvage.found(report.Finding{Record: t.name(), Problem: "what it deletes cannot be read, and may come back: " + fault.Problem(err)})
		err = nil
	}
	return errors.Join(fault.Annotate(err, "read %s", t.path), t.close())
}

func (t *tableSource) first() []byte { return t.begins }

// open opens the table at its first key. Where it cannot be opened it is empty.
func (t *tableSource) open() error {
	err := t.openReader()
	if err != nil && !unreadable(err) {
		err = t.openReader() // once more, before it is given up
	}
	if err != nil {
		if cerr := t.salvage.ctx.Err(); cerr != nil {
			return cerr
		}
		if !isDamage(err) {
			return fault.Annotate(err, "read %s", t.path)
		}
		t.lose(t.from, t.to, err)
		return nil
	}
	return t.behind(t.at(t.lo))
}

func (t *tableSource) openReader() error {
	return work.Safely(func() (err error) {
		t.r, err = store.OpenTable(t.salvage.ctx, t.salvage.store.fs, t.path, t.salvage.store.reader)
		return err
	})
}

func (t *tableSource) close() error {
	if t.r == nil {
		return nil
	}
	if t.it != nil {
		_ = t.it.Close() // it repeats what reading has said
	}
	err := t.r.Close()
	t.r, t.it, t.more = nil, nil, false
	return fault.Annotate(err, "close %s", t.path)
}

func (t *tableSource) peek() *version {
	if !t.more {
		return nil
	}
	return &t.now
}

func (t *tableSource) next() error {
	return t.behind(work.Safely(func() error {
		kv := t.it.Next()
		if kv == nil {
			return t.end()
		}
		value, _, err := kv.Value(nil)
		return t.take(kv.K, value, err)
	}))
}

// at goes to the first key from one on; an error is one of what stands there.
func (t *tableSource) at(from []byte) error {
	return work.Safely(func() (err error) {
		if t.it != nil {
			_ = t.it.Close() // it repeats what reading has said
		}
		t.it, err = t.r.NewIter(t.transforms, from, t.hi, sstable.AssertNoBlobHandles)
		if err != nil {
			t.it = nil
			return err
		}
		kv := t.it.First()
		if kv == nil {
			return t.end()
		}
		value, _, err := kv.Value(nil)
		return t.take(kv.K, value, err)
	})
}

// end is where the iterator has nothing more, because of an error or not.
func (t *tableSource) end() error {
	t.more = false
	return t.it.Error()
}

// take takes over what the iterator is at.
func (t *tableSource) take(key pebble.InternalKey, value []byte, err error) error {
	if t.more = false; err != nil {
		return err
	}
	t.now = version{
		key: append(t.now.key[:0], key.UserKey...), value: append(t.now.value[:0], value...),
		seq: uint64(key.SeqNum()), kind: key.Kind(), file: t.number,
	}
	t.salvage.newest = max(t.salvage.newest, t.now.seq)
	t.more = true
	return nil
}

// behind goes on behind what an error says cannot be read.
func (t *tableSource) behind(err error) error {
	for err != nil {
		if t.salvage.ctx.Err() != nil {
			return t.salvage.ctx.Err()
		}
		from := t.lo
		if len(t.now.key) > 0 {
			from = record.KeyAfter(t.now.key) // older versions of that key are lost, too
		}
		cause := err
		if !unreadable(err) { // once more, before it is given up
			if err = t.at(from); err == nil {
				return nil
			}
		}
		to, ok := t.nextBlock(from)
		if !ok {
			t.lose(from, t.hi, cause)
			t.more = false
			return nil
		}
		t.lose(from, to, cause)
		t.now.key = append(t.now.key[:0], to...)
		err = t.at(to)
	}
	return nil
}

// lose reports keys that cannot be read; nil: without a bound.
func (t *tableSource) lose(lo, hi []byte, cause error) {
	if lo == nil {
		lo = t.from
	}
	if hi == nil {
		hi = t.to
	}
	t.salvage.lose(lo, hi)
	where := "all of it"
	switch {
	case lo != nil && hi != nil:
		where = fmt.Sprintf("the keys from %x up to %x", lo, hi)
	case lo != nil:
		where = fmt.Sprintf("the keys from %x on", lo)
	case hi != nil:
		where = fmt.Sprintf("the keys up to %x", hi)
	}
	t.salvage.found(report.Finding{Record: t.name(), Problem: fmt.Sprintf("%s cannot be read: %s", where, fault.Problem(cause))})
}

// searchedBytes is how many bytes of a key are looked at in the search for a block.
const searchedBytes = 24

// nextBlock returns the first key of which the index of the table says that it is in
// a later block than a key. It takes no look at the blocks.
func (t *tableSource) nextBlock(from []byte) (to []byte, ok bool) {
	if from == nil {
		from = []byte{0}
	}
	size := func(to []byte) uint64 {
		n := uint64(0)
		err := work.Safely(func() (err error) {
			n, err = t.r.EstimateDiskUsage(from, to, sstable.NoReadEnv)
			return err
		})
		if err != nil {
			return 0 // a part of the index that cannot be read: behind that
		}
		return n
	}
	here := size(from)
	fixed := func(n *big.Int) []byte { return n.FillBytes(make([]byte, searchedBytes)) }
	lo := new(big.Int).SetBytes(append(slices.Clone(from), make([]byte, searchedBytes)...)[:searchedBytes])
	hi := new(big.Int).SetBytes(bytes.Repeat([]byte{0xff}, searchedBytes))
	if size(fixed(hi)) <= here || here == 0 {
		return nil, false
	}
	for one := big.NewInt(1); ; { // lo is in the block, hi behind it
		middle := new(big.Int).Add(lo, hi)
		middle.Rsh(middle, 1)
		if new(big.Int).Sub(hi, lo).Cmp(one) <= 0 {
			break
		}
		if size(fixed(middle)) > here {
			hi = middle
		} else {
			lo = middle
		}
	}
	to = fixed(hi)
	return to, bytes.Compare(to, from) > 0
}

// readDeletions reads the ranges of keys that the table deletes.
func (t *tableSource) readDeletions() error {
	transforms := sstable.FragmentIterTransforms{SyntheticSeqNum: t.transforms.SyntheticSeqNum}
	it, err := t.r.NewRawRangeDelIter(t.salvage.ctx, transforms, sstable.NoReadEnv)
	if it == nil || err != nil {
		return err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil && err == nil; span, err = it.Next() {
		lo, hi := slices.Clone(span.Start), slices.Clone(span.End)
		if t.lo != nil && bytes.Compare(lo, t.lo) < 0 {
			lo = t.lo
		}
		if t.hi != nil && bytes.Compare(hi, t.hi) > 0 {
			hi = t.hi
		}
		for _, k := range span.Keys {
			if k.Kind() == pebble.InternalKeyKindRangeDelete && bytes.Compare(lo, hi) < 0 {
				t.salvage.deletions = append(t.salvage.deletions, deletion{lo, hi, uint64(k.SeqNum())})
				t.salvage.newest = max(t.salvage.newest, uint64(k.SeqNum()))
			}
		}
	}
	return err
}
