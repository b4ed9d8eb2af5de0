package db

import (
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/db/fault"
)

// lock locks a folder as the options say.
func (o *settings) lock(dir string) (io.Closer, error) {
	if o.ReadOnly {
		return lockShared(o.FS, dir)
	}
	return lockFolder(o.FS, dir)
}

// lockDatabase locks the folder of a database, which must exist, and returns its one path.
func lockDatabase(dir string, opts *settings) (string, io.Closer, error) {
	exists, creatable, err := inspect(opts.FS, dir)
	switch {
	case err != nil:
		return "", nil, err
	case !exists && !creatable:
		return "", nil, foreign(opts.FS, dir)
	case !exists:
		return "", nil, fmt.Errorf("%w: %s: there is none", fault.ErrNotDatabase, dir)
	}
	if dir, err = canonical(opts.FS, dir); err != nil {
		return "", nil, err
	}
	lock, err := opts.lock(dir)
	return dir, lock, err
}
