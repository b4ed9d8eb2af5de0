package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/internal/testfs"
)

// When CompactAll returns, the room of what was deleted can be used, although tables of that were
// being read when they were rewritten: Pebble itself reads them for their statistics.
func TestCompactAllWaitsForTablesThatAreRead(t *testing.T) {
	dir := t.TempDir()
	cfg := &Config{FS: vfs.Default}
	e := &Engine{Dir: dir, Log: NewLog(nil), Reserve: NewReserve(cfg, dir), cfg: cfg}
	kv, err := Open(filepath.Join(dir, StoreName), cfg, e.Log, true)
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	e.DB = kv
	for k := range byte(8) {
		if err := kv.Set([]byte{k}, testfs.Noise(1<<20, uint64(k)), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	compact := func() {
		t.Helper()
		if err := e.CompactAll(t.Context(), func(_, _ int64) {}); err != nil {
			t.Fatal(err)
		}
	}
	compact()
	it, err := kv.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !it.First() || !bytes.Equal(it.Key(), []byte{0}) {
		t.Fatal("the first key is not there")
	}
	if err := kv.DeleteRange([]byte{0}, []byte{8}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	time.AfterFunc(50*time.Millisecond, func() { closed <- it.Close() })
	compact()
	if n := tableBytes(t, dir); n > 1<<20 {
		t.Errorf("%d bytes of tables when all is deleted", n)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A reader that keeps its tables for as long as CompactAll takes holds it up for a moment, and not for ever,
// however many pieces there are.
func TestCompactAllBesideAReaderThatStays(t *testing.T) {
	dir := t.TempDir()
	disk := &testfs.SmallDisk{FS: vfs.Default, Room: -1, Usage: vfs.DiskUsage{AvailBytes: 2 << 20, TotalBytes: 20 << 20}}
	cfg := &Config{FS: disk}
	e := &Engine{Dir: dir, Log: NewLog(nil), Reserve: NewReserve(cfg, dir), cfg: cfg}
	kv, err := Open(filepath.Join(dir, StoreName), cfg, e.Log, true)
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	e.DB = kv
	for k := range byte(8) {
		if err := errors.Join(kv.Set([]byte{k}, testfs.Noise(1<<20, uint64(k)), pebble.Sync), kv.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	it, err := kv.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if err := kv.DeleteRange([]byte{0}, []byte{8}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pieces := 0
	if err := e.CompactAll(ctx, func(_, _ int64) { pieces++ }); err != nil {
		t.Error(err)
	}
	if kv.Metrics().Table.ZombieCount == 0 || pieces < 4 {
		t.Errorf("%d tables are held, %d pieces: the test shows nothing", kv.Metrics().Table.ZombieCount, pieces)
	}
}

// tableBytes returns the size of all tables below a folder.
func tableBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sst" {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
