package db_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// tell makes the disk say that so much is free, and the database look at once.
func tell(disk *testfs.SmallDisk, d *db.DB, free int64) {
	disk.Set(func() { disk.Usage = vfs.DiskUsage{AvailBytes: uint64(free), TotalBytes: 1 << 40} })
	db.State(d).Engine.Reserve.LookAgain()
}

func TestReserveIsKept(t *testing.T) {
	const reserve = 100 << 20
	disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1}
	d := dbkit.MustOpen(t, "db", &db.Options{FS: disk, ReserveBytes: reserve})
	tell(disk, d, 10<<30)
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(60, synth.Config{})
	putAll(t, c, items[:50])
	first := dbkit.MustTrain(t, c, db.TrainOptions{}).Space
	other := dbkit.MustTrain(t, c, db.TrainOptions{Activate: true}).Space
	putAll(t, c, items[52:55])
	need(d.CreateCollection(ctx, "other", dbkit.PairsSchema))(t)
	bulk := func() error {
		b := d.NewBatch()
		for i := range bulkItems {
			must(t, b.Put(c, &db.Item{Key: fmt.Sprint("bulk", i)}))
		}
		return b.Commit(ctx)
	}
	refused := func(when string, does map[string]func() error) {
		t.Helper()
		for what, do := range does {
			var full *db.DiskFullError
			err := do()
			if !errors.Is(err, db.ErrDiskFull) || !errors.As(err, &full) || full.Dir != "db" || full.Reserve == 0 || full.Err != nil {
				t.Errorf("%s, %s: %v", when, what, err)
			} else if strings.Contains(err.Error(), "delete items or drop a collection") == full.Stuck || strings.Count(err.Error(), "fddhdb:") != 1 {
				t.Errorf("%s, %s: %v", when, what, err)
			}
		}
	}
	goesOn := func(when string, does map[string]func() error) {
		t.Helper()
		for what, do := range does {
			if err := do(); err != nil {
				t.Errorf("%s, %s: %v", when, what, err)
			}
		}
	}
	writes := map[string]func() error{
		"put":     func() error { return dbkit.Second(c.Put(ctx, items[50])) },
		"merge":   func() error { return dbkit.Second(c.Merge(ctx, items[51])) },
		"create":  func() error { return dbkit.Second(d.CreateCollection(ctx, "third", dbkit.PairsSchema)) },
		"bulk":    bulk,
		"alter":   func() error { return c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}) },
		"train":   func() error { return dbkit.Second(c.Train(ctx, db.TrainOptions{})) },
		"reindex": func() error { return dbkit.Second(c.Reindex(ctx, db.ReindexOptions{})) },
		"update":  func() error { return dbkit.Second(c.Update(ctx, db.UpdateOptions{})) },
	}
	reads := map[string]func() error{
		"get":    func() error { return dbkit.Second(c.Get(ctx, "k7")) },
		"search": func() error { return dbkit.Second(c.Search(ctx, db.Query{Key: "k7"})) },
		"stats":  func() error { return dbkit.Second(d.Stats()) },
	}
	tell(disk, d, reserve-1)
	refused("below the reserve", writes)
	goesOn("below the reserve", reads)
	stuck := func(free int64, want bool) {
		t.Helper()
		tell(disk, d, free)
		var full *db.DiskFullError
		if err := writes["put"](); !errors.As(err, &full) || full.Stuck != want {
			t.Errorf("%d bytes are free: %v", free, err)
		}
		if err := dbkit.Second(c.Delete(ctx, "nobody")); want != errors.Is(err, db.ErrDiskFull) {
			t.Errorf("%d bytes are free: delete: %v", free, err)
		}
	}
	stuck(reserve/100, false)
	stuck(store.FreeingFloor-1, false) // a deletion gets the room of the spare file
	stuck(store.FreeingFloor-1, true)
	tell(disk, d, reserve/100)
	goesOn("below the reserve", map[string]func() error{
		"delete":       func() error { return dbkit.Second(c.Delete(ctx, "k1")) },
		"delete where": func() error { return dbkit.Second(c.DeleteWhere(ctx, "label = 'nobody has it'")) },
		"drop":         func() error { return d.DropCollection(ctx, "other") },
		"drop space":   func() error { return c.DropSpace(ctx, first) },
	})
	tell(disk, d, reserve-1)
	goesOn("below the reserve", map[string]func() error{"compact": func() error { return d.Compact(ctx) }})
	tell(disk, d, store.FreeingFloor-1)
	refused("below the last of it", writes)
	refused("below the last of it", map[string]func() error{
		"delete":  func() error { return dbkit.Second(c.Delete(ctx, "k2")) },
		"compact": func() error { return d.Compact(ctx) },
	})
	goesOn("below the last of it", reads)
	tell(disk, d, 10<<30)
	goesOn("with room again", writes)
	goesOn("with room again", map[string]func() error{"activate": func() error { return c.Activate(ctx, other) }})
	tell(disk, d, 1) // Close makes durable what was acknowledged, whatever is free
	dbkit.MustClose(t, d)
}

// What is to be written counts before it is, so that a load that would fill the disk does
// not begin.
func TestReserveCountsWhatIsToCome(t *testing.T) {
	disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1}
	d := dbkit.MustOpen(t, "db", &db.Options{FS: disk, ReserveBytes: 1 << 20})
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	item := &db.Item{Key: "large", Payload: make([]byte, 1<<20)}
	var full *db.DiskFullError
	tell(disk, d, 1<<20+2<<20) // it would leave nothing; the spare file, of 512 KiB, is taken off
	if _, err := c.Put(ctx, item); !errors.As(err, &full) || full.Free != 3<<20-1<<19 || full.Needed < 2<<20 || full.Reserve != 1<<20 {
		t.Errorf("%v", err)
	}
	tell(disk, d, 1<<20+4<<20)
	if _, err := c.Put(ctx, item); err != nil {
		t.Error(err)
	}
	if _, err := c.Put(ctx, &db.Item{Key: "k"}); err != nil {
		t.Error(err)
	}
}

// However little a disk takes, and whatever stands for the spare file, a database with one can be
// opened and deleted from, and with room again the file is as it was.
func TestOpenWithTheSpareFile(t *testing.T) {
	whole := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1, Usage: vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}}
	d := dbkit.MustOpen(t, "db", &db.Options{FS: whole})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	putAll(t, c, dbkit.CodeItems(10, 64, 1, nil))
	dbkit.MustClose(t, d)
	dbkit.MustClose(t, dbkit.MustOpen(t, "db", &db.Options{FS: whole})) // it removes the old log
	for room := int64(0); room < 40<<10; room += 500 {
		mem := vfs.NewMem()
		need(vfs.Clone(whole.FS, mem, "db", "db"))(t)
		usage := vfs.DiskUsage{AvailBytes: uint64(room), TotalBytes: 1 << 40}
		disk := &testfs.SmallDisk{FS: mem, Room: room, Usage: usage, Late: room%1000 == 0}
		d, err := db.Open("db", &db.Options{FS: disk})
		if err != nil {
			t.Errorf("room for %d bytes: %v", room, err)
			continue
		}
		if n, err := dbkit.MustCollection(t, d, "main").Delete(ctx, "0"); n != 1 || err != nil {
			t.Errorf("room for %d bytes: deleted %d, %v", room, n, err)
		}
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
		dbkit.CheckSound(t, d, "without the spare file")
		dbkit.MustClose(t, d)
	}
	for what, content := range map[string][]byte{"half of it": make([]byte, 1000), "nothing": {}} {
		testfs.WriteFile(t, whole.FS, "db/store/SPARE", content)
		d := dbkit.MustOpen(t, "db", &db.Options{FS: whole})
		putAll(t, dbkit.MustCollection(t, d, "main"), dbkit.CodeItems(10, 64, 1, nil))
		dbkit.MustClose(t, d)
		if n := len(testfs.ReadFile(t, whole.FS, "db/store/SPARE")); n != 1<<20 {
			t.Errorf("%s was there, and then %d bytes", what, n)
		}
	}
}

// Where tables cannot be written though the log can, memory would fill up: writes are
// refused until they can.
func TestTablesThatFindNoRoom(t *testing.T) {
	for _, written := range []bool{false, true} {
		testNoTables(t, &noTables{FS: vfs.NewMem(), written: written})
	}
}

func testNoTables(t *testing.T, disk *noTables) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: disk})
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	putAll(t, c, dbkit.Pairs(20, synth.Config{}))
	disk.full.Store(true)
	if err := d.Compact(ctx); !errors.Is(err, db.ErrDiskFull) {
		t.Errorf("compact: %v", err)
	}
	var full *db.DiskFullError
	if _, err := c.Put(ctx, &db.Item{Key: "late"}); !errors.As(err, &full) || full.Err == nil {
		t.Errorf("put: %v", err)
	}
	if _, err := c.Get(ctx, "k7"); err != nil {
		t.Error(err)
	}
	disk.full.Store(false)
	for {
		_, err := c.Put(ctx, &db.Item{Key: "late"})
		if err == nil {
			break
		}
		if !errors.Is(err, db.ErrDiskFull) {
			t.Fatal(err)
		}
	}
	if err := d.Compact(ctx); err != nil {
		t.Error(err)
	}
}

// noTables has no room for tables while it is full.
type noTables struct {
	vfs.FS
	full    atomic.Bool
	written bool // it is told when they are written, not when they are made
}

func (f *noTables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if path.Ext(name) != ".sst" || !f.full.Load() {
		return f.FS.Create(name, c)
	}
	if !f.written {
		return nil, &testfs.Error{Err: syscall.ENOSPC}
	}
	file, err := f.FS.Create(name, c)
	return noRoom{file}, err
}

type noRoom struct{ vfs.File }

func (noRoom) Write([]byte) (int, error) { return 0, &testfs.Error{Err: syscall.ENOSPC} }
