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

// A database is a folder with these files and folders:
//
//	FDDHDB   marker: JSON {"fddhdb": "database", "format": N}; written last
//	LOCK     locked while a process has the database open
//	COMMITS  the last commit known to be durable
//	store/   Pebble
//	ingest/  tables of a bulk load in progress
//	checkpoints/  files for a backup in progress
//	restoring/    files of a restore, until the marker is written
//
// and, after a repair, the names in repaired.go.
//
// A folder without marker is no database. During a creation the store is in creating/, which is renamed when
// complete, and the marker follows. So an interrupted creation is recognised and done again.
const (
	MarkerName   = "FDDHDB" // a folder with a file of this name is a database
	LockName     = "LOCK"
	StoreName    = "store"
	CreatingName = "creating"
	IngestName   = "ingest"

	CheckpointsName = "checkpoints"
	RestoringName   = "restoring"
)

// A marker is the content of the file MarkerName, in JSON.
type marker struct {
	FDDHDB string `json:"fddhdb"` // "database"
	Format int    `json:"format"` // record.Format
}

// Inspect reports whether dir holds a database, and if not whether one may be created there. A database may
// be created in a missing folder, an empty one, or one with only the remains of an interrupted creation or
// repair. Both results are false for other folders. Inspect changes nothing and takes no lock, so callers
// look again once they have locked the folder. An unreadable marker, or one of another format, is an error.
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

// bare returns the cause of an error of the file system, without the operation and the path.
func bare(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// NoneYet returns the error for a folder that Inspect finds creatable, if the database must already exist. It
// distinguishes a store without its marker, which a repair can write again, from no store.
func NoneYet(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(fsys.PathJoin(dir, StoreName)); err == nil {
		return fmt.Errorf("%w: %s: there is a store, but its marker %s is missing: a repair writes it again", fault.ErrNotDatabase, dir, MarkerName)
	}
	return fmt.Errorf("%w: %s: there is none yet", fault.ErrNotDatabase, dir)
}

// isStore reports whether a folder looks like a Pebble store.
func isStore(fsys vfs.FS, path string) (bool, error) {
	names, err := fsys.List(path)
	if err != nil {
		return false, fmt.Errorf("fddhdb: open %s: %w", path, err)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "MANIFEST-")
	}), nil
}

// CheckMarker checks that dir has a valid marker of the format that this version reads. A foreign file is an
// ErrNotDatabase, another format a *fault.FormatError. A missing marker is an error of the file system.
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

// Create makes a database in dir, which Inspect has found creatable and the caller has locked. makeStore
// makes the store in a folder of another name, which Create renames when it is complete; the marker comes
// last. So an existing store is complete and stays: Create adds the files beside it, and checkStore
// identifies it. checkStore may be nil if no store can exist.
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

// Outside refuses a new folder inside a database, as an ErrInvalid: opening that database empties folders
// such as checkpoints/ and restoring/, and users do not look for a database or a backup there. Neither dir
// nor the folders above it need exist.
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

// furnish makes the files that turn a store into a database: the side file, unless the present one belongs to
// this database, and then the marker.
func furnish(fsys vfs.FS, dir string, i *record.Identity) error {
	if side, err := ReadCommits(fsys, dir); err != nil || side.UUID != i.UUID {
		if err := MakeCommits(fsys, dir, Commits{UUID: i.UUID, Sequence: i.Sequence}); err != nil {
			return err
		}
	}
	return WriteMarker(fsys, dir)
}

// WriteMarker makes a folder a database, durably. All other files must be durable before.
func WriteMarker(fsys vfs.FS, dir string) error {
	b, err := json.Marshal(marker{FDDHDB: "database", Format: record.Format})
	if err != nil {
		return err
	}
	return ReplaceFile(fsys, dir, MarkerName, append(b, '\n'))
}

// RemoveLeftovers removes the remains of an interrupted bulk load, backup or restore, in a folder that is
// locked to write. The store has its own links to ingested tables.
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

// MakeDir makes dir and its missing parents, durably.
func MakeDir(fsys vfs.FS, dir string) error {
	var above []string // folders with changed listings
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

// SyncDir makes the names in a folder durable.
func SyncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// LockFolder takes the lock of dir, which keeps out other processes and a second Open of this process. It
// makes a missing lock file; closing the lock leaves the file. dir must be its Canonical path. If the lock is
// held, the error is ErrLocked, at once.
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

// lockHeld reports whether taking a lock failed because it is held: by EAGAIN of fcntl (EACCES on some
// systems, unless it is the error of opening the file), by a sharing violation on Windows, or by the words of
// Pebble's own list of the locks of this process.
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

// Canonical returns the one absolute path of an existing folder, without links, for any spelling: lockTable
// has the locks of this process by path. In file systems other than the operating system's, a folder has one
// spelling only.
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
