package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/inside"
)

// A database is a folder with these things in it:
//
//	FDDHDB   marker: JSON {"fddhdb": "database", "format": N}; written last
//	LOCK     locked while a process has the database open
//	COMMITS  the commits that are known to be durable
//	store/   Pebble
//	ingest/  tables of a bulk load, while one is going on
//	checkpoints/  what a backup reads, while one is going on
//	restoring/    what a restore has fetched, until the marker is written
//
// and where it has been repaired what repaired.go names.
//
// A folder without marker is no database. While one is being made, the store is
// in creating/, renamed when it is complete, and the marker follows, so that an
// interrupted creation is recognised and done again.
const (
	MarkerName   = "FDDHDB" // a folder is a database when it has a file of this name
	LockName     = "LOCK"
	StoreName    = "store"
	CreatingName = "creating"
	IngestName   = "ingest"

	CheckpointsName = "checkpoints"
	RestoringName   = "restoring"
)

// A marker is what the file MarkerName says, in JSON.
type marker struct {
	FDDHDB string `json:"fddhdb"` // "database"
	Format int    `json:"format"` // record.Format
}

// Inspect says whether dir holds a database, and if not whether one may be created there:
// where there is no folder, an empty one, or what an interrupted creation or repair left.
// Neither is true of a folder that holds anything else. It changes nothing and takes no lock,
// so whoever goes on looks again once the folder is locked. A marker that cannot be read, or
// names another format, is an error.
func Inspect(fsys vfs.FS, dir string) (exists, creatable bool, err error) {
	names, err := fsys.List(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, true, nil
	case err != nil:
		if file := fileAsFolder(fsys, dir); file != nil {
			return false, false, file
		}
		return false, false, fault.Annotate(bare(err), "open %s", dir)
	}
	if slices.Contains(names, MarkerName) {
		return true, false, CheckMarker(fsys, dir)
	}
	if slices.Contains(names, RestoringName) {
		return false, false, fmt.Errorf("%w: %s: a restore to it has been interrupted, or is going on: restore it again", fault.ErrNotDatabase, dir)
	}
	for _, name := range names {
		if strings.HasPrefix(name, DamagedPrefix) {
			continue
		}
		switch name {
		case LockName, StoreName, CreatingName, IngestName, CheckpointsName, RepairingName, RepairedName, MarkerName + ".tmp", CommitsName, CommitsName + ".tmp":
		default:
			return false, false, nil
		}
	}
	if slices.Contains(names, StoreName) {
		creatable, err = isStore(fsys, fsys.PathJoin(dir, StoreName))
		return false, creatable, err
	}
	return false, true, nil
}

// bare returns the cause of an error of the file system, whose text would name the operation
// and the path again.
func bare(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// NoneYet returns the error for a folder that Inspect finds creatable, where a database has to
// be there already. It tells a store that has lost its marker, which a repair can bring back,
// from no store.
func NoneYet(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(fsys.PathJoin(dir, StoreName)); err == nil {
		return fmt.Errorf("%w: %s: there is a store, but its marker %s is missing: a repair writes it again", fault.ErrNotDatabase, dir, MarkerName)
	}
	return fmt.Errorf("%w: %s: there is none yet", fault.ErrNotDatabase, dir)
}

// isStore reports whether a folder looks like one of Pebble.
func isStore(fsys vfs.FS, path string) (bool, error) {
	names, err := fsys.List(path)
	if err != nil {
		return false, fmt.Errorf("fddhdb: open %s: %w", path, err)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "MANIFEST-")
	}), nil
}

// CheckMarker checks that the marker of dir is one, and of a database of the format that this version reads.
// A file that is not ours is an ErrNotDatabase, another format a *fault.FormatError; a marker that is missing
// is an error of the file system.
func CheckMarker(fsys vfs.FS, dir string) error {
	f, err := fsys.Open(fsys.PathJoin(dir, MarkerName))
	var odd *fault.KindError
	if errors.As(err, &odd) {
		return fmt.Errorf("%w: %w", fault.ErrNotDatabase, err)
	}
	if err != nil {
		return fmt.Errorf("fddhdb: open %s: %w", dir, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<12))
	if err != nil {
		return fmt.Errorf("fddhdb: open %s: %w", dir, err)
	}
	var m marker
	if err := json.Unmarshal(b, &m); err != nil || m.FDDHDB != "database" {
		return fmt.Errorf("%w: %s: its file %s is not ours", fault.ErrNotDatabase, dir, MarkerName)
	}
	if m.Format != record.Format {
		return &fault.FormatError{Where: dir, Found: m.Format, Supported: record.Format}
	}
	return nil
}

// Create makes a database in dir, which Inspect has found creatable and the caller has locked.
// makeStore makes the store in a folder of another name, which Create renames when it is
// complete; the marker comes last. So a store that is there already is complete, and stays:
// only what stands beside it is missing, and checkStore says which database it is. checkStore
// may be nil where none can be there.
func Create(fsys vfs.FS, dir string, makeStore, checkStore func(path string) (record.Identity, error)) error {
	creating := fsys.PathJoin(dir, CreatingName)
	store := fsys.PathJoin(dir, StoreName)
	if err := fsys.RemoveAll(creating); err != nil {
		return err
	}
	if err := FinishRepair(fsys, dir); err != nil {
		return err
	}
	if _, err := fsys.Stat(store); err == nil {
		i, err := checkStore(store)
		if err != nil {
			return err
		}
		return furnish(fsys, dir, &i)
	}
	i, err := makeStore(creating)
	if err != nil {
		return err
	}
	if err := fsys.Rename(creating, store); err != nil {
		return err
	}
	if err := SyncDir(fsys, dir); err != nil {
		return err
	}
	return furnish(fsys, dir, &i)
}

// Outside refuses a new folder that would be inside of a database, as an ErrInvalid: opening
// that one empties folders such as checkpoints/ and restoring/, and nobody looks for a
// database or a backup there. Neither dir nor the folders above it need to be there.
func Outside(fsys vfs.FS, dir string) error {
	var around string
	if onDisk(fsys) {
		real, err := inside.Real(dir) // dir itself may be a link
		if err != nil {
			return fault.Annotate(err, "find %s", dir)
		}
		around = inside.Database(filepath.Dir(real))
	} else {
		around = inside.Around(fsys.PathDir(filepath.Clean(dir)), func(dir string) bool {
			err := CheckMarker(fsys, dir)
			return err == nil || errors.Is(err, fault.ErrFormat)
		})
	}
	if around != "" {
		return fault.Invalid("%s is in the database %s: give a folder elsewhere", dir, around)
	}
	return nil
}

// furnish makes the files beside a store that make it a database: the side file, unless the
// one that is there is of this database, and then the marker.
func furnish(fsys vfs.FS, dir string, i *record.Identity) error {
	if side, err := ReadCommits(fsys, dir); err != nil || side.UUID != i.UUID {
		if err := MakeCommits(fsys, dir, Commits{UUID: i.UUID, Sequence: i.Sequence}); err != nil {
			return err
		}
	}
	return WriteMarker(fsys, dir)
}

// WriteMarker makes a folder a database, durably. All else has to be there and durable before.
func WriteMarker(fsys vfs.FS, dir string) error {
	b, err := json.Marshal(marker{FDDHDB: "database", Format: record.Format})
	if err != nil {
		return err
	}
	return ReplaceFile(fsys, dir, MarkerName, append(b, '\n'))
}

// RemoveLeftovers removes what a bulk load, a backup or a restore that was interrupted has
// left, in a folder that is locked to write. The store has its own links to the tables that it
// has taken over.
func RemoveLeftovers(fsys vfs.FS, dir string) error {
	for _, name := range []string{IngestName, CheckpointsName, RestoringName} {
		path := fsys.PathJoin(dir, name)
		if _, err := fsys.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := fsys.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// MakeDir makes dir and the folders above it that are missing, durably.
func MakeDir(fsys vfs.FS, dir string) error {
	var above []string // whose listings change
	for d := dir; ; {
		if _, err := fsys.Stat(d); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		parent := fsys.PathDir(d)
		if parent == d {
			break
		}
		above = append(above, parent)
		d = parent
	}
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range above {
		if err := SyncDir(fsys, d); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir makes durable which files a folder has, under which names.
func SyncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// LockFolder takes the lock of dir, which keeps other processes out, and a second Open of this
// process as well. It makes the lock file where there is none, and closing the lock leaves the
// file. dir is to be its Canonical path. Where somebody else has the lock the error is
// ErrLocked, at once.
func LockFolder(fsys vfs.FS, dir string) (io.Closer, error) {
	var l io.Closer
	var err error
	if onDisk(fsys) {
		l, err = takeLock(fsys.PathJoin(dir, LockName), false, fsys.Lock)
	} else {
		l, err = fsys.Lock(fsys.PathJoin(dir, LockName))
	}
	switch {
	case err == nil:
		return l, nil
	case lockHeld(err):
		return nil, fmt.Errorf("%w: %s: close it there first", fault.ErrLocked, dir)
	}
	if errors.Is(err, codec.ErrCorrupt) {
		return nil, fault.Corrupt(err, "lock of %s", dir)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("fddhdb: open %s: %w: whoever opens a database has to be allowed to write to it", dir, fs.ErrPermission)
	}
	return nil, fmt.Errorf("fddhdb: lock %s: %w", dir, err)
}

// lockHeld reports whether an error of taking a lock says that somebody else has it: EAGAIN of
// fcntl (EACCES on some systems, where it is not the error of opening the file), a sharing
// violation on Windows, or the words of Pebble's own list of the locks of this process.
func lockHeld(err error) bool {
	const sharingViolation = syscall.Errno(32)
	var number syscall.Errno
	var opening *fs.PathError
	switch {
	case strings.Contains(err.Error(), "lock held by current process"):
		return true
	case errors.As(err, &opening) || !errors.As(err, &number):
		return false
	}
	return number == syscall.EAGAIN || number == syscall.EACCES ||
		(runtime.GOOS == "windows" && number == sharingViolation)
}

// Canonical returns the one absolute path of an existing folder, without links, however it was
// spelt: the locks of this process are known by their path (lockTable). File systems other
// than that of the operating system have one spelling only.
func Canonical(fsys vfs.FS, dir string) (string, error) {
	if !onDisk(fsys) {
		return dir, nil
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("fddhdb: open %s: %w", dir, err)
	}
	return abs, nil
}
