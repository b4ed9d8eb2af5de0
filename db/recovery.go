package db

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/report"
)

// Recovery returns what Open found, and the losses since then. The slice is the caller's.
func (d *DB) Recovery() report.Recovery {
	r := d.recovery
	if r.Losses = slices.Clone(r.Losses); d.keeper != nil {
		r.Losses = d.keeper.Losses()
	}
	return r
}

// AcknowledgeLosses forgets the losses in Recovery, durably: for when the database has been
// restored, or what was lost is known and made good. It returns those that are forgotten,
// and ErrReadOnly where the database is open for reading only. It waits for the disk.
func (d *DB) AcknowledgeLosses(ctx context.Context) ([]report.Loss, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.writable(); err != nil {
		return nil, err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	if d.keeper == nil {
		return nil, nil
	}
	forgotten, err := d.keeper.Forget()
	if err == nil {
		d.lost.Store(0)
	}
	return forgotten, err
}

// UUID returns the identity of the database in 32 hexadecimal digits. It is made with the
// database, at random, and stays with it through backup and restore; copies of the folder
// share it.
func (d *DB) UUID() string { return d.identity.Text() }
