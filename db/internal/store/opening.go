package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// An opening is the file system of a store while Pebble opens it. It tracks open files, for two reasons. When
// Pebble fails, it leaves files open. And Pebble does not always return: it writes the content of its logs
// into tables, and if a table cannot be written, or an ingested table cannot be read, it tries again forever,
// without a pause. The opening is then given up: its files are closed, and Pebble gets no others.
//
// It stays in front of the file system while the store is open. Once done, it does not track files.
type opening struct {
	vfs.FS
	stuck chan error // the error that makes writing tables fail forever; holds one

	log *Log // of the store

	mu     sync.Mutex     // guards the fields below
	open   map[*kept]bool // files opened before done and still open; nil once over
	late   bool           // the new log has been created: compactions may be running
	done   bool           // pebble.Open has succeeded: later failures do not concern the opening
	over   bool           // given up, or failed: nothing can be opened or changed
	failed int            // failed attempts to write tables before done
}

// openingTries is the number of times that Pebble may try to write the tables of its logs. The pauses in
// between add up to half a second.
const openingTries = 8

// ErrGivenUp means that Pebble would have tried to open a store forever. It mostly comes with the error of
// each attempt.
var ErrGivenUp = errors.New("opening was given up")

// OpenPebble opens the store at path with options from PebbleOptions; it puts an opening in front of FS, and
// sets the scheduler. After a failure no file is open, and nothing will be written. But if Pebble does not
// end (ErrGivenUp), its memory and waiting goroutines remain. A panic of Pebble over a damaged store is an
// error.
func OpenPebble(path string, po *pebble.Options, log *Log) (*pebble.DB, error) {
	o := &opening{FS: po.FS, log: log, stuck: make(chan error, 1), open: map[*kept]bool{}}
	compactions := newScheduler(&log.compactions)
	po.FS, po.Experimental.CompactionScheduler = o, compactions
	po.EventListener.BackgroundError = func(err error) {
		po.Logger.Errorf("background error: %s", err)
		o.trouble(err)
	}
	var kv *pebble.DB
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = work.Safely(func() (err error) { // a damaged store may make it panic
			kv, err = pebble.Open(path, po)
			return err
		})
	}()
	select {
	case <-ended:
	case serr := <-o.stuck:
		o.close()
		compactions.Unregister()
		return nil, fmt.Errorf("%w: what its logs hold cannot be written into tables: %w", ErrGivenUp, serr)
	}
	o.mu.Lock()
	if err == nil && o.failed >= openingTries { // some goroutines have ended by now
		err = ErrGivenUp
	}
	o.done = err == nil
	o.mu.Unlock()
	if err != nil {
		o.close()
		compactions.Unregister()
		return nil, err
	}
	return kv, nil
}

// trouble is Pebble's BackgroundError, called in the goroutine of a failed flush or compaction. During the
// opening it makes that goroutine wait, longer each time. After openingTries it ends the goroutine, and
// OpenPebble gives up.
func (o *opening) trouble(err error) {
	select {
	case o.log.trouble <- struct{}{}:
	default: // a signal is pending
	}
	o.mu.Lock()
	if o.done {
		o.mu.Unlock()
		return
	}
	o.failed++
	n := o.failed
	o.mu.Unlock()
	if n < openingTries {
		time.Sleep(time.Duration(n) * 20 * time.Millisecond)
		return
	}
	select {
	case o.stuck <- err:
	default:
	}
	runtime.Goexit() // else it would try again
}

// close gives the opening up: it closes all files, and later calls that would open or change a file fail.
func (o *opening) close() {
	o.mu.Lock()
	open := o.open
	o.over, o.open = true, nil
	o.mu.Unlock()
	for k := range open {
		_ = k.c.Close() // the error does not matter
	}
}

// may returns ErrGivenUp once nothing may be opened or changed.
func (o *opening) may() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return ErrGivenUp
	}
	return nil
}

// A kept is a file or a lock opened during the opening, so that opening.close can close it.
type kept struct {
	c io.Closer
	o *opening
}

// keep records an opened file or lock, and closes it again if the opening is given up.
func (o *opening) keep(c io.Closer) (*kept, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return nil, errors.Join(ErrGivenUp, c.Close())
	}
	k := &kept{c, o}
	if !o.done {
		o.open[k] = true
	}
	return k, nil
}

// Close closes the file or lock, unless opening.close has closed it.
func (k *kept) Close() error {
	k.o.mu.Lock()
	over := k.o.over
	delete(k.o.open, k)
	k.o.mu.Unlock()
	if over {
		return nil
	}
	return k.c.Close()
}

// file tracks an opened file during the opening; later it returns the file unchanged.
func (o *opening) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	done := o.done
	o.mu.Unlock()
	if done {
		return f, nil
	}
	own := &openingFile{file: f}
	if own.k, err = o.keep(closer(own.shut)); err != nil {
		return nil, err
	}
	return own, nil
}

// Create and the methods below are the methods of vfs.FS that open or change files. A file that is created,
// or opened for reading, also becomes a tableFile, and a table opened for reading a summedFile.

func (o *opening) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := o.may(); err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".log") {
		o.mu.Lock()
		o.late = true
		o.mu.Unlock()
	}
	return o.file(table(o.FS.Create(name, c)))
}

func (o *opening) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := o.FS.Open(name, opts...)
	return o.file(table(summed(name, file, err)))
}

// List lists a folder. Pebble lists its folder last, to find obsolete files. On an error it would close the
// store under running compactions, and these panic. So Pebble gets an empty listing, and the store has failed
// (Log.Fail); Open checks that.
func (o *opening) List(dir string) ([]string, error) {
	names, err := o.FS.List(dir)
	if err == nil {
		return names, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.late || o.done {
		return nil, err
	}
	o.log.Fail(err)
	return nil, nil
}

func (o *opening) OpenReadWrite(name string, c vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	if err := o.may(); err != nil {
		return nil, err
	}
	return o.file(o.FS.OpenReadWrite(name, c, opts...))
}

func (o *opening) OpenDir(name string) (vfs.File, error) { return o.file(o.FS.OpenDir(name)) }

func (o *opening) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := o.may(); err != nil {
		return nil, err
	}
	return o.file(o.FS.ReuseForWrite(oldname, newname, c))
}

func (o *opening) Lock(name string) (io.Closer, error) {
	l, err := o.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	return o.keep(l)
}

func (o *opening) Link(oldname, newname string) error {
	if err := o.may(); err != nil {
		return err
	}
	return o.FS.Link(oldname, newname)
}

func (o *opening) Remove(name string) error {
	if err := o.may(); err != nil {
		return err
	}
	return o.FS.Remove(name)
}

func (o *opening) Rename(oldname, newname string) error {
	if err := o.may(); err != nil {
		return err
	}
	return o.FS.Rename(oldname, newname)
}

// An openingFile is a file that opening.close may close while it is in use: after a late failure of opening,
// compactions go on for a while. Files of an operating system tolerate that; files of other file systems may
// not. So closing waits for running calls, and later calls get fs.ErrClosed.
type openingFile struct {
	k *kept // closes the file, once

	mu     sync.RWMutex // held for reading by each call, for writing to close
	file   vfs.File
	closed bool
}

// A closer is a function as an io.Closer.
type closer func() error

func (c closer) Close() error { return c() }

// Close is for the user of the file. opening.close may have closed it before.
func (f *openingFile) Close() error { return f.k.Close() }

// shut closes the file itself, once no call is running.
func (f *openingFile) shut() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.file.Close()
}

// use runs do while the file stays open.
func (f *openingFile) use(do func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return fs.ErrClosed
	}
	return do()
}

func (f *openingFile) Read(p []byte) (n int, err error) {
	err = f.use(func() (err error) { n, err = f.file.Read(p); return err })
	return n, err
}

func (f *openingFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.use(func() (err error) { n, err = f.file.ReadAt(p, off); return err })
	return n, err
}

func (f *openingFile) Write(p []byte) (n int, err error) {
	err = f.use(func() (err error) { n, err = f.file.Write(p); return err })
	return n, err
}

func (f *openingFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.use(func() (err error) { n, err = f.file.WriteAt(p, off); return err })
	return n, err
}

func (f *openingFile) Preallocate(offset, length int64) error {
	return f.use(func() error { return f.file.Preallocate(offset, length) })
}

func (f *openingFile) Stat() (info vfs.FileInfo, err error) {
	err = f.use(func() (err error) { info, err = f.file.Stat(); return err })
	return info, err
}

func (f *openingFile) Sync() error { return f.use(f.file.Sync) }

func (f *openingFile) SyncTo(length int64) (full bool, err error) {
	err = f.use(func() (err error) { full, err = f.file.SyncTo(length); return err })
	return full, err
}

func (f *openingFile) SyncData() error { return f.use(f.file.SyncData) }

func (f *openingFile) Prefetch(offset, length int64) error {
	return f.use(func() error { return f.file.Prefetch(offset, length) })
}

func (f *openingFile) Fd() uintptr { return f.file.Fd() }

// OpenTable opens a table without its store; the caller closes it. It checks the sums of blocks first, as
// summedFile does. If Pebble refuses a table, by an error or a panic, it leaves the file open: OpenTable
// closes it, and lets a panic go on.
func OpenTable(ctx context.Context, fsys vfs.FS, path string,
	options sstable.ReaderOptions) (r *sstable.Reader, err error) {
	file, err := fsys.Open(path)
	f, err := summed(path, file, err)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r == nil {
			err = errors.Join(err, f.Close())
		}
	}()
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, err
	}
	return sstable.NewReader(ctx, readable, options)
}

// ReadFS is a file system without changes: calls that would change it fail with fs.ErrPermission. A read-only
// Pebble gets it. Pebble would make a lock file of its own, which is a change. The folder is locked already,
// so Lock does nothing.
type ReadFS struct{ vfs.FS }

// noLock is a lock that locks nothing.
type noLock struct{}

func (noLock) Close() error { return nil }

func (ReadFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

var errReadFS = fmt.Errorf("%w: opened for reading only", fs.ErrPermission)

func (ReadFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReadFS }
func (ReadFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReadFS
}
func (ReadFS) ReuseForWrite(_, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReadFS
}
func (ReadFS) Link(_, _ string) error             { return errReadFS }
func (ReadFS) Rename(_, _ string) error           { return errReadFS }
func (ReadFS) Remove(string) error                { return errReadFS }
func (ReadFS) RemoveAll(string) error             { return errReadFS }
func (ReadFS) MkdirAll(string, fs.FileMode) error { return errReadFS }

// OpenDatabase opens the store of the database in dir to read or to write, wherever an interrupted repair has
// left it (Path). The folder is locked. Missing files, or files of another length, are an ErrCorrupt.
func OpenDatabase(dir string, cfg *Config, logger *Log, readOnly bool) (*pebble.DB, error) {
	path := Path(cfg.FS, dir)
	if _, err := cfg.FS.List(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corrupt(errors.New("it is missing"), "store in %s", dir)
	} else if err != nil {
		return nil, fault.Annotate(err, "open %s", dir)
	}
	var kv *pebble.DB
	var err error
	if readOnly {
		kv, err = OpenToRead(path, cfg, logger)
	} else {
		kv, err = Open(path, cfg, logger, false)
	}
	switch {
	case err == nil:
		return kv, nil
	case MissesFiles(err), otherOptions(err):
		return nil, fault.Corrupt(err, "store in %s", dir)
	}
	return nil, fault.ReadError(err, "store in %s", dir)
}

// otherOptions reports whether pebble.Open failed because the file of the store's options names, for example,
// another merger. That file has no checksum, so damage to it may look like this.
func otherOptions(err error) bool {
	var elsewhere pebble.ErrMissingWALRecoveryDir
	return errors.As(err, &elsewhere) || strings.Contains(err.Error(), " name from file ")
}

// OpenToRead opens the store at path and changes nothing on disk. It reads the log into memory. The error is
// Pebble's, unwrapped.
func OpenToRead(path string, cfg *Config, logger *Log) (*pebble.DB, error) {
	po := PebbleOptions(cfg, logger, false)
	po.FS, po.ReadOnly = ReadFS{cfg.FS}, true
	return OpenPebble(path, po, logger)
}

// lockShared takes the lock that keeps writers out and admits other readers, if that changes nothing. It
// returns a lock that locks nothing in three cases. Without a lock file, the database is not open. Without
// permission to open the file, no process here can write. And some file systems have no locks.
func lockShared(fsys vfs.FS, dir string) (io.Closer, error) {
	path := fsys.PathJoin(dir, LockName)
	switch info, err := fsys.Stat(path); {
	case err != nil:
		return noLock{}, nil
	case info.Mode()&(oddKinds|fs.ModeDir) != 0:
		return nil, fault.Corrupt(&fault.KindError{Path: path, Found: info.Mode().Type()}, "lock of %s", dir)
	}
	var l io.Closer
	var err error
	if onDisk(fsys) {
		l, err = shareLock(path)
	} else {
		l, err = fsys.Lock(path) // a custom file system may have no shared locks
	}
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, errLockHeld) || lockHeld(err):
		return nil, fmt.Errorf("%w: %s: close it there first", fault.ErrLocked, dir)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported),
		errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOLCK):
		return noLock{}, nil
	}
	return nil, fmt.Errorf("fddhdb: lock %s: %w", dir, err)
}

// A repair makes a new store in repairing/. A complete store is renamed to repaired/, in one step. Then
// store/ becomes damaged-TIME/, and repaired/ becomes store/. So at any moment store/ or repaired/ exists, or
// both. If store/ exists, it counts. If not, the process that opens the database next finishes the renaming
// (FinishRepair).
const (
	RepairingName = "repairing"
	RepairedName  = "repaired"
	DamagedPrefix = "damaged-"
)

// FinishRepair moves a repaired store to its place, durably, if an interrupted repair has left no store
// there. The folder is locked to write. Mostly it does nothing.
func FinishRepair(fsys vfs.FS, dir string) error {
	store, repaired := fsys.PathJoin(dir, StoreName), fsys.PathJoin(dir, RepairedName)
	for path, wanted := range map[string]bool{store: false, repaired: true} {
		_, err := fsys.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if (err == nil) != wanted {
			return nil
		}
	}
	if err := fsys.Rename(repaired, store); err != nil {
		return err
	}
	return SyncDir(fsys, dir)
}

// Path returns the path of the store of a database: store/. If a repair was interrupted in its last step and
// the database was not opened to write since, it is repaired/.
func Path(fsys vfs.FS, dir string) string {
	path, repaired := fsys.PathJoin(dir, StoreName), fsys.PathJoin(dir, RepairedName)
	if _, err := fsys.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path
	}
	if _, err := fsys.Stat(repaired); err != nil {
		return path
	}
	return repaired
}
