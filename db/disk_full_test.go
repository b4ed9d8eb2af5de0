package db

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// A smallDisk is a file system that takes so many bytes, whatever is deleted, and says
// what one asks it to of its space.
type smallDisk struct {
	vfs.FS
	late bool // it is told when a file is synced, not when it is written

	mu    sync.Mutex
	room  int64 // bytes that it still takes; negative: any number
	full  bool  // it has refused some
	usage vfs.DiskUsage
	asked int
}

func (d *smallDisk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// take takes up to n bytes.
func (d *smallDisk) take(n int) (taken int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.room < 0 {
		return n, nil
	}
	if int64(n) > d.room {
		n, d.full, err = int(d.room), true, &vfsError{syscall.ENOSPC}
	}
	d.room -= int64(n)
	return n, err
}

// vfsError is an error as the operating system wraps it.
type vfsError struct{ err error }

func (e *vfsError) Error() string { return "write: " + e.err.Error() }
func (e *vfsError) Unwrap() error { return e.err }

func (d *smallDisk) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if d.usage == (vfs.DiskUsage{}) {
		return d.usage, vfs.ErrUnsupported
	}
	return d.usage, nil
}

func (d *smallDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if _, err := d.take(32); err != nil && !d.late {
		return nil, err
	}
	f, err := d.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &smallFile{File: f, disk: d}, nil
}

func (d *smallDisk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(old, name, c)
	if err != nil {
		return nil, err
	}
	return &smallFile{File: f, disk: d}, nil
}

type smallFile struct {
	vfs.File
	disk *smallDisk
	lost error
}

func (f *smallFile) Write(p []byte) (int, error) {
	n, err := f.disk.take(len(p))
	if f.disk.late {
		f.lost = errors.Join(f.lost, err)
		return f.File.Write(p)
	}
	if n, werr := f.File.Write(p[:n]); werr != nil {
		return n, werr
	}
	return n, err
}

func (f *smallFile) Sync() error     { return errors.Join(f.lost, f.File.Sync()) }
func (f *smallFile) SyncData() error { return errors.Join(f.lost, f.File.SyncData()) }
func (f *smallFile) SyncTo(n int64) (bool, error) {
	full, err := f.File.SyncTo(n)
	return full, errors.Join(f.lost, err)
}

// fillDisk fills a database that is on a disk that becomes full, by all ways to write. It
// returns the keys that were acknowledged and those of which that is not known.
func fillDisk(t *testing.T, disk *smallDisk, items []*Item) (there, unknown []string) {
	d, err := Open("db", &Options{FS: disk})
	if err != nil {
		return nil, nil
	}
	defer d.Close()
	note := func(err error, keys ...string) {
		switch {
		case err == nil:
			there = append(there, keys...)
		case errors.Is(err, ErrFailed):
			unknown = append(unknown, keys...)
		case !errors.Is(err, ErrDiskFull):
			t.Errorf("with %d bytes of room left: %v", disk.room, err)
		}
		if err != nil && strings.Count(err.Error(), "fddhdb:") != 1 {
			t.Errorf("prefix: %v", err)
		}
	}
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	note(err)
	if err != nil {
		return there, unknown
	}
	for i, it := range items {
		note(second(c.Put(ctx, it)), it.Key)
		if i == len(items)/2 {
			_, err := c.Train(ctx, TrainOptions{Options: model.Options{Bits: 16, Anchors: 5}})
			note(err)
			note(d.Compact(ctx))
		}
	}
	note(d.Compact(ctx))
	b := d.NewBatch()
	var keys []string
	for i := range bulkItems {
		keys = append(keys, fmt.Sprint("bulk", i))
		if err := b.Put(c, &Item{Key: keys[i]}); err != nil {
			t.Fatal(err)
		}
	}
	note(b.Commit(ctx), keys...)
	if len(there) > 0 {
		if _, err := c.Get(ctx, there[0]); err != nil {
			t.Errorf("a read while the disk is full: %v", err)
		}
	}
	return there, unknown
}

// Whenever a disk becomes full: nothing that was acknowledged is lost, and when there is
// room again the database goes on.
func TestDiskFullAtEveryPoint(t *testing.T) {
	items := pairs(24, synth.Config{})
	points := 40
	if testing.Short() {
		points = 2
	}
	const enough = 4 << 20
	first := &smallDisk{FS: vfs.NewMem(), room: enough}
	there, _ := fillDisk(t, first, items)
	if first.full || len(there) != len(items)+bulkItems {
		t.Fatalf("%d items on a large disk", len(there))
	}
	all := enough - first.room
	for i := range points {
		room := int64(i)*all/int64(points) + int64(37*i%64)
		mem := vfs.NewMem()
		disk := &smallDisk{FS: mem, room: room, late: i%2 == 1}
		there, unknown := fillDisk(t, disk, items)
		if !disk.full {
			t.Fatalf("%d bytes of %d were enough", room, all)
		}
		d, err := Open("db", &Options{FS: mem})
		if err != nil {
			t.Fatalf("after %d bytes: %v", room, err)
		}
		c, err := d.Collection("main")
		if errors.Is(err, ErrNotFound) && len(there) == 0 {
			mustClose(t, d)
			continue
		} else if err != nil {
			t.Fatalf("after %d bytes, %d items acknowledged: %v", room, len(there), err)
		}
		found := map[string]bool{}
		for it, err := range c.Items(ctx) {
			if err != nil {
				t.Fatalf("after %d bytes: %v", room, err)
			}
			found[it.Key] = true
		}
		for _, key := range there {
			if !found[key] {
				t.Errorf("after %d bytes: %s was acknowledged and is gone", room, key)
			}
		}
		if len(found) > len(there)+len(unknown) {
			t.Errorf("after %d bytes: %d items, %d acknowledged, %d unknown", room, len(found), len(there), len(unknown))
		}
		checkSpaces(t, d)
		if _, err := c.Put(ctx, &Item{Key: "after"}); err != nil {
			t.Errorf("after %d bytes, with room again: %v", room, err)
		}
		mustClose(t, d)
	}
}

// Room that cannot be set aside may be there nevertheless, and many file systems cannot set
// any aside.
func TestNothingComesOfRoomThatCannotBeSetAside(t *testing.T) {
	log := newStoreLogger(nil)
	f, err := (&failFS{FS: vfs.NewMem(), log: log}).Create("000001.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.(*failFile).File = &neverPreallocates{f.(*failFile).File}
	if err := errors.Join(f.Preallocate(0, 1<<20), log.err()); err != nil {
		t.Error(err)
	}
}

type neverPreallocates struct{ vfs.File }

func (neverPreallocates) Preallocate(_, _ int64) error { return syscall.ENOSPC }
