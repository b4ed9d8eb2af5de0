package bulk

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A sortedKey is an item in the order of keys. Eight bytes of its key decide most
// comparisons without a look at the key itself.
type sortedKey struct {
	head uint64 // of the key, big-endian, behind the prefix that all keys share; padded with 0
	item uint32 // number of the item
}

// keyRounds bounds how often automatic keys are numbered again because some of them are
// taken. If half of the numbers are in use, each round hits half as many as the round
// before.
const keyRounds = 32

// assignKeys is the task that gives keys to the items without one, sorts all keys, and checks that all are
// new. It returns errNotBulk if an item is stored already, or comes twice.
//
// A Tx would give each item the next number that is not the key of another item, and the keys must be the
// same. So assignKeys numbers all items, looks which numbers stored items or items of the load have as keys,
// and numbers again around these, until none is taken.
func (l *load) assignKeys(ctx context.Context) error {
	if done, err := l.countKeys(ctx); done || err != nil {
		if done {
			close(l.keyed)
		}
		return err
	}
	taken := map[string]bool{}
	for range keyRounds {
		if !l.number(taken) {
			return errNotBulk
		}
		l.sortKeys()
		before := len(taken)
		if err := l.twins(taken); err != nil {
			return err
		}
		if err := l.existing(ctx, taken); err != nil {
			return err
		}
		if len(taken) == before {
			close(l.keyed)
			return nil
		}
	}
	return errNotBulk
}

// automatic reports whether item i gets its key from the counter.
func (l *load) automatic(i uint32) bool { return l.numbered[i] }

// number gives the items without a key the next numbers, and skips taken ones. It returns false if the
// counter would overflow.
func (l *load) number(taken map[string]bool) bool {
	// Each round numbers all of them again, from the counter on.
	l.nextKey = l.s.Counters.NextKey
	if l.nextKey > math.MaxUint64-uint64(l.n+len(taken)) {
		return false
	}
	if l.keys == nil {
		l.keys, l.numbered = make([]string, l.n), make([]bool, l.n)
		_ = l.each(0, l.n, func(i int, e *entry) error {
			l.keys[i], l.numbered[i] = string(e.key), len(e.key) == 0
			return nil
		})
	}
	var digits strings.Builder // keys are parts of its strings, 64 KiB each, to save allocations
	var buf [20]byte
	for i := range l.keys {
		if !l.automatic(uint32(i)) {
			continue
		}
		for {
			if digits.Cap()-digits.Len() < len(buf) {
				digits.Reset()
				digits.Grow(1 << 16)
			}
			from := digits.Len()
			digits.Write(strconv.AppendUint(buf[:0], l.nextKey, 10))
			l.keys[i] = digits.String()[from:]
			l.nextKey++
			if len(taken) == 0 || !taken[l.keys[i]] {
				break
			}
		}
	}
	return true
}

// sortKeys makes order: the items by key, and by number where keys are equal.
func (l *load) sortKeys() {
	// The prefix that all keys share decides nothing, so heads begin behind it.
	common := l.keys[0]
	for _, key := range l.keys {
		n := 0
		for n < len(common) && n < len(key) && common[n] == key[n] {
			n++
		}
		common = common[:n]
	}
	l.order = slices.Grow(l.order[:0], len(l.keys))
	for i, key := range l.keys {
		var head [8]byte
		copy(head[:], key[len(common):])
		l.order = append(l.order, sortedKey{binary.BigEndian.Uint64(head[:]), uint32(i)})
	}
	slices.SortFunc(l.order, func(a, b sortedKey) int {
		if c := cmp.Compare(a.head, b.head); c != 0 {
			return c
		}
		if c := cmp.Compare(l.keys[a.item], l.keys[b.item]); c != 0 {
			return c
		}
		return cmp.Compare(a.item, b.item)
	})
}

// twins looks for keys that two items have; such items are neighbours in order. If two items brought the same
// key, the second would replace the first, so the load is impossible. The same is true of an automatic key
// that a later item brings. But an automatic key that an earlier item has brought is taken: the counter skips
// it.
func (l *load) twins(taken map[string]bool) error {
	for i := range len(l.order) - 1 {
		a, b := l.order[i], l.order[i+1]
		if a.head != b.head || l.keys[a.item] != l.keys[b.item] {
			continue
		}
		if l.automatic(a.item) || !l.automatic(b.item) {
			return errNotBulk
		}
		taken[l.keys[b.item]] = true
	}
	return nil
}

// existing looks the sorted keys up in the store, with one iterator that goes forward. If a key is stored, it
// is noted as taken if it is automatic; otherwise the load is impossible, because the item is not new.
func (l *load) existing(ctx context.Context, taken map[string]bool) (err error) {
	// An empty collection has no keys, so the first import into one looks nothing up.
	if l.s.Counters.Items == 0 {
		return nil
	}
	p, err := l.newKeyProbe()
	if err != nil {
		return err
	}
	defer func() {
		if cerr := p.close(); err == nil {
			err = cerr
		}
	}()
	for i, k := range l.order {
		if i%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		there, err := p.has([]byte(l.keys[k.item]))
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if !l.automatic(k.item) {
			return errNotBulk
		}
		taken[l.keys[k.item]] = true
	}
	return nil
}

// A keyProbe tells which of many ascending keys are keys of items of a collection. For new keys between two
// stored ones, one seek suffices. It is for one goroutine, which closes it.
type keyProbe struct {
	it     *pebble.Iterator // over the keys of the collection, in the store and not in a view
	name   string           // of the collection, for errors
	prefix int              // length of the prefix of an item's key in the store
	sought []byte           // scratch memory: the prefix, and the key that was sought last
	begun  bool             // there was a first seek, so at is valid
	end    bool             // no stored key is greater than or equal to the last one sought
	at     []byte           // stored key that the iterator stands at, in its memory
}

// newKeyProbe opens a probe of the keys that are stored. The committer waits for the load,
// so nothing is added meanwhile.
func (l *load) newKeyProbe() (*keyProbe, error) {
	prefix := codec.CollectionKey(codec.KindKey, l.s.ID)
	it, err := l.c.Reader().NewIter(
		&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, fault.ReadError(err, "keys of collection %q", l.s.Name)
	}
	return &keyProbe{it: it, name: l.s.Name, prefix: len(prefix), sought: slices.Clone(prefix)}, nil
}

// has reports whether an item has the key, which must not be less than the key of the call before. At the end
// of the keys has cannot tell whether reading has failed; close can.
func (p *keyProbe) has(key []byte) (bool, error) {
	if !p.end && (!p.begun || bytes.Compare(p.at, key) < 0) {
		p.begun = true
		p.sought = append(p.sought[:p.prefix], key...)
		if !p.it.SeekGE(p.sought) {
			p.end = true // or reading has failed, which close returns
			return false, nil
		}
		if p.at = p.it.Key()[p.prefix:]; len(p.at) == 0 {
			return false, fault.Corrupt(errors.New("no item"), "key %x", p.it.Key())
		}
	}
	return !p.end && bytes.Equal(p.at, key), nil
}

// close closes the iterator, and returns the error that has ended it, if one did.
func (p *keyProbe) close() error {
	return fault.ReadError(p.it.Close(), "keys of collection %q", p.name)
}

// If no item brings a key, and none of the next numbers is in use, these numbers are the keys. They need not
// be kept or sorted: eachDecimal makes them in the order of their bytes. That is the usual case of an import
// without keys, of any number of items.

// countKeys gives the items the next numbers of the counter as keys, and reports whether that is possible. If
// not, assignKeys sorts the keys.
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
