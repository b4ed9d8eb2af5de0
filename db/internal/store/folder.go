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
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
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
// and, after a repair, the names in opening.go.
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
		return false, false, fmt.Errorf(
			"%w: %s: a restore to it has been interrupted, or is going on: restore it again",
			fault.ErrNotDatabase, dir)
	}
	for _, name := range names {
		if strings.HasPrefix(name, DamagedPrefix) {
			continue
		}
		switch name {
		case LockName, StoreName, CreatingName, IngestName, CheckpointsName, RepairingName, RepairedName,
			MarkerName + ".tmp", CommitsName, CommitsName + ".tmp":
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
		return fmt.Errorf("%w: %s: there is a store, but its marker %s is missing: a repair writes it again",
			fault.ErrNotDatabase, dir, MarkerName)
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

// During its creation a folder has IncompleteSuffix after its name. Until it is complete it holds a file
// incompleteName, which is made first and removed last. So the next attempt knows that it may clear a folder
// of that name.
const (
	IncompleteSuffix = ".incomplete"
	incompleteName   = "INCOMPLETE"
)

// NewFolder makes a folder, such as a checkpoint, whole and durably, or not at all. make fills it at path,
// under the other name and locked. The files that make leaves must be durable; NewFolder then renames the
// folder. dir must not exist (ErrExists), nor be inside a database (ErrInvalid). If make fails, or panics,
// NewFolder removes the folder. If the process is killed, the next attempt with the same name clears the
// remains.
func NewFolder(fsys vfs.FS, dir string, make func(path string) error) error {
	dir = filepath.Clean(dir)
	if err := Outside(fsys, dir); err != nil {
		return err
	}
	switch _, err := fsys.Stat(dir); {
	case err == nil:
		return fmt.Errorf("%w: %s: give a folder that is not there yet", fault.ErrExists, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	path := dir + IncompleteSuffix
	if err := MakeDir(fsys, path); err != nil {
		return err
	}
	lock, err := takeFolder(fsys, path)
	if err != nil {
		return err
	}
	err = work.Safely(func() error { return make(path) })
	// Windows neither renames nor removes a folder with an open file in it, so the lock goes first. Elsewhere
	// it stays until the end, so that no other process begins in between.
	if runtime.GOOS == "windows" {
		err = errors.Join(err, lock.Close())
		lock = noLock{}
	}
	if err == nil {
		err = fsys.Rename(path, dir)
	}
	if err != nil {
		removeIncomplete(fsys, path)
		return errors.Join(err, lock.Close())
	}
	if err := lock.Close(); err != nil {
		return err
	}
	if err := SyncDir(fsys, fsys.PathDir(dir)); err != nil {
		if fsys.Rename(dir, path) == nil {
			removeIncomplete(fsys, path)
		}
		return err
	}
	_ = fsys.Remove(fsys.PathJoin(dir, incompleteName)) // it is harmless in a complete folder
	return nil
}

// takeFolder locks the folder to fill, and clears the remains of an earlier attempt. A folder with other
// files is an ErrExists.
func takeFolder(fsys vfs.FS, path string) (_ io.Closer, err error) {
	names, err := fsys.List(path)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == LockName })
	if len(names) > 0 && !slices.Contains(names, incompleteName) {
		return nil, fmt.Errorf("%w: %s is in the way: remove it, or give another folder", fault.ErrExists,
			path)
	}
	locked, err := Canonical(fsys, path)
	if err != nil {
		return nil, err
	}
	lock, err := LockFolder(fsys, locked)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	if err := clearIncomplete(fsys, path); err != nil {
		return nil, err
	}
	return lock, writeIncomplete(fsys, path)
}

// writeIncomplete durably writes the file that marks a folder as incomplete.
func writeIncomplete(fsys vfs.FS, path string) error {
	f, err := fsys.Create(fsys.PathJoin(path, incompleteName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("fddhdb is filling this folder. If no process does, it may be removed.\n"))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return SyncDir(fsys, path)
}

// clearIncomplete empties a folder, except for the lock. It removes the file incompleteName last.
func clearIncomplete(fsys vfs.FS, path string) error {
	names, err := fsys.List(path)
	if err != nil {
		return err
	}
	last := false
	for _, name := range names {
		switch name {
		case LockName:
			continue
		case incompleteName:
			last = true
			continue
		}
		if err := fsys.RemoveAll(fsys.PathJoin(path, name)); err != nil {
			return err
		}
	}
	if last {
		return fsys.Remove(fsys.PathJoin(path, incompleteName))
	}
	return nil
}

// removeIncomplete removes a folder that could not be completed. If that fails, the next attempt clears it.
func removeIncomplete(fsys vfs.FS, path string) {
	if clearIncomplete(fsys, path) == nil {
		_ = fsys.RemoveAll(path)
	}
}

// Claim locks the folder of a database. It makes the folder if a new database may be there. It returns the
// canonical path, and whether a database exists.
func Claim(fsys vfs.FS, dir string, mustExist,
	readOnly bool) (path string, lock io.Closer, exists bool, err error) {
	if dir == "" {
		return "", nil, false, fault.Invalid("open a database: the name of its folder is empty")
	}
	exists, creatable, err := Inspect(fsys, dir)
	switch {
	case err != nil:
		return "", nil, false, err
	case exists:
	case !creatable:
		return "", nil, false, Foreign(fsys, dir)
	case mustExist || readOnly:
		return "", nil, false, NoneYet(fsys, dir)
	default:
		if err := Outside(fsys, dir); err != nil {
			return "", nil, false, err
		}
		if err := MakeDir(fsys, dir); err != nil {
			return "", nil, false, fmt.Errorf("fddhdb: create %s: %w", dir, err)
		}
	}
	if path, err = Canonical(fsys, dir); err != nil {
		return "", nil, false, err
	}
	lock, err = Lock(fsys, path, readOnly)
	return path, lock, exists, err
}

// Ready makes the store if it does not exist, and tidies the folder, which is locked.
func (e *Engine) Ready(exists, readOnly bool) error {
	if !exists {
		// Look again: another process may have held the lock until now.
		exists, creatable, err := Inspect(e.cfg.FS, e.Dir)
		switch {
		case err != nil:
			return err
		case exists:
		case !creatable:
			return Foreign(e.cfg.FS, e.Dir)
		default:
			if err := Create(e.cfg.FS, e.Dir, e.Make, e.Check); err != nil {
				return fault.Annotate(err, "create %s", e.Dir)
			}
		}
	}
	if !readOnly {
		if err := FinishRepair(e.cfg.FS, e.Dir); err != nil {
			return fault.Annotate(err, "open %s", e.Dir)
		}
		if err := RemoveLeftovers(e.cfg.FS, e.Dir); err != nil {
			return fault.Annotate(err, "open %s", e.Dir)
		}
	}
	return nil
}

// backupsName is the file that makes a folder a repository of backups.
const backupsName = "fddhdb-backups.json"

// Foreign returns the ErrNotDatabase for a folder with other content, in which no database may be created. It
// names what the folder seems to hold.
func Foreign(fsys vfs.FS, dir string) error {
	return fmt.Errorf("%w: %s holds something else%s", fault.ErrNotDatabase, dir, resembling(fsys, dir))
}

// resembling names what a folder seems to hold, as the end of a sentence; "" if unknown.
func resembling(fsys vfs.FS, dir string) string {
	names, err := fsys.List(dir)
	if err != nil {
		return ""
	}
	named := func(name string) bool { return slices.Contains(names, name) }
	prefixed := func(prefix string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	above := fsys.PathDir(dir)
	switch {
	case prefixed("marker.manifest."):
		if fsys.PathBase(dir) == StoreName {
			if CheckMarker(fsys, above) == nil {
				return fmt.Sprintf(": it is the store of the database in %s: open that", above)
			}
		}
		return ": a Pebble store that is no database of fddhdb"
	case named(backupsName):
		return ": a repository of backups: restore one of them"
	case named("CURRENT") && named("IDENTITY"):
		return ": a RocksDB database"
	case named("CURRENT") && prefixed("MANIFEST-"):
		return ": a LevelDB database, or an old one of RocksDB or Pebble"
	}
	return ""
}

// fileKind names the kind of database that a file is, by its first bytes; "" if unknown, or if it is a
// folder.
func fileKind(fsys vfs.FS, path string) string {
	f, err := fsys.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var head [32]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	switch b := string(head[:n]); {
	case strings.HasPrefix(b, "SQLite format 3\x00"):
		return "an SQLite database"
	case n >= 20 && b[16:20] == "\xed\xda\x0c\xed":
		return "a bbolt database"
	}
	return ""
}

// fileAsFolder returns the ErrNotDatabase for a path that should be a folder and is a file; nil if it is no
// file.
func fileAsFolder(fsys vfs.FS, path string) error {
	info, err := fsys.Stat(path)
	if err != nil || info.IsDir() {
		return nil
	}
	kind := fileKind(fsys, path)
	if kind == "" {
		kind = "a file"
	}
	return fmt.Errorf("%w: %s is %s; a database is a folder", fault.ErrNotDatabase, path, kind)
}

// lockTable has the lock files that this process has locked. The locks of the operating system belong to the
// process, and closing any handle of a file may drop them all. So the process counts its locks, and opens
// each lock file once. The mutex is held while a lock is taken, which never waits for another process.
var lockTable = struct {
	sync.Mutex
	locks map[string]*heldLock // by the path of the file
}{locks: map[string]*heldLock{}}

// A heldLock is a lock file locked by this process. lockTable.Mutex guards it.
type heldLock struct {
	path    string    // its key in lockTable.locks
	file    io.Closer // closing it frees the lock
	readers int       // handles that share it; 0: one writer has it
}

// errLockHeld means that this process already has the lock in a way that excludes the new one.
var errLockHeld = errors.New("lock held by current process")

// takeLock takes the lock of a file, shared with other readers or alone. It calls lock, which asks the
// operating system, unless this process already has the lock for reading and shares it. If the locks exclude
// each other, the error is errLockHeld.
func takeLock(path string, shared bool, lock func(path string) (io.Closer, error)) (io.Closer, error) {
	lockTable.Lock()
	defer lockTable.Unlock()
	held := lockTable.locks[path]
	switch {
	case held != nil && (!shared || held.readers == 0):
		return nil, errLockHeld
	case held == nil:
		file, err := lock(path)
		if err != nil {
			return nil, err
		}
		held = &heldLock{path: path, file: file}
		lockTable.locks[path] = held
	}
	if shared {
		held.readers++
	}
	return &lockHandle{held: held}, nil
}

// A lockHandle is one user's share of a lock. Close it once.
type lockHandle struct{ held *heldLock }

// Close returns the share. The last Close frees the lock.
func (h *lockHandle) Close() error {
	lockTable.Lock()
	defer lockTable.Unlock()
	if h.held.readers--; h.held.readers > 0 {
		return nil
	}
	delete(lockTable.locks, h.held.path)
	return h.held.file.Close()
}

// shareLock locks an existing lock file for reading.
func shareLock(path string) (io.Closer, error) { return takeLock(path, true, lockToRead) }

// Lock locks the folder of a database, given by its Canonical path: to write, alone, or to read, shared with
// other readers. It never waits: if the lock is held, the error is an ErrLocked. Closing the result frees the
// lock.
func Lock(fsys vfs.FS, dir string, readOnly bool) (io.Closer, error) {
	if readOnly {
		return lockShared(fsys, dir)
	}
	return LockFolder(fsys, dir)
}

// LockDatabase locks the folder of a database, which must exist, as Lock does, and returns its Canonical
// path. Without a database the error is an ErrNotDatabase, see NoneYet.
func LockDatabase(fsys vfs.FS, dir string, readOnly bool) (string, io.Closer, error) {
	exists, creatable, err := Inspect(fsys, dir)
	switch {
	case err != nil:
		return "", nil, err
	case !exists && !creatable:
		return "", nil, Foreign(fsys, dir)
	case !exists:
		return "", nil, NoneYet(fsys, dir)
	}
	if dir, err = Canonical(fsys, dir); err != nil {
		return "", nil, err
	}
	l, err := Lock(fsys, dir, readOnly)
	return dir, l, err
}
