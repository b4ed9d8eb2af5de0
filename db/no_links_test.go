package db_test

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// noLinks is a file system without hard links, of which so many bytes are free.
type noLinks struct {
	vfs.FS
	free atomic.Uint64 // which compactions ask for, too
}

func (f *noLinks) Link(oldname, newname string) error { return errors.ErrUnsupported }

func (f *noLinks) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load(), TotalBytes: 1 << 40}, nil
}

// Where tables have to be copied, a checkpoint or backup for which there is no room is
// refused before it has begun, and where there is room it is made.
func TestCopiesAskForRoom(t *testing.T) {
	disk := &noLinks{FS: vfs.NewMem()}
	disk.free.Store(1 << 40)
	d := dbkit.MustOpen(t, "db", &db.Options{FS: disk, ReserveBytes: 100 << 20})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	putAll(t, c, dbkit.CodeItems(100, 64, 1, nil))
	repo := newMemStore()
	for what, make := range map[string]func() error{
		"a checkpoint": func() error { return d.Checkpoint(ctx, "copy", db.CheckpointOptions{}) },
		"a backup":     func() error { _, err := d.Backup(ctx, repo, db.BackupOptions{}); return err },
	} {
		disk.free.Store(100<<20 + 100)
		var full *db.DiskFullError
		if err := make(); !errors.As(err, &full) || full.Free != 100<<20+100 || full.Needed <= 0 {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := disk.Stat("copy" + store.IncompleteSuffix); err == nil {
			t.Errorf("%s has left what it was making", what)
		}
		disk.free.Store(1 << 40)
		if err := make(); err != nil {
			t.Errorf("%s, with room: %v", what, err)
		}
	}
	dbkit.MustClose(t, dbkit.MustOpen(t, "copy", &db.Options{FS: disk, MustExist: true}))
}

// With hard links a checkpoint takes no room, but for some small files of its own, and asks for none.
func TestLinksNeedNoRoom(t *testing.T) {
	disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1, Usage: vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}}
	opts := &db.Options{FS: disk, ReserveBytes: 1 << 20}
	d := dbkit.MustOpen(t, "db", opts)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	items := dbkit.CodeItems(100, 64, 1, nil)
	for i, it := range items {
		it.Payload = dbkit.RandomCodes(1, 8*8192, uint64(i))[0]
	}
	putAll(t, c, items)
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", opts) // with a new log: the one of the items would be copied, and cut off
	defer dbkit.MustClose(t, d)
	disk.Set(func() {
		disk.Usage.AvailBytes = 100 << 10 // what deletions may not take, and a little
		disk.Room = 100 << 10             // an eighth of the items
	})
	must(t, d.Checkpoint(ctx, "copy", db.CheckpointOptions{}))
	disk.Set(func() { disk.Room = -1 })
	copied := dbkit.MustOpen(t, "copy", &db.Options{FS: disk, MustExist: true, ReadOnly: true})
	defer dbkit.MustClose(t, copied)
	if got := dbkit.AllItems(t, dbkit.MustCollection(t, copied, "main")); len(got) != len(items) || !bytes.Equal(got[99].Payload, items[99].Payload) {
		t.Errorf("%d of %d items are in the copy", len(got), len(items))
	}
}

// A full disk is called one when it keeps a database from being opened, by whichever file
// it does.
func TestOpenOnAFullDisk(t *testing.T) {
	whole := vfs.NewCrashableMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: whole})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	putAll(t, c, dbkit.CodeItems(10, 64, 1, nil))
	left := whole.CrashClone(vfs.CrashCloneCfg{}) // what is in its log becomes tables
	dbkit.MustClose(t, d)
	for _, sort := range []string{".sst", ".log", "MANIFEST"} {
		mem := vfs.NewMem()
		need(vfs.Clone(left, mem, "db", "db"))(t)
		fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && sortOf(op.Path) == sort {
				return &testfs.Error{Err: syscall.ENOSPC}
			}
			return nil
		}))
		d, err := db.Open("db", &db.Options{FS: fsys})
		if err == nil {
			dbkit.MustClose(t, d)
			t.Errorf("%s: it was not needed", sort)
			continue
		}
		var full *db.DiskFullError
		if !errors.As(err, &full) || full.Dir != "db" {
			t.Errorf("%s: %v", sort, err)
		}
		if strings.Count(err.Error(), "fddhdb:") != 1 {
			t.Errorf("prefix: %v", err)
		}
		dbkit.MustClose(t, dbkit.MustOpen(t, "db", &db.Options{FS: mem}))
	}
}

// A machine that has run out of file descriptors is no damage: a repair ends, and nothing
// is lost.
func TestRepairWithoutFileDescriptors(t *testing.T) {
	t.Parallel()
	p := smallPatient(t)
	for k := 0; ; k++ {
		var opened atomic.Int64
		fsys := errorfs.Wrap(p.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpOpen || sortOf(op.Path) != ".sst" {
				return nil
			}
			if n := int(opened.Add(1)) - 1; n == k || n == k+1 { // twice, as it is tried again
				return &testfs.Error{Err: syscall.EMFILE}
			}
			return nil
		}))
		_, err := db.Repair(ctx, p.dir, &db.Options{FS: fsys}, db.RepairOptions{DryRun: true}, func(f db.Finding) error {
			t.Errorf("table %d could not be opened: lost %v", k, f)
			return nil
		})
		if int(opened.Load()) <= k {
			break
		}
		if err != nil && !strings.Contains(err.Error(), syscall.EMFILE.Error()) {
			t.Errorf("table %d could not be opened: %v", k, err)
		}
	}
	p.whole("with file descriptors")
}
