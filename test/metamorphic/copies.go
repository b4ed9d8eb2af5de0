package metamorphic

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// A duplicate is another database, closed, or a backup. It is a copy of this database,
// or of a part of it, at some moment. A database may have been written to since.
type duplicate struct {
	folder  string
	w       *world
	answers map[string][]db.Hit // answers of probe at that moment
}

// duplicate returns what a copy made by an operation must hold.
func (h *history) duplicate(op *program.Op) (*duplicate, error) {
	answers, err := h.probe()
	if err != nil {
		return nil, err
	}
	d := &duplicate{w: h.now.part(op.In, op.IndexOnly), answers: answers}
	for name := range d.w.collections {
		if h.learns() { // an update in the background may come before or after the copy
			for _, sp := range d.w.edit(name).spaces {
				sp.free = true
			}
		}
	}
	return d, nil
}

// part returns the content of a copy of the collection only, or of all collections if
// only is "".
func (w *world) part(only string, indexOnly bool) *world {
	out := w.fork()
	for name, c := range w.collections {
		if only != "" && name != only {
			delete(out.collections, name)
		} else if indexOnly && !c.codesOnly() {
			c := out.edit(name)
			c.indexOnly, c.indexes = true, nil
		}
	}
	return out
}

// checkpoint makes a copy, compares it, and keeps it.
func (h *history) checkpoint(op *program.Op) error {
	if h.copies[op.Name] != nil {
		return errPassed
	}
	made, err := h.duplicate(op)
	if err != nil {
		return err
	}
	made.folder = h.newFolder()
	dir, _ := h.dbOptions(made.folder)
	err = h.d.Checkpoint(h.ctx, dir, db.CheckpointOptions{Collection: op.In, IndexOnly: op.IndexOnly})
	if op.In != "" && h.now.collections[op.In] == nil {
		return expect(err, db.ErrNotFound)
	}
	if err != nil {
		return err
	}
	if err := h.d.Checkpoint(h.ctx, dir, db.CheckpointOptions{Collection: op.In,
		IndexOnly: op.IndexOnly}); !errors.Is(err, db.ErrExists) {
		return fmt.Errorf("a second checkpoint to a folder: %v", err)
	}
	h.copies[op.Name] = made
	return h.checkCopy(made, op.Seed)
}

// switchTo continues with a copy, and makes the present database a copy.
func (h *history) switchTo(op *program.Op) error {
	to := h.copies[op.Name]
	if to == nil {
		return errPassed
	}
	delete(h.copies, op.Name)
	return h.adopt(to, op.Name)
}

// discard deletes a copy.
func (h *history) discard(op *program.Op) error {
	d := h.copies[op.Name]
	if d == nil {
		return errPassed
	}
	delete(h.copies, op.Name)
	return h.remove(d.folder)
}

// adopt continues with another database. The present one becomes a copy with the name
// keep; if keep is "", it is deleted.
func (h *history) adopt(to *duplicate, keep string) error {
	if err := h.close(); err != nil {
		return err
	}
	if keep == "" || h.copies[keep] != nil {
		if err := h.remove(h.name); err != nil {
			return err
		}
	} else {
		h.copies[keep] = &duplicate{folder: h.name, w: h.now}
	}
	h.name, h.now, h.past = to.folder, to.w.fork(), nil
	for name := range h.now.collections {
		for _, sp := range h.now.edit(name).spaces {
			sp.free = true // it may have changed before this became a copy
		}
	}
	h.cursors = map[string]*place{}
	if err := h.open(nil); err != nil {
		return err
	}
	if err := h.check(nil); err != nil {
		return err
	}
	var err error
	h.now.sequence, err = h.sequence()
	return errors.Join(err, h.sameAsThen(to))
}

// sameAsThen compares answers with those of the database at the moment of the copy.
func (h *history) sameAsThen(d *duplicate) error {
	now, err := h.probe()
	if err != nil {
		return err
	}
	return sameAnswers(d.answers, now)
}

// checkCopy verifies a copy, opens it (one time in two read-only), and compares it with
// its right content.
func (h *history) checkCopy(made *duplicate, seed uint64) error {
	dir, o := h.dbOptions(made.folder)
	o.UpdateItems, o.MustExist, o.ReadOnly = 0, true, seed&2 != 0
	err := nothingFound(func(found func(report.Finding) error) error {
		_, err := db.VerifyFolder(h.ctx, dir, o, db.VerifyOptions{Deep: true}, found)
		return err
	})
	if err != nil {
		return err
	}
	d, err := db.Open(dir, o)
	if err != nil {
		return err
	}
	other := &history{ctx: h.ctx, d: d, now: made.w}
	other.options.ReadOnly = o.ReadOnly
	err = other.check(nil)
	if err == nil {
		err = other.sameAsThen(made)
	}
	if err == nil {
		err = other.checkRefusals()
	}
	return errors.Join(err, d.Close())
}

// laneCheckpoint makes a checkpoint while other lanes write. The function that it
// returns checks the checkpoint.
func (h *history) laneCheckpoint(op *program.Op, lanes [][]laneStep, progress []progress) (func() error,
	error) {
	before := h.now.part(op.In, op.IndexOnly)
	if op.In != "" && before.collections[op.In] == nil {
		return nil, nil
	}
	name := fmt.Sprint("lane-", op.Name)
	dir, o := h.dbOptions(name)
	seen, err := cutOf(progress, func() error {
		return h.d.Checkpoint(h.ctx, dir, db.CheckpointOptions{Collection: op.In, IndexOnly: op.IndexOnly})
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		err := seen.check(&history{ctx: h.ctx, now: before}, dir, o, lanes)
		return errors.Join(err, h.remove(name))
	}, nil
}

// A kept is a backup with its right content.
type kept struct {
	duplicate
	id   string
	kind backupKind
}

// A backupKind is what prune groups backups by. It keeps the newest ones of each kind.
type backupKind struct {
	database, only string
	indexOnly      bool
}

// repository returns the store of the backups.
func (h *history) repository() (backup.Store, error) {
	return backup.Folder(filepath.Join(h.dir, "backups"))
}

func (h *history) backup(op *program.Op) error {
	if h.backups[op.Name] != nil {
		return errPassed
	}
	store, err := h.repository()
	if err != nil {
		return err
	}
	made, err := h.duplicate(op)
	if err != nil {
		return err
	}
	m, err := h.d.Backup(h.ctx, store, db.BackupOptions{Collection: op.In, IndexOnly: op.IndexOnly})
	switch {
	case op.In != "" && h.now.collections[op.In] == nil:
		return expect(err, db.ErrNotFound)
	case err != nil:
		return err
	}
	h.backups[op.Name] = &kept{*made, m.ID, backupKind{m.Database, op.In, op.IndexOnly}}
	h.backupOrder = append(h.backupOrder, op.Name)
	return h.listed(store)
}

// listed compares the list of backups in a repository with the right one.
func (h *history) listed(store backup.Store) error {
	all, err := backup.List(h.ctx, store)
	if err != nil {
		return err
	}
	var got, want []string
	for _, m := range all {
		got = append(got, m.ID)
	}
	for _, name := range h.backupOrder {
		want = append(want, h.backups[name].id)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("backups %q, want %q", got, want)
	}
	return nil
}

// prune keeps the newest backups of each kind, and the backups that these need.
func (h *history) prune(op *program.Op) error {
	if len(h.backupOrder) == 0 {
		return errPassed
	}
	store, err := h.repository()
	if err != nil {
		return err
	}
	if _, err := backup.Prune(h.ctx, store, backup.PruneOptions{Keep: op.N}); err != nil {
		return err
	}
	seen := map[backupKind]int{}
	var left []string
	for _, name := range slices.Backward(h.backupOrder) {
		kind := h.backups[name].kind
		if seen[kind]++; op.N > 0 && seen[kind] > op.N {
			delete(h.backups, name)
			continue
		}
		left = append(left, name)
	}
	slices.Reverse(left)
	h.backupOrder = left
	if err := h.listed(store); err != nil {
		return err
	}
	var findings []string
	_, err = backup.Verify(h.ctx, store, backup.VerifyOptions{}, func(f backup.Finding) error {
		findings = append(findings, fmt.Sprint(f))
		return nil
	})
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("the repository is damaged: %q", findings)
	}
	return err
}

// restore makes a database of a backup and compares it. With Pinned the history
// continues with that database; with Keep the present one stays, as a copy.
func (h *history) restore(op *program.Op) error {
	b := h.backups[op.Name]
	if b == nil {
		return errPassed
	}
	store, err := h.repository()
	if err != nil {
		return err
	}
	name := h.newFolder()
	dir, o := h.dbOptions(name)
	if _, err := db.Restore(h.ctx, store, dir, o,
		db.RestoreOptions{ID: b.id, SkipVerify: op.Seed%2 == 1}); err != nil {
		return err
	}
	made := b.duplicate
	made.folder = name
	if op.Pinned {
		return h.adopt(&made, op.Keep)
	}
	return errors.Join(h.checkCopy(&made, op.Seed), h.remove(name))
}

// laneBackup makes a backup while other lanes write. The function that it returns
// checks the backup.
func (h *history) laneBackup(lanes [][]laneStep, progress []progress) (func() error, error) {
	store, err := backup.Folder(filepath.Join(h.dir, "lanes"))
	if err != nil {
		return nil, err
	}
	var m *backup.Manifest
	seen, err := cutOf(progress, func() (err error) {
		m, err = h.d.Backup(h.ctx, store, db.BackupOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	before := h.now
	return func() error {
		name := h.newFolder()
		dir, o := h.dbOptions(name)
		_, err := db.Restore(h.ctx, store, dir, o, db.RestoreOptions{ID: m.ID, SkipVerify: true})
		if err == nil {
			err = seen.check(&history{ctx: h.ctx, now: before}, dir, o, lanes)
		}
		return errors.Join(err, h.remove(name))
	}, nil
}

// refused takes over that a read-only database, or an index-only collection, refuses a
// change. err is the result of the operation in the model, which ignores that.
func (h *history) refused(op *program.Op, err error) error {
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
func (h *history) refuses(op *program.Op) bool {
	changesItems := slices.Contains([]string{
		"put", "merge", "putif", "fill", "import", "labels", "delete", "deletewhere", "train", "update",
		"reindex", "restorerevision",
		"alter", "renamelabel", "indexvectors", "dropindex",
	}, op.Do)
	switch {
	case op.Do == "mark", op.Do == "import" && h.options.ReadOnly: // an import has a mark
		return h.options.ReadOnly
	case op.Do == "batch":
		return slices.ContainsFunc(op.Ops, func(change program.Op) bool { return h.refuses(&change) })
	case changesItems:
		c := h.now.collections[op.In]
		return c != nil && (h.options.ReadOnly || c.indexOnly)
	case op.Do == "expect":
		c := h.now.collections[op.In]
		return c != nil && (h.options.ReadOnly || c.indexOnly && !op.Absent && c.items[op.Key] != nil)
	}
	return h.options.ReadOnly &&
		slices.Contains([]string{"create", "drop", "compact", "activate", "rollback", "dropspace"}, op.Do)
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
		return fmt.Errorf("opened for reading only, the folder has %d files, before %d", len(now),
			len(h.untouched))
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
		if _, err := handle.Put(h.ctx, c.given("refused", &program.Item{Code: &code})); !errors.Is(err,
			db.ErrReadOnly) {
			return fmt.Errorf("collection %q: a put: %v, want %v", name, err, db.ErrReadOnly)
		}
		if n, err := handle.Delete(h.ctx, "refused"); !errors.Is(err, db.ErrReadOnly) {
			return fmt.Errorf("collection %q: a deletion: %d, %v, want %v", name, n, err, db.ErrReadOnly)
		}
		if err := handle.Alter(h.ctx,
			db.Alteration{AddFields: []db.Field{{Name: "refused", Type: db.Int}}}); !errors.Is(err,
			db.ErrReadOnly) {
			return fmt.Errorf("collection %q: an alteration: %v, want %v", name, err, db.ErrReadOnly)
		}
	}
	return nil
}
