package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/model"
)

// followers returns a collection that has been trained, and one with the same items, in another order, that
// has its model.
func followers(t *testing.T, items []*db.Item) (from, to *db.Collection, opts *db.Options, d *db.DB) {
	t.Helper()
	_, from = openWith(t, vfs.NewMem(), dbkit.PairsSchema, items)
	dbkit.MustTrain(t, from, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 20}})
	backwards := slices.Clone(items)
	slices.Reverse(backwards)
	opts = &db.Options{FS: vfs.NewMem()}
	d = dbkit.MustOpen(t, "db", opts)
	to, err := d.CreateCollection(ctx, "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.PutAll(t, d, to, append([]*db.Item{{Key: "first", Labels: []string{"nobody knows it", "class5"}}}, backwards...))
	if _, err := to.Delete(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := to.ImportModel(ctx, bytes.NewReader(exported(t, from)), db.ImportModelOptions{}); err != nil {
		t.Fatal(err)
	}
	return from, to, opts, d
}

// sameProjections compares how two collections encode queries.
func sameProjections(t *testing.T, what string, from, to *db.Collection, items []*db.Item) {
	t.Helper()
	for _, it := range items {
		for name, x := range it.Vectors {
			q := db.Query{From: name, Vector: x}
			_, want, err := from.EncodeQuery(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			if _, got, err := to.EncodeQuery(ctx, q); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: %s of %s projects to %v, not %v: %v", what, name, it.Key, got, want, err)
			}
		}
	}
}

// The revisions of one database go to another, as they come: with labels that have grown, and with numbers
// of their own. What is put afterwards has the same codes there.
func TestRevisionsTravel(t *testing.T) {
	items := modelItems(300, 9)
	from, to, opts, d := followers(t, items[:150])
	for _, it := range items[200:260] {
		it.Labels = append(it.Labels, "grown")
	}
	for i, step := range []struct {
		until  int
		grow   bool
		number uint32
	}{{200, false, 0}, {260, true, 7}, {280, false, 8}} {
		first := []int{150, 200, 260}[i]
		putAll(t, from, items[first:step.until])
		putAll(t, to, items[first:step.until])
		made := dbkit.MustUpdate(t, from, db.UpdateOptions{Teacher: db.TeacherLabels, GrowLabels: step.grow})
		file := exported(t, from)
		for again := range 2 {
			u, err := to.ImportRevision(ctx, bytes.NewReader(file), db.ImportRevisionOptions{Revision: step.number})
			if err != nil {
				t.Fatal(i, err)
			}
			want := max(step.number, 2)
			if u.Revision != want || u.Revised != (again == 0) || u.Teacher != "imported" {
				t.Errorf("step %d: %+v", i, u)
			}
			if again == 0 && (!slices.Equal(u.Grown, made.Grown) || u.Recoded != made.Recoded) {
				t.Errorf("step %d: grown %v, %d recoded; there %v, %d", i, u.Grown, u.Recoded, made.Grown, made.Recoded)
			}
		}
		sameProjections(t, fmt.Sprint("step ", i), from, to, items[280:])
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", opts)
		to = dbkit.MustCollection(t, d, "pairs")
		sameProjections(t, fmt.Sprint("opened, step ", i), from, to, items[280:])
		dbkit.CheckSound(t, d, fmt.Sprint("step ", i))
	}
	putAll(t, from, items[280:])
	putAll(t, to, items[280:])
	last, was := codeOrigins(t, to), codeOrigins(t, from)
	for _, it := range items[200:] { // those before were put in another order
		if last[it.Key] != was[it.Key] {
			t.Errorf("%s has %s, not %s", it.Key, last[it.Key], was[it.Key])
		}
	}
	dbtest.CheckSearches(t, to, db.Query{From: "image", Vector: items[1].Vectors["image"], K: 20})
	// What items here teach is all that an update here learns from.
	if u := dbkit.MustUpdate(t, to, db.UpdateOptions{Teacher: db.TeacherLabels}); !u.Revised || u.Revision != 9 || u.Labelled < 200 {
		t.Errorf("%+v", u)
	}
	if u, err := to.RestoreRevision(ctx, 0, 8); err != nil || u.Revision != 10 {
		t.Errorf("%+v, %v", u, err)
	}
	sameProjections(t, "restored", from, to, items[280:])
	dbkit.CheckSound(t, d, "updated")
	dbkit.MustClose(t, d)
}

// Codes that an interrupted call has left are made by the next one.
func TestImportRevisionGoesOn(t *testing.T) {
	t.Parallel()
	items := modelItems(3000, 2)
	for _, it := range items {
		it.Labels = append(it.Labels, "grown")
	}
	known := items[:60]
	for _, it := range known {
		it.Labels = slices.DeleteFunc(slices.Clone(it.Labels), func(l string) bool { return l == "grown" })
	}
	from, to, _, d := followers(t, known)
	defer func() { dbkit.MustClose(t, d) }()
	putAll(t, from, items[60:])
	putAll(t, to, items[60:])
	made := dbkit.MustUpdate(t, from, db.UpdateOptions{Teacher: db.TeacherLabels, GrowLabels: true})
	file := exported(t, from)
	interrupted, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for {
			if s, err := to.Spaces(ctx); err != nil || s[0].Revision > 1 {
				return
			}
		}
	}()
	u, err := to.ImportRevision(interrupted, bytes.NewReader(file), db.ImportRevisionOptions{Revision: 5})
	t.Logf("interrupted: %+v, %v", u, err)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if u, err = to.ImportRevision(ctx, bytes.NewReader(file), db.ImportRevisionOptions{Revision: 5}); err != nil || u.Revised || u.Revision != 5 {
		t.Fatalf("%+v, %v", u, err)
	}
	if s, err := to.Spaces(ctx); err != nil || s[0].Recode != 0 || made.Recoded < 2000 {
		t.Errorf("%+v, %v", s, err)
	}
	sameCodes(t, "with the label", codeOrigins(t, from), codeOrigins(t, to))
	dbkit.CheckSound(t, d, "gone on")
}

// What is no revision of the model is refused, and changes nothing.
func TestImportRevisionRefuses(t *testing.T) {
	items := modelItems(200, 4)
	from, to, _, d := followers(t, items[:150])
	defer func() { dbkit.MustClose(t, d) }()
	before := exported(t, from)
	_, other := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:100])
	dbkit.MustTrain(t, other, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 20, Seed: 8}})
	_, free := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:100])
	dbkit.MustTrain(t, free, db.TrainOptions{Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ}})
	_, none := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:10])
	items[170].Labels = []string{"grown"}
	putAll(t, from, items[150:])
	putAll(t, to, items[150:])
	dbkit.MustUpdate(t, from, db.UpdateOptions{Teacher: db.TeacherLabels, GrowLabels: true})
	after := exported(t, from)
	take := func(c *db.Collection, file []byte, opt db.ImportRevisionOptions) error {
		_, err := c.ImportRevision(ctx, bytes.NewReader(file), opt)
		return err
	}
	for what, x := range map[string]struct {
		err, is error
		says    string
	}{
		"another model":    {take(to, exported(t, other), db.ImportRevisionOptions{}), db.ErrInvalid, "no revision"},
		"learned free":     {take(to, exported(t, free), db.ImportRevisionOptions{}), db.ErrInvalid, "no revision"},
		"into a free one":  {take(free, after, db.ImportRevisionOptions{}), db.ErrInvalid, "without labels"},
		"into none":        {take(none, after, db.ImportRevisionOptions{}), db.ErrNoModel, "train it first"},
		"no file":          {take(to, before[:40], db.ImportRevisionOptions{}), db.ErrInvalid, "model file"},
		"number 1":         {take(to, after, db.ImportRevisionOptions{Revision: 1}), db.ErrExists, "present one is 1"},
		"too large":        {take(to, after, db.ImportRevisionOptions{Revision: 1<<32 - 1}), db.ErrFull, "revisions"},
		"no such space":    {take(to, after, db.ImportRevisionOptions{Space: 9}), db.ErrNotFound, "space 9"},
		"nothing has come": {take(to, before, db.ImportRevisionOptions{}), nil, ""},
	} {
		if !errors.Is(x.err, x.is) || x.err != nil && !strings.Contains(x.err.Error(), x.says) {
			t.Errorf("%s: %v", what, x.err)
		}
	}
	if s, err := to.Spaces(ctx); err != nil || s[0].Revision != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := take(to, after, db.ImportRevisionOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := take(to, before, db.ImportRevisionOptions{}); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "labels") {
		t.Errorf("one that lacks a label that has grown: %v", err)
	}
	dbkit.CheckSound(t, d, "refused")
}

// A query by a revision that is kept has the answer that it had then, and the cursor of that goes on.
func TestQueryByARevision(t *testing.T) {
	items := modelItems(300, 5)
	_, c := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:150])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	q := db.Query{From: "image", Vector: items[1].Vectors["image"], K: 20, Rerank: db.RerankProjection, Where: "NOT label = 'later'"}
	search := func(q db.Query) *db.Result {
		t.Helper()
		r, err := c.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := search(q)
	for i := range 3 {
		some := items[150+50*i : 200+50*i]
		for _, it := range some {
			it.Labels = append(it.Labels, "later")
		}
		putAll(t, c, some)
		dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherLabels})
	}
	now := search(q)
	q.Revision = 1
	then := search(q)
	if then.Revision != 1 || now.Revision != 4 || fmt.Sprint(then.Hits) != fmt.Sprint(before.Hits) || fmt.Sprint(now.Hits) == fmt.Sprint(before.Hits) {
		t.Errorf("then %+v\nnow %+v\nbefore %+v", then, now, before)
	}
	all := q
	all.K = 40
	q.After = before.Next
	if next := search(q); fmt.Sprint(next.Hits) != fmt.Sprint(search(all).Hits[20:]) {
		t.Error("the cursor does not go on")
	}
	q.Revision = 0
	if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrInvalid) {
		t.Error("a cursor of another revision:", err)
	}
	q.After = ""
	for _, none := range []uint32{5, 1<<32 - 1} {
		q.Revision = none
		if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrNotFound) {
			t.Error(err)
		}
	}
}
