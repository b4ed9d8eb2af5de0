package bulk

import (
	"context"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// Where no item brings a key and none of the next numbers is in use, the keys are these
// numbers: they need not be kept, nor sorted.

// countKeys gives the items the next numbers of the counter as keys, and reports whether
// that is possible.
func (l *load) countKeys(ctx context.Context) (bool, error) {
	first := l.s.Counters.NextKey
	if l.b.keys != nil || first > math.MaxUint64-uint64(l.b.n) {
		return false, nil
	}
	free := true
	if l.s.Counters.Items > 0 {
		p, err := l.newKeyProbe()
		if err != nil {
			return false, err
		}
		seen := 0
		err = eachDecimal(first, first+uint64(l.b.n), func(key []byte, _ uint64) error {
			if seen++; seen%1024 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			taken, err := p.has(key)
			if taken {
				free, err = false, ErrNotBulk // enough is known
			}
			return err
		})
		if cerr := p.close(); !free || err == nil {
			err = cerr
		}
		if err != nil || !free {
			return false, err
		}
	}
	l.counted, l.firstKey, l.nextKey = true, first, first+uint64(l.b.n)
	return true, nil
}

// writeCountedKeys is writeKeys for the keys of countKeys.
func (l *load) writeCountedKeys(t *store.Stream) error {
	key := codec.CollectionKey(codec.KindKey, l.s.ID)
	prefix := len(key)
	var value [4]byte
	return eachDecimal(l.firstKey, l.nextKey, func(digits []byte, n uint64) error {
		key = append(key[:prefix], digits...)
		binary.BigEndian.PutUint32(value[:], l.row(int(n-l.firstKey)))
		return t.Set(key, value[:])
	})
}

// eachDecimal calls f with the numbers from from to to-1, and how they are written, in the
// order of the bytes of that.
func eachDecimal(from, to uint64, f func(digits []byte, n uint64) error) error {
	var buf [20]byte
	// below visits n, and the numbers that begin with its digits.
	var below func(n uint64) error
	below = func(n uint64) error {
		if n >= from {
			if err := f(strconv.AppendUint(buf[:0], n, 10), n); err != nil {
				return err
			}
		}
		if n == 0 || n > (to-1)/10 {
			return nil
		}
		for d := range uint64(10) {
			next := 10*n + d // no more than to, or a few beyond it
			if next < n || next >= to {
				break
			}
			if reaches(next, from, to) {
				if err := below(next); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for n := range uint64(10) {
		if n < to && reaches(n, from, to) {
			if err := below(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// reaches reports whether n, which is less than to, or a number that begins with its digits
// is from from on and less than to.
func reaches(n, from, to uint64) bool {
	for low, high := n, n; ; {
		if high >= from {
			return true
		}
		if n == 0 || low > (to-1)/10 { // those with more digits are too large
			return false
		}
		low *= 10
		if high > (math.MaxUint64-9)/10 {
			return true
		}
		high = 10*high + 9
	}
}
