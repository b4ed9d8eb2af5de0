package record

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Get returns a copy of a value; nil and no error where there is none. An empty value is not
// nil. The error is Pebble's: the caller, who knows which record it is, words it with
// fault.ReadError.
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

// ErrStopped is what f of a walk, such as ForEach, returns to end it early. The walk returns
// it as it is; the caller, who knows that nothing is wrong, takes it for success.
var ErrStopped = errors.New("stopped")

// ForEach calls f with every key that starts with prefix and its value, in order of keys. Both
// are memory of the iterator, valid until f returns. Each key has passed codec.CheckKey, so
// that f may take it apart. An error of f ends the iteration and is returned as it is.
func ForEach(r pebble.Reader, prefix []byte, f func(key, value []byte) error) error {
	return ForEachIn(r, prefix, codec.PrefixEnd(prefix), f)
}

// ForEachIn is ForEach for the keys from lo up to, but without, hi; a nil hi is the end of the
// store.
func ForEachIn(r pebble.Reader, lo, hi []byte, f func(key, value []byte) error) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fault.ReadError(err, "keys %x", lo)
	}
	// f may be the body of a caller's loop. If it panics the database must still close.
	defer func() {
		// Close repeats the error that ended the iteration, if one did.
		if cerr := it.Close(); err == nil {
			err = fault.ReadError(cerr, "keys %x", lo)
		}
	}()
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
	return err
}

// ForEachEntry calls f with every entry of the blocks under prefix, and with its number: a row
// or a code number, block * codec.BlockRows + offset. Numbers ascend as long as prefix is that
// of one kind of one space. The entry is valid until f returns.
func ForEachEntry(r pebble.Reader, prefix []byte, f func(n uint32, entry []byte) error) error {
	return ForEachEntryIn(r, prefix, codec.PrefixEnd(prefix), f)
}

// ForEachEntryIn is ForEachEntry for the blocks with keys from lo up to, but without, hi.
func ForEachEntryIn(r pebble.Reader, lo, hi []byte, f func(n uint32, entry []byte) error) error {
	return ForEachIn(r, lo, hi, func(key, value []byte) error {
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
