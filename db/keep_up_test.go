package db_test

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// Where a flush finds room for some of its tables and not for all, nothing waits for it:
// writes of all kinds are refused, and go on when there is room.
func TestFlushThatFindsRoomForSomeTables(t *testing.T) {
	t.Parallel()
	disk := &everySecondTable{FS: vfs.NewMem()}
	d, c := openNew(t, "db", &db.Options{FS: disk}, db.Schema{Bits: 64})
	large := func(i int) error {
		return errOf(c.Put(ctx, &db.Item{Key: fmt.Sprint("large", i), Code: make([]byte, 8),
			Payload: testfs.Noise(1<<20, uint64(i))}))
	}
	bulk := func() error {
		b := d.NewBatch()
		for _, it := range dbkit.CodeItems(2*bulkItems, 64, 1,
			func(i int) string { return fmt.Sprint("bulk", i) }) {
			if err := b.Put(c, it); err != nil {
				return err
			}
		}
		return b.Commit(ctx)
	}
	for i := range 8 {
		must(t, large(i))
	}
	disk.full.Store(true)
	errorIs(t, d.Compact(ctx), db.ErrDiskFull)
	errorIs(t, bulk(), db.ErrDiskFull)
	for i := 8; ; i++ { // memory must not fill up either
		if err := large(i); errors.Is(err, db.ErrDiskFull) {
			break
		} else if err != nil || i > 500 {
			t.Fatal(i, err)
		}
	}
	disk.full.Store(false)
	for {
		err := bulk()
		if err == nil {
			break
		}
		stopIf(t, !errors.Is(err, db.ErrDiskFull), "%v", err)
	}
	if it, err := c.Get(ctx, "large7"); err != nil || !slices.Equal(it.Payload, testfs.Noise(1<<20, 7)) {
		t.Error("an item is another one", err)
	}
	dbkit.MustClose(t, d)
}

// everySecondTable has room for every second table that is made while it is full.
type everySecondTable struct {
	vfs.FS
	full atomic.Bool
	made atomic.Int64
}

func (f *everySecondTable) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if path.Ext(name) == ".sst" && f.full.Load() && f.made.Add(1)%2 == 0 {
		return nil, &testfs.Error{Err: syscall.ENOSPC}
	}
	return f.FS.Create(name, c)
}

// Where a damaged table cannot be merged into others, writes go on until there are too many
// of these, and are refused then. Reads and deletions go on.
func TestDamagedTableThatCannotBeCompacted(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	d, c := openNew(t, "db", &db.Options{FS: fs}, db.Schema{Bits: 64})
	put := func(key int) error {
		return errOf(c.Put(ctx, &db.Item{Key: fmt.Sprintf("k%05d", key), Code: []byte{byte(key),
			byte(key >> 8), 1, 2, 3, 4, 5, 6}, Payload: testfs.Noise(100, uint64(key))}))
	}
	for round := range 2 {
		for i := range 300 {
			must(t, put(round*20_000+i*37))
		}
		must(t, db.State(d).Engine.FlushAll(ctx))
	}
	dbkit.MustClose(t, d)
	// The middle of a table holds item records. Damage there hits old items, and the test writes only new
	// ones.
	names := need(fs.List("db/" + store.StoreName))(t)
	newest, size := "", int64(0)
	for _, name := range names {
		if info, err := fs.Stat(filepath.Join("db", store.StoreName, name)); err == nil &&
			path.Ext(name) == ".sst" && info.Size() > 20_000 && name > newest {
			newest, size = name, info.Size()
		}
	}
	testfs.Flip(t, fs, filepath.Join("db", store.StoreName, newest), size/2)

	d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	for i := 0; ; i++ {
		if err := put(50_000 + i); errors.Is(err, db.ErrCorrupt) {
			t.Logf("refused after %d flushes: %v", i, err)
			break
		} else if err != nil {
			t.Fatal(i, err)
		}
		// The new tables may be merged among themselves, as the damaged one is left out: then there never are
		// too many.
		if i == 100 {
			if names, err := fs.List("db/" + store.StoreName); err != nil || len(names) > 30 {
				t.Errorf("not refused, and there are %d files, %v", len(names), err)
			}
			break
		}
		must(t, db.State(d).Engine.FlushAll(ctx))
	}
	gives(t, 1)(c.Delete(ctx, "k50000"))
	fine(t, errOf(c.Get(ctx, "k50001")))
}

// Close waits for a write whose sync is awaited, and for one that is prepared meanwhile. Both
// are acknowledged, and there afterwards.
func TestCloseWaitsForWritesInFlight(t *testing.T) {
	mem := vfs.NewMem()
	syncing, open := make(chan struct{}, 100), make(chan struct{})
	var hold atomic.Bool
	d := dbkit.MustOpen(t, "db",
		&db.Options{FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.HasSuffix(op.Path, ".log") && op.Kind == errorfs.OpFileSyncData && hold.Load() {
				syncing <- struct{}{}
				<-open
			}
			return nil
		}))})
	c := need(d.CreateCollection(ctx, "main", numbersSchema))(t)
	hold.Store(true)
	answers := make(chan error, 3)
	put := func(i int) {
		_, err := c.Put(ctx, numbered(i))
		answers <- err
	}
	go put(0)
	<-syncing
	go put(1)
	for db.State(d).Guard.Calls() < 2 {
		time.Sleep(time.Millisecond)
	}
	go func() { answers <- d.Close() }()
	for {
		if _, err := d.Collection("main"); errors.Is(err, db.ErrClosed) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(open)
	for range 3 {
		fine(t, <-answers)
	}
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer dbkit.MustClose(t, d)
	n := commitsFound(t, d)
	failIf(t, n != 3, "%d commits, want 3", n)
}
