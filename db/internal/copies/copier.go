package copies

import (
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Copier copies an open database: into a new folder, or into a repository of backups. A
// database has one, as it remembers the tables that the last backup stored. It is safe for
// concurrent use. The caller keeps the database open during a call. But for tables its
// fields never change.
type Copier struct {
	db       *state.Database // belongs to the caller
	cfg      *store.Config   // of the open database; copies are on its file system, too
	identity record.Identity // of the database as it was opened: Sequence has grown since then
	readOnly bool            // a copy of everything is then an extract, as Pebble's checkpoint would write to the store
	tables   backedUp        // what Backup remembers; has its own lock

	last atomic.Pointer[report.LastBackup] // nil: Backup has made none
}

// New returns the Copier of a database whose state has been opened. It keeps cfg.
func New(db *state.Database, cfg *store.Config, i record.Identity, readOnly bool) *Copier {
	return &Copier{db: db, cfg: cfg, identity: i, readOnly: readOnly}
}

// LastBackup returns what the last Backup has made; nil where there was none. It is the
// caller's.
func (c *Copier) LastBackup() *report.LastBackup {
	b := c.last.Load()
	if b == nil {
		return nil
	}
	own := *b
	return &own
}
