package db

import (
	"errors"
	"sync"
	"sync/atomic"
)

// openImports knows the folders of staged imports that are in use. The zero value knows none.
// Safe for concurrent use.
type openImports struct {
	mu  sync.Mutex         // guards all
	all map[string]*Import // by the name of the folder; nil while one is being removed

	changed atomic.Uint64 // counts changes of staged imports, for figures that are kept
}

// take reserves the folder of an import: for im, or where it is nil for removing the folder. It
// reports false if the folder is reserved already.
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

// leave gives the folder back.
func (o *openImports) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, name)
	o.changed.Add(1)
}

// has reports whether the folder is reserved.
func (o *openImports) has(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.all[name]
	return ok
}

// closeImports closes the imports that are open when the database is closed. No other method
// of an import works any more.
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
