package command

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db"
)

// warnOfLosses prints to stderr that commits are missing from a database, each time it
// is opened, until the user acknowledges it.
func (e *env) warnOfLosses(dir string, d *db.DB) {
	r := d.Recovery()
	for _, l := range r.Losses {
		e.Warnf("warning: %s: %s: restore a backup, or do again what is lost (it is the latest that was written), and then: fddhdb verify %s --acknowledge", dir, l, dir)
	}
	if r.Problem != "" {
		e.Warnf("warning: %s: whether commits are missing is not known: %s: look whether what was written last is there", dir, r.Problem)
	}
}

// acknowledge makes a database forget its missing commits.
func (e *env) acknowledge(ctx context.Context, dir string) error {
	d, closeDB, err := e.open(dir, &db.Options{MustExist: true})
	if err != nil {
		return openError(dir, err)
	}
	_, err = d.AcknowledgeLosses(ctx)
	return errors.Join(err, closeDB())
}
