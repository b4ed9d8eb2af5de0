package db_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A repair that was interrupted in its last step leaves a repaired store and no other:
// who only reads reads that where it is, and changes nothing; who writes puts it in its
// place.
func TestReadingBetweenTheStores(t *testing.T) {
	p := smallPatient(t)
	lost, r := p.repair(db.RepairOptions{})
	if len(lost) > 0 || !r.Damaged {
		t.Fatalf("%+v, lost %v", r, lost)
	}
	dir := filepath.Join(t.TempDir(), "db")
	if ok, err := vfs.Clone(p.fs, vfs.Default, p.dir, dir); err != nil || !ok {
		t.Fatal(ok, err)
	}
	store, repaired := filepath.Join(dir, store.StoreName), filepath.Join(dir, store.RepairedName)
	must(t, os.Rename(store, repaired))
	before := footprint(t, dir)
	same := func(when string) {
		t.Helper()
		if diff := gocmp.Diff(before, footprint(t, dir)); diff != "" {
			t.Errorf("%s: %.1000s", when, diff)
		}
	}
	for range 2 { // the first time leaves the second one the same
		d := dbkit.MustOpen(t, dir, &db.Options{ReadOnly: true})
		if diff := gocmp.Diff(p.before.items, hold(t, d).items); diff != "" {
			t.Errorf("read: %s", diff)
		}
		dbkit.CheckSound(t, d, "read")
		dbkit.MustClose(t, d)
		same("opened for reading")
		v, err := db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{Deep: true}, func(f db.Finding) error {
			t.Errorf("%v", f)
			return nil
		})
		if err != nil || v.Items != len(p.before.items["main"]) {
			t.Errorf("%+v, %v", v, err)
		}
		same("verified")
	}
	d := dbkit.MustOpen(t, dir, nil)
	defer dbkit.MustClose(t, d)
	if diff := gocmp.Diff(p.before.items, hold(t, d).items); diff != "" {
		t.Errorf("opened: %s", diff)
	}
	for path, there := range map[string]bool{store: true, repaired: false} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A trial of a repair leaves a store that has not got its name yet where it is, damaged or
// not.
func TestTrialBetweenTheStores(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		p := smallPatient(t)
		p.repair(db.RepairOptions{})
		if damaged {
			p.put(codec.RowsKey(1, codec.SetLive, 0, 0), nil)
		}
		must(t, p.fs.Rename(p.fs.PathJoin(p.dir, store.StoreName), p.fs.PathJoin(p.dir, store.RepairedName)))
		before := list(t, p.fs, p.dir)
		lost, r := p.repair(db.RepairOptions{DryRun: true})
		if len(lost) > 0 || r.Damaged != damaged || r.Items != len(p.before.items["main"]) {
			t.Errorf("%+v, lost %v", r, lost)
		}
		if after := list(t, p.fs, p.dir); after != before {
			t.Errorf("%s, before %s", after, before)
		}
		p.whole("tried")
	}
}
