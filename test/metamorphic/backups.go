package metamorphic

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
)

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

func (h *history) backup(op *Op) error {
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
func (h *history) restore(op *Op) error {
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
	if _, err := db.Restore(h.ctx, store, dir, o, db.RestoreOptions{ID: b.id, SkipVerify: op.Seed%2 == 1}); err != nil {
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
