package store

import (
	"strings"
	"testing"

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
		if n, err := f.ReadAt(p, int64(h.Offset)); n != 0 || !pebble.IsCorruptionError(err) || !strings.Contains(err.Error(), "table t.sst") {
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
