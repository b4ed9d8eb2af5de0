package db

import (
	"errors"
	"sync"
	"sync/atomic"
)

// openImports are the imports of a database that go on, by the names of their folders.
type openImports struct {
	mu  sync.Mutex
	all map[string]*Import

	changed atomic.Uint64 // counts what becomes of staged imports
}

// take notes that somebody works with a folder, unless somebody does already.
func (o *openImports) take(name string, im *Import) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.all[name]; ok {
		return false
	}
	if o.all == nil {
		o.all = map[string]*Import{}
	}
	o.all[name] = im
	o.changed.Add(1)
	return true
}

func (o *openImports) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, name)
	o.changed.Add(1)
}

func (o *openImports) has(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.all[name]
	return ok
}

// closeImports closes the imports that go on when the database is closed.
func (d *DB) closeImports() error {
	d.imports.mu.Lock()
	var open []*Import
	for _, im := range d.imports.all {
		open = append(open, im)
	}
	d.imports.mu.Unlock()
	var err error
	for _, im := range open {
		err = errors.Join(err, im.close())
	}
	return err
}
