package db

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// randomBytes returns bytes that cannot be compressed.
func randomBytes(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// A flipped bit in a large value is found at once by whatever reads it: Pebble would look
// for the bit, for hours in a block of this size.
func TestFlippedBitInLargeBlock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	d := mustOpen(t, dir, nil)
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"whole", "damaged"} {
		if _, err := c.Put(ctx, &Item{Key: key, Payload: randomBytes(1<<20+i*8<<20, uint64(i))}); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, d)
	tables, err := filepath.Glob(filepath.Join(dir, storeName, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 8<<20 {
			b[len(b)-4<<20] ^= 16
		}
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	findings := 0
	_, err = VerifyFolder(ctx, dir, nil, VerifyOptions{Deep: true}, func(f Finding) error {
		if !strings.Contains(f.Problem, "checksum") || strings.Contains(f.Problem, "carrier") {
			t.Errorf("%+v", f)
		}
		findings++
		return nil
	})
	if err != nil || findings == 0 {
		t.Errorf("%d findings, %v", findings, err)
	}
	d = mustOpen(t, dir, nil)
	defer d.Close()
	c = mustCollection(t, d, "main")
	if it, err := c.Get(ctx, "whole"); err != nil || len(it.Payload) != 1<<20 {
		t.Error(err)
	}
	if _, err := c.Get(ctx, "damaged"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), ".sst: block of ") || strings.Contains(err.Error(), "carrier") {
		t.Errorf("get: %v", err)
	}
	if err := d.Compact(ctx); !errors.Is(err, ErrCorrupt) {
		t.Errorf("compact: %v", err)
	}
}

// Of every block of a table the sum that is checked is Pebble's.
func TestSumsOfBlocksAreThoseOfPebble(t *testing.T) {
	fs := vfs.NewMem()
	file, err := fs.Create("t.sst", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	opts := (&Options{}).withDefaults()
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), tableOptions(&opts.disk))
	for i := range 3000 {
		value := randomBytes(i%200, uint64(i))
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
	po := storeOptions(&opts.disk, newStoreLogger(nil), false)
	po.EnsureDefaults()
	reader, err := openTable(ctx, fs, "t.sst", po.MakeReaderOptions())
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
		flip(t, fs, "t.sst", at)
		if n, err := f.ReadAt(p, int64(h.Offset)); n != 0 || !pebble.IsCorruptionError(err) || !strings.Contains(err.Error(), "table t.sst") {
			t.Errorf("block at %d, byte %d flipped: %v", h.Offset, at, err)
		}
		flip(t, fs, "t.sst", at)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if checked < 50 {
		t.Errorf("%d blocks", checked)
	}
}
