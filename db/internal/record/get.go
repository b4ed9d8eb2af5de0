package record

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Get reads a value and copies it; nil where there is none.
func Get(r pebble.Reader, key []byte) ([]byte, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, fault.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, len(value)), value...)
	return b, closer.Close()
}

// ErrStopped ends a walk whose caller has had enough; the caller takes it for success.
var ErrStopped = errors.New("stopped")

// ForEach calls f with every key that starts with prefix and its value, which f
// must not keep.
func ForEach(r pebble.Reader, prefix []byte, f func(key, value []byte) error) error {
	return ForEachIn(r, prefix, codec.PrefixEnd(prefix), f)
}

// ForEachIn is ForEach for the keys from lo up to and without hi.
func ForEachIn(r pebble.Reader, lo, hi []byte, f func(key, value []byte) error) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fault.ReadError(err, "keys %x", lo)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var value []byte
		if err = codec.CheckKey(it.Key()); err != nil {
			err = fault.Corrupt(err, "key")
		} else if value, err = it.ValueAndErr(); err != nil {
			err = fault.ReadError(err, "key %x", it.Key())
		} else {
			err = f(it.Key(), value)
		}
	}
	// Close repeats the error that ended the iteration, if one did.
	if cerr := it.Close(); err == nil {
		err = fault.ReadError(cerr, "keys %x", lo)
	}
	return err
}

// ForEachEntry calls f with every entry of the blocks under prefix and its
// number: block * 256 + offset.
func ForEachEntry(r pebble.Reader, prefix []byte, f func(n uint32, entry []byte) error) error {
	return ForEach(r, prefix, func(key, value []byte) error {
		b, err := codec.DecodeBlock(value)
		if err != nil {
			return fault.Corrupt(err, "block %x", key)
		}
		base := codec.LastNumber(key) * codec.BlockRows
		for i := range b.Len() {
			if err := f(base+uint32(b.Offset(i)), b.Entry(i)); err != nil {
				return err
			}
		}
		return nil
	})
}
