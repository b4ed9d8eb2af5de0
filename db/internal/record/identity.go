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

// Formats of a database, which package db exports again and explains to users. A released
// format is never changed: to change anything that is stored, add a constant here and a
// migration in copies.Upgrade. A format that a later program does not know is refused, see
// fault.FormatError.
const (
	FormatFirst    = 0
	FormatIdentity = 1
	FormatMarks    = 2

	MinFormat    = FormatFirst
	NewestFormat = FormatMarks
)

// UUIDBytes is the length of the UUID of a database.
const UUIDBytes = 16

// An Identity is what a store says of the database as a whole: the records of
// codec.KindDatabase.
type Identity struct {
	Format int             // from MinFormat to NewestFormat
	UUID   [UUIDBytes]byte // zero before FormatIdentity; a whole copy of a database keeps it

	// Sequence is the number of the last commit, 0 before the first. Every commit stores its
	// number together with what it changes. Opening compares it with the side file
	// (store.CompareCommits).
	Sequence uint64
}

// Text returns the UUID as 32 hexadecimal digits, "" in a format that has none.
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

// Store stores format and UUID, durably, in one step. The sequence is not stored here: it
// belongs into the batch of each commit.
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

// ReadIdentity reads what a store says of the database in dir, the folder that errors name. A
// newer format is a *fault.FormatError; a format or UUID that is missing is an ErrCorrupt.
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

// DescriptorVersion is the version of descriptors in JSON: of collections (but see
// VersionIndexOnly), spaces and revisions. A field that old programs may ignore needs no new
// version.
const DescriptorVersion = 0

// CheckDescriptorVersion checks the version of the descriptor of a space or a revision. A
// newer one is a *codec.VersionError, which fault.Corrupt turns into "use a newer program".
func CheckDescriptorVersion(found int) error {
	switch {
	case found > DescriptorVersion:
		return &codec.VersionError{What: "descriptor", Found: found, Newest: DescriptorVersion}
	case found < DescriptorVersion:
		return fmt.Errorf("version %d", found)
	}
	return nil
}
