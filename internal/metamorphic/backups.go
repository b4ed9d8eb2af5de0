package metamorphic

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
)

// A kept is a backup, and what was in the database when it was made.
type kept struct {
	id        string
	w         *world
	only      string // collection; all where empty
	indexOnly bool
}

// repository returns the store of the backups.
func (h *history) repository() (backup.Store, error) {
	return backup.Folder(filepath.Join(h.dir, "backups"))
}

func (h *history) backup(op *Op) error {
	if h.backups[op.Name] != nil {
		return errPassed
	}
	store, err := h.repository()
	if err != nil {
		return err
	}
	m, err := h.d.Backup(h.ctx, store, db.BackupOptions{Collection: op.In, IndexOnly: op.IndexOnly, Compress: op.Seed%2 == 1})
	if op.In != "" && h.now.collections[op.In] == nil {
		return expect(err, db.ErrNotFound)
	}
	if err != nil {
		return err
	}
	b := &kept{id: m.ID, w: h.now.fork(), only: op.In, indexOnly: op.IndexOnly}
	if h.learns() { // as for a snapshot
		for name := range h.now.collections {
			b.w.edit(name)
		}
	}
	if op.In != "" {
		b.w.collections = map[string]*collection{op.In: b.w.collections[op.In]}
	}
	h.backups[op.Name] = b
	h.backupOrder = append(h.backupOrder, op.Name)
	return h.listed(store)
}

// listed compares the backups that a repository lists with those that it must have.
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

// prune keeps the newest backups of each kind, and what these need.
func (h *history) prune(op *Op) error {
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
	type kind struct {
		only      string
		indexOnly bool
	}
	seen := map[kind]int{}
	var left []string
	for _, name := range slices.Backward(h.backupOrder) {
		b := h.backups[name]
		k := kind{only: b.only, indexOnly: b.indexOnly}
		if seen[k]++; op.N > 0 && seen[k] > op.N {
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

// restore makes a database of a backup and compares it. With Pinned the history goes on
// with that one.
func (h *history) restore(op *Op) error {
	b := h.backups[op.Name]
	if b == nil {
		return errPassed
	}
	store, err := h.repository()
	if err != nil {
		return err
	}
	h.restored++
	name := fmt.Sprint("restored", h.restored)
	dir, o := h.dbOptions(name)
	if _, err := db.Restore(h.ctx, store, dir, o, db.RestoreOptions{ID: b.id, SkipVerify: op.Seed%2 == 1}); err != nil {
		return err
	}
	if op.Pinned && b.only == "" && !b.indexOnly {
		return h.adopt(name, b.w)
	}
	return errors.Join(h.checkCopy(name, b), h.remove(name))
}

// adopt goes on with the database in another folder, which has to be a world.
func (h *history) adopt(name string, w *world) error {
	old := h.name
	if err := h.close(); err != nil {
		return err
	}
	if err := h.remove(old); err != nil {
		return err
	}
	h.name, h.now, h.past = name, w.fork(), nil
	for _, c := range h.now.collections {
		for _, sp := range c.spaces {
			sp.free = true
		}
	}
	h.cursors = map[string]*place{}
	if err := h.open(nil); err != nil {
		return err
	}
	if err := h.checkAll(nil); err != nil {
		return err
	}
	var err error
	h.now.sequence, err = h.sequence()
	return err
}

// checkCopy opens the database in a folder and compares it with what it has to be.
func (h *history) checkCopy(name string, b *kept) error {
	dir, o := h.dbOptions(name)
	o.UpdateItems, o.MustExist = 0, true
	d, err := db.Open(dir, o)
	if err != nil {
		return err
	}
	other := &history{ctx: h.ctx, options: h.options, d: d, now: b.w}
	other.options.UpdateItems = 0
	if b.indexOnly {
		err = other.checkIndexOnly()
	} else {
		err = other.checkAll(nil)
	}
	if err == nil {
		err = other.verify(nil)
	}
	return errors.Join(err, d.Close())
}

// checkIndexOnly compares what is left without features and payloads.
func (h *history) checkIndexOnly() error {
	for name, c := range h.now.collections {
		handle, err := h.d.Collection(name)
		if err != nil {
			return err
		}
		if n, err := handle.Count(); err != nil || n != len(c.items) {
			return fmt.Errorf("%d items of collection %q, want %d: %w", n, name, len(c.items), err)
		}
		for _, sp := range c.spaces {
			in, err := handle.InSpace(sp.number)
			if err == nil {
				err = h.checkCodes(c, sp, in)
			}
			if err != nil {
				return fmt.Errorf("collection %q, space %d: %w", name, sp.number, err)
			}
		}
	}
	return nil
}

// laneBackup is a backup while others write; what is in it is looked at afterwards.
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
		h.restored++
		name := fmt.Sprint("restored", h.restored)
		dir, o := h.dbOptions(name)
		_, err := db.Restore(h.ctx, store, dir, o, db.RestoreOptions{ID: m.ID, SkipVerify: true})
		if err == nil {
			err = seen.check(&history{ctx: h.ctx, now: before}, dir, o, lanes)
		}
		return errors.Join(err, h.remove(name))
	}, nil
}
