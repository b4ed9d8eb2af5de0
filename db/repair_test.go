package db_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// A patient is a database that is damaged and repaired, and what it held before.
type patient struct {
	t      testing.TB
	fs     vfs.FS
	dir    string
	before *held
}

// held is what a database holds.
type held struct {
	stored map[string]string              // by key, see contents
	items  map[string]map[string]*db.Item // by collection and key
	rows   map[string]map[string]uint32
	spaces map[string][]report.SpaceInfo
	given  map[uint32]bool // collections whose items bring codes
}

func hold(t testing.TB, d *db.DB) *held {
	t.Helper()
	h := &held{stored: contents(t, d), items: map[string]map[string]*db.Item{},
		rows: map[string]map[string]uint32{}, spaces: map[string][]report.SpaceInfo{},
		given: map[uint32]bool{}}
	names := need(d.Collections())(t)
	for _, name := range names {
		c := dbkit.MustCollection(t, d, name)
		h.items[name], h.rows[name], h.spaces[name] = map[string]*db.Item{}, map[string]uint32{},
			need(c.Spaces(ctx))(t)
		h.given[db.Inside(c).ID] = dbkit.MustSchema(t, c).Bits > 0
		for _, it := range dbkit.AllItems(t, c) {
			h.items[name][it.Key] = it
			row, _ := need2(record.RowOf(db.State(d).Engine.DB, db.Inside(c).ID, it.Key))(t)
			h.rows[name][it.Key] = row
		}
	}
	return h
}

// firstPatient is what all of newPatient are copies of.
var firstPatient struct {
	sync.Once
	*patient
}

// newPatient returns a small database with all sorts of records, closed, and what it holds.
func newPatient(t testing.TB) *patient {
	t.Helper()
	firstPatient.Do(func() { firstPatient.patient = makePatient(t) })
	stopIf(t, firstPatient.patient == nil, "the test that made the first database has failed")
	p := *firstPatient.patient
	p.t = t
	return p.another()
}

func makePatient(t testing.TB) *patient {
	t.Helper()
	p := &patient{t: t, fs: vfs.NewMem()}
	d := verified(t, &db.Options{FS: p.fs})
	must(t, d.Compact(ctx))
	c := dbkit.MustCollection(t, d, "main")
	items := dbkit.AllItems(t, c)
	for _, it := range items[:3] {
		it.Payload = append(it.Payload, " changed"...)
		it.Code = nil
	}
	putAll(t, c, items[:3]) // so that not everything is in tables of the lowest level
	p.dir = db.State(d).Engine.Dir
	dbkit.MustClose(t, d) // which stores statistics
	d = dbkit.MustOpen(t, p.dir, p.options())
	p.before = hold(t, d)
	dbkit.MustClose(t, d)
	return p
}

// another returns a copy to be damaged.
func (p *patient) another() *patient {
	p.t.Helper()
	q := *p
	q.fs = vfs.NewMem()
	ok, err := vfs.Clone(p.fs, q.fs, p.dir, p.dir)
	stopIf(p.t, err != nil || !ok, "%v, %v", ok, err)
	return &q
}

func (p *patient) options() *db.Options { return &db.Options{FS: p.fs, MustExist: true} }

// store opens the store of the database and no more.
func (p *patient) store(f func(kv *pebble.DB)) {
	p.t.Helper()
	cfg := db.StoreConfig(p.options())
	kv := need(store.Open(p.fs.PathJoin(p.dir, store.StoreName), cfg, store.NewLog(cfg.Signals), false))(p.t)
	f(kv)
	must(p.t, kv.Close())
}

// put stores a record, or with a nil value deletes it.
func (p *patient) put(key, value []byte) {
	p.t.Helper()
	p.store(func(kv *pebble.DB) {
		err := kv.Delete(key, pebble.Sync)
		if value != nil {
			err = kv.Set(key, value, pebble.Sync)
		}
		must(p.t, err)
	})
}

// repair repairs the database and returns what was lost.
func (p *patient) repair(opt db.RepairOptions) ([]report.Finding, *report.Repairing) {
	p.t.Helper()
	var lost []report.Finding
	r, err := db.Repair(ctx, p.dir, p.options(), opt, func(f report.Finding) error {
		lost = append(lost, f)
		return nil
	})
	stopIf(p.t, err != nil, "%v, %v", err, lost)
	failIf(p.t, r.Findings != len(lost), "%d findings, %d were reported", r.Findings, len(lost))
	return lost, r
}

// sound opens the database, and checks that nothing is wrong with it and that the items
// that it has are those that it had, but for what may have changed. Codes of models need only
// be those that the present revision gives, which Verify and checkSpaces see to.
func (p *patient) sound(when string, mayChange func(collection, key string) bool) *held {
	p.t.Helper()
	d := dbkit.MustOpen(p.t, p.dir, p.options())
	defer dbkit.MustClose(p.t, d)
	dbkit.CheckSound(p.t, d, when)
	checkSpaces(p.t, d)
	h := hold(p.t, d)
	for name, items := range p.before.items {
		for key, it := range items {
			if mayChange != nil && mayChange(name, key) {
				continue
			}
			if a, b := withoutCodes(it), withoutCodes(h.items[name][key]); !reflect.DeepEqual(a, b) {
				p.t.Errorf("%s: item %s of %s: %s", when, key, name, cmp.Diff(a, b))
			}
			if a, b := p.before.rows[name][key], h.rows[name][key]; a != b {
				p.t.Errorf("%s: item %s of %s is in row %d, not %d", when, key, name, b, a)
			}
		}
		for key := range h.items[name] {
			failIf(p.t, items[key] == nil && (mayChange == nil || !mayChange(name, key)),
				"%s: item %s of %s has come", when, key, name)
		}
	}
	return h
}

// withoutCodes returns an item without codes that a model has made.
func withoutCodes(it *db.Item) *db.Item {
	if it == nil || it.CodeFrom == "given" {
		return it
	}
	bare := *it
	bare.Code, bare.CodeFrom = nil, ""
	return &bare
}

// copied reports whether records of a kind are those of the damaged store after a repair, bit
// for bit, and not made again.
func copied(kind byte) bool {
	switch kind {
	case codec.KindDatabase, codec.KindCounters, codec.KindStatistics, codec.KindRetraction,
		codec.KindRowCodes, codec.KindCodes, codec.KindCodeRows, codec.KindProjection, codec.KindSubstring,
		codec.KindIndex, codec.KindCentre, codec.KindEntries, codec.KindStale, // an index is made anew
		codec.KindLessons, codec.KindOnlineRows: // items teach again
		return false
	}
	return true
}

var indexesMade = regexp.MustCompile(`"indexes":\d+`)

// sameStored compares what is stored and is copied, and the sets that follow from it.
func (p *patient) sameStored(when string, h *held) {
	p.t.Helper()
	differ := 0
	for _, key := range slices.Sorted(maps.Keys(p.before.stored)) {
		if !copied(key[0]) {
			continue
		}
		a, b := p.before.stored[key], h.stored[key]
		if key[0] == codec.KindCollection { // indexes are made anew, under other numbers
			a, b = indexesMade.ReplaceAllString(a, ""), indexesMade.ReplaceAllString(b, "")
		}
		if a != b {
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			at = max(0, at-60)
			p.t.Errorf("%s: under %x is %.150q, not %.150q", when, key, b[min(at, len(b)):],
				a[min(at, len(a)):])
			if differ++; differ == 5 {
				return
			}
		}
	}
	for key := range h.stored {
		_, was := p.before.stored[key]
		failIf(p.t, !was && copied(key[0]), "%s: %x has come", when, key)
	}
}

// A database that is sound is left alone.
func TestRepairOfASoundDatabase(t *testing.T) {
	dbkit.LongTest(t)
	p := newPatient(t)
	before := list(t, p.fs, p.dir)
	lost, r := p.repair(db.RepairOptions{})
	failIf(t, len(lost) > 0 || r.Damaged || r.DamagedDir != "" || r.Items == 0, "%v, %+v", lost, r)
	after := list(t, p.fs, p.dir)
	failIf(t, after != before, "%s, before %s", after, before)
}

// What is made of a database that lacks nothing but one set of rows, which follows from its
// items, is all that it held, with codes of the present revisions.
func TestRepairKeepsEverything(t *testing.T) {
	dbkit.LongTest(t)
	p := newPatient(t)
	p.store(func(kv *pebble.DB) {
		var set []byte
		err := record.ForEach(kv, []byte{codec.KindRows}, func(key, _ []byte) error {
			set = slices.Clone(key)
			return record.ErrStopped
		})
		stopIf(t, !errors.Is(err, record.ErrStopped), "%v", err)
		must(t, kv.Delete(set, pebble.Sync))
	})
	lost, r := p.repair(db.RepairOptions{})
	stopIf(t, len(lost) > 0 || !r.Damaged, "%v, %+v", lost, r)
	p.sameStored("made again", p.sound("made again", nil))
	d := dbkit.MustOpen(t, p.dir, p.options())
	defer dbkit.MustClose(t, d)
	for name, was := range p.before.spaces {
		for i, now := range need(dbkit.MustCollection(t, d, name).Spaces(ctx))(t) {
			was[i].Codes, was[i].Items = now.Codes, now.Items
			was[i].Taught, was[i].Pending = 0, was[i].Taught+was[i].Pending // all teach again
			was[i].StatisticsBytes = now.StatisticsBytes
			diff := cmp.Diff(was[i], now)
			failIf(t, diff != "", "space %d of %s: %s", now.Space, name, diff)
		}
	}
	eventually(t, "an index of vectors knows all items again", func() bool {
		all, err := dbkit.VectorIndexes(dbkit.MustCollection(t, d, "main"))
		return err == nil && len(all) == 1 && all[0].Complete && all[0].Entries > 0 && all[0].Unknown == 0
	})
}

// Each record is deleted, and damaged: what follows from others is as it was, and what
// does not is lost, and said to be, and nothing else.
func TestRepairOfRecords(t *testing.T) {
	dbkit.LongTest(t)
	whole := newPatient(t)
	byKind := map[byte][]string{}
	for _, key := range slices.Sorted(maps.Keys(whole.before.stored)) {
		byKind[key[0]] = append(byKind[key[0]], key)
	}
	random := seed.Rand(t, 1, 2)
	for n, kind := range slices.Sorted(maps.Keys(byKind)) {
		keys := byKind[kind]
		for j, value := range [][]byte{nil, []byte("garbage"), {}} {
			i := random.IntN(len(keys))
			if !effort.Sampled(n+j, 5) {
				continue
			}
			if string(value) == "garbage" &&
				(kind == codec.KindLabel || kind == codec.KindName || kind == codec.KindMark) {
				continue // a name, or bytes, like any other
			}
			if value == nil && (kind == codec.KindOnlineRows || kind == codec.KindMark ||
				firstRevision([]byte(keys[i]))) {
				continue // nothing misses it
			}
			p := whole.another()
			p.put([]byte(keys[i]), value)
			lost, r := p.repair(db.RepairOptions{})
			what := fmt.Sprintf("key %x is %q", keys[i], value)
			h := p.sound(what, func(name, key string) bool { return concerns(lost, name, key, p.before) })
			if !bears(whole, keys[i]) {
				failIf(t, len(lost) > 0, "%s: lost %v", what, lost)
				p.sameStored(what, h)
			} else if len(lost) == 0 && r.Damaged {
				t.Errorf("%s: nothing is said to be lost", what)
			}
			if len(lost) > 3 && kind != codec.KindCodes { // of many items
				t.Errorf("%s: %d findings: %.5v", what, len(lost), lost)
			}
			again, r := p.repair(db.RepairOptions{})
			failIf(t, len(again) > 0 || r.Damaged, "%s: repaired again: %v, %+v", what, again, r)
		}
	}
}

// bears reports whether something is lost with a record.
func bears(p *patient, key string) bool {
	switch key[0] {
	case codec.KindMark:
		return true
	case codec.KindDatabase:
		return key[1] == codec.RecordSequence
	case codec.KindCodes: // those that items bring
		return p.before.given[binary.BigEndian.Uint32([]byte(key[1:]))]
	case codec.KindCollection, codec.KindCounters, codec.KindItem, codec.KindFeatures, codec.KindSpace,
		codec.KindModel, codec.KindRevision, codec.KindLabel, codec.KindIndex:
		return true
	}
	return false
}

// concerns reports whether one of the findings is about an item.
func concerns(lost []report.Finding, collection, key string, before *held) bool {
	row := fmt.Sprintf("row %d", before.rows[collection][key])
	for _, f := range lost {
		if f.Collection != "" && f.Collection != collection &&
			!strings.HasPrefix(f.Collection, "collection-") && !strings.HasPrefix(f.Collection, "number ") {
			continue
		}
		switch {
		case strings.HasSuffix(f.Record, row), strings.HasPrefix(f.Record, "label "),
			f.Record == "descriptor",
			f.Record == "space", f.Record == "counters", strings.HasPrefix(f.Record, "revision "):
			return true
		case strings.HasPrefix(key, "lost+found/") && before.items[collection][key] == nil:
			return true
		}
	}
	return false
}

// All records of a kind are gone.
func TestRepairOfKinds(t *testing.T) {
	dbkit.LongTest(t)
	whole := newPatient(t)
	kinds := map[byte]bool{}
	for key := range whole.before.stored {
		kinds[key[0]] = true
	}
	for kind := range kinds {
		if !effort.Sampled(int(kind), 2) {
			continue
		}
		t.Run(fmt.Sprintf("%02x", kind), func(t *testing.T) {
			p := whole.another()
			p.t = t
			p.store(func(kv *pebble.DB) {
				must(t, kv.DeleteRange([]byte{kind}, []byte{kind + 1}, pebble.Sync))
			})
			lost, _ := p.repair(db.RepairOptions{})
			p.sound("repaired", func(name, key string) bool { return concerns(lost, name, key, p.before) })
			t.Logf("%d findings: %.3v", len(lost), lost)
			switch kind {
			case codec.KindRowKeys, codec.KindKey, codec.KindName, codec.KindRows, codec.KindFieldRows,
				codec.KindFieldWords,
				codec.KindRowCodes, codec.KindCodeRows, codec.KindSubstring, codec.KindProjection,
				codec.KindStatistics, codec.KindRetraction:
				failIf(t, len(lost) > 0, "lost %v", lost)
			}
		})
	}
}

// The record of a deleted item has come back, with the key that another item has now. It is in
// no set of rows, so the repair leaves it out, with its entry in the block of keys.
func TestRepairOfTheRestOfADeletion(t *testing.T) {
	p := smallPatient(t) // without a set of live rows
	gone, kept := "", ""
	for key, row := range p.before.rows["main"] {
		switch row {
		case 5:
			gone = key
		case 6:
			kept = key
		}
	}
	p.store(func(kv *pebble.DB) {
		e := codec.NewBlockEdit(-1)
		e.Set(5, []byte(kept))
		must(t, kv.Merge(codec.NumberKey(codec.KindRowKeys, 1, 0), e.Append(nil, false), pebble.Sync))
		must(t, kv.Delete(codec.ItemKey(1, gone), pebble.Sync))
	})
	lost, _ := p.repair(db.RepairOptions{})
	failIf(t, len(lost) != 2 || !strings.Contains(lost[1].Problem, "the rest of one that was deleted"),
		"lost %v", lost)
	p.sound("repaired", func(_, key string) bool { return key == gone })
}

// Two items have one key, and it leads to neither: the later one keeps it, and the other has the one that
// leads to it.
func TestRepairOfAKeyOfTwoItems(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	earlier, later := "k25", "k26"
	p.store(func(kv *pebble.DB) {
		e := codec.NewBlockEdit(-1)
		e.Set(byte(p.before.rows["main"][earlier]), []byte(later))
		must(t, kv.Merge(codec.NumberKey(codec.KindRowKeys, 1, 0), e.Append(nil, false), pebble.Sync))
		must(t, kv.Delete(codec.ItemKey(1, later), pebble.Sync))
	})
	lost, _ := p.repair(db.RepairOptions{})
	failIf(t, len(lost) != 1 || !strings.Contains(lost[0].Problem, `its key "k26" is that of another item`),
		"lost %v", lost)
	p.sound("repaired", nil)
}

// The row that a key leads to is damaged, and beyond all rows, as is that of a record that is
// no item: nothing is lost, and the collection takes further items.
func TestRepairOfARowBeyondAll(t *testing.T) {
	p := smallPatient(t)
	p.put(codec.ItemKey(1, "5"), []byte{0xff, 0xff, 0xff, 0xff})
	p.put(codec.NumberKey(codec.KindItem, 1, record.MaxRows-1), []byte("garbage"))
	lost, _ := p.repair(db.RepairOptions{})
	failIf(t, len(lost) > 0, "lost %v", lost)
	p.sound("repaired", nil)
	d := dbkit.MustOpen(t, p.dir, p.options())
	defer dbkit.MustClose(t, d)
	c := dbkit.MustCollection(t, d, "main")
	fine(t, errOf(c.Put(ctx, dbkit.CodeItems(1, 16, 2, nil)[0])))
}

// Two collections have one name, as when one that was dropped has come back: the later one gets
// another name, also where the name is as long as can be.
func TestRepairOfNames(t *testing.T) {
	for _, name := range []string{"main", strings.Repeat("я", record.MaxNameBytes/2)} {
		p := &patient{t: t, fs: vfs.NewMem(), dir: "db"}
		d := dbkit.MustOpen(t, p.dir, &db.Options{FS: p.fs})
		for _, name := range []string{name, "other"} {
			c := need(d.CreateCollection(ctx, name, db.Schema{Bits: 16}))(t)
			putAll(t, c, dbkit.CodeItems(10, 16, 1, nil))
		}
		p.before = hold(t, d)
		dbkit.MustClose(t, d)
		key := codec.CollectionKey(codec.KindCollection, 2)
		again := need(record.DecodeDescriptor([]byte(p.before.stored[string(key)])))(t)
		again.Name = name
		b := need(again.Encode())(t)
		p.put(key, b)
		lost, _ := p.repair(db.RepairOptions{})
		failIf(t, len(lost) != 1 || !strings.Contains(lost[0].Problem, "this one is renamed"), "lost %v",
			lost)
		delete(p.before.items, "other")
		h := p.sound("repaired", nil)
		failIf(t, len(h.items) != 2, "%d collections", len(h.items))
	}
}

// The descriptor of a collection stands with its spaces, too, also that of an altered one;
// without a space all of the collection is lost, and nothing else.
func TestRepairOfDescriptors(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	p := &patient{t: t, fs: vfs.NewMem(), dir: "db"}
	d := verified(t, &db.Options{FS: p.fs})
	p.dir = db.State(d).Engine.Dir
	c := need(d.CreateCollection(ctx, "untrained", dbkit.PairsSchema))(t)
	putAll(t, c, []*db.Item{{Key: "a", Labels: []string{"b"}}})
	schemas := map[string]db.Schema{}
	for _, name := range []string{"main", "codes"} {
		c := dbkit.MustCollection(t, d, name)
		must(t, c.Alter(ctx, db.Alteration{AddFields: []db.Field{
			{Name: "late", Type: db.Int, Indexed: true}}}))
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
		if says := map[bool]string{true: "all of it is lost",
			false: "takes its place"}[f.Collection == "untrained"]; f.Record != "descriptor" ||
			!strings.Contains(f.Problem, says) {
			t.Errorf("%v", f)
		}
	}
	failIf(t, len(lost) != len(p.before.items), "lost %v", lost)
	delete(p.before.items, "untrained")
	p.sound("repaired", nil)
	d = dbkit.MustOpen(t, p.dir, p.options())
	defer dbkit.MustClose(t, d)
	for name, want := range schemas {
		got := dbkit.MustSchema(t, dbkit.MustCollection(t, d, name))
		failIf(t, len(got.Fields) != len(want.Fields) || len(got.Modalities) != len(want.Modalities),
			"%s: %+v, was %+v", name, got, want)
	}
	errorIs(t, errOf(d.Collection("untrained")), db.ErrNotFound)
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
		stopIf(t, err != nil || len(n.Spaces) != 2, "%v, %v", n, err)
		n.ActiveSpace, n.PreviousSpace = 1, 0
		n.Spaces[1].Building, n.Spaces[1].Activate, n.Spaces[1].Built = true, activate, 10
		p.put(key, n.Append(nil))
		p.put(codec.CollectionKey(codec.KindRowKeys, 1), nil)
		p.put(codec.RowsKey(1, codec.SetLive, 0, 0), nil)
		lost, r := p.repair(db.RepairOptions{})
		failIf(t, len(lost) > 0 || !r.Damaged, "%+v, lost %v", r, lost)
		h := p.sound("repaired", nil)
		for i, want := range map[bool][]report.SpaceState{false: {report.SpaceActive, report.SpaceStandby},
			true: {report.SpaceStandby, report.SpaceActive}}[activate] {
			got := h.spaces["main"][i]
			failIf(t, got.State != want || got.Previous != (activate && i == 0) || got.Items == 0,
				"activate %v: space %d is %+v", activate, i+1, got)
		}
	}
}

// After a repair the items that had taught wait to teach again, and the next update learns from them.
func TestRepairOfLessons(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	was := p.before.spaces["main"]
	for key := range p.before.stored {
		if key[0] == codec.KindLessons {
			p.put([]byte(key), nil)
		}
	}
	lost, _ := p.repair(db.RepairOptions{})
	failIf(t, len(lost) > 0, "lost %v", lost)
	p.sound("repaired", nil)
	d := dbkit.MustOpen(t, p.dir, p.options())
	defer dbkit.MustClose(t, d)
	for i, now := range need(dbkit.MustCollection(t, d, "main").Spaces(ctx))(t) {
		if was[i].Taught == 0 || now.Taught != 0 || now.Pending != was[i].Taught+was[i].Pending {
			t.Errorf("%d have taught, and %d wait, of %d and %d", now.Taught, now.Pending, was[i].Taught,
				was[i].Pending)
		}
	}
	for i, sp := range was {
		u := dbkit.MustUpdate(t, dbkit.MustCollection(t, d, "main"), db.UpdateOptions{Space: sp.Space})
		failIf(t, !u.Revised || u.Labelled == 0 || u.Revision != was[i].Revision+1, "%+v", u)
	}
	dbkit.CheckSound(t, d, "updated")
}

// Nothing in an index-only copy tells what its codes are made of: a damaged one is refused, and stays as it
// is, also where its descriptor is lost. One that is sound, and has lost its marker, gets another.
func TestRepairOfIndexOnly(t *testing.T) {
	t.Parallel()
	p := &patient{t: t, fs: vfs.NewMem(), dir: "index-only"}
	is := indexOnlyOf(t, manyKinds(t, &db.Options{FS: p.fs}), &db.Options{FS: p.fs})
	p.before = hold(t, is)
	dbkit.MustClose(t, is)
	for _, kind := range []byte{codec.KindRowCodes, codec.KindCollection} {
		q := p.another()
		for key := range p.before.stored {
			if key[0] == kind {
				q.put([]byte(key), nil)
			}
		}
		before := list(t, q.fs, q.dir)
		_, err := db.Repair(ctx, q.dir, q.options(), db.RepairOptions{}, nil)
		failIf(t, !errors.Is(err, db.ErrCorrupt) ||
			!strings.Contains(err.Error(), "make it again from its source"), "without %02x: %v", kind, err)
		after := list(t, q.fs, q.dir)
		failIf(t, after != before, "without %02x: %s, before %s", kind, after, before)
	}
	must(t, p.fs.Remove(p.fs.PathJoin(p.dir, store.MarkerName)))
	lost, r := p.repair(db.RepairOptions{})
	failIf(t, len(lost) > 0 || !r.Damaged || r.DamagedDir != "", "%+v, lost %v", r, lost)
}

// Features of another item are damage that only a deep look finds: a shallow repair leaves them,
// as Verify finds nothing, and any other makes what follows from them again.
func TestShallowRepair(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.exchangeFeatures()
	before := list(t, p.fs, p.dir)
	lost, r := p.repair(db.RepairOptions{Shallow: true})
	failIf(t, len(lost) > 0 || r.Damaged, "a shallow repair: %v, %+v", lost, r)
	after := list(t, p.fs, p.dir)
	failIf(t, after != before, "a shallow repair has left %s, before there was %s", after, before)
	_, r = p.repair(db.RepairOptions{})
	failIf(t, !r.Damaged || r.DamagedDir == "", "a repair: %+v", r)
	v, err := db.VerifyFolder(ctx, p.dir, p.options(), db.VerifyOptions{Deep: true},
		func(f report.Finding) error {
			t.Errorf("after it: %v", f)
			return nil
		})
	failIf(t, err != nil || v.Items == 0, "%+v, %v", v, err)
}

// exchangeFeatures gives each item the features of the one before it, of each modality.
func (p *patient) exchangeFeatures() {
	p.t.Helper()
	p.store(func(kv *pebble.DB) {
		batch := kv.NewBatch()
		last := map[string][]byte{} // by collection and modality
		err := record.ForEachIn(kv, []byte{codec.KindFeatures}, []byte{codec.KindFeatures + 1},
			func(key, value []byte) error {
				of := string(key[:5]) + string(key[len(key)-2:])
				before := last[of]
				last[of] = slices.Clone(value)
				if len(before) != len(value) {
					return nil
				}
				return batch.Set(key, before, nil)
			})
		if err == nil {
			err = batch.Commit(pebble.Sync)
		}
		must(p.t, err)
	})
}
