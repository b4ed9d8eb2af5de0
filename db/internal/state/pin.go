package state

import (
	"sync"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A Pin keeps a view readable beyond the call that took it, for a snapshot or for runs. It ends when it is
// released, at the latest when the database is closed. It keeps no call open: while nobody reads through it,
// the database may be closed. Safe for concurrent use.
type Pin struct {
	db         *Database
	v          *View // nil once it is released; guarded by pins.mu
	prev, next *Pin  // in the list of pins; guarded by pins.mu
}

// ErrReleased is the error of reading through a pin that has ended. It is a fault.ErrClosed with its own
// message, as the database may be open.
var ErrReleased error = errReleased{}

type errReleased struct{}

func (errReleased) Error() string {
	return "fddhdb: the snapshot, or the runs, that this reads are closed"
}
func (errReleased) Is(target error) bool { return target == fault.ErrClosed }

// pins are the pins of a database that have not been released.
type pins struct {
	mu   sync.Mutex // guards the fields below, and those of each Pin; held while a view is released
	head *Pin       // of a doubly linked list, in no particular order
	n    int        // pins in the list
}

// Pin returns a pin that takes over a reference to v and releases it at its end.
func (d *Database) Pin(v *View) *Pin {
	p := &Pin{db: d, v: v}
	d.pins.mu.Lock()
	defer d.pins.mu.Unlock()
	if p.next = d.pins.head; p.next != nil {
		p.next.prev = p
	}
	d.pins.head = p
	d.pins.n++
	return p
}

// Pinned returns the number of pins that have not been released.
func (d *Database) Pinned() int {
	d.pins.mu.Lock()
	defer d.pins.mu.Unlock()
	return d.pins.n
}

// Release ends the pin, and reports whether it was still open. A running read keeps the view until it is
// done.
func (p *Pin) Release() bool {
	l := &p.db.pins
	l.mu.Lock()
	defer l.mu.Unlock() // held until the view is released, as Close goes on when the list is empty
	v := p.v
	if v != nil {
		p.v = nil
		l.n--
		if p.prev != nil {
			p.prev.next = p.next
		} else {
			l.head = p.next
		}
		if p.next != nil {
			p.next.prev = p.prev
		}
		v.Release()
	}
	return v != nil
}

// Read gives f the view, and keeps the view and the database open while f runs. It returns the error of f,
// ErrReleased if the pin has ended, or ErrClosed if the database is closed.
func (p *Pin) Read(f func(v *View) error) error {
	if err := p.db.Guard.Enter(); err != nil {
		return err
	}
	defer p.db.Guard.Leave()
	p.db.pins.mu.Lock()
	v := p.v
	if v != nil {
		v.Acquire()
	}
	p.db.pins.mu.Unlock()
	if v == nil {
		return ErrReleased
	}
	defer v.Release()
	return f(v)
}

// releaseAll ends all pins when the database is closed and nobody reads any more. Release may be called at
// the same time.
func (l *pins) releaseAll() {
	for {
		l.mu.Lock()
		p := l.head
		l.mu.Unlock()
		if p == nil {
			return
		}
		p.Release()
	}
}
