package metamorphic

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
)

// refused takes over that a read-only database, or an index-only collection, refuses a
// change. err is the result of the operation in the model, which ignores that.
func (h *history) refused(op *Op, err error) error {
	if h.d == nil || !h.refuses(op) {
		return err
	}
	switch {
	case errors.Is(err, db.ErrReadOnly):
		return errPassed
	case err == nil:
		return fmt.Errorf("it is done, and should be refused: %w", db.ErrReadOnly)
	}
	return err // the operation has another mistake
}

// refuses reports whether the database refuses the change of an operation, whatever it
// is.
func (h *history) refuses(op *Op) bool {
	changesItems := slices.Contains([]string{
		"put", "merge", "putif", "fill", "import", "labels", "delete", "deletewhere", "train", "update", "reindex", "restorerevision",
		"alter", "renamelabel", "indexvectors", "dropindex",
	}, op.Do)
	switch {
	case op.Do == "mark":
		return h.options.ReadOnly
	case op.Do == "batch":
		return slices.ContainsFunc(op.Ops, func(change Op) bool { return h.refuses(&change) })
	case changesItems:
		c := h.now.collections[op.In]
		return c != nil && (h.options.ReadOnly || c.indexOnly)
	case op.Do == "expect":
		c := h.now.collections[op.In]
		return c != nil && (h.options.ReadOnly || c.indexOnly && !op.Absent && c.items[op.Key] != nil)
	}
	return h.options.ReadOnly && slices.Contains([]string{"create", "drop", "compact", "activate", "rollback", "dropspace", "pin"}, op.Do)
}

// footprint returns the content of the database's folder, by path.
func (h *history) footprint() (map[string]string, error) {
	fsys, dir := h.folder(h.name)
	out := map[string]string{}
	var walk func(path string) error
	walk = func(path string) error {
		names, err := fsys.List(path)
		if err != nil {
			return err
		}
		for _, name := range names {
			full := fsys.PathJoin(path, name)
			info, err := fsys.Stat(full)
			if err == nil && info.IsDir() {
				out[full] = "a folder"
				err = walk(full)
			} else if err == nil {
				out[full], err = contents(fsys, full)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return out, walk(dir)
}

func contents(fsys vfs.FS, path string) (string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(f)
	return string(b), errors.Join(err, f.Close())
}

// stayed checks that nothing has changed in a folder that was open read-only.
func (h *history) stayed() error {
	if h.untouched == nil {
		return nil
	}
	now, err := h.footprint()
	if err != nil {
		return err
	}
	for path, was := range h.untouched {
		if is, ok := now[path]; !ok || is != was {
			return fmt.Errorf("opened for reading only, %s has changed; it is still there: %v", path, ok)
		}
	}
	if len(now) != len(h.untouched) {
		return fmt.Errorf("opened for reading only, the folder has %d files, before %d", len(now), len(h.untouched))
	}
	return nil
}

// writable reports whether all collections can be written to.
func (h *history) writable() bool {
	for _, c := range h.now.collections {
		if c.indexOnly {
			return false
		}
	}
	return !h.options.ReadOnly
}

// checkRefusals tries to write where writes are refused.
func (h *history) checkRefusals() error {
	for name, c := range h.now.collections {
		if !h.options.ReadOnly && !c.indexOnly {
			continue
		}
		handle, err := h.d.Collection(name)
		if err != nil {
			return err
		}
		code := uint64(1)
		if _, err := handle.Put(h.ctx, c.given("refused", &Item{Code: &code})); !errors.Is(err, db.ErrReadOnly) {
			return fmt.Errorf("collection %q: a put: %v, want %v", name, err, db.ErrReadOnly)
		}
		if n, err := handle.Delete(h.ctx, "refused"); !errors.Is(err, db.ErrReadOnly) {
			return fmt.Errorf("collection %q: a deletion: %d, %v, want %v", name, n, err, db.ErrReadOnly)
		}
		if err := handle.Alter(h.ctx, db.Alteration{AddFields: []db.Field{{Name: "refused", Type: db.Int}}}); !errors.Is(err, db.ErrReadOnly) {
			return fmt.Errorf("collection %q: an alteration: %v, want %v", name, err, db.ErrReadOnly)
		}
	}
	return nil
}
