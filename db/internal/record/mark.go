package record

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// A Mark is bytes that a program stores under a name, in the commit of what they speak of. The
// database makes nothing of them.
type Mark struct {
	Name  string
	Value []byte // empty: there is no such mark any more
}

// Bytes is what the mark takes in a batch.
func (m Mark) Bytes() int { return len(m.Name) + len(m.Value) }

// Check returns an error unless the mark may be stored.
func (m Mark) Check() error {
	switch {
	case m.Name == "" || len(m.Name) > MaxNameBytes || !utf8.ValidString(m.Name):
		return fault.Invalid("name %.80q of a mark: it has to be UTF-8 of 1 to %d bytes", m.Name, MaxNameBytes)
	case len(m.Value) > MaxMarkBytes:
		return fault.Invalid("mark %q: %d bytes, at most %d are possible", m.Name, len(m.Value), MaxMarkBytes)
	}
	return nil
}

var errNoValue = errors.New("it has no value")

// StoredMark returns the mark that a key of KindMark and its value are. The value is not copied. An
// error is about damage.
func StoredMark(key, value []byte) (Mark, error) {
	m := Mark{string(key[1:]), value}
	if len(value) == 0 {
		return m, errNoValue
	}
	return m, m.Check()
}

// MarkOf returns the value of a mark, in memory of the caller's own; nil where there is none.
func MarkOf(r pebble.Reader, name string) ([]byte, error) {
	b, err := Get(r, codec.MarkKey(name))
	if err != nil {
		return nil, fault.ReadError(err, "mark %q", name)
	}
	return b, nil
}

// ForEachMark calls f with every mark whose name begins with prefix, by name, until f returns an
// error. Values are memory of the caller's own.
func ForEachMark(r pebble.Reader, prefix string, f func(Mark) error) error {
	return ForEach(r, codec.MarkKey(prefix), func(key, value []byte) error {
		m, err := StoredMark(key, bytes.Clone(value))
		if err != nil {
			return fault.Corrupt(err, "mark")
		}
		return f(m)
	})
}
