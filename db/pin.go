package db

import (
	"sync"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A pin keeps a view readable beyond the call that took it, for a Snapshot or for
// Runs. It ends when it is released, at the latest when the database is closed.
type pin struct {
	db         *DB
	v          *state.View // nil once it is released; changes under pins.mu
	prev, next *pin
}

// pins are those that have not been released.
type pins struct {
	mu   sync.Mutex
	head *pin
	n    int
}

func (l *pins) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// pin takes over a reference to a view.
func (d *DB) pin(v *state.View) *pin {
	p := &pin{db: d, v: v}
	d.pins.mu.Lock()
	defer d.pins.mu.Unlock()
	if p.next = d.pins.head; p.next != nil {
		p.next.prev = p
	}
	d.pins.head = p
	d.pins.n++
	return p
}

// release ends the pin; it reports whether it had not ended before.
func (p *pin) release() bool {
	l := &p.db.pins
	l.mu.Lock()
	defer l.mu.Unlock() // until the view is released, as Close goes on when the list is empty
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

// read gives f the view, and keeps it and the database open while f runs.
func (p *pin) read(f func(v *state.View) error) error {
	if err := p.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer p.db.state.Guard.Leave()
	p.db.pins.mu.Lock()
	v := p.v
	if v != nil {
		v.Acquire()
	}
	p.db.pins.mu.Unlock()
	if v == nil {
		return fault.ErrClosed
	}
	defer v.Release()
	return f(v)
}

// releaseAll ends all pins, when nobody reads any more.
func (l *pins) releaseAll() {
	for {
		l.mu.Lock()
		p := l.head
		l.mu.Unlock()
		if p == nil {
			return
		}
		p.release()
	}
}
