package db

import (
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// diskFigure is what Stats says of the disk, so that it need not look at each file each time.
// The zero value knows nothing. Safe for concurrent use.
type diskFigure struct {
	mu       sync.Mutex
	at       time.Time
	sequence uint64 // of the last commit when it looked
	changes  uint64 // of the store and of imports, likewise
	bytes    int64
}

// diskEvery is how long a figure holds where nothing tells of a change: an import that goes on
// stages without a word.
const diskEvery = time.Second

// diskNow returns what the folder of the database takes on disk.
func (d *DB) diskNow(v *state.View) int64 {
	f := &d.disk
	f.mu.Lock()
	defer f.mu.Unlock()
	if changes := d.state.Engine.Log.Work.Changes.Load() + d.imports.changed.Load(); f.sequence != v.Sequence || f.changes != changes || time.Since(f.at) >= diskEvery {
		f.sequence, f.changes, f.at = v.Sequence, changes, time.Now()
		f.bytes = store.DiskBytes(d.opts.FS, d.dir)
	}
	return f.bytes
}
