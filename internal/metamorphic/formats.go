package metamorphic

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
)

// age makes the database one of the first format. It removes everything that later
// formats have added.
func (h *history) age(*Op) error {
	if h.now.format == db.FormatFirst {
		return errPassed
	}
	if err := h.close(); err != nil {
		return err
	}
	err := h.store(func(s *pebble.DB) error {
		b := s.NewBatch()
		defer b.Close()
		if err := b.Delete(codec.DatabaseKey(codec.RecordUUID), nil); err != nil {
			return err
		}
		if err := b.Set(codec.DatabaseKey(codec.RecordFormat), binary.BigEndian.AppendUint32(nil, db.FormatFirst), nil); err != nil {
			return err
		}
		return b.Commit(pebble.Sync)
	})
	if err != nil {
		return err
	}
	if err := h.writeFile(db.MarkerName, fmt.Sprintf("{\"fddhdb\":\"database\",\"format\":%d}\n", db.FormatFirst)); err != nil {
		return err
	}
	fsys, dir := h.folder(h.name)
	if err := fsys.Remove(fsys.PathJoin(dir, "COMMITS")); err != nil {
		return err
	}
	if err := syncFolder(fsys, dir); err != nil {
		return err
	}
	return h.changed(db.FormatFirst)
}

// upgrade brings the database to the newest format.
func (h *history) upgrade(*Op) error {
	if err := h.close(); err != nil {
		return err
	}
	dir, o := h.dbOptions(h.name)
	o.ReadOnly = false
	format, pending, err := db.PendingMigrations(h.ctx, dir, o)
	if err != nil || format != h.now.format || len(pending) != db.NewestFormat-format {
		return wrong(err, "format %d, want %d; to be done: %v", format, h.now.format, pending)
	}
	done := 0
	from, to, err := db.Upgrade(h.ctx, dir, o, db.UpgradeOptions{Progress: func(string, int64, int64) { done++ }})
	if err != nil || from != format || to != db.NewestFormat || done != len(pending) {
		return wrong(err, "upgraded from format %d to %d in %d steps; it had format %d", from, to, done, format)
	}
	if err := h.changed(to); err != nil {
		return err
	}
	if done == 0 {
		return errPassed
	}
	return nil
}

// changed opens a database whose files have been changed to the given format, and
// checks that it holds everything as before.
func (h *history) changed(format int) error {
	h.now, h.past = h.now.fork(), nil
	h.now.format = format
	if err := h.open(nil); err != nil {
		return err
	}
	if err := h.checkAll(nil); err != nil {
		return err
	}
	var err error
	if h.now.sequence, err = h.sequence(); err != nil {
		return err
	}
	return h.verify(nil)
}

// store opens the store of the closed database, and calls f with it.
func (h *history) store(f func(*pebble.DB) error) error {
	fsys, dir := h.folder(h.name)
	s, err := pebble.Open(fsys.PathJoin(dir, "store"), &pebble.Options{
		FS: fsys, FormatMajorVersion: pebble.FormatValueSeparation, ErrorIfNotExists: true, DisableAutomaticCompactions: true,
		Merger: &pebble.Merger{Name: "fddhdb.blocks-and-layers", Merge: func(key, value []byte) (pebble.ValueMerger, error) {
			m, err := codec.NewMerger(key, value)
			return merging{m}, err
		}},
		Logger: silent{},
	})
	if err != nil {
		return err
	}
	err = f(s)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

// merging adapts codec.Merger to the interface of the store.
type merging struct{ m *codec.Merger }

func (v merging) MergeNewer(value []byte) error { v.m.Newer(value); return nil }
func (v merging) MergeOlder(value []byte) error { v.m.Older(value); return nil }
func (v merging) Finish(includesBase bool) ([]byte, io.Closer, error) {
	b, err := v.m.Finish(includesBase)
	return b, nil, err
}

type silent struct{}

func (silent) Infof(string, ...any)              {}
func (silent) Errorf(string, ...any)             {}
func (silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// writeFile writes a file of the database, and syncs it.
func (h *history) writeFile(name, text string) error {
	fsys, dir := h.folder(h.name)
	f, err := fsys.Create(fsys.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write([]byte(text)); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// syncFolder syncs the entries of a folder, where folders can be synced.
func syncFolder(fsys vfs.FS, dir string) error {
	if fsys == vfs.Default {
		return nil // no crash is tried on such systems
	}
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
