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

// An opening is the file system of a store while Pebble opens it. It knows which files are
// open, because Pebble leaves files open where it fails, and does not always return: it writes
// into tables what its logs hold, and where no table can be written, or a table that was taken
// over cannot be read, it tries again for ever, without a pause. Then the opening is given up:
// its files are closed, and Pebble gets no others.
//
// It stays in front of the file system for as long as the store is open, but once done it
// opens files without keeping them.
type opening struct {
	vfs.FS
	stuck chan error // the error by which writing tables fails for ever; holds one

	log *Log // of the store

	mu     sync.Mutex     // guards the fields below
	open   map[*kept]bool // what is open and was opened before done; nil once over
	late   bool           // the log to write to has been created: compactions may be going on
	done   bool           // pebble.Open has succeeded: failures are no concern of opening any more
	over   bool           // given up, or failed: nothing can be opened or changed any more
	failed int            // how often writing tables has failed before done
}

// openingTries is how often Pebble may try to write the tables of its logs. In between are
// pauses, which make them half a second.
const openingTries = 8

// ErrGivenUp says that Pebble would have tried to open a store for ever. It mostly comes with
// the error that it met each time.
var ErrGivenUp = errors.New("opening was given up")

// OpenPebble opens the store at path with options that PebbleOptions has made, in which it
// puts an opening in front of FS, and the scheduler. Where that fails, nothing is left open,
// and nothing will be written; but where Pebble does not end (ErrGivenUp), its memory and
// goroutines that wait are left. A panic of Pebble about a damaged store is an error.
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
	if err == nil && o.failed >= openingTries { // some of it has ended by now
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

// trouble is Pebble's BackgroundError: it is called in the goroutine in which a flush or a
// compaction has failed. While the store is being opened it makes that goroutine wait, longer
// each time, and after openingTries ends it, so that OpenPebble gives up.
func (o *opening) trouble(err error) {
	select {
	case o.log.trouble <- struct{}{}:
	default: // it is known
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
	runtime.Goexit() // it would try again
}

// close gives the opening up: it closes all files, and from then on all calls that would open
// or change something fail.
func (o *opening) close() {
	o.mu.Lock()
	open := o.open
	o.over, o.open = true, nil
	o.mu.Unlock()
	for k := range open {
		_ = k.c.Close() // they are of no use
	}
}

// may returns ErrGivenUp when nothing may be opened or changed any more.
func (o *opening) may() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return ErrGivenUp
	}
	return nil
}

// A kept is a file or a lock that was opened while the store was being opened, so that
// opening.close can close it.
type kept struct {
	c io.Closer
	o *opening
}

// keep takes note of what has been opened, and closes it again if the opening is given up.
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

// Close closes it, unless opening.close has.
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

// file keeps a file that has been opened, while the store is being opened; later it returns it
// as it is.
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

// Create and the methods below are those of vfs.FS that open or change something. What is
// created, or opened to be read, becomes a tableFile too, and a table that is read a
// summedFile.

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

// List lists a folder. Pebble does that last, to find obsolete files. If it failed then,
// Pebble would take down the store under compactions that are going on, and these panic. So
// Pebble sees an empty folder, and the store has failed (Log.Fail), which Open looks at.
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
