package bulk

import (
	"context"
	"math"
	"strconv"

	"github.com/fddhdb/fddhdb/db/internal/store"
)

// If no item brings a key, and none of the next numbers is in use, the keys are these
// numbers. They need not be kept or sorted: eachDecimal makes them in the order of their
// bytes. That is the usual case of an import without keys, of any number of items.

// countKeys gives the items the next numbers of the counter as keys, and reports whether
// that is possible. If it is not, assignKeys goes the other way.
func (l *load) countKeys(ctx context.Context) (bool, error) {
	first := l.s.Counters.NextKey
	if first > math.MaxUint64-uint64(l.n) || l.batch.keyed {
		return false, nil
	}
	free := true
	if l.s.Counters.Items > 0 {
		p, err := l.newKeyProbe()
		if err != nil {
			return false, err
		}
		seen := 0
		err = eachDecimal(first, first+uint64(l.n), func(key []byte, _ uint64) error {
			if seen++; seen%1024 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			taken, err := p.has(key)
			if taken {
				free, err = false, errNotBulk // ends the loop; the caller does not see this error
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
	l.counted, l.firstKey, l.nextKey = true, first, first+uint64(l.n)
	return true, nil
}

// writeCountedKeys is writeKeys for the keys of countKeys.
func (l *load) writeCountedKeys(t *store.Stream) error {
	return eachDecimal(l.firstKey, l.nextKey, func(digits []byte, n uint64) error {
		return t.Records.Key(l.s.ID, string(digits), l.row(int(n-l.firstKey)))
	})
}

// eachDecimal calls f with the numbers from from to to-1 and their decimal digits, in the
// byte order of the digits: 1, 10, 11, 2. f must not keep the digits. An error of f ends
// it. It walks the tree of prefixes depth first, and leaves out branches without a number
// in the range, so the cost is in proportion to the number of calls.
func eachDecimal(from, to uint64, f func(digits []byte, n uint64) error) error {
	var buf [20]byte
	// below visits n, and then the longer numbers that begin with its digits.
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
			next := 10*n + d // 10*n is at most to-1, so that only adding d can overflow
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

// reaches reports whether n, or a longer number that begins with its digits, is at least
// from and less than to. n is less than to. Numbers with k more digits than n are those
// from n*10^k to n*10^k + 10^k-1: low and high are the ends of this range.
func reaches(n, from, to uint64) bool {
	for low, high := n, n; ; {
		if high >= from {
			return true
		}
		if n == 0 || low > (to-1)/10 { // longer numbers are not less than to, and none begins with 0
			return false
		}
		low *= 10
		if high > (math.MaxUint64-9)/10 {
			return true
		}
		high = 10*high + 9
	}
}
