package db_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// The descriptor of a collection stands with its spaces, too, also that of an altered one;
// without a space all of the collection is lost, and nothing else.
func TestRepairOfDescriptors(t *testing.T) {
	t.Parallel()
	p := &patient{t: t, fs: vfs.NewMem(), dir: "db"}
	d := verified(t, &db.Options{FS: p.fs})
	p.dir = db.State(d).Engine.Dir
	c := need(d.CreateCollection(ctx, "untrained", dbkit.PairsSchema))(t)
	putAll(t, c, []*db.Item{{Key: "a", Labels: []string{"b"}}})
	schemas := map[string]db.Schema{}
	for _, name := range []string{"main", "codes"} {
		c := dbkit.MustCollection(t, d, name)
		mustAlter(t, c, db.Alteration{AddFields: []db.Field{{"late", db.Int, true}}})
		schemas[name] = dbkit.MustSchema(t, c)
	}
	p.before = hold(t, d)
	dbkit.MustClose(t, d)
	for key := range p.before.stored {
		if key[0] == codec.KindCollection {
			p.put([]byte(key), nil)
		}
	}
	lost, _ := p.repair(db.RepairOptions{})
	for _, f := range lost {
		if says := map[bool]string{true: "all of it is lost", false: "takes its place"}[f.Collection == "untrained"]; f.Record != "descriptor" || !strings.Contains(f.Problem, says) {
			t.Errorf("%v", f)
		}
	}
	if len(lost) != len(p.before.items) {
		t.Errorf("lost %v", lost)
	}
	delete(p.before.items, "untrained")
	p.sound("repaired", nil)
	d = dbkit.MustOpen(t, p.dir, p.options())
	defer dbkit.MustClose(t, d)
	for name, want := range schemas {
		if got := dbkit.MustSchema(t, dbkit.MustCollection(t, d, name)); len(got.Fields) != len(want.Fields) || len(got.Modalities) != len(want.Modalities) {
			t.Errorf("%s: %+v, was %+v", name, got, want)
		}
	}
	if _, err := d.Collection("untrained"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the collection that is lost: %v", err)
	}
}

// A space whose building a crash has interrupted is complete after a repair, and the active
// one if it was to be.
func TestRepairCompletesSpaces(t *testing.T) {
	t.Parallel()
	whole := newPatient(t)
	for _, activate := range []bool{false, true} {
		p := whole.another()
		key := codec.CollectionKey(codec.KindCounters, 1)
		n, err := codec.DecodeCounters([]byte(p.value(string(key))))
		if err != nil || len(n.Spaces) != 2 {
			t.Fatal(n, err)
		}
		n.ActiveSpace, n.PreviousSpace = 1, 0
		n.Spaces[1].Building, n.Spaces[1].Activate, n.Spaces[1].Built = true, activate, 10
		p.put(key, n.Append(nil))
		p.put(codec.CollectionKey(codec.KindRowKeys, 1), nil)
		p.put(codec.RowsKey(1, codec.SetLive, 0, 0), nil)
		if lost, r := p.repair(db.RepairOptions{}); len(lost) > 0 || !r.Damaged {
			t.Errorf("%+v, lost %v", r, lost)
		}
		h := p.sound("repaired", nil)
		for i, want := range map[bool][]db.SpaceState{false: {db.SpaceActive, db.SpaceStandby}, true: {db.SpaceStandby, db.SpaceActive}}[activate] {
			if got := h.spaces["main"][i]; got.State != want || got.Previous != (activate && i == 0) || got.Items == 0 {
				t.Errorf("activate %v: space %d is %+v", activate, i+1, got)
			}
		}
	}
}

// Where lessons are lost, the items that had taught wait to teach again.
func TestRepairOfLessons(t *testing.T) {
	p := newPatient(t)
	was := p.before.spaces["main"]
	for key := range p.before.stored {
		if key[0] == codec.KindLessons {
			p.put([]byte(key), nil)
		}
	}
	if lost, _ := p.repair(db.RepairOptions{}); len(lost) == 0 || !strings.Contains(lost[0].Problem, "others are to teach again") {
		t.Errorf("lost %v", lost)
	}
	p.sound("repaired", nil)
	d := dbkit.MustOpen(t, p.dir, p.options())
	defer dbkit.MustClose(t, d)
	for i, now := range mustSpaces(t, dbkit.MustCollection(t, d, "main")) {
		if was[i].Taught == 0 || now.Taught != 0 || now.Pending != was[i].Taught+was[i].Pending {
			t.Errorf("%d have taught, and %d wait, of %d and %d", now.Taught, now.Pending, was[i].Taught, was[i].Pending)
		}
	}
}
