package copies

import (
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Copier copies an open database: into a new folder, or into a repository of backups. It
// remembers which tables the last backup stored, so that a database has only one. Safe for
// concurrent use; who calls it keeps the database open.
type Copier struct {
	db       *state.Database
	cfg      *store.Config
	identity record.Identity // as it was opened: its sequence is that of then
	readOnly bool            // no store can be made from the one that is open
	tables   backedUp
}

// New returns the Copier of a database whose state has been opened.
func New(db *state.Database, cfg *store.Config, i record.Identity, readOnly bool) *Copier {
	return &Copier{db: db, cfg: cfg, identity: i, readOnly: readOnly}
}
