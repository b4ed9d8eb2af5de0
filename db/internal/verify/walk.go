package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
)

// lost reports whether a key is one of those that could not be read, so that nothing
// can be said of what stands under it.
func (v *verifier) lost(key []byte) bool { return v.unread.Has(key) }

// lostAny reports whether any key with the prefix could not be read.
func (v *verifier) lostAny(prefix []byte) bool {
	from, to := v.unread.Overlapping(prefix, codec.PrefixEnd(prefix))
	return from < to
}

// lose records that what stands under a key is not what it should be.
func (v *verifier) lose(key []byte) { v.unread = v.unread.Add(key, record.KeyAfter(key)) }

// lookEvery is after how many keys a walk looks at the context.
const lookEvery = 1024

// walk calls f with all keys from lo up to and without hi that have the form of a key,
// and their values. Where the store cannot be read it goes on behind that. It reports
// whether everything was read. about is what a finding says it is about.
func (v *verifier) walk(lo, hi []byte, about report.Finding, f func(key, value []byte)) (complete bool) {
	complete = true
	for from := lo; from != nil && v.err == nil; {
		last, err := v.run(from, hi, about, f)
		if err == nil {
			return complete
		}
		complete = false
		if v.err != nil {
			break
		}
		prefix, unit := len(commonPrefix(lo, hi)), uint64(1)
		if last != nil {
			from = record.KeyAfter(last)
			unit <<= 8 * max(0, 8-max(1, len(last)-prefix))
		}
		from = v.skip(prefix, unit, from, hi, about, err)
	}
	return complete && v.err == nil
}

// walkPrefix is walk for the keys that begin with prefix.
func (v *verifier) walkPrefix(prefix []byte, about report.Finding, f func(key, value []byte)) (complete bool) {
	return v.walk(prefix, codec.PrefixEnd(prefix), about, f)
}

// run walks until something cannot be read, and returns the last key that could.
func (v *verifier) run(lo, hi []byte, about report.Finding, f func(key, value []byte)) (last []byte, err error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok && v.err == nil; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err != nil {
			break
		}
		last = append(last[:0], it.Key()...)
		if v.done.Records++; v.done.Records%lookEvery == 0 {
			v.progress()
			if v.err == nil {
				v.err = v.ctx.Err()
			}
		}
		if err := codec.CheckKey(last); err != nil {
			about.Problem = fault.Problem(err)
			v.found(about, last)
			continue
		}
		f(last, value)
	}
	if err == nil {
		err = it.Error()
	}
	_ = it.Close() // it repeats that error
	return last, err
}

// skip finds where the store can be read again from a key on at which it cannot,
// reports what lies in between and returns where to go on, nil if nowhere.
//
// Keys are numbers behind a prefix, apart by the unit or more, where that is known. Steps
// that grow find one from which reading works, and halving them about the first: where
// it does not work is a block of keys, or one whose sum is damaged.
func (v *verifier) skip(prefix int, unit uint64, from, hi []byte, about report.Finding, cause error) (next []byte) {
	base := append(slices.Clone(from), make([]byte, 8)...)[:prefix+8]
	n := binary.BigEndian.Uint64(base[prefix:])
	step := func(delta uint64) []byte { // nil: beyond the end
		if delta > math.MaxUint64-n {
			return nil
		}
		to := slices.Clone(base)
		binary.BigEndian.PutUint64(to[prefix:], n+delta)
		if hi != nil && bytes.Compare(to, hi) >= 0 {
			return nil
		}
		return to
	}
	works := func(delta uint64) bool {
		to := step(delta)
		return to == nil || v.readable(to, hi)
	}
	failing, delta := uint64(0), unit
	for !works(delta) {
		failing = delta
		if delta > math.MaxUint64/skipGrowth {
			delta = math.MaxUint64 // beyond the end, or at it
			break
		}
		delta *= skipGrowth
	}
	for range skipHalvings {
		middle := failing + (delta-failing)/2
		if middle == failing {
			break
		}
		if works(middle) {
			delta = middle
		} else {
			failing = middle
		}
	}
	if next = step(delta); delta == math.MaxUint64 {
		next = nil
	}
	end := next
	if end == nil {
		end = hi
	}
	if !v.lost(from) {
		about.Problem = fmt.Sprintf("cannot be read: %s; the keys from %x up to %x are not looked at", fault.Problem(cause), from, end)
		v.found(about, from)
	}
	v.unread = v.unread.Add(from, end)
	return next
}

const (
	skipGrowth   = 4
	skipHalvings = 12 // so that less than a thousandth of what is skipped could be read
)

// readable reports whether the first key from lo on can be read, or that there is none.
func (v *verifier) readable(lo, hi []byte) bool {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return false
	}
	if it.First() {
		_, err = it.ValueAndErr()
	} else {
		err = it.Error()
	}
	_ = it.Close()
	return err == nil
}

func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func iterFrom(from []byte) *pebble.IterOptions { return &pebble.IterOptions{LowerBound: from} }
