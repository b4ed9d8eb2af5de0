package db

import (
	"context"
)

// flush writes what is in the log only into tables, so that a database that was closed
// has no log that counts: damage at the end of a log cannot be told from what a crash
// leaves. Where no tables can be written, the log keeps it.
func (d *DB) flush() {
	if d.state.Committer.Sequence != d.opened && d.state.Engine.Log.Failed.Load() == nil { // else opening has done it
		_ = d.state.Engine.FlushAll(context.Background())
	}
}
