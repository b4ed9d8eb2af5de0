package store

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A disk that other programs have filled completely takes no deletion. A store on it cannot even be opened,
// because Pebble first makes a log and a manifest. So the reserve keeps a spare file in the folder of the
// store, to free its blocks in this case. Opening, a deletion and Compact remove it if they find no room; the
// next write with enough room makes it again. Its content is never read, so a crash at any point is harmless.
//
// Measured on a full tmpfs, opening takes 16 KiB, and a deletion 160 bytes an item in the log and 60 in
// tables. All but FreeingFloor of the rest is for the tables of Compact.
const (
	SpareName = "SPARE"
	maxSpare  = 1 << 20 // bytes, or half of the reserve if that is less
)

// GiveUpSpare removes the spare file, and reports whether it existed. From then on compactions may take its
// room, until it is made again.
func (r *Reserve) GiveUpSpare() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.giveUpSpare()
}

// giveUpSpare is GiveUpSpare for callers that hold mu.
func (r *Reserve) giveUpSpare() bool {
	r.at = time.Time{}
	r.given.Store(true)
	r.spare.Store(0)
	name := r.FS.PathJoin(r.Path, SpareName)
	if _, err := r.FS.Stat(name); err != nil || r.FS.Remove(name) != nil {
		return false
	}
	_ = SyncDir(r.FS, r.Path) // some file systems return the blocks only then
	return true
}

// keepSpare looks for the spare file of a store that is open to write, and makes a missing one if the disk
// has room for it above the reserve. After a failure it does not try again. The caller holds mu, and has just
// measured.
func (r *Reserve) keepSpare() {
	name, size := r.FS.PathJoin(r.Path, SpareName), min(maxSpare, r.keep/2)
	if info, err := r.FS.Stat(name); err == nil && info.Size() >= size {
		r.spare.Store(info.Size())
		return
	}
	if r.unspared || r.free < r.keep+size {
		return
	}
	if err := r.writeSpare(name, size); err != nil {
		r.unspared = true
		_ = r.FS.Remove(name)
		return
	}
	r.free -= size
	r.spare.Store(size)
	r.given.Store(false)
}

// writeSpare writes a file of so many bytes, durably, with random content that no file system compresses.
func (r *Reserve) writeSpare(name string, size int64) error {
	f, err := r.FS.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it cannot fail
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// spareBytes returns the bytes to gain by giving up the spare file.
func (r *Reserve) spareBytes() int64 {
	if r == nil { // a repair keeps none
		return 0
	}
	return r.spare.Load()
}

// roomToCompact returns the bytes that compactions can take. On a disk below the reserve it gives up the
// spare file for them.
func (r *Reserve) roomToCompact() int64 {
	if r.Want < 0 {
		return math.MaxInt64
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.measure()
	if r.free < r.keep {
		r.giveUpSpare()
		r.measure()
	}
	return r.free - r.kept(true)
}
