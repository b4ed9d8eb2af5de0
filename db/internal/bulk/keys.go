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
)

// sortedKey is an item in order of keys: eight bytes of its key decide most
// comparisons without a look at the key.
type sortedKey struct {
	head uint64 // of the key, after what all keys begin with
	item uint32
}

// keyRounds is how often automatic keys are numbered because some are taken: where
// half of the numbers are, each time half as many are hit as the time before.
const keyRounds = 32

// assignKeys gives keys to the items that have none, as a Tx would one by one,
// sorts all, and finds out whether they are new: ErrNotBulk where an item is there
// already or comes twice.
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
			return ErrNotBulk
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
	return ErrNotBulk
}

// automatic reports whether item i gets its key from the counter.
func (l *load) automatic(i uint32) bool { return l.b.keys == nil || l.b.keys[i] == "" }

// number numbers the items that have no key, leaving out the keys that are taken.
func (l *load) number(taken map[string]bool) bool {
	l.nextKey = l.s.Counters.NextKey
	if l.nextKey > math.MaxUint64-uint64(l.b.n+len(taken)) {
		return false
	}
	if l.keys == nil {
		l.keys = slices.Clone(l.b.keys)
		if l.keys == nil {
			l.keys = make([]string, l.b.n)
		}
	}
	var digits strings.Builder // keys are parts of its strings
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

// sortKeys puts the items in order of their keys.
func (l *load) sortKeys() {
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

// twins looks for keys that come twice. One that was given before the counter came
// to it is taken.
func (l *load) twins(taken map[string]bool) error {
	for i := range len(l.order) - 1 {
		a, b := l.order[i], l.order[i+1]
		if a.head != b.head || l.keys[a.item] != l.keys[b.item] {
			continue
		}
		if l.automatic(a.item) || !l.automatic(b.item) {
			return ErrNotBulk
		}
		taken[l.keys[b.item]] = true
	}
	return nil
}

// existing looks for the keys in the store, in one pass over those between them.
func (l *load) existing(ctx context.Context, taken map[string]bool) (err error) {
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
			return ErrNotBulk
		}
		taken[l.keys[k.item]] = true
	}
	return nil
}

// A keyProbe looks for ascending keys of items of a collection.
type keyProbe struct {
	it     *pebble.Iterator
	name   string // of the collection
	prefix int
	sought []byte
	begun  bool
	end    bool
	at     []byte // the key that the iterator stands at
}

func (l *load) newKeyProbe() (*keyProbe, error) {
	prefix := codec.CollectionKey(codec.KindKey, l.s.ID)
	it, err := l.c.Store.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, fault.ReadError(err, "keys of collection %q", l.s.Name)
	}
	return &keyProbe{it: it, name: l.s.Name, prefix: len(prefix), sought: slices.Clone(prefix)}, nil
}

// has reports whether there is an item with the key, which is no less than that before.
func (p *keyProbe) has(key []byte) (bool, error) {
	if !p.end && (!p.begun || bytes.Compare(p.at, key) < 0) {
		p.begun = true
		p.sought = append(p.sought[:p.prefix], key...)
		if !p.it.SeekGE(p.sought) {
			p.end = true // or it cannot be read, as closing it tells
			return false, nil
		}
		if p.at = p.it.Key()[p.prefix:]; len(p.at) == 0 {
			return false, fault.Corrupt(errors.New("no item"), "key %x", p.it.Key())
		}
	}
	return !p.end && bytes.Equal(p.at, key), nil
}

func (p *keyProbe) close() error {
	return fault.ReadError(p.it.Close(), "keys of collection %q", p.name)
}
