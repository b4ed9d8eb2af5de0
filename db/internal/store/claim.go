package store

import (
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// Claim locks the folder of a database. It makes the folder if a new database may be there. It returns the
// canonical path, and whether a database exists.
func Claim(fsys vfs.FS, dir string, mustExist, readOnly bool) (path string, lock io.Closer, exists bool, err error) {
	if dir == "" {
		return "", nil, false, fault.Invalid("open a database: the name of its folder is empty")
	}
	exists, creatable, err := Inspect(fsys, dir)
	switch {
	case err != nil:
		return "", nil, false, err
	case exists:
	case !creatable:
		return "", nil, false, Foreign(fsys, dir)
	case mustExist || readOnly:
		return "", nil, false, NoneYet(fsys, dir)
	default:
		if err := Outside(fsys, dir); err != nil {
			return "", nil, false, err
		}
		if err := MakeDir(fsys, dir); err != nil {
			return "", nil, false, fmt.Errorf("fddhdb: create %s: %w", dir, err)
		}
	}
	if path, err = Canonical(fsys, dir); err != nil {
		return "", nil, false, err
	}
	lock, err = Lock(fsys, path, readOnly)
	return path, lock, exists, err
}

// Ready makes the store if it does not exist, and tidies the folder, which is locked.
func (e *Engine) Ready(exists, readOnly bool) error {
	if !exists {
		// Look again: another process may have held the lock until now.
		exists, creatable, err := Inspect(e.cfg.FS, e.Dir)
		switch {
		case err != nil:
			return err
		case exists:
		case !creatable:
			return Foreign(e.cfg.FS, e.Dir)
		default:
			if err := Create(e.cfg.FS, e.Dir, e.Make, e.Check); err != nil {
				return fault.Annotate(err, "create %s", e.Dir)
			}
		}
	}
	if !readOnly {
		if err := FinishRepair(e.cfg.FS, e.Dir); err != nil {
			return fault.Annotate(err, "open %s", e.Dir)
		}
		if err := RemoveLeftovers(e.cfg.FS, e.Dir); err != nil {
			return fault.Annotate(err, "open %s", e.Dir)
		}
	}
	return nil
}
