package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
)

// The side file COMMITS, beside the store, has the number of the last commit known to be durable. Damage in
// the last block of the store's log looks like the torn end that a crash leaves: the store opens without the
// latest commits and without an error. With this file, opening notices that they are missing.
//
// The file has two slots of one record each, written in turn and in place, so a crash during a write leaves
// the other slot intact. A slot, with all numbers little-endian:
//
//	offset  size  what
//	0       4     magic: "FDHC"
//	4       2     uint16: version, 0
//	6       2     0
//	8       8     uint64: number of the write; the slot with the larger one counts
//	16      16    UUID of the database
//	32      8     uint64: last commit known to be durable
//	40      4     uint32: losses, at most 64
//	44      24n   for each: int64 time found, in milliseconds since 1970; uint64 first and uint64
//	              last missing commit
//	        ...   zeros
//	4092    4     CRC-32C of all before it
const (
	CommitsName    = "COMMITS"
	commitsMagic   = "FDHC"
	commitsVersion = 0
	commitsSlot    = 4096
	commitsHeader  = 44
	lossBytes      = 24
	maxLosses      = 64
)

// A Commits is the content of the side file, or of one slot. It is a value; copies share Losses and do not
// write to it.
type Commits struct {
	write    uint64                 // number of the write; its parity chooses the slot
	UUID     [record.UUIDBytes]byte // of the database; differs in a file that does not belong to the store
	Sequence uint64                 // last commit known to be durable; later ones may exist
	Losses   []report.Loss          // not yet acknowledged, oldest first, at most maxLosses
}

// slot returns r as a slot of commitsSlot bytes.
func (r *Commits) slot() []byte {
	b := append(make([]byte, 0, commitsSlot), commitsMagic...)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, r.write)
	b = append(b, r.UUID[:]...)
	b = binary.LittleEndian.AppendUint64(b, r.Sequence)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Losses)))
	for _, l := range r.Losses {
		b = binary.LittleEndian.AppendUint64(b, uint64(l.Found.UnixMilli()))
		b = binary.LittleEndian.AppendUint64(b, l.First)
		b = binary.LittleEndian.AppendUint64(b, l.Last)
	}
	b = b[:commitsSlot-4]
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoliSums))
}

// decodeCommitsSlot reads a slot. The error wraps codec.ErrCorrupt.
func decodeCommitsSlot(b []byte) (r Commits, err error) {
	bad := func(format string, args ...any) (Commits, error) {
		return Commits{}, fmt.Errorf("%w: %s", codec.ErrCorrupt, fmt.Sprintf(format, args...))
	}
	le := binary.LittleEndian
	switch {
	case len(b) != commitsSlot || string(b[:4]) != commitsMagic:
		return bad("not a slot of %s", CommitsName)
	case crc32.Checksum(b[:commitsSlot-4], castagnoliSums) != le.Uint32(b[commitsSlot-4:]):
		return bad("the checksum does not match")
	}
	r.write, r.Sequence = le.Uint64(b[8:]), le.Uint64(b[32:])
	copy(r.UUID[:], b[16:])
	n := le.Uint32(b[40:])
	if n > maxLosses {
		return bad("%d losses", n)
	}
	rest := b[commitsHeader:]
	for range n {
		l := report.Loss{Found: time.UnixMilli(int64(le.Uint64(rest))).UTC(), First: le.Uint64(rest[8:]), Last: le.Uint64(rest[16:])}
		if l.First == 0 || l.First > l.Last {
			return bad("loss of the commits %d to %d", l.First, l.Last)
		}
		r.Losses = append(r.Losses, l)
		rest = rest[lossBytes:]
	}
	return r, nil
}

// ReadCommits reads the side file of the database in dir: the slot written last, of the readable ones. A
// missing file is fs.ErrNotExist. A file without a readable slot is codec.ErrCorrupt. Any other error is an
// error of the disk, and says nothing about the file.
func ReadCommits(fsys vfs.FS, dir string) (r Commits, err error) {
	f, err := fsys.Open(fsys.PathJoin(dir, CommitsName))
	if err != nil {
		return r, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 2*commitsSlot))
	if err != nil {
		return r, err
	}
	found := false
	for ; len(b) >= commitsSlot; b = b[commitsSlot:] {
		slot, serr := decodeCommitsSlot(b[:commitsSlot])
		switch {
		case serr != nil:
			err = serr
		case !found || slot.write > r.write:
			r, found = slot, true
		}
	}
	if !found && err == nil {
		err = fmt.Errorf("%w: it is shorter than a slot", codec.ErrCorrupt)
	}
	if found {
		err = nil
	}
	return r, err
}

// MakeCommits writes a new side file of the database in dir, durably. Both slots hold r.
func MakeCommits(fsys vfs.FS, dir string, r Commits) error {
	slot := r.slot()
	return ReplaceFile(fsys, dir, CommitsName, append(slot, slot...))
}

// ReplaceFile gives the file name in dir new content, durably, through name.tmp. A crash leaves the old
// content or the new.
func ReplaceFile(fsys vfs.FS, dir, name string, content []byte) error {
	tmp := fsys.PathJoin(dir, name+".tmp")
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, fsys.PathJoin(dir, name)); err != nil {
		return err
	}
	return SyncDir(fsys, dir)
}

// writeCommits writes r into the slot of the older record, and syncs. A crash can tear only that slot.
func writeCommits(f vfs.File, r *Commits) error {
	if _, err := f.WriteAt(r.slot(), int64(r.write%2)*commitsSlot); err != nil {
		return err
	}
	return f.SyncData()
}

// commitsProblem describes an error of ReadCommits.
func commitsProblem(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "the file " + CommitsName + " is missing"
	}
	return "the file " + CommitsName + " cannot be read: " + fault.Problem(err)
}
