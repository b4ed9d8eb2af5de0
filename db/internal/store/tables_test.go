package store

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/internal/testfs"
)

// Of every block of a table the sum that is checked is Pebble's.
func TestSumsOfBlocksAreThoseOfPebble(t *testing.T) {
	fs := vfs.NewMem()
	file, err := fs.Create("t.sst", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &Config{FS: fs}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), TableOptions(cfg))
	for i := range 3000 {
		value := testfs.Noise(i%200, uint64(i))
		if i%500 == 0 {
			value = make([]byte, 50_000) // which is compressed
		}
		if err := w.Set([]byte{0x11, byte(i >> 8), byte(i)}, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	po := PebbleOptions(cfg, NewLog(nil), false)
	po.EnsureDefaults()
	reader, err := OpenTable(t.Context(), fs, "t.sst", po.MakeReaderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	layout, err := reader.Layout()
	if err != nil {
		t.Fatal(err)
	}
	handles := append([]block.Handle{layout.TopIndex, layout.Properties, layout.MetaIndex}, layout.Index...)
	for _, h := range layout.Data {
		handles = append(handles, h.Handle)
	}
	for _, h := range layout.Filter {
		handles = append(handles, h.Handle)
	}
	checked := 0
	for _, h := range handles {
		if h.Length+block.TrailerLen <= shortRead {
			continue
		}
		checked++
		p := make([]byte, h.Length+block.TrailerLen)
		f, err := fs.Open("t.sst")
		if err != nil {
			t.Fatal(err)
		}
		if f, err = summed("store/t.sst", f, nil); err != nil {
			t.Fatal(err)
		}
		if n, err := f.ReadAt(p, int64(h.Offset)); n != len(p) || err != nil {
			t.Fatalf("block at %d: %v", h.Offset, err)
		}
		if err := block.ValidateChecksum(block.ChecksumTypeCRC32c, p, h); err != nil {
			t.Fatal(err)
		}
		at := int64(h.Offset) + int64(checked*7919%len(p))
		testfs.Flip(t, fs, "t.sst", at)
		if n, err := f.ReadAt(p, int64(h.Offset)); n != 0 || !pebble.IsCorruptionError(err) ||
			!strings.Contains(err.Error(), "table t.sst") {
			t.Errorf("block at %d, byte %d flipped: %v", h.Offset, at, err)
		}
		testfs.Flip(t, fs, "t.sst", at)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if checked < 50 {
		t.Errorf("%d blocks", checked)
	}
}

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
	disk := &testfs.SmallDisk{FS: vfs.Default, Room: -1,
		Usage: vfs.DiskUsage{AvailBytes: 2 << 20, TotalBytes: 20 << 20}}
	cfg := &Config{FS: disk}
	e := &Engine{Dir: dir, Log: NewLog(nil), Reserve: NewReserve(cfg, dir), cfg: cfg}
	kv, err := Open(filepath.Join(dir, StoreName), cfg, e.Log, true)
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	e.DB = kv
	for k := range byte(8) {
		if err := errors.Join(kv.Set([]byte{k}, testfs.Noise(1<<20, uint64(k)), pebble.Sync),
			kv.Flush()); err != nil {
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
		t.Errorf("%d tables are held, %d pieces: the test shows nothing", kv.Metrics().Table.ZombieCount,
			pieces)
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
