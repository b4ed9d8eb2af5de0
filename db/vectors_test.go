package db_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// plainCosine is the cosine between two dense vectors, as a float32; 0 where one is zero.
func plainCosine(x, y []float32) float32 {
	var xy, xx, yy float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return float32(max(-1, min(xy/(math.Sqrt(xx)*math.Sqrt(yy)), 1)))
}

// vectorItems makes items of two modalities. Some lack one of them; some vectors are equal, nearly
// equal, zero, or very long or short.
func vectorItems(n, dim int) []*db.Item {
	r := rand.New(rand.NewPCG(1, 2))
	vector := func(dim int) []float32 {
		x := make([]float32, dim)
		for j := range x {
			x[j] = float32(r.NormFloat64())
		}
		return x
	}
	var items []*db.Item
	for i := range n {
		it := &db.Item{Key: fmt.Sprint("k", i), Vectors: map[string][]float32{"e": vector(dim),
			"other": vector(3)}, Fields: map[string]any{"year": int64(2000 + i%5)}}
		switch e := it.Vectors["e"]; i % 20 {
		case 3:
			delete(it.Vectors, "e")
		case 5:
			copy(e, items[i-1].Vectors["e"]) // equal
		case 7:
			copy(e, items[i-1].Vectors["e"])
			e[0] += 1e-3
		case 9:
			clear(e)
		case 11:
			for j := range e {
				e[j] *= 1e18
			}
		case 13:
			for j := range e {
				e[j] *= 1e-30
			}
		case 15:
			delete(it.Vectors, "other")
		}
		items = append(items, it)
	}
	return items
}

var vectorSchema = db.Schema{
	Modalities: []db.Modality{{Name: "e", Dim: 48}, {Name: "other", Dim: 3}},
	Fields:     []db.Field{{Name: "year", Type: db.Int, Indexed: true}},
}

// What an untrained collection cannot answer says what to do.
func TestUntrainedMistakes(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", vectorSchema))(t)
	x := make([]float32, 48)
	x[3] = 1
	res, err := c.Search(ctx, db.Query{From: "e", Vector: x})
	failIf(t, err != nil || len(res.Hits) != 0, "without items: %v, %v", res, err)
	putAll(t, c, vectorItems(40, 48))
	for _, of := range []struct {
		q    db.Query
		want error
	}{
		{db.Query{Code: []byte{1}}, db.ErrNoModel},
		{db.Query{From: "e", Vector: x, Rerank: db.RerankAsymmetric}, db.ErrNoModel},
		{db.Query{From: "e", Vector: make([]float32, 48)}, db.ErrInvalid},
		{db.Query{From: "e", Vector: x[:3]}, db.ErrInvalid},
		{db.Query{From: "nothing", Vector: x}, db.ErrInvalid},
		{db.Query{Key: "k1"}, db.ErrInvalid},
		{db.Query{Key: "k3", From: "e"}, db.ErrInvalid},
		{db.Query{Key: "k9", From: "e"}, db.ErrInvalid},
		{db.Query{Key: "nobody", From: "e"}, db.ErrNotFound},
		{db.Query{From: "e", Vector: x, MinSimilarity: 1.5}, db.ErrInvalid},
		{db.Query{}, db.ErrInvalid},
	} {
		_, err := c.Search(ctx, of.q)
		failIf(t, !errors.Is(err, of.want), "%+v: %v", of.q, err)
	}
	errorIs(t, errOf(c.SearchRadius(ctx, db.Query{From: "e", Vector: x}, 4)), db.ErrNoModel)
	errorIs(t, errOf(dbkit.CountWithin(c, db.Query{From: "e", Vector: x}, 4)), db.ErrNoModel)
}

// Few vectors are read where bounds tell them apart; and many that are as near as each other, as all
// are that have nothing in common with a query, take no time that grows with their square.
func TestUntrainedReads(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 64},
		{Name: "words", Dim: 1000, Sparse: true}}}))(t)
	r := rand.New(rand.NewPCG(3, 4))
	var items []*db.Item
	const n = 20_000
	for i := range n {
		x := make([]float32, 64)
		for j := range x[:63] {
			x[j] = float32(r.NormFloat64())
		}
		items = append(items, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": x},
			Sparse: map[string]db.Sparse{"words": {Index: []uint32{uint32(i % 900)}, Value: []float32{1}}}})
	}
	dbkit.PutAll(t, d, c, items)
	need(c.Search(ctx, db.Query{From: "e", Vector: items[0].Vectors["e"]}))(t)
	must(t, d.WaitForIndex(ctx))
	for _, k := range []int{1, 10, 64, 65, 200} {
		x, _, err := c.Explain(ctx, db.Query{From: "e", Vector: items[1].Vectors["e"], K: k}, -1)
		failIf(t, err != nil || x.Scanned != n || x.Compared < k || x.Compared > 2*k+20, "k = %d: %+v, %v", k,
			x, err)
	}
	across := make([]float32, 64)
	across[63] = 1
	for _, q := range []db.Query{
		{From: "e", Vector: across},
		{From: "words", Sparse: &db.Sparse{Index: []uint32{999}, Value: []float32{1}}},
	} {
		res, err := c.Search(ctx, q)
		failIf(t, err != nil || len(res.Hits) != 10 || res.Hits[0].Row != 0 || res.Hits[9].Row != 9 ||
			res.Hits[9].Similarity != 0, "%+v, %v", res, err)
	}
}

// An answer by vectors does not go on after a training, which has other answers.
func TestCursorOfBeforeTraining(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(60, synth.Config{Classes: 3})
	putAll(t, c, items)
	q := db.Query{From: "text", Vector: items[0].Vectors["text"]}
	page, err := c.Search(ctx, q)
	stopIf(t, err != nil || page.Next == "", "%v, %v", page, err)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	q.After = page.Next
	errorIs(t, errOf(c.Search(ctx, q)), db.ErrInvalid, "before the training")
}

// plainMetric is what a metric makes of two dense vectors: where it puts them, and what hits say.
func plainMetric(metric db.Metric, x, y []float32) (place, similarity float32) {
	var xy, apart float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, apart = xy+a*b, apart+(a-b)*(a-b)
	}
	within := func(x float64) float32 { return float32(max(-math.MaxFloat32, min(x, math.MaxFloat32))) }
	switch metric {
	case db.Dot:
		return within(xy), within(xy)
	case db.L2:
		d := within(apart)
		return -d, float32(1 / (1 + float64(d)))
	}
	return plainCosine(x, y), plainCosine(x, y)
}

// Answers by every metric are those of a plain computation over all vectors, with a filter and page by page,
// before vectors are in memory and afterwards.
func TestMetricsAgreeWithTheDefinition(t *testing.T) {
	t.Parallel()
	for _, metric := range []db.Metric{db.Cosine, db.Dot, db.L2} {
		schema := db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 32, Metric: metric}},
			Fields: embeddedSchema.Fields}
		items := embeddedItems(0, 900, 32, 1)
		for i, it := range items { // so that cosines say something else than products and distances
			for j := range it.Vectors["e"] {
				it.Vectors["e"][j] *= float32(1 + i%7)
			}
		}
		d, c := openWith(t, vfs.NewMem(), schema, items)
		for round, x := range synth.Embeddings(1000, 20, 32, 1) {
			want := slices.DeleteFunc(slices.Clone(items),
				func(it *db.Item) bool { return it.Fields["year"] == int64(2003) })
			slices.SortStableFunc(want, func(a, b *db.Item) int {
				p, _ := plainMetric(metric, x, a.Vectors["e"])
				q, _ := plainMetric(metric, x, b.Vectors["e"])
				return cmp.Compare(q, p)
			})
			q := db.Query{From: "e", Vector: x, Where: "year != 2003", K: 7}
			for at := 0; at < 21; at += q.K {
				res := need(c.Search(ctx, q))(t)
				for i, h := range res.Hits {
					_, similarity := plainMetric(metric, x, want[at+i].Vectors["e"])
					if h.Key != want[at+i].Key || math.Abs(float64(h.Similarity-similarity)) > 1e-5*max(1,
						math.Abs(float64(similarity))) {
						t.Fatalf("%s: hit %d is %+v, want %s at %g", metric, at+i, h, want[at+i].Key,
							similarity)
					}
				}
				q.After = res.Next
			}
			if round == 0 {
				must(t, d.WaitForIndex(ctx))
			}
		}
	}
}

// Distances that are too small or too great for similarities to tell them apart are in order, and so
// are the pages.
func TestL2OfAllScales(t *testing.T) {
	for _, scale := range []float64{1e-15, 1e-6, 1, 1e12} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
		c := need(d.CreateCollection(ctx, "main",
			db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 2, Metric: db.L2}}}))(t)
		for i := range 50 { // 49 is the nearest
			need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i),
				Vectors: map[string][]float32{"e": {float32(float64(100-i) * scale), 0}}}))(t)
		}
		q := db.Query{From: "e", Vector: []float32{0, 0}, K: 7} // zeros have distances
		n := 49
		for {
			res := need(c.Search(ctx, q))(t)
			for _, h := range res.Hits {
				stopIf(t, h.Key != fmt.Sprint(n), "scale %g: %s in place of %d", scale, h.Key, n)
				n--
			}
			if q.After = res.Next; q.After == "" {
				break
			}
		}
		failIf(t, n != -1, "scale %g: it ends before %d", scale, n)
		dbkit.MustClose(t, d)
	}
}

// An inner product that float32 cannot hold is the greatest number that it can.
func TestDotBeyondFloat32(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 1, Metric: db.Dot}}}))(t)
	for i, v := range []float32{1e30, -1e30, 1e31} {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": {v}}}))(t)
	}
	q := db.Query{From: "e", Vector: []float32{1e30}, K: 1}
	for i, want := range []db.Hit{{Key: "0", Similarity: math.MaxFloat32},
		{Key: "2", Similarity: math.MaxFloat32}, {Key: "1", Similarity: -math.MaxFloat32}} {
		res, err := c.Search(ctx, q)
		stopIf(t, err != nil || res.Hits[0].Key != want.Key || res.Hits[0].Similarity != want.Similarity ||
			(res.Next == "") != (i == 2), "page %d: %+v, %v", i, res, err)
		q.After = res.Next
	}
}

// Metrics and spaces are stored in one form, however they are declared, and what contradicts itself
// is refused with what is wrong.
func TestMetricsOfSchemas(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	made := 0
	create := func(all ...db.Modality) (*db.Collection, error) {
		made++
		return d.CreateCollection(ctx, fmt.Sprint("c", made), db.Schema{Modalities: all})
	}
	is := func(c *db.Collection, want ...db.Modality) {
		t.Helper()
		got := dbkit.MustSchema(t, c).Modalities
		failIf(t, !slices.Equal(got, want), "%+v, want %+v", got, want)
	}
	m := func(name string, metric db.Metric, of string) db.Modality {
		return db.Modality{Name: name, Dim: 4, Metric: metric, SpaceOf: of}
	}
	var c *db.Collection
	for _, r := range []struct {
		given, want []db.Modality
		says        string
	}{
		{given: []db.Modality{m("a", db.Cosine, ""), m("b", "", "")},
			want: []db.Modality{m("a", "", ""), m("b", "", "")}},
		{given: []db.Modality{m("a", "", "b"), m("b", "", "c"), m("c", db.Dot, "")},
			want: []db.Modality{m("a", db.Dot, ""), m("b", db.Dot, "a"), m("c", db.Dot, "a")}},
		{given: []db.Modality{m("a", "", "b"), m("b", db.L2, "a"), m("c", db.L2, "")},
			want: []db.Modality{m("a", db.L2, ""), m("b", db.L2, "a"), m("c", db.L2, "")}},
		{given: []db.Modality{m("a", "", "a")}, says: `the space of modality "a": it names itself`},
		{given: []db.Modality{m("a", "", "z")},
			says: `the space of modality "a": there is no modality "z": collection "c`},
		{given: []db.Modality{m("a", "", ""), {Name: "b", Dim: 5, SpaceOf: "a"}},
			says: `modality "b" is of dimension 5, and "a" is of dimension 4: they cannot share a space`},
		{given: []db.Modality{m("a", "", ""), {Name: "b", Dim: 4, Sparse: true, SpaceOf: "a"}},
			says: `modality "b" is sparse, of dimension 4, and "a" is of dimension 4: they cannot share a space`},
		{given: []db.Modality{m("a", db.Dot, ""), m("b", db.Cosine, "a")},
			says: `modality "b" has the metric cosine, and "a", which shares its space, dot: a space has one metric`},
		{given: []db.Modality{m("a", "manhattan", "")},
			says: `modality "a": unknown metric "manhattan": cosine, dot and l2 are possible`},
	} {
		made, err := create(r.given...)
		switch {
		case r.says != "":
			failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(fmt.Sprint(err), r.says) ||
				strings.Count(err.Error(), "fddhdb: ") != 1, "%+v: %v", r.given, err)
		case err != nil:
			t.Errorf("%+v: %v", r.given, err)
		default:
			is(made, r.want...)
			c = made
		}
	}

	// Alterations.
	is(c, m("a", db.L2, ""), m("b", db.L2, "a"), m("c", db.L2, ""))
	mustAlter(t, c, db.Alteration{SpaceOf: map[string]string{"a": "c"}}) // b comes along
	is(c, m("a", db.L2, ""), m("b", db.L2, "a"), m("c", db.L2, "a"))
	mustAlter(t, c, db.Alteration{SpaceOf: map[string]string{"a": ""}}) // the others stay together
	is(c, m("a", db.L2, ""), m("b", db.L2, ""), m("c", db.L2, "b"))
	mustAlter(t, c, db.Alteration{Metrics: map[string]db.Metric{"c": db.Cosine}})
	is(c, m("a", db.L2, ""), m("b", "", ""), m("c", "", "b"))
	// it is so
	mustAlter(t, c, db.Alteration{Metrics: map[string]db.Metric{"c": ""},
		SpaceOf: map[string]string{"a": ""}})
	mustAlter(t, c, db.Alteration{AddModalities: []db.Modality{m("d", "", "")},
		SpaceOf: map[string]string{"d": "a"}})
	is(c, m("a", db.L2, ""), m("b", "", ""), m("c", "", "b"), m("d", db.L2, "a"))
	mustAlter(t, c, db.Alteration{SpaceOf: map[string]string{"c": ""}})
	mustAlter(t, c, db.Alteration{SpaceOf: map[string]string{"b": "", "c": "a"},
		Metrics: map[string]db.Metric{"d": db.Dot}})
	want := []db.Modality{m("a", db.Dot, ""), m("b", "", ""), m("c", db.Dot, "a"), m("d", db.Dot, "a")}
	is(c, want...)
	for _, r := range []struct {
		a    db.Alteration
		says string
	}{
		{db.Alteration{Metrics: map[string]db.Metric{"z": db.Dot}}, `unknown modality "z"`},
		{db.Alteration{Metrics: map[string]db.Metric{"a": "far"}}, `modality "a": unknown metric "far"`},
		{db.Alteration{Metrics: map[string]db.Metric{"a": db.Dot, "c": db.L2}},
			`modality "c" has the metric l2, and "a", which shares its space, dot`},
		{db.Alteration{SpaceOf: map[string]string{"b": "a"}},
			`modality "b" has the metric cosine, and "a", which shares its space, dot`},
		{db.Alteration{SpaceOf: map[string]string{"b": "b"}}, `the space of modality "b": it names itself`},
		{db.Alteration{SpaceOf: map[string]string{"z": ""}}, `unknown modality "z"`},
		{db.Alteration{AddModalities: []db.Modality{m("e", db.L2, "a")}},
			`modality "e" has the metric l2, and "a", which shares its space, dot`},
		{db.Alteration{AddModalities: []db.Modality{m("e", db.L2, "a")},
			Metrics: map[string]db.Metric{"a": db.Cosine}},
			`modality "e" has the metric l2, and "a", which shares its space, cosine`},
		{db.Alteration{AddModalities: []db.Modality{{Name: "e", Dim: 5, SpaceOf: "a"}}},
			`they cannot share a space`},
	} {
		err := c.Alter(ctx, r.a)
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(fmt.Sprint(err), r.says), "%+v: %v",
			r.a, err)
		is(c, want...)
	}
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	errorIs(t, codes.Alter(ctx, db.Alteration{Metrics: map[string]db.Metric{"a": db.Dot}}), db.ErrInvalid,
		"bring codes")

	// What a program wants to find.
	name := c.Name()
	for _, r := range []struct {
		wanted []db.Modality
		says   string // "": it is there
	}{
		{want, ""},
		{[]db.Modality{m("d", "", "c"), m("c", db.Dot, "")}, ""},
		{[]db.Modality{m("b", db.Cosine, "")}, ""},
		{[]db.Modality{m("b", db.L2, "")}, `modality "b" is of dimension 4, not of dimension 4, by l2`},
		{[]db.Modality{m("a", "", "")}, `modality "a" is of dimension 4, by dot, not of dimension 4`},
		{[]db.Modality{m("a", db.Dot, ""), m("c", db.Dot, "")},
			`modality "c" is of dimension 4, by dot, in the space of a, not of dimension 4, by dot`},
		{[]db.Modality{m("a", db.Dot, ""), m("b", db.Dot, "a")},
			`modality "b" is of dimension 4, not of dimension 4, by dot, in the space of a`},
	} {
		_, err := d.EnsureCollection(ctx, name, db.Schema{Modalities: r.wanted})
		failIf(t, r.says == "" && err != nil || r.says != "" && (!errors.Is(err, db.ErrExists) ||
			!strings.Contains(err.Error(), r.says)), "%+v: %v", r.wanted, err)
	}
}

// The descriptor has a version of its own exactly where a modality has a metric or shares a space.
// Index-only copies and backups keep both, and so does a repair that has the copy of a space alone.
func TestMetricsAreStored(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		opts := &db.Options{FS: vfs.NewMem()}
		d := dbkit.MustOpen(t, "db", opts)
		schema := dbkit.PairsSchema
		if shared {
			schema.Modalities = []db.Modality{{Name: "image", Dim: 8, Metric: db.L2},
				{Name: "text", Dim: 5, Metric: db.Dot}}
		}
		c := need(d.CreateCollection(ctx, "main", schema))(t)
		putAll(t, c, dbkit.Pairs(60, synth.Config{}))
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
		want := dbkit.MustSchema(t, c)
		key := codec.CollectionKey(codec.KindCollection, 1)
		is := indexOnlyOf(t, d, opts)
		s := dbkit.MustSchema(t, dbkit.MustCollection(t, is, "main"))
		failIf(t, !s.IndexOnly || !slices.Equal(s.Modalities, want.Modalities), "index-only: %+v", s)
		dbkit.MustClose(t, is)
		keyValue{key, nil}.put(t, d)
		dbkit.MustClose(t, d)
		need(db.Repair(ctx, "db", opts, db.RepairOptions{}, nil))(t)
		d = dbkit.MustOpen(t, "db", opts)
		c = dbkit.MustCollection(t, d, "main")
		s = dbkit.MustSchema(t, c)
		failIf(t, !reflect.DeepEqual(s, want), "repaired: %+v, want %+v", s, want)
		mustAlter(t, c, db.Alteration{Metrics: map[string]db.Metric{"image": db.Cosine, "text": db.Cosine}})
		dbkit.CheckSound(t, d, "at the end")
		dbkit.MustClose(t, d)
	}
}

// Descriptors that no program has stored are refused.
func TestDescriptorsWithWrongMetrics(t *testing.T) {
	for says, text := range map[string]string{
		"":                   `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"metric":"l2"},{"name":"b","dim":3,"metric":"l2","space_of":"a"}]}`,
		"unknown metric":     `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"metric":"x"}]}`,
		"one metric":         `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"metric":"l2"},{"name":"b","dim":3,"metric":"dot","space_of":"a"}]}`,
		"metrics or spaces":  `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"space_of":"b"},{"name":"b","dim":3}]}`,
		"metrics or spaces ": `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"metric":"cosine"}]}`,
		"no modality":        `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"space_of":"x"}]}`,
	} {
		_, err := record.DecodeDescriptor([]byte(text))
		failIf(t, says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(),
			strings.TrimSpace(says))), "%s: %v, want %q", text, err, says)
	}
}

// A cursor is of the metric and of the space that its answer began with.
func TestCursorsOfMetrics(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "a", Dim: 2}, {Name: "b", Dim: 2}}}))(t)
	for i := range 9 {
		need(c.Put(ctx, &db.Item{Vectors: map[string][]float32{"a": {1, float32(i)}}}))(t)
	}
	q := db.Query{From: "a", Vector: []float32{1, 1}, K: 3}
	for _, a := range []db.Alteration{{Metrics: map[string]db.Metric{"a": db.Dot}},
		{Metrics: map[string]db.Metric{"a": ""}}, {SpaceOf: map[string]string{"b": "a"}}} {
		page := need(c.Search(ctx, q))(t)
		mustAlter(t, c, a)
		q.After = page.Next
		_, err := c.Search(ctx, q)
		failIf(t, !errors.Is(err, db.ErrInvalid) ||
			!strings.Contains(err.Error(), "the metric and the space"), "%+v: %v", a, err)
		q.After = ""
	}
	for least, metric := range map[float32]db.Metric{1.5: db.Cosine, -1.5: db.L2, 2: db.L2,
		float32(math.Inf(1)): db.Dot, float32(math.NaN()): db.L2} {
		mustAlter(t, c, db.Alteration{Metrics: map[string]db.Metric{"a": metric}})
		q.MinSimilarity = least
		_, err := c.Search(ctx, q)
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "least similarity"),
			"%v by %s: %v", least, metric, err)
	}
}
