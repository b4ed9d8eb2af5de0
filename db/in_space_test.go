package db_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A handle in a space shows what the collection showed when the space was active.
func TestInSpace(t *testing.T) {
	dbkit.LongTest(t)
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(120, synth.Config{Noise: 1})
	items[7].Labels = nil
	putAll(t, c, items)
	q := db.Query{From: "image", To: "text", Vector: items[5].Vectors["image"], K: 50}
	e := db.Evaluation{Queries: map[string][][]float32{"image": {items[5].Vectors["image"], items[9].Vectors["image"]}}, Labels: [][]string{items[5].Labels, items[9].Labels}}
	type sight struct {
		Items   []*db.Item
		Result  *db.Result
		Runs    []db.Hit
		Count   int
		All     []*db.Result
		Found   []db.Retrieval
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
		s.Runs, errs[1] = dbkit.Collect(c.Neighbors(ctx, q))
		s.Count, errs[2] = c.CountRadius(ctx, q, 3)
		s.All, errs[3] = c.SearchAll(ctx, []db.Query{q, {Key: "k1"}})
		s.Found, errs[4] = c.Evaluate(ctx, e)
		s.Code, s.Z, errs[5] = c.EncodeQuery(ctx, q)
		s.Item, _, errs[6] = c.Encode(items[7])
		s.Stats, errs[7] = c.Stats()
		_, s.Explain, errs[8] = c.Explain(ctx, q, -1)
		s.Codes = map[string]string{}
		for x, err := range c.Codes(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			s.Codes[x.Key] = string(x.Code)
		}
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		return s
	}
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	first := look(c)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 48, Seed: 3}})
	second := look(c)
	if len(first.Code) != 4 || len(second.Code) != 6 {
		t.Fatalf("codes of %d and %d bytes", len(first.Code), len(second.Code))
	}
	memory := cmp.Options{cmpopts.IgnoreFields(db.CollectionStats{}, "MemoryBytes", "IndexBytes", "RerankBytes", "QueryDistances", "Spaces"), cmpopts.EquateNaNs()}
	snap, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	then, err := snap.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	inSpace := func(c *db.Collection, space db.Space) *db.Collection {
		t.Helper()
		in, err := c.InSpace(space)
		if err != nil {
			t.Fatal(err)
		}
		return in
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
		if diff := cmp.Diff(c.want, look(c.c), memory); diff != "" {
			t.Errorf("in space %d: %s", c.space, diff)
		}
	}
	// A query names a space also to a handle in another; cursors keep to their space.
	named := q
	named.Space = 2
	if r, err := one.Search(ctx, named); err != nil || r.Space != 2 {
		t.Errorf("space 2 by a handle in space 1: %+v, %v", r, err)
	}
	if code, _, err := one.EncodeQuery(ctx, named); err != nil || !bytes.Equal(code, second.Code) {
		t.Errorf("the code of the query in space 2 is %x, %v", code, err)
	}
	next := q
	next.After = first.Result.Next
	if _, err := c.Search(ctx, next); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a cursor of another space: %v", err)
	}
	if r, err := one.Search(ctx, next); err != nil || len(r.Hits) != 50 {
		t.Errorf("a cursor of the space: %v", err)
	}
	// What is written through it is seen in all spaces, and what is activated shows.
	if _, err := one.Put(ctx, &db.Item{Key: "new", Labels: items[0].Labels}); err != nil {
		t.Fatal(err)
	}
	for _, in := range []*db.Collection{c, one} {
		if it, err := in.Get(ctx, "new"); err != nil || it.CodeFrom != "labels" {
			t.Errorf("%+v, %v", it, err)
		}
	}
	active := inSpace(c, 0)
	if err := c.Activate(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if r, err := active.Search(ctx, q); err != nil || r.Space != 1 {
		t.Errorf("in the active space: %+v, %v", r, err)
	}
	// What is not there.
	if _, err := c.InSpace(3); !errors.Is(err, db.ErrNotFound) || !strings.Contains(err.Error(), `space 3 of collection "main", which has the spaces 1 (active), 2`) {
		t.Errorf("space 3: %v", err)
	}
	two := inSpace(c, 2)
	if err := two.DropSpace(ctx, 2); err != nil {
		t.Fatal(err)
	}
	for what, err := range uses(two) {
		if !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s in a space that has been dropped: %v", what, err)
		}
	}
	if diff := cmp.Diff(second, look(inSpace(then, 2)), memory); diff != "" {
		t.Errorf("in the snapshot: %s", diff)
	}
}

// What works on a space works on that of the handle, unless another is named.
func TestUpdateInSpace(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(120, synth.Config{})
	putAll(t, c, items[:80])
	for range 2 {
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	}
	strange := *items[5]
	strange.Key, strange.Labels = "strange", []string{"never trained"}
	putAll(t, c, append(items[80:], &strange))
	one, err := c.InSpace(1)
	if err != nil {
		t.Fatal(err)
	}
	revisions := func() (all [2]uint32) {
		t.Helper()
		for i := range all {
			in, err := c.InSpace(db.Space(i + 1))
			if err != nil {
				t.Fatal(err)
			}
			s, err := in.Stats()
			if err != nil {
				t.Fatal(err)
			}
			all[i] = s.Revision
		}
		return all
	}
	u, err := one.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels, GrowLabels: true})
	if err != nil || u.Space != 1 || u.Labelled != 41 || u.Recoded != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	if got := revisions(); got != [2]uint32{u.Revision, 1} || u.Revision == 1 {
		t.Errorf("spaces at revisions %v after an update of space 1 to %d", got, u.Revision)
	}
	if it, err := one.Get(ctx, "strange"); err != nil || it.CodeFrom != "labels" {
		t.Errorf("%+v, %v", it, err)
	}
	if it, err := c.Get(ctx, "strange"); err != nil || it.CodeFrom != "fused" {
		t.Errorf("%+v, %v", it, err)
	}
	// Space 2 has no such revision yet.
	for in, want := range map[*db.Collection]error{one: nil, c: db.ErrNotFound} {
		if err := in.PinRevision(ctx, 0, u.Revision, true); !errors.Is(err, want) {
			t.Errorf("pinning revision %d of %v: %v, want %v", u.Revision, in, err, want)
		}
		if _, err := in.RestoreRevision(ctx, 0, u.Revision+1); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("restoring a revision that no space has: %v", err)
		}
	}
	if _, err := c.RestoreRevision(ctx, 0, u.Revision); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("restoring a revision of another space: %v", err)
	}
	if u, err := one.Update(ctx, db.UpdateOptions{Space: 2, Teacher: db.TeacherLabels}); err != nil || u.Space != 2 || u.Revision != 2 {
		t.Errorf("%+v, %v", u, err)
	}
	spaces, err := c.Spaces(ctx)
	if err != nil || len(spaces) != 2 {
		t.Fatal(spaces, err)
	}
	for _, s := range spaces {
		var pinned []uint32
		for _, r := range s.Revisions {
			if r.Pinned {
				pinned = append(pinned, r.Revision)
			}
		}
		if want := map[db.Space][]uint32{1: {u.Revision}}[s.Space]; !slices.Equal(pinned, want) {
			t.Errorf("pinned revisions of space %d: %v, want %v", s.Space, pinned, want)
		}
	}
	r, err := one.RestoreRevision(ctx, 0, u.Revision-1) // space 2 has one of that number, too
	if err != nil || r.Space != 1 || r.Revision != u.Revision+1 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := revisions(); got != [2]uint32{u.Revision + 1, 2} {
		t.Errorf("spaces at revisions %v after revision %d of space 1 was restored", got, u.Revision-1)
	}
}

// A space that is being built is not shown yet.
func TestInSpaceThatIsBeingBuilt(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(60, synth.Config{}))
	if _, err := c.InSpace(1); !errors.Is(err, db.ErrNotFound) || !strings.Contains(err.Error(), "not trained") {
		t.Errorf("before training: %v", err)
	}
	var busy error
	if _, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Progress: func(phase string, _, _ int64) {
		if phase == "encode" {
			_, busy = c.InSpace(1)
		}
	}}}); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(busy, db.ErrBusy) {
		t.Errorf("while it is built: %v", busy)
	}
}
