package copies

import (
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Copier copies an open database: into a new folder, or into a repository of backups. A
// database has one, as it remembers the tables that the last backup stored. It is safe for
// concurrent use. The caller keeps the database open during a call.
type Copier struct {
	db       *state.Database
	cfg      *store.Config   // of the open database; copies are on its file system, too
	identity record.Identity // when it was opened: the sequence has risen since then
	readOnly bool            // a copy of everything is an extract then, as a checkpoint would flush
	tables   backedUp
}

// New returns the Copier of a database whose state has been opened.
func New(db *state.Database, cfg *store.Config, i record.Identity, readOnly bool) *Copier {
	return &Copier{db: db, cfg: cfg, identity: i, readOnly: readOnly}
}
