package record

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Formats of a database. The package db tells users what each of them brought. To change
// anything that is stored, add a constant and a migration; a released format is not changed
// any more.
const (
	FormatFirst    = 0
	FormatIdentity = 1

	MinFormat    = FormatFirst
	NewestFormat = FormatIdentity
)

// UUIDBytes is the length of the UUID of a database.
const UUIDBytes = 16

// An Identity is what a store says of the database as a whole.
type Identity struct {
	Format   int
	UUID     [UUIDBytes]byte // zero before FormatIdentity
	Sequence uint64          // commits so far
}

func (i *Identity) Text() string {
	if i.Format < FormatIdentity {
		return ""
	}
	return hex.EncodeToString(i.UUID[:])
}

// NewUUID returns a random UUID, of version 4.
func NewUUID() (id [UUIDBytes]byte) {
	rand.Read(id[:]) // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// Store stores format and UUID, durably, in one step.
func (i *Identity) Store(kv *pebble.DB) error {
	b := kv.NewBatch()
	defer b.Close()
	if i.Format >= FormatIdentity {
		if err := b.Set(codec.DatabaseKey(codec.RecordUUID), i.UUID[:], nil); err != nil {
			return err
		}
	}
	if err := b.Set(codec.DatabaseKey(codec.RecordFormat), binary.BigEndian.AppendUint32(nil, uint32(i.Format)), nil); err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}

// ReadIdentity reads what a store says of the database in dir.
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
	format := read(codec.RecordFormat, "format", 4)
	switch {
	case err != nil:
		return i, err
	case format == nil:
		return i, fault.Corrupt(fault.ErrMissing, "format of %s", dir)
	}
	if f := binary.BigEndian.Uint32(format); f > NewestFormat {
		return i, &fault.FormatError{Dir: dir, Found: int(f), Supported: NewestFormat}
	}
	i.Format = int(binary.BigEndian.Uint32(format))
	sequence := read(codec.RecordSequence, "commit sequence", 8)
	uuid := read(codec.RecordUUID, "UUID", UUIDBytes)
	switch {
	case err != nil:
		return i, err
	case i.Format >= FormatIdentity && uuid == nil:
		return i, fault.Corrupt(fault.ErrMissing, "UUID of %s", dir)
	}
	if sequence != nil {
		i.Sequence = binary.BigEndian.Uint64(sequence)
	}
	copy(i.UUID[:], uuid)
	return i, nil
}

// DescriptorVersion is that of the descriptors in JSON: of collections, spaces and
// revisions.
const DescriptorVersion = 0

func CheckDescriptorVersion(found int) error {
	switch {
	case found > DescriptorVersion:
		return &codec.VersionError{What: "descriptor", Found: found, Newest: DescriptorVersion}
	case found < DescriptorVersion:
		return fmt.Errorf("version %d", found)
	}
	return nil
}
