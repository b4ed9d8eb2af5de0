package db

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// smallPatient is a small database that is damaged so that a repair loses nothing.
func smallPatient(t testing.TB) *patient {
	t.Helper()
	p := &patient{t: t, fs: vfs.NewCrashableMem(), dir: "db"}
	d := mustOpen(t, p.dir, &Options{FS: p.fs})
	c, err := d.CreateCollection(ctx, "main", Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, c, codeItems(40, 16, 1, nil))
	p.before = hold(t, d)
	mustClose(t, d)
	p.put(codec.CollectionKey(codec.KindRowKeys, 1), nil)
	p.put(codec.RowsKey(1, codec.SetLive, 0, 0), nil)
	return p
}

// whole checks that there is a store that is the old one or the new one, and that another
// repair gives back everything.
func (p *patient) whole(when string) {
	p.t.Helper()
	lost, _ := p.repair(RepairOptions{})
	if len(lost) > 0 {
		p.t.Errorf("%s: lost %v", when, lost)
	}
	p.sameStored(when, p.sound(when, nil))
}

// Whichever change to the file system fails: the database can be repaired again.
func TestEveryFailedChangeOfARepair(t *testing.T) {
	longTest(t)
	whole := smallPatient(t)
	for k := 0; ; k++ {
		if !sampled(k, 9) {
			continue
		}
		p := whole.another()
		fail := &failOnce{k: k}
		err := p.repairWith(fail)
		p.whole(fmt.Sprintf("change %d failed", k))
		if !fail.fired {
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
					return errInjected
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
	_, err := Repair(ctx, p.dir, &Options{FS: errorfs.Wrap(p.fs, fail)}, RepairOptions{}, func(f Finding) error {
		p.t.Errorf("%v: lost %v", fail, f)
		return nil
	})
	return err
}

// A read that fails once costs nothing, or the repair.
func TestFailedReadsOfARepair(t *testing.T) {
	longTest(t)
	whole := smallPatient(t)
	for k := 0; ; k++ {
		if !sampled(k, 17) {
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
				return errInjected
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
	longTest(t)
	whole := smallPatient(t)
	p := &patient{t: t, dir: whole.dir, before: whole.before}
	mem := newCrashFS()
	if ok, err := vfs.Clone(whole.fs, mem, whole.dir, whole.dir, vfs.CloneSync); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := store.SyncDir(mem, ""); err != nil {
		t.Fatal(err)
	}
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
	if _, err := Repair(ctx, p.dir, &Options{FS: fsys}, RepairOptions{}, func(Finding) error { return nil }); err != nil {
		t.Fatal(err)
	}
	p.fs = mem
	p.whole("not interrupted")
	between := 0
	for i, crash := range crashes {
		p.fs = crash
		names, err := crash.List(p.dir)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case slices.Contains(names, store.RepairedName) && !slices.Contains(names, store.StoreName):
			between++
			p.sameStored("opened", p.sound("opened between the stores", nil))
		case !sampled(i, 4):
			continue
		}
		p.whole(fmt.Sprintf("crash %d of %d: %s", i, len(crashes), names))
	}
	if between == 0 {
		t.Error("no crash came between the stores")
	}
	t.Logf("%d crashes, %d of them between the stores", len(crashes), between)
}
