package db_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// smallPatient is a small database that is damaged so that a repair loses nothing.
func smallPatient(t testing.TB) *patient {
	t.Helper()
	p := &patient{t: t, fs: vfs.NewCrashableMem(), dir: "db"}
	d, _ := openNew(t, p.dir, &db.Options{FS: p.fs}, db.Schema{Bits: 16}, dbkit.CodeItems(40, 16, 1, nil)...)
	p.before = hold(t, d)
	dbkit.MustClose(t, d)
	p.put(codec.CollectionKey(codec.KindRowKeys, 1), nil)
	p.put(codec.RowsKey(1, codec.SetLive, 0, 0), nil)
	return p
}

// whole checks that there is a store that is the old one or the new one, and that another
// repair gives back everything.
func (p *patient) whole(when string) {
	p.t.Helper()
	lost, _ := p.repair(db.RepairOptions{})
	failIf(p.t, len(lost) > 0, "%s: lost %v", when, lost)
	p.sameStored(when, p.sound(when, nil))
}

// Whichever change to the file system fails: the database can be repaired again.
func TestEveryFailedChangeOfARepair(t *testing.T) {
	dbkit.LongTest(t)
	whole := smallPatient(t)
	for k := range sampled(19) {
		p := whole.another()
		fail := &dbkit.FailOnce{K: k}
		err := p.repairWith(fail)
		p.whole(fmt.Sprintf("change %d failed", k))
		if !fail.Fired {
			stopIf(t, err != nil || k < 50, "without a failure, after %d changes: %v", k, err)
			t.Logf("%d changes", k)
			break
		}
	}
	// While the stores change places.
	for k := range 3 {
		p := whole.another()
		renames := 0
		err := p.repairWith(errorfs.InjectorFunc(func(op errorfs.Op) error {
			if base := p.fs.PathBase(op.Path); op.Kind == errorfs.OpRename &&
				(base == store.StoreName || base == store.RepairedName) {
				if renames++; renames == k+1 {
					return dbkit.ErrInjected
				}
			}
			return nil
		}))
		failIf(t, err == nil, "rename %d of a store did not fail", k)
		p.whole(fmt.Sprintf("rename %d of a store failed", k))
	}
}

// repairWith repairs the database while something fails.
func (p *patient) repairWith(fail errorfs.Injector) error {
	p.t.Helper()
	_, err := db.Repair(ctx, p.dir, &db.Options{FS: errorfs.Wrap(p.fs, fail)}, db.RepairOptions{},
		func(f report.Finding) error {
			p.t.Errorf("%v: lost %v", fail, f)
			return nil
		})
	return err
}

// A read that fails once costs nothing, or the repair.
func TestFailedReadsOfARepair(t *testing.T) {
	dbkit.LongTest(t)
	whole := smallPatient(t)
	for k := range sampled(41) {
		p := whole.another()
		reads := 0
		var mu sync.Mutex
		err := p.repairWith(errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind.ReadOrWrite() != errorfs.OpIsRead {
				return nil
			}
			if reads++; reads == k+1 {
				return dbkit.ErrInjected
			}
			return nil
		}))
		p.whole(fmt.Sprintf("read %d failed: %v", k, err))
		if reads <= k {
			t.Logf("%d reads", reads)
			break
		}
	}
}

// A machine that stops at any change to the file system leaves a store that can be
// repaired, or has been; and opening it then finds the new one where there is no other.
func TestCrashesOfARepair(t *testing.T) {
	dbkit.LongTest(t)
	whole := smallPatient(t)
	p := &patient{t: t, dir: whole.dir, before: whole.before}
	mem := dbkit.NewCrashFS()
	ok, err := vfs.Clone(whole.fs, mem, whole.dir, whole.dir, vfs.CloneSync)
	stopIf(t, !ok || err != nil, "%v, %v", ok, err)
	must(t, store.SyncDir(mem, ""))
	r := seed.Rand(t, 1, 2)
	var mu sync.Mutex
	var crashes []*vfs.MemFS
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			for _, percent := range []int{0, 50} {
				crashes = append(crashes, mem.CrashClone(
					vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}))
			}
		}
		return nil
	}))
	need(db.Repair(ctx, p.dir, &db.Options{FS: fsys}, db.RepairOptions{},
		func(report.Finding) error { return nil }))(t)
	p.fs = mem
	p.whole("not interrupted")
	between := 0
	for i, crash := range crashes {
		p.fs = crash
		names := need(crash.List(p.dir))(t)
		switch {
		case slices.Contains(names, store.RepairedName) && !slices.Contains(names, store.StoreName):
			between++
			p.sameStored("opened", p.sound("opened between the stores", nil))
		case !effort.Sampled(i, 13):
			continue
		}
		p.whole(fmt.Sprintf("crash %d of %d: %s", i, len(crashes), names))
	}
	failIf(t, between == 0, "no crash came between the stores")
	t.Logf("%d crashes, %d of them between the stores", len(crashes), between)
}

// A repair that was interrupted in its last step leaves a repaired store and no other: who only reads reads
// that where it is, and changes nothing; who writes puts it in its place.
func TestReadingBetweenTheStores(t *testing.T) {
	p := smallPatient(t)
	lost, r := p.repair(db.RepairOptions{})
	stopIf(t, len(lost) > 0 || !r.Damaged, "%+v, lost %v", r, lost)
	dir := filepath.Join(t.TempDir(), "db")
	ok, err := vfs.Clone(p.fs, vfs.Default, p.dir, dir)
	stopIf(t, err != nil || !ok, "%v, %v", ok, err)
	store, repaired := filepath.Join(dir, store.StoreName), filepath.Join(dir, store.RepairedName)
	must(t, os.Rename(store, repaired))
	before := footprint(t, dir)
	same := func(when string) {
		t.Helper()
		diff := gocmp.Diff(before, footprint(t, dir))
		failIf(t, diff != "", "%s: %.1000s", when, diff)
	}
	for range 2 { // the first time leaves the second one the same
		d := dbkit.MustOpen(t, dir, &db.Options{ReadOnly: true})
		equal(t, p.before.items, hold(t, d).items)
		dbkit.CheckSound(t, d, "read")
		dbkit.MustClose(t, d)
		same("opened for reading")
		v, err := db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{Deep: true}, func(f report.Finding) error {
			t.Errorf("%v", f)
			return nil
		})
		failIf(t, err != nil || v.Items != len(p.before.items["main"]), "%+v, %v", v, err)
		same("verified")
	}
	d := dbkit.MustOpen(t, dir, nil)
	defer dbkit.MustClose(t, d)
	equal(t, p.before.items, hold(t, d).items)
	for path, there := range map[string]bool{store: true, repaired: false} {
		_, err := os.Stat(path)
		failIf(t, (err == nil) != there, "%s: %v", path, err)
	}
}

// A trial of a repair leaves a store that has not got its name yet where it is, damaged or not.
func TestTrialBetweenTheStores(t *testing.T) {
	t.Parallel()
	for _, damaged := range []bool{false, true} {
		p := smallPatient(t)
		p.repair(db.RepairOptions{})
		if damaged {
			p.put(codec.RowsKey(1, codec.SetLive, 0, 0), nil)
		}
		must(t, p.fs.Rename(p.fs.PathJoin(p.dir, store.StoreName), p.fs.PathJoin(p.dir, store.RepairedName)))
		before := list(t, p.fs, p.dir)
		lost, r := p.repair(db.RepairOptions{DryRun: true})
		failIf(t, len(lost) > 0 || r.Damaged != damaged || r.Items != len(p.before.items["main"]),
			"%+v, lost %v", r, lost)
		after := list(t, p.fs, p.dir)
		failIf(t, after != before, "%s, before %s", after, before)
		p.whole("tried")
	}
}

// What stands beside a sound store is mended, too: a repair names the commits that are
// known to be missing, once, and then nothing is wrong any more.
func TestRepairOfWhatStandsBesideTheStore(t *testing.T) {
	whole := smallPatient(t)
	whole.repair(db.RepairOptions{}) // else the store is damaged, too
	whole.before = whole.sound("repaired", nil)
	side := func(p *patient) store.Commits { return need(store.ReadCommits(p.fs, p.dir))(t) }
	for _, c := range []struct {
		what   string
		damage func(p *patient)
		says   []string // a finding each
	}{
		{"nothing", func(*patient) {}, nil},
		{"commits are missing", func(p *patient) {
			r := side(p)
			r.Sequence += 3
			r.Losses = []report.Loss{{Found: spaces.Now(), First: 2, Last: 5}}
			must(t, store.MakeCommits(p.fs, p.dir, r))
		}, []string{"commits 2 to 5", "the latest, are missing"}},
		{"no side file", func(p *patient) {
			must(t, p.fs.Remove(p.fs.PathJoin(p.dir, store.CommitsName)))
		}, []string{"missing; whether"}},
		{"that of another database", func(p *patient) {
			must(t, store.MakeCommits(p.fs, p.dir, store.Commits{UUID: record.NewUUID(), Sequence: 1}))
		}, []string{"of another database"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := whole.another()
			p.t = t
			c.damage(p)
			check := func(who string, found []report.Finding) {
				t.Helper()
				stopIf(t, len(found) != len(c.says), "%s: %v, want %q", who, found, c.says)
				for i, says := range c.says {
					failIf(t, !strings.Contains(found[i].String(), says), "%s: %v, want %q", who, found[i],
						says)
				}
			}
			var seen []report.Finding
			find := func(f report.Finding) error { seen = append(seen, f); return nil }
			need(db.VerifyFolder(ctx, p.dir, p.options(), db.VerifyOptions{}, find))(t)
			// What Verify tells of one run of commits, or of several.
			failIf(t, (len(seen) > 0) != (len(c.says) > 0), "Verify: %v", seen)
			dry, r := p.repair(db.RepairOptions{DryRun: true})
			check("a trial", dry)
			lost, r2 := p.repair(db.RepairOptions{})
			check("the repair", lost)
			want := len(c.says) > 0
			failIf(t, r.Damaged != want || r2.Damaged != want || r2.DamagedDir != "" || r2.Items != r.Items,
				"%+v, %+v", r, r2)
			seen = nil
			_, err := db.VerifyFolder(ctx, p.dir, p.options(), db.VerifyOptions{}, find)
			failIf(t, err != nil || len(seen) > 0, "after the repair: %v, %v", seen, err)
			again, r := p.repair(db.RepairOptions{})
			failIf(t, len(again) > 0 || r.Damaged, "repaired again: %v, %+v", again, r)
			p.sound(c.what, nil)
		})
	}
}

// A store that is replaced says of earlier losses, too, what will not be known any more.
func TestRepairTellsOfEarlierLosses(t *testing.T) {
	p := smallPatient(t)
	r := need(store.ReadCommits(p.fs, p.dir))(t)
	r.Losses = []report.Loss{{Found: spaces.Now(), First: 2, Last: 5}}
	must(t, store.MakeCommits(p.fs, p.dir, r))
	lost, done := p.repair(db.RepairOptions{})
	failIf(t, len(lost) != 1 || !strings.Contains(lost[0].Problem, "commits 2 to 5") || done.DamagedDir == "",
		"%v, %+v", lost, done)
	p.sound("repaired", nil)
}

// Whatever is damaged, and however much: what a repair makes is sound. With -soak it goes on for that long.
func TestRepairOfRandomDamage(t *testing.T) {
	dbkit.LongTest(t)
	whole := newPatient(t)
	keys := slices.Sorted(maps.Keys(whole.before.stored))
	until := time.Now().Add(*dbkit.Soak)
	rounds, refused, silent := 12, 0, 0
	first := seed.From(t, 1)
	round := 0
	for ; round < rounds || *dbkit.Soak > 0 && time.Now().Before(until); round++ {
		random := rand.New(rand.NewPCG(first, uint64(round)))
		what := fmt.Sprintf("seed %d, round %d", first, round)
		p := whole.another()
		for range random.IntN(4) {
			key := keys[random.IntN(len(keys))]
			value := []byte(whole.value(key))
			switch random.IntN(3) {
			case 0:
				if firstRevision([]byte(key)) {
					continue // nothing misses it
				}
				value = nil
			case 1:
				value = value[:random.IntN(len(value)+1)]
			default:
				if len(value) > 0 {
					value[random.IntN(len(value))] ^= byte(1 + random.IntN(255))
				}
			}
			p.put([]byte(key), value)
		}
		all := p.files(func(name string) bool { return name != store.LockName })
		for range random.IntN(3) {
			name := all[random.IntN(len(all))]
			if _, err := p.fs.Stat(p.file(name)); err != nil {
				continue
			}
			if random.IntN(4) == 0 {
				must(t, p.fs.Remove(p.file(name)))
				continue
			}
			p.rewrite(p.file(name), func(b []byte) []byte {
				for range 1 + random.IntN(20) {
					if len(b) > 0 {
						b[random.IntN(len(b))] ^= byte(1 + random.IntN(255))
					}
				}
				return b
			})
		}
		switch lost, r := p.repairOrRefuse(); {
		case r == nil:
			refused++
			continue
		case len(lost) == 0:
			silent++ // though bytes of a value may be those of another one
		}
		p.sound(what, whatever)
		stopIf(t, t.Failed(), "%v", what)
	}
	t.Logf("seed %d: %d rounds, of %d nothing could be read, in %d nothing was lost", first, round, refused,
		silent)
}

// value returns what is stored under a key.
func (p *patient) value(key string) (value string) {
	p.store(func(kv *pebble.DB) {
		b := need(record.Get(kv, []byte(key)))(p.t)
		value = string(b)
	})
	return value
}

// FuzzRepair damages records of a database: whatever becomes of them, a repair makes a
// database that verifies and opens.
func FuzzRepair(f *testing.F) {
	whole := newPatient(f)
	var all []keyValue
	whole.store(func(kv *pebble.DB) {
		must(f, record.ForEach(kv, nil, func(key, value []byte) error {
			all = append(all, keyValue{slices.Clone(key), slices.Clone(value)})
			return nil
		}))
	})
	f.Add([]byte{})
	every := 61
	if testing.Short() {
		every = 251
	}
	for i := 0; i < len(all); i += every {
		f.Add([]byte{byte(i), byte(i >> 8), byte(i), 0, 0x81, byte(i + 7), byte(i >> 8), 1, 0, 0})
	}
	f.Fuzz(func(t *testing.T, changes []byte) {
		now := map[int][]byte{}
		for ; len(changes) >= 5 && len(now) < 16; changes = changes[5:] {
			i := int(binary.LittleEndian.Uint16(changes)) % len(all)
			at := int(binary.LittleEndian.Uint16(changes[2:]))
			value, changed := now[i]
			if !changed {
				value = slices.Clone(all[i].value)
			}
			switch {
			case len(value) == 0:
				value = nil
			case changes[4] == 0: // cut
				value = value[:at%len(value)]
			default:
				value[at%len(value)] ^= changes[4]
			}
			now[i] = value
		}
		healthy := *whole
		healthy.t = t
		p := healthy.another()
		p.store(func(kv *pebble.DB) {
			b := kv.NewBatch()
			for i, value := range now {
				err := b.Delete(all[i].key, nil)
				if value != nil {
					err = b.Set(all[i].key, value, nil)
				}
				must(t, err)
			}
			must(t, b.Commit(pebble.Sync))
		})
		_, err := db.Repair(ctx, p.dir, p.options(), db.RepairOptions{}, func(found report.Finding) error {
			_ = found.String()
			return nil
		})
		if err != nil {
			if strings.Contains(err.Error(), db.ErrFormat.Error()) {
				return // the record that says which it is
			}
			t.Fatal(err)
		}
		dbkit.MustClose(t, dbkit.MustOpen(t, p.dir, p.options()))
	})
}

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
			again, r := p.repair(db.RepairOptions{})
			failIf(t, len(again) > 0 || r.Damaged, "%s: repaired again: %v, %+v", what, again, r)
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
	d, c := openNew(t, whole.dir, &db.Options{FS: whole.fs}, db.Schema{Bits: 64})
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
	d, c := openNew(t, "db", &db.Options{FS: mem}, db.Schema{Bits: 64})
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
	d, c := openNew(t, "db", &db.Options{FS: mem}, db.Schema{Bits: 64})
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
