package db

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// The format of a database says how everything in its folder is stored. It only ever
// rises, by Upgrade: Open leaves it as it is, so that an older version of fddhdb goes on
// reading a database until somebody decides otherwise. Each constant says what it
// brought; docs/FORMAT.md has every byte. To change anything that is stored, add a
// constant and a migration; a released format is not changed any more.
const (
	// FormatFirst is the first format that is frozen: collections, spaces and their
	// revisions, lessons and departures.
	FormatFirst = 0

	// FormatIdentity gives a database a UUID, and the side file that tells which of its
	// commits are known to be durable, so that Open can say what is missing.
	FormatIdentity = 1

	// MinFormat is the oldest format that this version opens.
	MinFormat = FormatFirst

	// NewestFormat is the newest that it opens, and that of databases that it creates.
	NewestFormat = FormatIdentity
)

// uuidBytes is the length of the UUID of a database.
const uuidBytes = 16

// An identity is what a store says of the database as a whole.
type identity struct {
	format   int
	uuid     [uuidBytes]byte // zero before FormatIdentity
	sequence uint64          // commits so far
}

func (i *identity) text() string {
	if i.format < FormatIdentity {
		return ""
	}
	return hex.EncodeToString(i.uuid[:])
}

// newUUID returns a random UUID, of version 4.
func newUUID() (id [uuidBytes]byte) {
	rand.Read(id[:]) // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// store stores format and UUID, durably, in one step.
func (i *identity) store(kv *pebble.DB) error {
	b := kv.NewBatch()
	defer b.Close()
	if i.format >= FormatIdentity {
		if err := b.Set(codec.DatabaseKey(codec.RecordUUID), i.uuid[:], nil); err != nil {
			return err
		}
	}
	if err := b.Set(codec.DatabaseKey(codec.RecordFormat), binary.BigEndian.AppendUint32(nil, uint32(i.format)), nil); err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}

// readIdentity reads what a store says of the database in dir.
func readIdentity(r pebble.Reader, dir string) (i identity, err error) {
	read := func(kind byte, what string, size int) (b []byte) {
		if err == nil {
			if b, err = get(r, codec.DatabaseKey(kind)); err != nil {
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
	i.format = int(binary.BigEndian.Uint32(format))
	sequence := read(codec.RecordSequence, "commit sequence", 8)
	uuid := read(codec.RecordUUID, "UUID", uuidBytes)
	switch {
	case err != nil:
		return i, err
	case i.format >= FormatIdentity && uuid == nil:
		return i, fault.Corrupt(fault.ErrMissing, "UUID of %s", dir)
	}
	if sequence != nil {
		i.sequence = binary.BigEndian.Uint64(sequence)
	}
	copy(i.uuid[:], uuid)
	return i, nil
}

// descriptorVersion is that of the descriptors in JSON: of collections, spaces and
// revisions.
const descriptorVersion = 0

func checkDescriptorVersion(found int) error {
	switch {
	case found > descriptorVersion:
		return &codec.VersionError{What: "descriptor", Found: found, Newest: descriptorVersion}
	case found < descriptorVersion:
		return fmt.Errorf("version %d", found)
	}
	return nil
}
