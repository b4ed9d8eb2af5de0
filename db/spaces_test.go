package db_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A handle in a space shows what the collection showed when the space was active.
func TestInSpace(t *testing.T) {
	dbkit.LongTest(t)
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(120, synth.Config{Noise: 1})
	items[7].Labels = nil
	putAll(t, c, items)
	q := db.Query{From: "image", To: "text", Vector: items[5].Vectors["image"], K: 50}
	e := db.Evaluation{Queries: map[string][][]float32{"image": {items[5].Vectors["image"],
		items[9].Vectors["image"]}}, Labels: [][]string{items[5].Labels, items[9].Labels}}
	type sight struct {
		Items   []*db.Item
		Result  *db.Result
		Total   int
		All     []*db.Result
		Found   []report.Retrieval
		Code    []byte
		Z       []float64
		Item    []byte
		Codes   map[string]string
		Stats   *db.CollectionStats
		Explain *db.Result
	}
	look := func(c *db.Collection) (s sight) {
		t.Helper()
		var errs [9]error
		s.Items = dbkit.AllItems(t, c)
		s.Result, errs[0] = c.Search(ctx, q)
		s.Total, errs[1] = dbkit.CountWithin(c, q, 3)
		s.All, errs[3] = c.SearchAll(ctx, []db.Query{q, {Key: "k1"}})
		s.Found, errs[4] = c.Evaluate(ctx, e)
		s.Code, s.Z, errs[5] = c.EncodeQuery(ctx, q)
		s.Item, _, errs[6] = c.Encode(items[7])
		s.Stats, errs[7] = c.Stats(ctx)
		_, s.Explain, errs[8] = dbkit.Explain(ctx, c, q, -1)
		s.Codes = map[string]string{}
		for x := range every(t, c.Codes(ctx, "")) {
			s.Codes[x.Key] = string(x.Code)
		}
		must(t, errors.Join(errs[:]...))
		return s
	}
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	first := look(c)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 48, Seed: 3}})
	second := look(c)
	stopIf(t, len(first.Code) != 4 || len(second.Code) != 6, "codes of %d and %d bytes", len(first.Code),
		len(second.Code))
	memory := cmp.Options{cmpopts.IgnoreFields(db.CollectionStats{}, "MemoryBytes", "IndexBytes",
		"RerankBytes", "QueryDistances", "Spaces"), cmpopts.EquateNaNs(),
		cmpopts.IgnoreFields(report.Explain{}, "EncodeUS", "SearchUS", "ResolveUS", "KeysUS")}
	snap := need(d.Snapshot())(t)
	defer snap.Close()
	then := need(snap.Collection("main"))(t)
	inSpace := func(c *db.Collection, space db.Space) *db.Collection {
		t.Helper()
		return need(c.InSpace(space, 0))(t)
	}
	one := inSpace(c, 1)
	for _, c := range []struct {
		space uint32
		c     *db.Collection
		want  sight
	}{
		{1, one, first}, {2, inSpace(c, 2), second}, {0, inSpace(c, 0), second}, {0, inSpace(one, 0), second},
		{1, inSpace(then, 1), first}, {2, inSpace(inSpace(then, 1), 2), second},
	} {
		diff := cmp.Diff(c.want, look(c.c), memory)
		failIf(t, diff != "", "in space %d: %s", c.space, diff)
	}
	// Cursors keep to their space.
	next := q
	next.After = first.Result.Next
	errorIs(t, errOf(c.Search(ctx, next)), db.ErrInvalid)
	r, err := one.Search(ctx, next)
	failIf(t, err != nil || len(r.Hits) != 50, "a cursor of the space: %v", err)
	// What is written through it is seen in all spaces, and what is activated shows.
	need(one.Put(ctx, &db.Item{Key: "new", Labels: items[0].Labels}))(t)
	for _, in := range []*db.Collection{c, one} {
		it, err := in.Get(ctx, "new")
		failIf(t, err != nil || it.CodeFrom != "labels", "%+v, %v", it, err)
	}
	active := inSpace(c, 0)
	must(t, c.Activate(ctx, 1))
	r, err = active.Search(ctx, q)
	failIf(t, err != nil || r.Space != 1, "in the active space: %+v, %v", r, err)
	// What is not there.
	errorIs(t, errOf(c.InSpace(3, 0)), db.ErrNotFound,
		`space 3 of collection "main", which has the spaces 1 (active), 2`)
	two := inSpace(c, 2)
	must(t, two.DropSpace(ctx, 2))
	for what, err := range uses(two) {
		failIf(t, !errors.Is(err, db.ErrNotFound), "%s in a space that has been dropped: %v", what, err)
	}
	equal(t, second, look(inSpace(then, 2)), memory)
}

// What works on a space works on that of the handle, unless another is named.
func TestUpdateInSpace(t *testing.T) {
	dbkit.LongTest(t)
	_, c, items := openPairs(t, 80, 120, synth.Config{})
	for range 2 {
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	}
	strange := *items[5]
	strange.Key, strange.Labels = "strange", []string{"never trained"}
	putAll(t, c, append(items[80:], &strange))
	one := need(c.InSpace(1, 0))(t)
	revisions := func() (all [2]uint32) {
		t.Helper()
		for i := range all {
			in := need(c.InSpace(db.Space(i+1), 0))(t)
			s := need(in.Stats(ctx))(t)
			all[i] = s.Revision
		}
		return all
	}
	u, err := one.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels, GrowLabels: true})
	failIf(t, err != nil || u.Space != 1 || u.Labelled != 41 || u.Recoded != 1, "%+v, %v", u, err)
	if got := revisions(); got != [2]uint32{u.Revision, 1} || u.Revision == 1 {
		t.Errorf("spaces at revisions %v after an update of space 1 to %d", got, u.Revision)
	}
	it, err := one.Get(ctx, "strange")
	failIf(t, err != nil || it.CodeFrom != "labels", "%+v, %v", it, err)
	it, err = c.Get(ctx, "strange")
	failIf(t, err != nil || it.CodeFrom != "fused", "%+v, %v", it, err)
	// Space 2 has no such revision yet.
	for _, in := range []*db.Collection{one, c} {
		errorIs(t, errOf(in.RestoreRevision(ctx, 0, u.Revision+1)), db.ErrNotFound)
	}
	errorIs(t, errOf(c.RestoreRevision(ctx, 0, u.Revision)), db.ErrNotFound)
	if u, err := one.Update(ctx, db.UpdateOptions{Space: 2, Teacher: db.TeacherLabels}); err != nil ||
		u.Space != 2 || u.Revision != 2 {
		t.Errorf("%+v, %v", u, err)
	}
	r, err := one.RestoreRevision(ctx, 0, u.Revision-1) // space 2 has one of that number, too
	failIf(t, err != nil || r.Space != 1 || r.Revision != u.Revision+1, "%+v, %v", r, err)
	if got := revisions(); got != [2]uint32{u.Revision + 1, 2} {
		t.Errorf("spaces at revisions %v after revision %d of space 1 was restored", got, u.Revision-1)
	}
}

// A space that is being built is not shown yet.
func TestInSpaceThatIsBeingBuilt(t *testing.T) {
	t.Parallel()
	_, c, _ := openPairs(t, -1, 60, synth.Config{})
	errorIs(t, errOf(c.InSpace(1, 0)), db.ErrNotFound, "not trained")
	var busy error
	need(c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Progress: func(phase string, _,
		_ int64) {
		if phase == "encode" {
			_, busy = c.InSpace(1, 0)
		}
	}}}))(t)
	failIf(t, !errors.Is(busy, db.ErrBusy), "while it is built: %v", busy)
}

// states says in short which spaces there are.
func states(all []report.SpaceInfo) string {
	s := ""
	for _, sp := range all {
		s += fmt.Sprintf("%d %s ", sp.Space, sp.State)
		if sp.Previous {
			s += "previous "
		}
	}
	return s
}

// frameChecksum is the checksum of a frame, computed from what comes before it.
func frameChecksum(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
}

func TestSpaces(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	if all := need(c.Spaces(ctx))(t); len(all) != 0 {
		t.Errorf("before training: %+v", all)
	}
	items := dbkit.ViewItems(150, 3)
	putAll(t, c, items)
	building := ""
	first := dbkit.MustTrain(t, c,
		db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 30, Progress: func(phase string, _, _ int64) {
			if phase == "encode" {
				building = states(need(c.Spaces(ctx))(t))
			}
		}}})
	failIf(t, building != "1 building ", "while it was being built: %s", building)
	before := need(d.Snapshot())(t)
	defer before.Close()
	then := need(before.Collection("main"))(t)
	old := need(then.Spaces(ctx))(t)
	second := need(c.Train(ctx, dbkit.TinyTraining(2)))(t)
	all := need(c.Spaces(ctx))(t)
	stopIf(t, states(all) != "1 active 2 standby ", "trained twice: %s", states(all))
	equal(t, old, all[:1])
	s := need(c.Stats(ctx))(t)
	labelled := 0
	for _, it := range items {
		if len(it.Labels) > 0 && len(it.Vectors) > 0 {
			labelled++
		}
	}
	sp := all[0]
	if sp.Bits != 32 || sp.Revision != 1 || sp.Items != first.Items || sp.Codes != s.DistinctCodes ||
		sp.Parent != 0 || sp.Taught != labelled || sp.Pending != s.Pending || s.Taught != labelled ||
		s.Spaces != 2 || sp.Built != 0 || time.Since(sp.Created) > time.Minute {
		t.Errorf("%+v, stats %+v", sp, s)
	}
	pending := 0
	for _, it := range items {
		if len(it.Labels) == 0 && len(it.Vectors) > 0 {
			pending++
		}
	}
	failIf(t, sp.Pending != pending, "%d items have not been seen, of %d", sp.Pending, pending)
	failIf(t, all[1].Items != second.Items, "%+v", all[1])
	must(t, db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
		for i, tr := range []*report.Training{first, second} {
			sp := cv.SpaceNumber(uint32(i + 1)).Space
			b, err := sp.Learned.MarshalBinary()
			if err != nil {
				return err
			}
			if all[i].Checksum != frameChecksum(b) || all[i].ModelBytes != int64(len(b)) ||
				all[i].StatisticsBytes == 0 {
				t.Errorf("space %d: model of %d bytes, %s: %+v", i+1, len(b), frameChecksum(b), all[i])
			}
			// Encoding and commits come after the report is stored.
			report := tr.Report
			report.Seconds = all[i].Training.Seconds
			diff := cmp.Diff(&report, all[i].Training)
			failIf(t, diff != "" || report.Seconds["solve"] == 0, "space %d: %s", i+1, diff)
			stopIf(t, len(all[i].Revisions) != 1, "space %d: %+v", i+1, all[i].Revisions)
			r := all[i].Revisions[0]
			if r.Revision != 1 || r.Parent != 0 || r.Items != labelled || r.Labelled != labelled ||
				r.Drift != nil || r.Bytes != all[i].ModelBytes || r.Checksum != all[i].Checksum ||
				!r.Created.Equal(all[i].Created) {
				t.Errorf("space %d: %+v", i+1, r)
			}
		}
		return nil
	}))
	must(t, c.Activate(ctx, 2))
	got := states(need(c.Spaces(ctx))(t))
	failIf(t, got != "1 standby previous 2 active ", "activated: %s", got)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	must(t, c.DropSpace(ctx, 1))
	all = need(c.Spaces(ctx))(t)
	failIf(t, states(all) != "2 standby previous 3 active ", "dropped: %s", states(all))
	equal(t, old, need(then.Spaces(ctx))(t))
	before.Close()
	d, _ = reopen(t, d, db.State(d).Engine.Dir, nil)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	equal(t, all, need(c.Spaces(ctx))(t))
	errorIs(t, errOf(c.Spaces(cancelled)), context.Canceled)
}

func TestSpacesOfACodesOnlyCollection(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	c := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	putAll(t, c, []*db.Item{{Key: "a", Code: []byte{1, 2}}, {Key: "b", Code: []byte{1, 2}}})
	all := need(c.Spaces(ctx))(t)
	stopIf(t, len(all) != 1, "%+v", all)
	want := report.SpaceInfo{
		Space: 1, State: report.SpaceActive, Created: all[0].Created, Bits: 16, Revision: 1,
		Items: 2, Codes: 1, Revisions: []report.RevisionInfo{},
	}
	equal(t, want, all[0])
}

// Revisions are told of from their descriptors, whatever lies between these, and each has
// the checksum of its own bytes.
func TestRevisionInfos(t *testing.T) {
	t.Parallel()
	_, c, _ := openPairs(t, -1, 60, synth.Config{})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	first := need(c.Spaces(ctx))(t)[0]
	want := []report.RevisionInfo{first.Revisions[0], {
		Revision: 3, Parent: 2, Created: spaces.Now(), Teacher: "modality", Lead: "text",
		Reason: "because",
		Items:  4, Labelled: 1, Unlabelled: 3, Forgotten: 2, Drift: report.Drift{"text": .25},
	}, {Revision: 300, Parent: 3, Created: spaces.Now(), Items: 1}}
	frames := [][]byte{nil, make([]byte, 2*record.ChunkBytes+2), make([]byte, 100)}
	for i := 1; i < 3; i++ {
		frames[i][7] = byte(i)
		sum := crc32.Checksum(frames[i], crc32.MakeTable(crc32.Castagnoli))
		for range 4 {
			frames[i] = append(frames[i], byte(sum))
			sum >>= 8
		}
	}
	must(t, db.Inside(c).Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		for i := 1; i < 3; i++ {
			d := &spaces.RevisionDescriptor{RevisionInfo: want[i], Model: record.ChunksOf(frames[i])}
			if err := tx.WriteRevision(s.SpaceByID(1), d, frames[i]); err != nil {
				return err
			}
		}
		tx.Committer.Touch(s)
		return nil
	}))
	for i := 1; i < 3; i++ {
		want[i].Bytes, want[i].Checksum = int64(len(frames[i])), frameChecksum(frames[i])
	}
	equal(t, want, need(c.Spaces(ctx))(t)[0].Revisions)
	// A frame whose last chunk has fewer bytes than a checksum.
	short := append(make([]byte, record.ChunkBytes-2), 0x44, 0x33, 0x22, 0x11)
	kv := db.State(db.Of(c)).Engine.DB
	for i := range uint32(2) {
		from, to := int(i)*record.ChunkBytes, min(int(i+1)*record.ChunkBytes, len(short))
		must(t, kv.Set(codec.ChunkKey(codec.KindModel, 77, 1, i), short[from:to], pebble.NoSync))
	}
	sum, err := record.Checksum(kv, codec.NumberKey(codec.KindModel, 77, 1), 0, record.ChunksOf(short))
	failIf(t, err != nil || sum != "11223344", "%s, %v", sum, err)
	errorIs(t, errOf(record.Checksum(kv, codec.NumberKey(codec.KindModel, 78, 1), 0, record.ChunksOf(short))),
		db.ErrCorrupt)
	// Bytes that no descriptor tells of, and one that does not fit.
	for what, change := range map[string]func(tx *state.Tx, s *state.CollectionState) error{
		"missing": func(tx *state.Tx, s *state.CollectionState) error {
			return tx.Batch.Delete(codec.RevisionKey(s.ID, 1, 3, 0), nil)
		},
		"of another": func(tx *state.Tx, s *state.CollectionState) error {
			return tx.Batch.Set(codec.RevisionKey(s.ID, 1, 3, 0), []byte(`{"version":0,"revision":4}`), nil)
		},
		"no JSON": func(tx *state.Tx, s *state.CollectionState) error {
			return tx.Batch.Set(codec.RevisionKey(s.ID, 1, 3, 0), []byte("{"), nil)
		},
	} {
		must(t, db.Inside(c).Do(ctx, 0, change))
		_, err := spaces.ReadRevisions(kv, db.Inside(c).ID, 1)
		failIf(t, !errors.Is(err, db.ErrCorrupt), "%s: %v", what, err)
	}
}

// One batch may touch a row that has taught several times: first so that it goes on teaching, then not.
func TestBatchesTakeBackWhatRowsHaveTaught(t *testing.T) {
	t.Parallel()
	d, c, items := openPairs(t, -1, 40, synth.Config{Seed: 1})
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	dbkit.MustTrain(t, c, dbkit.TinyTraining(2))
	payload := func(key string) *db.Item { return &db.Item{Key: key, Payload: []byte{1}} }
	other := func(key string) *db.Item {
		return &db.Item{Key: key, Vectors: items[9].Vectors, Labels: items[3].Labels}
	}
	for what, fill := range map[string]func(b *db.Batch) error{
		"merge, put": func(b *db.Batch) error {
			return errors.Join(b.Merge(c, payload("k0")), b.Put(c, other("k0")))
		},
		"merge, merge": func(b *db.Batch) error {
			return errors.Join(b.Merge(c, payload("k1")), b.Merge(c, other("k1")))
		},
		"merge, delete": func(b *db.Batch) error {
			return errors.Join(b.Merge(c, payload("k2")), b.Delete(c, "k2"))
		},
		"merge, delete, put": func(b *db.Batch) error {
			return errors.Join(b.Merge(c, payload("k3")), b.Delete(c, "k3"), b.Put(c, other("k3")))
		},
		"put, put": func(b *db.Batch) error {
			return errors.Join(b.Put(c, other("k4")),
				b.Put(c, items[4]))
		},
		"delete, put": func(b *db.Batch) error { return errors.Join(b.Delete(c, "k5"), b.Put(c, items[5])) },
		"put, merge, delete": func(b *db.Batch) error {
			return errors.Join(b.Put(c, other("k6")), b.Merge(c, payload("k6")), b.Delete(c, "k6"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := d.NewBatch()
			must(t, errors.Join(fill(b), b.Commit(ctx)))
			checkSpaces(t, d)
		})
	}
}

// A space may be dropped while it is being built, and another training begin before
// the one that built it has noticed: neither is in the way of the other.
func TestTrainingAfterASpaceThatIsBeingBuiltWasDropped(t *testing.T) {
	t.Parallel()
	d, c, items := openPairs(t, -1, 40, synth.Config{Seed: 1})
	first, learning, dropped := make(chan error, 1), make(chan struct{}), make(chan struct{})
	second := dbkit.TinyTraining(2)
	once := sync.OnceFunc(func() {
		close(learning)
		<-dropped // and the first training has ended
		fine(t, errOf(c.Put(ctx, &db.Item{Key: "k3", Vectors: items[4].Vectors, Labels: items[4].Labels})))
		gives(t, 1)(c.Delete(ctx, "k5"))
	})
	second.Progress = func(string, int64, int64) { once() }
	opt := dbkit.TinyTraining(1)
	opt.Progress = func(stage string, _, _ int64) {
		if stage != "encode" {
			return
		}
		fine(t, c.DropSpace(ctx, 1))
		go func() {
			_, err := c.Train(ctx, second)
			first <- err
		}()
		<-learning
	}
	_, err := c.Train(ctx, opt)
	failIf(t, !errors.Is(err, db.ErrNotFound), "the space was dropped, and training says %v", err)
	close(dropped)
	must(t, <-first)
	checkSpaces(t, d)
	checkCodes(t, c, dbkit.AllItems(t, c))
}

// A vector that is a hundred thousand times as long as the others and was trained on
// leaves nothing behind when it goes, not even the rounding of the sums that it was
// part of; one that comes later is left out by updates.
func TestVectorsThatAreFarTooLong(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		x       float32
		trained bool
	}{{1e5, true}, {1e7, false}, {3e38, false}} {
		t.Run(fmt.Sprint(tc.x), func(t *testing.T) {
			w := newWorld(t, dbkit.PairsSchema, true)
			items := dbkit.Pairs(60, synth.Config{Seed: 1})
			w.put(items[:40])
			x := tc.x
			long := []*db.Item{{
				Key: "long", Labels: items[0].Labels,
				Vectors: map[string][]float32{"image": {x, x, x, x, x, x, x, -x}, "text": {x, x, x, x, x}},
			}}
			if tc.trained {
				w.put(long)
			}
			opt := dbkit.TinyTraining(1)
			opt.Map = map[string]model.MapKind{"image": model.MapLinear, "text": model.MapRBFLinear}
			dbkit.MustTrain(t, w.c, opt)
			if !tc.trained {
				w.put(long)
				u := dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
				failIf(t, u.Items != 0 || u.Skipped != 1 || !strings.Contains(u.Reason, "left out"), "%+v", u)
			}
			checkSpaces(t, w.d)
			w.reopen()
			gives(t, 1)(w.c.Delete(ctx, "long"))
			for _, more := range [][]*db.Item{nil, items[40:]} {
				w.put(more)
				dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
				w.reopen() // which stores the statistics
				checkSpaces(t, w.d)
			}
		})
	}
}

// A vector that is far longer than all others comes first, after all that was trained on
// has been deleted: it is left out, or at least does not keep the others from teaching,
// though without it rounding is all that remains of the sums.
func TestAFirstVectorThatIsFarTooLong(t *testing.T) {
	for name, x := range map[string][]float32{
		"all": slices.Repeat([]float32{1e9}, 8), "one": {1e9, 0, 0, 0, 0, 0, 0, 0},
		"less": slices.Repeat([]float32{3e4}, 8),
	} {
		t.Run(name, func(t *testing.T) { firstVector(t, x) })
	}
}

func firstVector(t *testing.T, x []float32) {
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.Pairs(8, synth.Config{Seed: 1})
	w.put(items[:4])
	opt := dbkit.TinyTraining(1)
	opt.Map = map[string]model.MapKind{"image": model.MapLinear, "text": model.MapLinear}
	dbkit.MustTrain(t, w.c, opt)
	need(w.c.DeleteWhere(ctx, "NOT label = ''"))(t)
	items[4].Labels, items[5].Labels = items[0].Labels, items[0].Labels
	items[4].Vectors["image"] = x
	items[6].Labels = nil
	delete(items[6].Vectors, "image")
	w.put(items[4:7])
	for _, teacher := range []db.Teacher{db.TeacherAuto, db.TeacherModality} {
		dbkit.MustUpdate(t, w.c, db.UpdateOptions{Teacher: teacher})
		checkSpaces(t, w.d)
	}
	gives(t, 1)(w.c.Delete(ctx, items[4].Key))
	w.put(items[7:])
	dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
	checkSpaces(t, w.d)
}
