package db_test

import (
	"encoding/binary"
	"fmt"
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
	d := dbkit.MustOpen(t, p.dir, &db.Options{FS: p.fs})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 16}))(t)
	putAll(t, c, dbkit.CodeItems(40, 16, 1, nil))
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
	for k := 0; ; k++ {
		if !effort.Sampled(k, 19) {
			continue
		}
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
	for k := 0; ; k++ {
		if !effort.Sampled(k, 41) {
			continue
		}
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
	side := func(p *patient) store.Commits {
		r := need(store.ReadCommits(p.fs, p.dir))(t)
		return r
	}
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
			if again, r := p.repair(db.RepairOptions{}); len(again) > 0 || r.Damaged {
				t.Errorf("repaired again: %v, %+v", again, r)
			}
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
