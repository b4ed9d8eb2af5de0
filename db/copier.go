package db

import (
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A copier copies an open database: into a new folder, or into a repository of backups. It
// remembers which tables the last backup stored, so that a database has only one. Safe for
// concurrent use; who calls it keeps the database open.
type copier struct {
	db       *state.Database
	cfg      *store.Config
	identity record.Identity // as it was opened: its sequence is that of then
	readOnly bool            // no store can be made from the one that is open
	tables   backedUp
}

// newCopier returns the copier of a database whose state has been opened.
func newCopier(db *state.Database, cfg *store.Config, i record.Identity, readOnly bool) *copier {
	return &copier{db: db, cfg: cfg, identity: i, readOnly: readOnly}
}
