package store

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

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

func (o *opening) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
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
