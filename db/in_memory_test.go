package db_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// checkSpaces verifies what is stored, deeply, and compares with it what an open database
// holds in memory, and codes with what the definition makes of their items.
func checkSpaces(t fataler, d *db.DB) {
	t.Helper()
	must(t, inconsistency(d))
}

// inconsistency returns the first thing that checkSpaces does not like. It is
// dbkit.ErrInjected where a test makes reading fail.
func inconsistency(d *db.DB) error {
	v, done, err := db.State(d).Acquire()
	if err != nil {
		return err
	}
	defer done()
	for cv := range v.Collections.Values() {
		if err := (&memoryCheck{snap: v.Snap, cv: cv}).check(); err != nil {
			return fmt.Errorf("collection %q: %w", cv.Name, err)
		}
	}
	tables, rerank := state.TableBytes{}, 0
	for set := range v.CodeSets() {
		tables.Add(set)
	}
	if tables != v.Tables {
		return fmt.Errorf("tables of substrings of %+v bytes, %+v are known", tables, v.Tables)
	}
	for cv := range v.Collections.Values() {
		for _, sv := range cv.Spaces {
			rerank += sv.Directions.Bytes()
		}
		for _, t := range cv.Vectors {
			rerank += t.Bytes()
		}
	}
	if all := v.Rerank.All(); rerank != all {
		return fmt.Errorf("projections and vectors of %d bytes in memory, %d are known", rerank, all)
	}
	var findings []string
	_, err = d.Verify(ctx, db.VerifyOptions{Deep: true}, func(f report.Finding) error {
		findings = append(findings, f.String())
		return nil
	})
	all := strings.Join(findings, "\n")
	switch {
	case err != nil:
		return err
	case strings.Contains(all, dbkit.ErrInjected.Error()):
		return dbkit.ErrInjected // other findings may follow from that
	case len(findings) > 0:
		return errors.New(all)
	}
	return nil
}

// A memoryCheck compares a collection in memory with what is stored of it.
type memoryCheck struct {
	snap pebble.Reader
	cv   *state.CollectionView
	n    codec.Counters
}

// rows reads a set of rows.
func (k *memoryCheck) rows(prefix []byte) (*roaring.Bitmap, error) {
	rows := roaring.New()
	err := record.ForEach(k.snap, prefix, func(key, value []byte) error {
		return record.AddRows(rows, key, value, binary.BigEndian.Uint16(key[len(key)-2:]))
	})
	return rows, err
}

// online is under what the rows of a set of the online step are stored.
func (k *memoryCheck) online(space uint32, set byte) []byte {
	key := codec.OnlineRowsKey(k.cv.ID, space, set, 0)
	return key[:len(key)-2] // without the container
}

// same says where a set of rows in memory is not what is stored under a prefix.
func (k *memoryCheck) same(what string, memory *roaring.Bitmap, prefix []byte) error {
	stored, err := k.rows(prefix)
	if err == nil && !memory.Equals(stored) {
		err = fmt.Errorf("%s: %v in memory, %v stored", what, memory, stored)
	}
	return err
}

func (k *memoryCheck) check() error {
	cv := k.cv
	b, err := record.Get(k.snap, codec.CollectionKey(codec.KindCounters, cv.ID))
	if err != nil {
		return err
	}
	if k.n, err = codec.DecodeCounters(b); err != nil {
		return err
	}
	if uint64(cv.Items) != k.n.Items || cv.NextRow != k.n.NextRow || len(cv.Spaces) != len(k.n.Spaces) {
		return fmt.Errorf("%d items, next row %d, %d spaces, counted are %+v", cv.Items, cv.NextRow,
			len(cv.Spaces), k.n)
	}
	if err := k.same("live rows", cv.Live, codec.RowsPrefix(cv.ID, codec.SetLive, 0)); err != nil {
		return err
	}
	for t, rows := range cv.Presence {
		if err := k.same(cv.Modalities[t].Name, rows, codec.RowsPrefix(cv.ID, codec.SetModality,
			uint32(t))); err != nil {
			return err
		}
	}
	if !cv.IndexOnly {
		if err := k.vectors(); err != nil {
			return err
		}
	}
	active, previous := uint32(k.n.ActiveSpace), uint32(k.n.PreviousSpace)
	if cv.Active != active || cv.Previous != previous || active != 0 && active == previous ||
		(cv.Space == nil) != (active == 0) || active != 0 && cv.Space.ID != active {
		return fmt.Errorf("space %d is active, %d was, counted are %+v", cv.Active, cv.Previous, k.n)
	}
	building := 0
	for i := range cv.Spaces {
		sv := &cv.Spaces[i]
		if sv.Numbers.Building {
			building++
		}
		if got, want := fmt.Sprintf("%+v", sv.Numbers), fmt.Sprintf("%+v", k.n.Spaces[i]); got != want {
			return fmt.Errorf("space %d is counted as %s, not %s", sv.Space.ID, got, want)
		}
		if err := k.space(sv); err != nil {
			return fmt.Errorf("space %d: %w", sv.Space.ID, err)
		}
	}
	if building > 1 {
		return fmt.Errorf("%d spaces are being built", building)
	}
	return nil
}

func (k *memoryCheck) space(sv *state.SpaceView) error {
	id := sv.Space.ID
	if uint64(id) >= k.n.NextSpace {
		return fmt.Errorf("the next space is %d", k.n.NextSpace)
	}
	if err := k.same("pending rows", sv.Pending, k.online(id, codec.SetPending)); err != nil {
		return err
	}
	if err := k.same("rows to be coded again", sv.Recode, k.online(id, codec.SetRecode)); err != nil {
		return err
	}
	codes, table, err := k.set(&sv.Codes)
	if err != nil {
		return err
	}
	if sv.Space.Learned == nil {
		return nil
	}
	if err := k.directions(sv); err != nil {
		return err
	}
	if b, err := record.Get(k.snap, codec.RevisionKey(k.cv.ID, id, 1, 0)); err != nil || b == nil {
		return errors.Join(err, errors.New("the first revision has no descriptor"))
	}
	if err := k.learning(sv); err != nil {
		return err
	}
	return record.ForEachItem(k.snap, k.cv.Descriptor, 0,
		func(row uint32, rec *codec.ItemRecord, vectors []model.Vector) error {
			var own []byte
			revision := uint32(0)
			if rc, has := codes[row]; has {
				own, revision = table[rc.Code].AppendBytes(nil, sv.Space.Bits), rc.Revision
			}
			err := k.row(sv, row, rec.Labels, vectors, own, revision)
			if err != nil {
				err = fmt.Errorf("row %d: %w", row, err)
			}
			return err
		})
}

// learning checks that before the first update all rows with features have taught or wait, and that
// none does where the model was learned without labels.
func (k *memoryCheck) learning(sv *state.SpaceView) error {
	having := roaring.New()
	if !sv.Space.Learned.LabelFree() {
		having = record.UnionOf(k.cv.Presence, sv.Space.Positions)
	}
	known := sv.Pending.Clone()
	err := record.ForEachEntry(k.snap, codec.NumberKey(codec.KindLessons, k.cv.ID, sv.Space.ID),
		func(row uint32, _ []byte) error {
			known.Add(row)
			return nil
		})
	if err == nil && sv.Space.Parent == 0 && sv.Space.Revision == 1 && !known.Equals(having) {
		err = fmt.Errorf("of rows %v, there has been no update and %v do not wait", having,
			roaring.AndNot(having, known))
	}
	return err
}

// set reads the codes of a set, and compares the table in memory with them.
func (k *memoryCheck) set(set *state.CodeSetView) (rows map[uint32]codec.RowCode, codes map[uint32]codec.Code,
	err error) {
	rows, codes = map[uint32]codec.RowCode{}, map[uint32]codec.Code{}
	err = record.ForEachEntry(k.snap, set.Prefix(codec.KindRowCodes),
		func(row uint32, entry []byte) (err error) {
			rows[row], err = codec.DecodeRowCode(entry)
			return err
		})
	if err == nil {
		err = record.ForEachEntry(k.snap, set.Prefix(codec.KindCodes), func(n uint32, entry []byte) error {
			codes[n] = codec.NewCode(set.Bits)
			_, err := codec.DecodeCodeEntry(codes[n], set.Bits, entry)
			return err
		})
	}
	if err != nil || set.Table == nil {
		return rows, codes, err
	}
	if set.Table.Items() != len(rows) || set.Table.Distinct() != len(codes) {
		return nil, nil, fmt.Errorf("%d codes of %d rows in memory, %d of %d stored", set.Table.Distinct(),
			set.Table.Items(), len(codes), len(rows))
	}
	for row, rc := range rows {
		if n, has := set.Table.CodeOf(row); !has || n != rc.Code {
			return nil, nil, fmt.Errorf("row %d has code number %d (%v), not %d", row, n, has, rc.Code)
		}
	}
	for n, code := range codes {
		if !slices.Equal(code, set.Table.Code(n)) {
			return nil, nil, fmt.Errorf("code number %d is %x, not %x", n, set.Table.Code(n), code)
		}
	}
	return rows, codes, nil
}

// directions compares the projections in memory with those that are stored.
func (k *memoryCheck) directions(sv *state.SpaceView) error {
	stored := map[uint32][]byte{}
	keys := sv.Space.Keys(k.cv.ID)
	err := record.ForEachEntry(k.snap, keys.Prefix(codec.KindProjection),
		func(row uint32, entry []byte) error {
			stored[row] = bytes.Clone(codec.Direction(entry))
			return nil
		})
	if err != nil {
		return err
	}
	return k.quantised("projection", sv.Directions, stored)
}

// vectors compares the vectors in memory with those that are stored.
func (k *memoryCheck) vectors() error {
	stored := make([]map[uint32][]byte, len(k.cv.Modalities))
	for t := range stored {
		stored[t] = map[uint32][]byte{}
	}
	err := record.ForEachItem(k.snap, k.cv.Descriptor, 0,
		func(row uint32, _ *codec.ItemRecord, vectors []model.Vector) error {
			for t, v := range k.cv.Vectors {
				if v.Rows() > 0 && vectors[t].Present() {
					stored[t][row] = quant.AppendVector(nil, vectors[t].Value)
				}
			}
			return nil
		})
	for t, v := range k.cv.Vectors {
		if err == nil {
			err = k.quantised(k.cv.Modalities[t].Name, v, stored[t])
		}
	}
	return err
}

// quantised compares the 8-bit vectors that are in memory with stored, the vectors in the store by row.
func (k *memoryCheck) quantised(what string, rows state.QuantView, stored map[uint32][]byte) error {
	if uint64(rows.Rows()) > k.cv.NextRow {
		return fmt.Errorf("%s of %d rows in memory, the next row is %d", what, rows.Rows(), k.cv.NextRow)
	}
	for row := range rows.Rows() {
		var memory []byte
		for _, x := range rows.Vector(row) {
			memory = append(memory, byte(x))
		}
		if !bytes.Equal(memory, stored[row]) {
			return fmt.Errorf("%s of row %d: %x in memory, %x stored", what, row, memory, stored[row])
		}
	}
	return nil
}

// row compares the codes of a row, if the first or the present revision gave them, with
// what the definition says.
func (k *memoryCheck) row(sv *state.SpaceView, row uint32, labels []uint32, vectors []model.Vector,
	own []byte, revision uint32) error {
	m := sv.Space.Learned
	switch {
	case sv.Numbers.Building && uint64(row) >= sv.Numbers.Built && own == nil, sv.Recode.Contains(row):
		return nil // its turn comes
	// else by a label that is known since, perhaps
	case revision == 1 && !m.LabelCode(codec.NewCode(sv.Space.Bits), labels):
		m = sv.Space.Trained
	case revision != 0 && revision != sv.Space.Revision && revision != 1:
		return nil // Verify has looked at it
	}
	x := make([]model.Vector, len(sv.Space.Positions))
	for i, t := range sv.Space.Positions {
		x[i] = vectors[t]
	}
	want, _, err := codeOfItem(m, labels, x)
	if err == nil && !bytes.Equal(own, want) {
		err = fmt.Errorf("code %x, not %x", own, want)
	}
	return err
}

// Whatever is taken away of a collection and its spaces, checkSpaces notices.
func TestChecksOfSpacesNotice(t *testing.T) {
	dbkit.LongTest(t)
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.ViewItems(60, 2)
	w.put(items[:50])
	dbkit.MustTrain(t, w.c, dbkit.TinyTraining(1))
	dbkit.MustTrain(t, w.c, dbkit.TinyTraining(2))
	w.put(items[45:])
	need(w.c.Delete(ctx, "k2", "k4"))(t)
	w.reopen() // so that every key has its value whole
	checkSpaces(t, w.d)
	noticed, n := map[byte]int{}, 0
	for key := range storeKeys(t, w.d) {
		if n++; !effort.Sampled(n, 3) {
			continue
		}
		value := need(record.Get(db.State(w.d).Engine.DB, key))(t)
		if key[0] <= codec.KindName || key[0] == codec.KindFieldRows || key[0] == codec.KindFieldWords ||
			codec.EmptySum(key, value) {
			continue
		}
		look := func() error {
			err := db.State(w.d).Committer.Show(ctx, func() error { return nil })
			return errors.Join(err, inconsistency(w.d))
		}
		must(t, db.State(w.d).Engine.DB.Delete(key, nil))
		failIf(t, look() == nil, "key %x is gone, and nobody notices", key)
		must(t, db.State(w.d).Engine.DB.Set(key, value, nil))
		err := look()
		stopIf(t, err != nil, "key %x is back: %v", key, err)
		noticed[key[0]]++
	}
	t.Logf("keys by kind: %v", noticed)
}

// The memory for tables goes to the space that everybody searches; another one gets what
// is left, and all of it when it takes that one's place.
func TestActiveSpacesHaveTheirTablesFirst(t *testing.T) {
	t.Parallel()
	items := dbkit.Pairs(9000, synth.Config{Seed: 11, Classes: 40, LabelsPerItem: 2, Noise: 1.5})
	for i, it := range items {
		if i > 200 {
			it.Labels = nil
		}
	}
	opt := db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 20, Seed: 1}, Rows: 200}
	fs := vfs.NewMem()
	world := func(budget int64) (*db.DB, *db.Collection) {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, IndexCacheBytes: budget})
		c, err := d.Collection("main")
		if err != nil {
			c = need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
			train(t, c, items, opt)
		}
		must(t, d.WaitForIndex(ctx))
		return d, c
	}
	d, c := world(0)
	codes := inSpace(t, c, 1).Codes.Codes
	dbkit.MustClose(t, d)
	stopIf(t, codes < 3000, "%d codes", codes)
	budget := int64(mih.TableBytes(64, codes)) * 3 / 2
	d, c = world(budget)
	indexed := func(space uint32) string {
		must(t, d.WaitForIndex(ctx))
		tables, bare, tail := inSpace(t, c, space).Codes.Table.Covered()
		failIf(t, tail >= 1024 || tables > 0 && bare > 0,
			"space %d: %d codes in tables, %d in none, %d in the tail", space, tables, bare, tail)
		return fmt.Sprint(tables > 0)
	}
	check := func(what string, one, two string) {
		t.Helper()
		if a, b := indexed(1), indexed(2); a != one || b != two {
			t.Errorf("%s: tables of space 1: %s, of space 2: %s", what, a, b)
		}
		s, err := c.Stats(ctx)
		failIf(t, err != nil || s.IndexBytes > budget, "%s: %d bytes of tables, %v", what, s.IndexBytes, err)
	}
	need(c.Reindex(ctx, db.ReindexOptions{}))(t)
	check("standing by", "true", "false")
	must(t, c.Activate(ctx, 2))
	check("active", "false", "true")
	dbkit.MustClose(t, d)
	d, c = world(budget)
	must(t, db.WaitForCodes(d, context.Background()))
	check("opened again", "false", "true")
	dbkit.MustClose(t, d)
	d, c = world(-1)
	check("without any", "false", "false")
	dbkit.MustClose(t, d)
}

// The cache holds blocks while memtables are as large as they become: what has been read is
// read again without the file system.
func TestCacheBesideMemtables(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem(), NoSync: true}, numbersSchema)
	defer dbkit.MustClose(t, d)
	for i := range 90 { // MiB: memtables double from 256 KiB to 32 MiB
		it := numbered(i)
		it.Payload = make([]byte, 1<<20)
		need(c.Put(ctx, it))(t)
	}
	misses := func() uint64 {
		t.Helper()
		for i := range 20 {
			need(c.Get(ctx, fmt.Sprint(i)))(t)
		}
		s := need(d.Stats())(t)
		return uint64(s.Activity.Cache.Misses)
	}
	least, before := uint64(1<<62), misses()
	for range 10 { // compactions read, too, meanwhile
		now := misses()
		least, before = min(least, now-before), now
	}
	failIf(t, least > 5, "%d blocks of 20 items are read again each time", least)
}

// Whatever the budget of the cache of keys, hits have the right keys, and memory stays within it.
func TestKeysStayWithinTheirBudget(t *testing.T) {
	dbkit.LongTest(t)
	for _, budget := range []int64{1, 4000, 20_000, 1 << 20} {
		d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem(), KeyCacheBytes: budget}, db.Schema{Bits: 16})
		key := func(i int) string { return fmt.Sprint(strings.Repeat("long ", i%7), i) }
		var items []*db.Item
		for i := range 3000 {
			items = append(items, &db.Item{Key: key(i), Code: []byte{byte(i), byte(i >> 8)}})
		}
		putAll(t, c, items)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 300 {
					n := (i*769 + g*31) % 3000
					res, err := c.Search(ctx, db.Query{Code: items[n].Code, K: 3})
					if err != nil || res.Hits[0].Key != key(n) {
						t.Errorf("item %d: %v, %v", n, res, err)
						return
					}
					for _, h := range res.Hits {
						failIf(t, h.Key != key(int(h.Row)), "row %d has key %q", h.Row, h.Key)
					}
				}
			})
		}
		wg.Wait()
		held := int64(0)
		for _, k := range db.SearchTools(d).Keys.Collections {
			for _, br := range *k.Top.Load() {
				for i := range br {
					if b := br[i].Load(); b != nil {
						held += b.Bytes()
					}
				}
			}
		}
		// Those who read at the same time may each bring a block.
		most := budget + 4*256*(4+45)
		failIf(t, held > most, "%d bytes of keys are held, the budget is %d", held, budget)
		failIf(t, budget == 1<<20 && held == 0, "no key is held")
		dbkit.MustClose(t, d)
	}
}

// Rows that come to a block that is held are found, those that go are not, and a snapshot still knows them.
func TestKeysOfRowsThatComeAndGo(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 8)
	putAll(t, c, []*db.Item{{Key: "a", Code: []byte{1}}, {Key: "b", Code: []byte{1}}})
	keys := func(c *db.Collection) string {
		res := need(c.Search(ctx, db.Query{Code: []byte{1}}))(t)
		var out []string
		for _, h := range res.Hits {
			out = append(out, h.Key)
		}
		return strings.Join(out, " ")
	}
	got := keys(c)
	failIf(t, got != "a b", "%v", got)
	s := need(d.Snapshot())(t)
	defer s.Close()
	then := need(s.Collection("main"))(t)
	putAll(t, c, []*db.Item{{Key: "c", Code: []byte{1}}, {Key: "d", Code: []byte{3}}})
	need(c.Delete(ctx, "a"))(t)
	putAll(t, c, []*db.Item{{Key: "a", Code: []byte{1}}}) // in another row
	for range 2 {
		got := keys(c)
		failIf(t, got != "b c a d", "%v", got)
		got = keys(then)
		failIf(t, got != "a b", "in the snapshot: %s", got)
	}
	now, release := need2(db.State(d).Acquire())(t)
	defer release()
	db.SearchTools(d).Keys.Clear()
	for _, row := range []uint32{0, 9, 1 << 20} { // gone, never there
		key, err := db.SearchTools(d).Keys.Get(now.Snap, db.Inside(c).ID, row)
		failIf(t, !errors.Is(err, db.ErrCorrupt), "row %d: %q, %v", row, key, err)
	}
}

// Databases that share caches have no more together than one, but for what each needs at least.
func TestShareCaches(t *testing.T) {
	for _, n := range []int{-1, 0, 1} {
		got := db.ShareCaches(db.Options{KeyCacheBytes: 7}, n)
		failIf(t, got.KeyCacheBytes != 7 || got.CacheBytes != 0, "%d databases: %+v", n, got)
	}
	got := db.ShareCaches(db.Options{IndexCacheBytes: 100 << 20, RerankCacheBytes: -1,
		KeyCacheBytes: 1 << 10}, 4)
	failIf(t, got.CacheBytes != 16<<20 || got.IndexCacheBytes != 25<<20 || got.RerankCacheBytes != -1 ||
		got.KeyCacheBytes != 1<<10, "%+v", got)
	got = db.ShareCaches(db.Options{}, 1000)
	failIf(t, got.CacheBytes != 8<<20 || got.IndexCacheBytes != 16<<20 || got.RerankCacheBytes != 8<<20 ||
		got.KeyCacheBytes != 4<<20, "%+v", got)
}

// After everything but a few items has been deleted, Compact gives the space back, on disk and in memory, and
// what is left is found as before, also after opening again.
func TestCompactGivesSpaceBack(t *testing.T) {
	dbkit.LongTest(t)
	opts := &db.Options{FS: vfs.NewMem()}
	d, c := openNew(t, "db", opts, db.Schema{Bits: 64})
	const n = 6000
	b := d.NewBatch()
	for i := range n {
		b.Put(c, &db.Item{Key: fmt.Sprint("k", i), Code: codeAt(i), Payload: codeAt(7 * i)})
	}
	must(t, b.Commit(ctx))
	must(t, d.Compact(ctx))
	must(t, d.WaitForIndex(ctx))
	index := func() (postings int) {
		for key := range storeKeys(t, d) {
			if key[0] == codec.KindSubstring || key[0] == codec.KindCodes {
				postings++
			}
		}
		return postings
	}
	full := need(d.Stats())(t)
	fullIndex := index()
	s := need(d.Snapshot())(t)
	then := need(s.Collection("main"))(t)
	var keys []string
	for i := range n {
		if i%100 > 0 {
			keys = append(keys, fmt.Sprint("k", i))
		}
	}
	gives(t, len(keys))(c.Delete(ctx, keys...))
	must(t, d.Compact(ctx))
	for _, plan := range dbkit.AllPlans {
		k, err := dbkit.CountWithin(then, db.Query{Code: codeAt(5), Plan: plan}, 4)
		failIf(t, k == 0 || err != nil, "snapshot, plan %v: %d, %v", plan, k, err)
	}
	must(t, s.Close())
	must(t, d.Compact(ctx))
	for round := range 2 {
		st := need(d.Stats())(t)
		cs := st.Collections[0]
		failIf(t, st.Items != n/100 || cs.DistinctCodes != n/100 ||
			10*cs.MemoryBytes > 5*full.Collections[0].MemoryBytes, "round %d: %+v; it was %+v", round, cs,
			full.Collections[0])
		k := index()
		failIf(t, 20*k > fullIndex, "round %d: %d keys of the index of %d", round, k, fullIndex)
		for _, plan := range dbkit.AllPlans {
			for i := range n / 100 {
				res, err := c.Search(ctx, db.Query{Code: codeAt(100 * i), K: 1, Plan: plan})
				stopIf(t, err != nil || len(res.Hits) != 1 || res.Hits[0].Key != fmt.Sprint("k", 100*i),
					"item %d, plan %v: %v, %v", 100*i, plan, res, err)
			}
		}
		if round == 0 {
			d, c = reopen(t, d, "db", opts)
		}
	}
	dbkit.MustClose(t, d)
}

// Events tell how far Compact is: bytes of tables from none to all of them.
func TestProgressOfCompact(t *testing.T) {
	h := &heard{}
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem(), EventListener: h.listen}, db.Schema{Bits: 64})
	for i := range 100 {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint("k", i), Code: codeAt(i)}))(t)
	}
	must(t, d.Compact(ctx))
	dbkit.MustClose(t, d)
	var stages []string
	for _, e := range h.of("fddhdb.compact.progress") {
		stages = append(stages, e.Stage)
		switch {
		case e.Stage != "rewrite" && (e.Done != 0 || e.Total != 0):
			t.Errorf("%d of %d of %s, of which nobody knows the length", e.Done, e.Total, e.Stage)
		case e.Stage == "rewrite" && (e.Total == 0 || e.Done < 0 || e.Done > e.Total):
			t.Errorf("%d of %d bytes", e.Done, e.Total)
		}
	}
	stages = slices.Compact(stages)
	failIf(t, !slices.Equal(stages, []string{"sweep", "rewrite", "index"}), "stages %q", stages)
}

// What a collection has on disk is about what the database would take with that collection alone,
// whatever else is in the same tables: for a large one and for many small ones.
func TestDiskBytes(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	const small = 20
	var all []*db.Collection
	for i := range small + 1 {
		c := need(d.CreateCollection(ctx, fmt.Sprint("c", i), db.Schema{Bits: 64}))(t)
		items, size := 3, 100
		if i == 0 {
			items, size = 3000, 1000
		}
		b := d.NewBatch()
		for j := range items {
			payload := make([]byte, size)
			for k := range payload { // not to be compressed
				payload[k] = byte((i + 1) * (j + 3) * (k + 7) * (k + j) >> 3)
			}
			must(t, b.Put(c, &db.Item{Key: fmt.Sprint("k", j), Code: payload[:8], Payload: payload}))
		}
		must(t, b.Commit(ctx))
		all = append(all, c)
	}
	for _, when := range []string{"in the log", "in tables"} {
		sum := int64(0)
		for i, c := range all {
			n := need(c.Stats(ctx, db.DiskSize))(t).DiskBytes
			sum += n
			failIf(t, i > 0 && (n < 300 || n > 10_000), "%s: 3 items of 100 bytes take %d", when, n)
			failIf(t, i == 0 && when == "in tables" && (n < 1_000_000 || n > 6_000_000),
				"%s: 3000 items of 1000 bytes take %d", when, n)
		}
		must(t, d.Compact(ctx))
		s := need(d.Stats())(t)
		failIf(t, when == "in tables" && sum > s.DiskBytes, "%d bytes in all collections, %d in the database",
			sum, s.DiskBytes)
	}
	must(t, d.DropCollection(ctx, "c0"))
	_, err := all[0].Stats(ctx, db.DiskSize)
	failIf(t, err == nil, "a collection that is gone has a size")
}
