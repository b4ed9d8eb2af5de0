package record

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Format is the format of everything stored in the folder of a database. The marker of the folder has it
// (package store), and a database of any other format is refused with a fault.FormatError. Raise it when you
// change the stored bytes.
const Format = 7

// UUIDBytes is the length of the UUID of a database.
const UUIDBytes = 16

// An Identity has the records about the database as a whole: the records of codec.KindDatabase.
type Identity struct {
	UUID [UUIDBytes]byte // a whole copy of a database keeps it

	// Sequence is the number of the last commit, 0 before the first. Every commit stores its number in its
	// own batch. Opening compares it with the side file (store.CompareCommits).
	Sequence uint64
}

// Text returns the UUID as 32 hexadecimal digits.
func (i *Identity) Text() string { return hex.EncodeToString(i.UUID[:]) }

// NewUUID returns a random UUID, of version 4.
func NewUUID() (id [UUIDBytes]byte) {
	rand.Read(id[:]) // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// Store stores the UUID, durably. The sequence is not stored here: it belongs into the batch of each commit.
func (i *Identity) Store(kv *pebble.DB) error {
	return kv.Set(codec.DatabaseKey(codec.RecordUUID), i.UUID[:], pebble.Sync)
}

// ReadIdentity reads what a store says of the database in dir, the folder that errors name. A UUID that is
// missing is an ErrCorrupt.
func ReadIdentity(r pebble.Reader, dir string) (i Identity, err error) {
	read := func(kind byte, what string, size int) (b []byte) {
		if err == nil {
			if b, err = Get(r, codec.DatabaseKey(kind)); err != nil {
				err = fault.ReadError(err, "%s of %s", what, dir)
			} else if b != nil && len(b) != size {
				err = fault.Corrupt(fmt.Errorf("%d bytes", len(b)), "%s of %s", what, dir)
			}
		}
		return b
	}
	sequence := read(codec.RecordSequence, "commit sequence", 8)
	uuid := read(codec.RecordUUID, "UUID", UUIDBytes)
	switch {
	case err != nil:
		return i, err
	case uuid == nil:
		return i, fault.Corrupt(fault.ErrMissing, "UUID of %s", dir)
	}
	if sequence != nil {
		i.Sequence = binary.BigEndian.Uint64(sequence)
	}
	copy(i.UUID[:], uuid)
	return i, nil
}

// A Mark has bytes that a program stores under a name, in the commit of the changes that they describe. The
// database does not read them.
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
		return fault.Invalid("name %.80q of a mark: it has to be UTF-8 of 1 to %d bytes", m.Name,
			MaxNameBytes)
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
