package db

import (
	"fmt"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk/spool"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A program that goes on after an error has a handle that is nil, and one that declares a
// handle has one that is empty. Exported methods replace it by one of those here, which
// answer like a closed database, but with errNoHandle.

// errNoHandle is the error of whatever is called on a handle that is none.
var errNoHandle = fault.Invalid("the handle is nil or empty: use those that Open and the methods of a DB return without an error")

var (
	noDB         = newNoDB()
	noCollection = &Collection{db: noDB}
	noPin        = noDB.state.Pin(nil)
	noRuns       = &Runs{s: &search.Searcher{}, pin: noPin}
	noSnapshot   = &Snapshot{pin: noPin, db: noDB}
)

// newNoDB returns a database that has never been open, for handles that are none.
func newNoDB() *DB {
	opts := (*Options)(nil).withDefaults()
	d := &DB{opts: opts, stop: func() {}, search: search.NewTools(0, 0), state: state.None(store.NewEngine(&opts.disk, ""), opts.disk.Signals, errNoHandle)}
	d.imports = spool.NewImports(d.state, opts.FS)
	d.learning = learn.New(d.state, 0, 0)
	return d
}

func (d *DB) orNone() *DB {
	if d == nil || d.state == nil {
		return noDB
	}
	return d
}

func (c *Collection) orNone() *Collection {
	if c == nil || c.db == nil {
		return noCollection
	}
	return c
}

func (s *Snapshot) orNone() *Snapshot {
	if s == nil || s.db == nil {
		return noSnapshot
	}
	return s
}

func (r *Runs) orNone() *Runs {
	if r == nil || r.s == nil {
		return noRuns
	}
	return r
}

// orNone returns a batch of its own, as using one changes it.
func (b *Batch) orNone() *Batch {
	if b == nil || b.db == nil {
		return &Batch{db: noDB, err: errNoHandle}
	}
	return b
}

// orNone returns an import of its own, as using one changes it.
func (im *Import) orNone() *Import {
	if im == nil || im.c == nil {
		return &Import{c: noCollection, spool: &spool.Spool{}}
	}
	return im
}

// writable refuses writes to a database that is open for reading only.
func (d *DB) writable() error {
	if d.opts.ReadOnly {
		return fmt.Errorf("%w: %s was opened for reading only", fault.ErrReadOnly, d.dir)
	}
	return nil
}
