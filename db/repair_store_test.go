package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// files returns the files of the store whose names f likes.
func (p *patient) files(f func(name string) bool) []string {
	p.t.Helper()
	names := need(p.fs.List(p.fs.PathJoin(p.dir, store.StoreName)))(p.t)
	var out []string
	for _, name := range names {
		if f(name) {
			out = append(out, name)
		}
	}
	return out
}

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

func (p *patient) file(name string) string {
	return p.fs.PathJoin(p.fs.PathJoin(p.dir, store.StoreName), name)
}

// rewrite changes what is in a file.
func (p *patient) rewrite(path string, change func(b []byte) []byte) {
	p.t.Helper()
	f, err := p.fs.Open(path)
	must(p.t, err)
	b, err := io.ReadAll(f)
	err = errors.Join(err, f.Close())
	stopIf(p.t, err != nil, "%v", err)
	f, err = p.fs.Create(path, vfs.WriteCategoryUnspecified)
	stopIf(p.t, err != nil, "%v", err)
	_, err = f.Write(change(b))
	err = errors.Join(err, f.Sync(), f.Close())
	stopIf(p.t, err != nil, "%v", err)
}

// whatever is for damage that may cost anything: what is left is sound, and is what it was
// or what is told of.
func whatever(string, string) bool { return true }

// A store whose manifest, markers, options or log are gone or damaged gives back all that its tables have.
func TestRepairOfStoresThatDoNotOpen(t *testing.T) {
	dbkit.LongTest(t)
	whole := newPatient(t)
	starts := func(prefix string) func(string) bool {
		return func(name string) bool { return strings.HasPrefix(name, prefix) }
	}
	garbage := func(b []byte) []byte { return bytes.Repeat([]byte("garbage "), len(b)/8+1)[:len(b)] }
	for _, c := range []struct {
		name    string
		files   func(string) bool
		change  func(b []byte) []byte // nil: gone
		allLost bool                  // which tables count is not known any more
	}{
		{"manifest gone", starts("MANIFEST-"), nil, true},
		{"manifest garbage", starts("MANIFEST-"), garbage, true},
		{"manifest cut", starts("MANIFEST-"), func(b []byte) []byte { return b[:10] }, true},
		{"manifest empty", starts("MANIFEST-"), func([]byte) []byte { return nil }, true},
		{"markers gone", starts("marker."), nil, false},
		{"marker of the manifest gone", starts("marker.manifest"), nil, false},
		{"options gone", starts("OPTIONS-"), nil, false},
		{"options garbage", starts("OPTIONS-"), garbage, false},
		{"logs garbage", func(n string) bool { return strings.HasSuffix(n, ".log") }, garbage, false},
		{"logs gone", func(n string) bool { return strings.HasSuffix(n, ".log") }, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := whole.another()
			p.t = t
			names := p.files(c.files)
			stopIf(t, len(names) == 0, "there is none")
			for _, name := range names {
				if c.change != nil {
					p.rewrite(p.file(name), c.change)
				} else if err := p.fs.Remove(p.file(name)); err != nil {
					t.Fatal(err)
				}
			}
			lost, r := p.repair(db.RepairOptions{})
			said := 0
			for _, f := range lost {
				if f.Record == "store" {
					said++
				}
			}
			failIf(t, !c.allLost && len(lost) > 0 || c.allLost && (said != 1 || len(lost) > 1), "lost %v",
				lost)
			h := p.sound(c.name, nil)
			t.Logf("%+v, %d findings", *r, len(lost))
			if r.Damaged {
				p.sameStored(c.name, h)
			}
		})
	}
}

// A table that is gone costs what stood in it: which others count is known, and the finding names the keys.
func TestRepairNamesAMissingTable(t *testing.T) {
	t.Parallel()
	whole := newPatient(t)
	for _, name := range whole.files(isTable) {
		p := whole.another()
		must(t, p.fs.Remove(p.file(name)))
		lost, _ := p.repairOrRefuse()
		said := false
		for _, f := range lost {
			said = said || f.Record == "table "+name && strings.HasPrefix(f.Problem, "the keys from ") &&
				strings.HasSuffix(f.Problem, "cannot be read: the file is missing")
			failIf(t, f.Record == "store" || strings.Contains(f.Problem, "objstorage"), "%s is missing: %v",
				name, f)
		}
		failIf(t, !said, "%s is missing: lost %v", name, lost)
	}
}

// Tables that are gone, cut off or damaged anywhere cost what stands in them, and what is left is sound.
func TestRepairOfTables(t *testing.T) {
	dbkit.LongTest(t)
	whole := newPatient(t)
	random := seed.Rand(t, 3, 4)
	per := effort.Of(4, 1)
	for _, name := range whole.files(isTable) {
		for i := range per + 2 {
			p := whole.another()
			what := fmt.Sprintf("%s, %d", name, i)
			switch i {
			case 0:
				what = name + " gone"
				must(t, p.fs.Remove(p.file(name)))
			case 1:
				what = name + " cut"
				p.rewrite(p.file(name), func(b []byte) []byte { return b[:random.IntN(len(b))] })
			default:
				p.rewrite(p.file(name), func(b []byte) []byte {
					at := random.IntN(len(b))
					what = fmt.Sprintf("%s, byte %d of %d", name, at, len(b))
					b[at] ^= byte(1 + random.IntN(255))
					return b
				})
			}
			_, r := p.repairOrRefuse()
			if r == nil {
				continue
			}
			if !r.Damaged {
				p.sameStored(what, p.sound(what, nil))
				continue
			}
			p.sound(what, whatever)
			if again, r := p.repair(db.RepairOptions{}); len(again) > 0 || r.Damaged {
				t.Errorf("%s: repaired again: %v, %+v", what, again, r)
			}
		}
	}
}

// A damaged first block costs the keys of that block: what follows it in the table is read.
func TestRepairOfAFirstBlock(t *testing.T) {
	t.Parallel()
	whole := newPatient(t)
	for _, name := range whole.files(isTable) {
		p := whole.another()
		p.rewrite(p.file(name), func(b []byte) []byte {
			b[2] ^= 0x55
			return b
		})
		lost, r := p.repairOrRefuse()
		said := 0
		for _, f := range lost {
			if f.Record == "table "+name {
				said++
			}
		}
		if said != 1 || r == nil || !r.Damaged {
			t.Errorf("%s: one block is damaged, lost %v, %+v", name, lost, r)
			continue
		}
		h, gone := p.sound(name, whatever), 0
		for collection, items := range p.before.items {
			for key := range items {
				if h.items[collection][key] == nil {
					gone++
				}
			}
		}
		failIf(t, gone > 30, "%s: %d items are lost, which do not all stand in its first block: %.3v", name,
			gone, lost)
	}
}

// goneKeys returns the keys of the items that findings say are lost.
func goneKeys(lost []report.Finding) map[string]bool {
	gone := map[string]bool{}
	for _, f := range lost {
		if _, named, ok := strings.Cut(f.Problem, `its key is "`); ok {
			gone[named[:strings.Index(named, `"`)]] = true
		}
	}
	return gone
}

// repairOrRefuse is repair for a store of which perhaps nothing can be read, or that says
// that it is of a newer format: nil then, and nothing has changed.
func (p *patient) repairOrRefuse() ([]report.Finding, *report.Repairing) {
	p.t.Helper()
	var lost []report.Finding
	r, err := db.Repair(ctx, p.dir, p.options(), db.RepairOptions{}, func(f report.Finding) error {
		lost = append(lost, f)
		return nil
	})
	if errors.Is(err, db.ErrNotDatabase) || errors.Is(err, db.ErrFormat) {
		fine(p.t, errOf(p.fs.Stat(p.fs.PathJoin(p.dir, store.StoreName))))
		return lost, nil
	}
	stopIf(p.t, err != nil, "%v, %v", err, lost)
	return lost, r
}

// A block of a large table that is damaged, the first or another, costs the items in it, which are named, and
// no others.
func TestRepairOfABlock(t *testing.T) {
	dbkit.LongTest(t)
	whole := &patient{t: t, fs: vfs.NewMem(), dir: "db"}
	d := dbkit.MustOpen(t, whole.dir, &db.Options{FS: whole.fs})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	items := dbkit.CodeItems(500, 64, 1, nil)
	for i, it := range items {
		it.Key = fmt.Sprintf("key %d", i)
		it.Payload = dbkit.RandomCodes(1, 2048, uint64(i))[0]
	}
	putAll(t, c, items)
	must(t, d.Compact(ctx))
	whole.before = hold(t, d)
	dbkit.MustClose(t, d)
	var largest string
	most := int64(0)
	for _, name := range whole.files(isTable) {
		if info, err := whole.fs.Stat(whole.file(name)); err == nil && info.Size() > most {
			largest, most = name, info.Size()
		}
	}
	for _, at := range []int64{2, most / 2} {
		what := fmt.Sprintf("byte %d of %d is damaged", at, most)
		p := whole.another()
		p.rewrite(p.file(largest), func(b []byte) []byte {
			b[at] ^= 0x10
			return b
		})
		lost, r := p.repair(db.RepairOptions{})
		gone := goneKeys(lost)
		p.sound(what, func(_, key string) bool { return gone[key] })
		// The first block has what stands before the items, which can be made again. Else the table is all
		// that is told besides the items.
		others, least := 4, 0
		if at != 2 {
			others, least = 1, 1
		}
		if len(gone) < least || len(gone) > 50 || len(lost) != len(gone)+others ||
			r.Items != len(items)-len(gone) {
			t.Errorf("%s: %d items are lost, %d findings: %.300v, %+v", what, len(gone), len(lost), lost, r)
		}
	}
}

// What stands in a log is read, too, up to where that is damaged.
func TestRepairOfLogs(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewCrashableMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	items := dbkit.CodeItems(300, 64, 1, nil)
	for i, it := range items {
		it.Key = fmt.Sprintf("key %d", i)
		it.Payload = bytes.Repeat([]byte{byte(i)}, 500)
		need(c.Put(ctx, it))(t)
		if i == 100 {
			must(t, db.State(d).Engine.DB.Flush())
		}
	}
	p := &patient{t: t, fs: mem.CrashClone(vfs.CrashCloneCfg{}), dir: "db", before: hold(t, d)}
	dbkit.MustClose(t, d)
	isLog := func(name string) bool { return strings.HasSuffix(name, ".log") }
	size := func(p *patient) int {
		found, _ := p.repairOrRefuse()
		failIf(t, len(found) == 0, "nothing is said to be lost")
		h := p.sound("a log is damaged", whatever)
		last := -1
		for i, it := range items {
			if h.items["main"][it.Key] != nil {
				last = i
				failIf(t, i > 0 && h.items["main"][items[i-1].Key] == nil,
					"item %d is there, and the one before is not: %v", i, found)
			}
		}
		return last + 1
	}
	// A manifest that is damaged, and all of the log.
	q := p.another()
	for _, name := range q.files(func(name string) bool { return strings.HasPrefix(name, "MANIFEST-") }) {
		must(t, q.fs.Remove(q.file(name)))
	}
	n := size(q)
	failIf(t, n != len(items), "%d items of %d", n, len(items))
	// A log that is damaged in the middle.
	q = p.another()
	for _, name := range q.files(isLog) {
		q.rewrite(q.file(name), func(b []byte) []byte {
			if len(b) > 80_000 {
				b[50_000] ^= 1
			}
			return b
		})
	}
	if n := size(q); n < 101 || n == len(items) {
		t.Errorf("%d items of %d", n, len(items))
	} else {
		t.Logf("%d items of %d", n, len(items))
	}
}

// Pebble keeps logs that tables have replaced, to write over them. What has been deleted since does not come
// back from one, and an edit that a compaction has added up does not count twice.
func TestRepairLeavesOldLogsOut(t *testing.T) {
	mem := vfs.NewCrashableMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	items := dbkit.CodeItems(60, 64, 1, nil)
	for i, it := range items {
		it.Key = fmt.Sprintf("key %d", i)
		it.Labels = []string{"one"}
		need(c.Put(ctx, it))(t)
	}
	old := &patient{t: t, fs: mem.CrashClone(vfs.CrashCloneCfg{}), dir: "db"}
	must(t, db.State(d).Engine.DB.Flush()) // so that what is deleted stands in the next log
	for _, it := range items[:40] {
		need(c.Delete(ctx, it.Key))(t)
	}
	must(t, d.Compact(ctx))
	need(c.Put(ctx, items[0]))(t)
	p := &patient{t: t, fs: mem.CrashClone(vfs.CrashCloneCfg{}), dir: "db", before: hold(t, d)}
	dbkit.MustClose(t, d)
	isLog := func(name string) bool { return strings.HasSuffix(name, ".log") }
	there := p.files(isLog)
	slices.Sort(there)
	for _, name := range there[:len(there)-1] {
		must(t, p.fs.Remove(p.file(name)))
	}
	for _, name := range old.files(isLog) {
		must(t, vfs.CopyAcrossFS(old.fs, old.file(name), p.fs, p.file(name)))
	}
	options := func(name string) bool { return strings.HasPrefix(name, "OPTIONS-") }
	for _, name := range p.files(options) { // so that there is something to repair
		p.rewrite(p.file(name), func([]byte) []byte { return []byte("garbage") })
	}
	found, r := p.repair(db.RepairOptions{})
	failIf(t, len(found) > 0 || r.Items != 21, "%d items: %v", r.Items, found)
	p.sound("with an old log", nil)
}

// A database whose marker is gone or damaged gets another.
func TestRepairOfTheMarker(t *testing.T) {
	dbkit.LongTest(t)
	whole := newPatient(t)
	for _, gone := range []bool{true, false} {
		for _, damaged := range []bool{true, false} {
			p := whole.another()
			marker := p.fs.PathJoin(p.dir, store.MarkerName)
			if gone {
				must(t, p.fs.Remove(marker))
			} else {
				p.rewrite(marker, func([]byte) []byte { return []byte("garbage") })
			}
			if damaged {
				p.put(codec.CollectionKey(codec.KindCounters, 1), nil)
			}
			lost, r := p.repair(db.RepairOptions{})
			failIf(t, !r.Damaged || !damaged && len(lost) > 0, "%+v, lost %v", r, lost)
			p.sound("marker", nil)
		}
	}
	for _, dir := range []string{"nothing", "empty"} {
		mem := vfs.NewMem()
		if dir == "empty" {
			must(t, mem.MkdirAll(dir, 0o755))
		}
		_, err := db.Repair(ctx, dir, &db.Options{FS: mem}, db.RepairOptions{},
			func(report.Finding) error { return nil })
		failIf(t, !errors.Is(err, db.ErrNotDatabase), "%s: %v", dir, err)
	}
}

// Nobody repairs what is open, or of another format, and a trial changes nothing.
func TestRepairRefuses(t *testing.T) {
	dbkit.LongTest(t)
	p := newPatient(t)
	d := dbkit.MustOpen(t, p.dir, p.options())
	_, err := db.Repair(ctx, p.dir, p.options(), db.RepairOptions{}, nil)
	failIf(t, !errors.Is(err, db.ErrLocked), "open: %v", err)
	dbkit.MustClose(t, d)
	q := p.another()
	q.rewrite(q.fs.PathJoin(q.dir, store.MarkerName),
		func([]byte) []byte { return []byte(`{"fddhdb":"database","format":999}`) })
	errorIs(t, errOf(db.Repair(ctx, q.dir, q.options(), db.RepairOptions{}, nil)), db.ErrFormat)
	q = p.another()
	q.put(codec.NumberKey(codec.KindItem, 1, 25), nil)
	before := list(t, q.fs, q.dir)
	lost, r := q.repair(db.RepairOptions{DryRun: true})
	failIf(t, len(lost) != 1 || !r.Damaged || r.DamagedDir != "" || r.Items == 0, "%v, %+v", lost, r)
	stop := errors.New("stop")
	errorIs(t, errOf(db.Repair(ctx, q.dir, q.options(), db.RepairOptions{},
		func(report.Finding) error { return stop })), stop)
	after := list(t, q.fs, q.dir)
	failIf(t, after != before, "%s, before %s", after, before)
}

// list lists the files in a folder and those below, but locks.
func list(t testing.TB, fsys vfs.FS, dir string) string {
	t.Helper()
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return "" // a file
	}
	slices.Sort(names)
	out := ""
	for _, name := range names {
		if name != store.LockName {
			out += fmt.Sprintf("%s(%s) ", name, list(t, fsys, fsys.PathJoin(dir, name)))
		}
	}
	return out
}
