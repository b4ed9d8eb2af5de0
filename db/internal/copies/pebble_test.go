package copies

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// copiedLog writes keys to a store that replaces its log every so often, and so writes
// over old ones; and returns a copy of it, the path of
// its log, and how many keys there are, and bytes of the log in use.
func copiedLog(t *testing.T) (fsys vfs.FS, path string, keys int, log int64) {
	t.Helper()
	fsys = vfs.NewMem()
	cfg := &store.Config{FS: fsys, CacheBytes: 1 << 20}
	po := store.PebbleOptions(cfg, &store.Log{}, true)
	kv, err := pebble.Open("store", po)
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	value := bytes.Repeat([]byte("fddh"), 25_000)
	for range 6 { // of which later ones find logs of earlier ones
		for range 5 {
			if err := kv.Set([]byte{byte(keys)}, value, pebble.Sync); err != nil {
				t.Fatal(err)
			}
			keys++
		}
		if err := kv.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := kv.Set([]byte{byte(keys)}, value, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	keys++
	if err := kv.Checkpoint("copy", pebble.WithFlushedWAL()); err != nil {
		t.Fatal(err)
	}
	return fsys, fsys.PathJoin("copy", newestLog(t, fsys)), keys, logBytes(kv)
}

func newestLog(t *testing.T, fsys vfs.FS) (newest string) {
	t.Helper()
	names, err := fsys.List("copy")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if fsys.PathBase(name) > newest && len(name) > 4 && name[len(name)-4:] == ".log" {
			newest = name
		}
	}
	return newest
}

func sizeOf(t *testing.T, fsys vfs.FS, path string) int64 {
	t.Helper()
	info, err := fsys.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// The log of a copy is cut where its records end, whatever was in the file before, and
// the copy holds all that the store held.
func TestTrimLog(t *testing.T) {
	fsys, path, keys, log := copiedLog(t)
	before := sizeOf(t, fsys, path)
	for range 2 { // the second time there is nothing to cut
		if err := trimLog(fsys, "copy", log); err != nil {
			t.Fatal(err)
		}
		if n := sizeOf(t, fsys, path); n < 100_000 || n > 110_000 || before < 500_000 {
			t.Errorf("a log of %d bytes was cut to %d, one value has 100,000", before, n)
		}
	}
	if err := trimLog(fsys, "copy", log+1); !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("a log that is too short: %v", err)
	}
	cfg := &store.Config{FS: fsys, CacheBytes: 1 << 20}
	kv, err := pebble.Open("copy", store.PebbleOptions(cfg, &store.Log{}, false))
	if err != nil {
		t.Fatal(err)
	}
	defer kv.Close()
	for i := range keys {
		if _, err := record.Get(kv, []byte{byte(i)}); err != nil {
			t.Errorf("key %d: %v", i, err)
		}
	}
}
