package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
	"github.com/fddhdb/fddhdb/model/fit"
)

// fillDisk fills a database that is on a disk that becomes full, by all ways to write. It
// returns the keys that were acknowledged and those of which that is not known.
func fillDisk(t *testing.T, disk *testfs.SmallDisk, items []*db.Item) (there, unknown []string) {
	d, err := db.Open("db", &db.Options{FS: disk})
	if err != nil {
		return nil, nil
	}
	defer d.Close()
	note := func(err error, keys ...string) {
		switch {
		case err == nil:
			there = append(there, keys...)
		case errors.Is(err, db.ErrFailed):
			unknown = append(unknown, keys...)
		case !errors.Is(err, db.ErrDiskFull):
			t.Errorf("with %d bytes of room left: %v", disk.Room, err)
		}
		failIf(t, err != nil && strings.Count(err.Error(), "fddhdb:") != 1, "prefix: %v", err)
	}
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	note(err)
	if err != nil {
		return there, unknown
	}
	for i, it := range items {
		note(errOf(c.Put(ctx, it)), it.Key)
		if i == len(items)/2 {
			_, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 5}})
			note(err)
			note(d.Compact(ctx))
		}
	}
	note(d.Compact(ctx))
	b := d.NewBatch()
	var keys []string
	for i := range bulkItems {
		keys = append(keys, fmt.Sprint("bulk", i))
		must(t, b.Put(c, &db.Item{Key: keys[i]}))
	}
	note(b.Commit(ctx), keys...)
	if len(there) > 0 {
		fine(t, errOf(c.Get(ctx, there[0])))
	}
	return there, unknown
}

// Whenever a disk becomes full: nothing that was acknowledged is lost, and when there is
// room again the database goes on.
func TestDiskFullAtEveryPoint(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	items := dbkit.Pairs(24, synth.Config{})
	points := 40
	if testing.Short() {
		points = 2
	}
	const enough = 4 << 20
	first := &testfs.SmallDisk{FS: vfs.NewMem(), Room: enough}
	there, _ := fillDisk(t, first, items)
	stopIf(t, first.Full || len(there) != len(items)+bulkItems, "%d items on a large disk", len(there))
	all := enough - first.Room
	for i := range points {
		room := int64(i)*all/int64(points) + int64(37*i%64)
		mem := vfs.NewMem()
		disk := &testfs.SmallDisk{FS: mem, Room: room, Late: i%2 == 1}
		there, unknown := fillDisk(t, disk, items)
		stopIf(t, !disk.Full, "%d bytes of %d were enough", room, all)
		d, err := db.Open("db", &db.Options{FS: mem})
		must(t, err, "after", room, "bytes")
		c, err := d.Collection("main")
		if errors.Is(err, db.ErrNotFound) && len(there) == 0 {
			dbkit.MustClose(t, d)
			continue
		} else if err != nil {
			t.Fatalf("after %d bytes, %d items acknowledged: %v", room, len(there), err)
		}
		found := map[string]bool{}
		for it, err := range c.Items(ctx, "") {
			must(t, err, "after", room, "bytes")
			found[it.Key] = true
		}
		for _, key := range there {
			failIf(t, !found[key], "after %d bytes: %s was acknowledged and is gone", room, key)
		}
		failIf(t, len(found) > len(there)+len(unknown),
			"after %d bytes: %d items, %d acknowledged, %d unknown", room, len(found), len(there),
			len(unknown))
		checkSpaces(t, d)
		fine(t, errOf(c.Put(ctx, &db.Item{Key: "after"})), "after", room, "bytes, with room again")
		dbkit.MustClose(t, d)
	}
}

// A largeChange writes much in one call.
type largeChange struct {
	what string
	do   func(*db.Collection) error
	done func(*testing.T, *db.Collection) bool // it is done, rather than not at all
}

var largeChanges = []largeChange{
	{
		"index", func(c *db.Collection) error {
			return c.Alter(ctx, db.Alteration{IndexFields: []string{"title", "price"}})
		},
		func(t *testing.T, c *db.Collection) bool { return dbkit.MustSchema(t, c).Fields[1].Indexed },
	},
}

// Wherever a disk becomes full while labels are merged, or an index of fields is made, that is done or
// not at all. With room again it can be done.
func TestLargeChangesOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, ch := range largeChanges {
		t.Run(ch.what, func(t *testing.T) {
			const enough = 64 << 20
			left, done := ch.onFull(t, enough)
			stopIf(t, !done, "64 MiB are not enough")
			refused, n := 0, int64(6)
			for i := range n {
				if _, done := ch.onFull(t, (enough-left)*i/n); !done {
					refused++
				}
			}
			failIf(t, refused < 3, "%d of %d refused", refused, n)
		})
	}
}

// onFull makes the change on a disk with so much room, and reports what room is left, and whether it was
// enough; if not it makes the change with room again.
func (ch *largeChange) onFull(t *testing.T, room int64) (left int64, done bool) {
	t.Helper()
	mem := vfs.NewMem()
	disk := &testfs.SmallDisk{FS: mem, Room: -1}
	d, c, items := labelWorld(t, disk, 80)
	for i, it := range items {
		it.Fields, it.Payload = map[string]any{"title": it.Key, "price": float64(i)},
			testfs.Noise(500, uint64(i))
	}
	dbkit.PutAll(t, d, c, items)
	disk.Set(func() { disk.Room = room })
	err := ch.do(c)
	disk.Set(func() { left, disk.Room = disk.Room, -1 })
	done = err == nil
	failIf(t, !done && !errors.Is(err, db.ErrDiskFull) && !errors.Is(err, db.ErrFailed),
		"room for %d bytes: %v", room, err)
	_ = d.Close() // it may have failed
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	dbkit.CheckSound(t, d, "on a full disk")
	if is := ch.done(t, c); done && !is {
		t.Errorf("room for %d bytes: it was acknowledged and is not done", room)
	} else if !is {
		fine(t, ch.do(c))
		dbkit.CheckSound(t, d, "with room again")
	}
	checkLabels(t, c, items)
	holds(t, c, 40, "title >= '' AND price < 40")
	return left, done
}

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
	d, _ := openNew(t, "db", &db.Options{FS: disk, ReserveBytes: 100 << 20}, db.Schema{Bits: 64},
		dbkit.CodeItems(100, 64, 1, nil)...)
	defer dbkit.MustClose(t, d)
	repo := newMemStore()
	for what, make := range map[string]func() error{
		"a checkpoint": func() error { return d.Checkpoint(ctx, "copy", db.CheckpointOptions{}) },
		"a backup":     func() error { _, err := d.Backup(ctx, repo, db.BackupOptions{}); return err },
	} {
		disk.free.Store(100<<20 + 100)
		var full *db.DiskFullError
		err := make()
		failIf(t, !errors.As(err, &full) || full.Free != 100<<20+100 || full.Needed <= 0, "%s: %v", what, err)
		_, err = disk.Stat("copy" + store.IncompleteSuffix)
		failIf(t, err == nil, "%s has left what it was making", what)
		disk.free.Store(1 << 40)
		fine(t, make(), what, "with room")
	}
	dbkit.MustClose(t, dbkit.MustOpen(t, "copy", &db.Options{FS: disk, MustExist: true}))
}

// With hard links a checkpoint takes no room, but for some small files of its own, and asks for none.
func TestLinksNeedNoRoom(t *testing.T) {
	disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1,
		Usage: vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}}
	opts := &db.Options{FS: disk, ReserveBytes: 1 << 20}
	d, c := openNew(t, "db", opts, db.Schema{Bits: 64})
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
	got := dbkit.AllItems(t, dbkit.MustCollection(t, copied, "main"))
	failIf(t, len(got) != len(items) || !bytes.Equal(got[99].Payload, items[99].Payload),
		"%d of %d items are in the copy", len(got), len(items))
}

// A full disk is called one when it keeps a database from being opened, by whichever file it does.
func TestOpenOnAFullDisk(t *testing.T) {
	effort.Slow(t)
	whole := vfs.NewCrashableMem()
	d, _ := openNew(t, "db", &db.Options{FS: whole}, db.Schema{Bits: 64}, dbkit.CodeItems(10, 64, 1, nil)...)
	left := whole.CrashClone(vfs.CrashCloneCfg{}) // what is in its log becomes tables
	dbkit.MustClose(t, d)
	for _, sort := range []string{".sst", ".log", "MANIFEST"} {
		mem := vfs.NewMem()
		need(vfs.Clone(left, mem, "db", "db"))(t)
		fsys := failing(mem, &testfs.Error{Err: syscall.ENOSPC}, func(op errorfs.Op) bool {
			return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && sortOf(op.Path) == sort
		})
		d, err := db.Open("db", &db.Options{FS: fsys})
		if err == nil {
			dbkit.MustClose(t, d)
			t.Errorf("%s: it was not needed", sort)
			continue
		}
		var full *db.DiskFullError
		failIf(t, !errors.As(err, &full) || full.Dir != "db", "%s: %v", sort, err)
		failIf(t, strings.Count(err.Error(), "fddhdb:") != 1, "prefix: %v", err)
		dbkit.MustClose(t, dbkit.MustOpen(t, "db", &db.Options{FS: mem}))
	}
}

// A machine that has run out of file descriptors is no damage: a repair ends, and nothing is lost.
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
		_, err := db.Repair(ctx, p.dir, &db.Options{FS: fsys}, db.RepairOptions{DryRun: true},
			func(f report.Finding) error {
				t.Errorf("table %d could not be opened: lost %v", k, f)
				return nil
			})
		if int(opened.Load()) <= k {
			break
		}
		failIf(t, err != nil && !strings.Contains(err.Error(), syscall.EMFILE.Error()),
			"table %d could not be opened: %v", k, err)
	}
	p.whole("with file descriptors")
}

// tell makes the disk say that so much is free, and the database look at once.
func tell(disk *testfs.SmallDisk, d *db.DB, free int64) {
	disk.Set(func() { disk.Usage = vfs.DiskUsage{AvailBytes: uint64(free), TotalBytes: 1 << 40} })
	db.State(d).Engine.Reserve.LookAgain()
}

func TestReserveIsKept(t *testing.T) {
	t.Parallel()
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
			if !errors.Is(err, db.ErrDiskFull) || !errors.As(err, &full) || full.Dir != "db" ||
				full.Reserve == 0 || full.Err != nil {
				t.Errorf("%s, %s: %v", when, what, err)
			} else if strings.Contains(err.Error(), "delete items or drop a collection") == full.Stuck ||
				strings.Count(err.Error(), "fddhdb:") != 1 {
				t.Errorf("%s, %s: %v", when, what, err)
			}
		}
	}
	goesOn := func(when string, does map[string]func() error) {
		t.Helper()
		for what, do := range does {
			fine(t, do(), when, what)
		}
	}
	writes := map[string]func() error{
		"put":     func() error { return errOf(c.Put(ctx, items[50])) },
		"merge":   func() error { return errOf(c.Merge(ctx, items[51])) },
		"create":  func() error { return errOf(d.CreateCollection(ctx, "third", dbkit.PairsSchema)) },
		"bulk":    bulk,
		"alter":   func() error { return c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}) },
		"train":   func() error { return errOf(c.Train(ctx, db.TrainOptions{})) },
		"reindex": func() error { return errOf(c.Reindex(ctx, db.ReindexOptions{})) },
		"update":  func() error { return errOf(c.Update(ctx, db.UpdateOptions{})) },
	}
	reads := map[string]func() error{
		"get":    func() error { return errOf(c.Get(ctx, "k7")) },
		"search": func() error { return errOf(c.Search(ctx, db.Query{Key: "k7"})) },
		"stats":  func() error { return errOf(d.Stats()) },
	}
	tell(disk, d, reserve-1)
	refused("below the reserve", writes)
	goesOn("below the reserve", reads)
	stuck := func(free int64, want bool) {
		t.Helper()
		tell(disk, d, free)
		var full *db.DiskFullError
		err := writes["put"]()
		failIf(t, !errors.As(err, &full) || full.Stuck != want, "%d bytes are free: %v", free, err)
		err = errOf(c.Delete(ctx, "nobody"))
		failIf(t, want != errors.Is(err, db.ErrDiskFull), "%d bytes are free: delete: %v", free, err)
	}
	stuck(reserve/100, false)
	stuck(store.FreeingFloor-1, false) // a deletion gets the room of the spare file
	stuck(store.FreeingFloor-1, true)
	tell(disk, d, reserve/100)
	goesOn("below the reserve", map[string]func() error{
		"delete":       func() error { return errOf(c.Delete(ctx, "k1")) },
		"delete where": func() error { return errOf(c.DeleteWhere(ctx, "label = 'nobody has it'")) },
		"drop":         func() error { return d.DropCollection(ctx, "other") },
		"drop space":   func() error { return c.DropSpace(ctx, first) },
	})
	tell(disk, d, reserve-1)
	goesOn("below the reserve", map[string]func() error{"compact": func() error { return d.Compact(ctx) }})
	tell(disk, d, store.FreeingFloor-1)
	refused("below the last of it", writes)
	refused("below the last of it", map[string]func() error{
		"delete":  func() error { return errOf(c.Delete(ctx, "k2")) },
		"compact": func() error { return d.Compact(ctx) },
	})
	goesOn("below the last of it", reads)
	tell(disk, d, 10<<30)
	goesOn("with room again", writes)
	goesOn("with room again", map[string]func() error{"activate": func() error {
		return c.Activate(ctx, other)
	}})
	tell(disk, d, 1) // Close makes durable what was acknowledged, whatever is free
	dbkit.MustClose(t, d)
}

// What is to be written counts before it is, so that a load that would fill the disk does not begin.
func TestReserveCountsWhatIsToCome(t *testing.T) {
	disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1}
	d, c := openNew(t, "db", &db.Options{FS: disk, ReserveBytes: 1 << 20}, dbkit.PairsSchema)
	defer d.Close()
	item := &db.Item{Key: "large", Payload: make([]byte, 1<<20)}
	var full *db.DiskFullError
	tell(disk, d, 1<<20+2<<20) // it would leave nothing; the spare file, of 512 KiB, is taken off
	_, err := c.Put(ctx, item)
	failIf(t, !errors.As(err, &full) || full.Free != 3<<20-1<<19 || full.Needed < 2<<20 ||
		full.Reserve != 1<<20, "%v", err)
	tell(disk, d, 1<<20+4<<20)
	fine(t, errOf(c.Put(ctx, item)))
	fine(t, errOf(c.Put(ctx, &db.Item{Key: "k"})))
}

// However little a disk takes, and whatever stands for the spare file, a database with one can be
// opened and deleted from, and with room again the file is as it was.
func TestOpenWithTheSpareFile(t *testing.T) {
	t.Parallel()
	whole := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1,
		Usage: vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}}
	d, _ := openNew(t, "db", &db.Options{FS: whole}, db.Schema{Bits: 64}, dbkit.CodeItems(10, 64, 1, nil)...)
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
		gives(t, 1, room)(dbkit.MustCollection(t, d, "main").Delete(ctx, "0"))
		d, _ = reopen(t, d, "db", &db.Options{FS: mem})
		dbkit.CheckSound(t, d, "without the spare file")
		dbkit.MustClose(t, d)
	}
	for what, content := range map[string][]byte{"half of it": make([]byte, 1000), "nothing": {}} {
		testfs.WriteFile(t, whole.FS, "db/store/SPARE", content)
		d := dbkit.MustOpen(t, "db", &db.Options{FS: whole})
		putAll(t, dbkit.MustCollection(t, d, "main"), dbkit.CodeItems(10, 64, 1, nil))
		dbkit.MustClose(t, d)
		n := len(testfs.ReadFile(t, whole.FS, "db/store/SPARE"))
		failIf(t, n != 1<<20, "%s was there, and then %d bytes", what, n)
	}
}

// Where tables cannot be written though the log can, memory would fill up: writes are refused until they can.
func TestTablesThatFindNoRoom(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		testNoTables(t, &noTables{FS: vfs.NewMem(), written: written})
	}
}

func testNoTables(t *testing.T, disk *noTables) {
	d, c := openNew(t, "db", &db.Options{FS: disk}, dbkit.PairsSchema, dbkit.Pairs(20, synth.Config{})...)
	defer d.Close()
	disk.full.Store(true)
	errorIs(t, d.Compact(ctx), db.ErrDiskFull)
	var full *db.DiskFullError
	_, err := c.Put(ctx, &db.Item{Key: "late"})
	failIf(t, !errors.As(err, &full) || full.Err == nil, "put: %v", err)
	fine(t, errOf(c.Get(ctx, "k7")))
	disk.full.Store(false)
	for {
		_, err := c.Put(ctx, &db.Item{Key: "late"})
		if err == nil {
			break
		}
		stopIf(t, !errors.Is(err, db.ErrDiskFull), "%v", err)
	}
	fine(t, d.Compact(ctx))
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
