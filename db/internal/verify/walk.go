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

// All reading of many keys goes through walk. Pebble ends an iteration at a block that it
// cannot read, and at a value that it cannot merge, and does not say how far the damage
// reaches. walk goes on behind it, so that one damaged block hides only its own keys, and
// notes the range, so that nothing in it is called missing.

// lost reports whether a key could not be read, or had a value that could not be decoded.
// Nothing can be said of what stands under it then, and that it cannot be is reported.
func (v *verifier) lost(key []byte) bool { return v.unread.Has(key) }

// lostAny reports whether any key with the prefix could not be read.
func (v *verifier) lostAny(prefix []byte) bool {
	from, to := v.unread.Overlapping(prefix, codec.PrefixEnd(prefix))
	return from < to
}

// lose notes that the value under a key could not be decoded. The caller reports it.
func (v *verifier) lose(key []byte) { v.unread = v.unread.Add(key, record.KeyAfter(key)) }

// lookEvery is the number of keys between two checks of the context, and reports of progress.
const lookEvery = 1024

// walk calls f with all keys in [lo, hi) that have the form of a key, and their values, which
// f must not keep. A key of another form is a finding. Where the store cannot be read, walk
// reports and notes what it skips and goes on behind it. complete says whether everything was
// read; f may have failed to decode a value nevertheless. about is the finding to fill in for
// what walk itself reports.
func (v *verifier) walk(lo, hi []byte, about report.Finding, f func(key, value []byte)) (complete bool) {
	complete = true
	// Each turn reads up to the next damage. skip finds the place behind it, and the next turn goes
	// on there.
	for from := lo; from != nil && v.err == nil; {
		last, err := v.run(from, hi, about, f)
		if err == nil {
			return complete
		}
		complete = false
		if v.err != nil {
			break
		}
		// skip reads the 8 bytes behind the prefix as a number. If the keys have fewer bytes
		// there, as last has, their numbers differ by a multiple of a power of 256.
		// Keys of rows, 5 bytes behind the prefix, are 2^24 apart, for example: a step of 1 would ask
		// for the same key again and again.
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

// run walks until something cannot be read. last is the last key that could be read, nil if
// none; err is nil if the walk has reached hi, or ended because of v.err.
func (v *verifier) run(lo, hi []byte, about report.Finding, f func(key, value []byte)) (last []byte, err error) {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }() // also if a callback panics; it repeats the error of the iterator
	for ok := it.First(); ok && v.err == nil; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err != nil {
			break
		}
		last = append(last[:0], it.Key()...)
		if v.done.Records++; v.done.Records%lookEvery == 0 {
			v.look()
		}
		// f takes keys apart, so it must not see such a key.
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
	return last, err
}

// skip finds where the store can be read again. from is a key at which it cannot. skip
// reports and notes the keys in between, and returns where to go on, nil if nowhere.
//
// Either a block of the table cannot be read, with keys that are not known, or one key with a
// merged value that is damaged. Keys are taken as numbers of 8 bytes behind a prefix; unit is the
// least distance of two keys, if that is known. Steps that grow by a factor find a number
// from which reading works; halving the last step then finds about the first such number.
func (v *verifier) skip(prefix int, unit uint64, from, hi []byte, about report.Finding, cause error) (next []byte) {
	base := append(slices.Clone(from), make([]byte, 8)...)[:prefix+8]
	n := binary.BigEndian.Uint64(base[prefix:])
	step := func(delta uint64) []byte { // from + delta; nil: at hi or beyond
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
	// At most 32 steps: from+failing cannot be read, from+delta may be.
	failing, delta := uint64(0), unit
	for !works(delta) {
		failing = delta
		if delta > math.MaxUint64/skipGrowth {
			delta = math.MaxUint64 // nothing can be read up to hi
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
	if !v.lost(from) { // another walk over the same keys has reported it
		about.Problem = fmt.Sprintf("cannot be read: %s; the keys from %x up to %x are not looked at", fault.Problem(cause), from, end)
		v.found(about, from)
	}
	v.unread = v.unread.Add(from, end)
	return next
}

const (
	skipGrowth   = 4  // each step is so many times as long as the one before
	skipHalvings = 12 // less than a thousandth of what is skipped could have been read
)

// readable reports whether the first key in [lo, hi) can be read, or there is none.
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

// commonPrefix returns what a and b both begin with. It aliases a.
func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func iterFrom(from []byte) *pebble.IterOptions { return &pebble.IterOptions{LowerBound: from} }
