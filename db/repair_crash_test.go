package db_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
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
	if len(lost) > 0 {
		p.t.Errorf("%s: lost %v", when, lost)
	}
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
			if err != nil || k < 50 {
				t.Fatalf("without a failure, after %d changes: %v", k, err)
			}
			t.Logf("%d changes", k)
			break
		}
	}
	// While the stores change places.
	for k := range 3 {
		p := whole.another()
		renames := 0
		err := p.repairWith(errorfs.InjectorFunc(func(op errorfs.Op) error {
			if base := p.fs.PathBase(op.Path); op.Kind == errorfs.OpRename && (base == store.StoreName || base == store.RepairedName) {
				if renames++; renames == k+1 {
					return dbkit.ErrInjected
				}
			}
			return nil
		}))
		if err == nil {
			t.Errorf("rename %d of a store did not fail", k)
		}
		p.whole(fmt.Sprintf("rename %d of a store failed", k))
	}
}

// repairWith repairs the database while something fails.
func (p *patient) repairWith(fail errorfs.Injector) error {
	p.t.Helper()
	_, err := db.Repair(ctx, p.dir, &db.Options{FS: errorfs.Wrap(p.fs, fail)}, db.RepairOptions{}, func(f db.Finding) error {
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
	if ok, err := vfs.Clone(whole.fs, mem, whole.dir, whole.dir, vfs.CloneSync); !ok || err != nil {
		t.Fatal(ok, err)
	}
	must(t, store.SyncDir(mem, ""))
	r := seed.Rand(t, 1, 2)
	var mu sync.Mutex
	var crashes []*vfs.MemFS
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			for _, percent := range []int{0, 50} {
				crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}))
			}
		}
		return nil
	}))
	need(db.Repair(ctx, p.dir, &db.Options{FS: fsys}, db.RepairOptions{}, func(db.Finding) error { return nil }))(t)
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
	if between == 0 {
		t.Error("no crash came between the stores")
	}
	t.Logf("%d crashes, %d of them between the stores", len(crashes), between)
}
