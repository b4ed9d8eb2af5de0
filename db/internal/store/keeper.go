package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Keeper keeps the side file in step with durable commits, in the background: no commit waits for it. The
// file is at most keepDelay or keepEvery commits behind. It never names a commit that is not durable, because
// Reached is called after the sync.
//
// One goroutine runs Run. All other methods are safe for concurrent use with it, except Drop and Close, which
// come last. A read-only database has no keeper.
type Keeper struct {
	fs      vfs.FS         // of the database, not of the store: a failure here fails nothing
	dir     string         // of the database
	signals *signal.Sender // gets the first failure of a series
	wake    chan struct{}  // wakes Run; holds one
	durable atomic.Uint64  // number of the last durable commit; only Reached sets it

	kept  atomic.Uint64 // sequence in the file, to be read without Mu
	awake atomic.Bool   // Run was woken, and has not written the file since

	// Mu guards the fields below and the file on disk, and is held while the file is written. It is exported
	// for tests, which hold it to keep the file unchanged.
	Mu     sync.Mutex
	file   vfs.File // open after the first write; nil before
	record Commits  // as last written
	failed bool     // the last write failed; only the first failure of a series is reported
}

const (
	keepDelay = time.Second // after the first commit that the file lacks
	keepEvery = 1000        // commits, after which the file is written at once
)

// NewKeeper returns a keeper of the side file of the database in dir. CompareCommits has returned the content
// of the file (side) and its next content (next). NewKeeper writes next at once if the two differ, or if
// remake asks for a new file. A failure of that write is only reported.
func NewKeeper(fsys vfs.FS, dir string, signals *signal.Sender, side, next Commits, remake bool) *Keeper {
	k := &Keeper{fs: fsys, dir: dir, signals: signals, wake: make(chan struct{}, 1), record: next}
	k.durable.Store(next.Sequence)
	k.kept.Store(next.Sequence)
	k.Mu.Lock()
	defer k.Mu.Unlock()
	switch {
	case remake:
		k.record.write++
		k.report(MakeCommits(fsys, dir, k.record))
	case side.Sequence != next.Sequence: // the file was behind, or the store is
		k.report(k.write(next))
	}
	return k
}

// Reached reports that a commit and all earlier ones are durable. It never waits, and costs a few atomic
// operations. The committer calls it; a nil keeper does nothing.
func (k *Keeper) Reached(sequence uint64) {
	if k == nil {
		return
	}
	k.durable.Store(sequence)
	// Mostly Run is awake: it writes once in keepDelay, or after keepEvery commits.
	if behind := sequence - k.kept.Load(); !k.awake.Swap(true) || behind >= keepEvery {
		k.nudge()
	}
}

// nudge wakes Run, now or when it waits next.
func (k *Keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default: // Run will look
	}
}

// Run keeps the file until the context ends. The file may then lack the last commits; Close writes them.
func (k *Keeper) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		}
		wait := time.NewTimer(keepDelay)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				wait.Stop()
				return
			case <-wait.C:
				due = true
			case <-k.wake:
				due = k.durable.Load()-k.kept.Load() >= keepEvery
			}
		}
		wait.Stop()
		k.awake.Store(false)
		k.Keep()
		if k.durable.Load() != k.kept.Load() {
			k.nudge() // more commits came meanwhile, or the write failed
		}
	}
}

// Keep brings the file up to date now, and returns when it is durable or the write has failed.
func (k *Keeper) Keep() {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if durable := k.durable.Load(); durable != k.record.Sequence || k.failed {
		next := k.record
		next.Sequence = durable
		k.report(k.write(next))
	}
}

// write writes the next record. The caller holds Mu.
func (k *Keeper) write(next Commits) (err error) {
	if k.file == nil {
		if k.file, err = k.fs.OpenReadWrite(k.fs.PathJoin(k.dir, CommitsName),
			vfs.WriteCategoryUnspecified); err != nil {
			return err
		}
	}
	next.write = k.record.write + 1
	if err := writeCommits(k.file, &next); err != nil {
		return err // the next write uses the same slot
	}
	k.record = next
	k.kept.Store(next.Sequence)
	return nil
}

// report reports the first failure of a series. The database goes on: only the detection of missing commits
// suffers. The caller holds Mu.
func (k *Keeper) report(err error) {
	if err != nil && !k.failed {
		k.signals.Happened(event.CommitsUnkept, slog.LevelWarn,
			event.Event{Err: err, Attrs: []slog.Attr{slog.String("file", CommitsName)}})
	}
	k.failed = err != nil
}

// Losses returns the losses that are not acknowledged, in a new slice.
func (k *Keeper) Losses() []report.Loss {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	return slices.Clone(k.record.Losses)
}

// Forget acknowledges all losses and returns them once the changed file is durable. After an error they are
// not forgotten.
func (k *Keeper) Forget() ([]report.Loss, error) {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if len(k.record.Losses) == 0 {
		return nil, nil
	}
	gone := k.record.Losses
	next := k.record
	next.Losses, next.Sequence = nil, k.durable.Load()
	if err := k.write(next); err != nil {
		return nil, fault.Annotate(err, "write %s in %s", CommitsName, k.dir)
	}
	return gone, nil
}

// Drop closes the file without a write, if opening the database fails before Run. A nil keeper has no file.
func (k *Keeper) Drop() error {
	if k == nil || k.file == nil {
		return nil
	}
	return k.file.Close()
}

// Close brings the file up to date and closes it, after Run has ended.
func (k *Keeper) Close() {
	k.Keep()
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if k.file != nil {
		k.report(k.file.Close())
	}
}

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
		l := report.Loss{Found: time.UnixMilli(int64(le.Uint64(rest))).UTC(), First: le.Uint64(rest[8:]),
			Last: le.Uint64(rest[16:])}
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

// CompareCommits compares the store with the identity i with its side file. It returns the missing commits,
// and the next content of the side file. side and err are the results of ReadCommits. It changes nothing.
func CompareCommits(i *record.Identity, side Commits, err error,
	now time.Time) (s report.Recovery, next Commits) {
	s.Found = i.Sequence
	next = Commits{UUID: i.UUID, Sequence: i.Sequence}
	switch {
	case err != nil:
		s.Problem = commitsProblem(err)
		return s, next
	case side.UUID != i.UUID:
		s.Problem = fmt.Sprintf("the file %s is of another database: its UUID is %x, that of the store %x",
			CommitsName, side.UUID, i.UUID)
		return s, next
	}
	s.Promised = side.Sequence
	next.write, next.Losses = side.write, side.Losses
	if s.Missing() > 0 {
		next.Losses = addLoss(side.Losses, report.Loss{Found: now, First: s.Found + 1, Last: s.Promised})
	}
	s.Losses = next.Losses
	return s, next
}

// TakeStock compares the store of the database in dir, with the identity i, with its side file, reports
// missing commits, and brings the file up to date unless the database is read-only. It returns the keeper of
// the file. The keeper is nil for a read-only database, and if the file could not be read just now: then the
// file stays unchanged.
func TakeStock(fsys vfs.FS, dir string, i *record.Identity, readOnly bool,
	signals *signal.Sender) (report.Recovery, *Keeper, error) {
	side, err := ReadCommits(fsys, dir)
	r, next := CompareCommits(i, side, err, time.Now().UTC().Truncate(time.Millisecond))
	if n := r.Missing(); n > 0 {
		signals.Happened(event.CommitsMissing, slog.LevelWarn, event.Event{Attrs: []slog.Attr{
			slog.Uint64("missing", n), slog.Uint64("found", r.Found), slog.Uint64("promised", r.Promised),
		}})
	}
	if r.Problem != "" {
		signals.Happened(event.CommitsUnknown, slog.LevelWarn,
			event.Event{Attrs: []slog.Attr{slog.String("problem", r.Problem)}})
	}
	known := err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, codec.ErrCorrupt)
	if readOnly || !known {
		return r, nil, nil
	}
	return r, NewKeeper(fsys, dir, signals, side, next, r.Problem != ""), nil
}

// addLoss returns the losses with another one. Above maxLosses, it merges the two oldest into one that covers
// all commits from the first to the last of both.
func addLoss(losses []report.Loss, l report.Loss) []report.Loss {
	all := append(slices.Clone(losses), l)
	if len(all) > maxLosses {
		all[1].First, all[1].Last = min(all[0].First, all[1].First), max(all[0].Last, all[1].Last)
		all = all[1:]
	}
	return all
}

// SideFile names the side file in a finding.
const SideFile = "side file " + CommitsName

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
