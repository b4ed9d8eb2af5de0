package db_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

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

// sparseOf is a dense vector in the sparse form.
func sparseOf(x []float32) (s db.Sparse) {
	for j, v := range x {
		if v != 0 {
			s.Index, s.Value = append(s.Index, uint32(j)), append(s.Value, v)
		}
	}
	return s
}

// A metricsModel has the items of a collection, all their vectors dense, to answer from.
type metricsModel struct {
	schema db.Schema
	items  map[string]map[string][]float32
	even   map[string]bool // the field of that name
	rows   map[string]uint32
}

func (m *metricsModel) modality(name string) db.Modality {
	return m.schema.Modalities[slices.IndexFunc(m.schema.Modalities, func(o db.Modality) bool { return o.Name == name })]
}

func (m *metricsModel) space(name string) string { return cmp.Or(m.modality(name).SpaceOf, name) }

// compared are the modalities whose vectors a query is compared with.
func (m *metricsModel) compared(from, to string) (names []string) {
	switch {
	case to != "" && m.space(to) == m.space(from):
		return []string{to}
	case to != "":
		return []string{from}
	}
	for _, o := range m.schema.Modalities {
		if m.space(o.Name) == m.space(from) {
			names = append(names, o.Name)
		}
	}
	return names
}

// answer is the whole answer to a query that starts from x.
func (m *metricsModel) answer(q db.Query, x []float32) []db.Hit {
	type placed struct {
		db.Hit
		place float32
	}
	var hits []placed
	metric := cmp.Or(m.modality(q.From).Metric, db.Cosine)
	for key, vectors := range m.items {
		if q.To != "" && vectors[q.To] == nil || q.ExcludeSelf && key == q.Key || q.Where != "" && !m.even[key] {
			continue
		}
		best, found := placed{db.Hit{Key: key, Row: m.rows[key], Distance: -1}, float32(math.Inf(-1))}, false
		for _, name := range m.compared(q.From, q.To) {
			if y := vectors[name]; y != nil {
				if place, similarity := plainMetric(metric, x, y); !found || place > best.place {
					best.place, best.Similarity, found = place, similarity, true
				}
			}
		}
		if found && (q.MinSimilarity == 0 || best.Similarity >= q.MinSimilarity) {
			hits = append(hits, best)
		}
	}
	slices.SortFunc(hits, func(a, b placed) int { return cmp.Or(cmp.Compare(b.place, a.place), cmp.Compare(a.Row, b.Row)) })
	var all []db.Hit
	for _, h := range hits {
		all = append(all, h.Hit)
	}
	return all
}

// Answers by every metric, within spaces of one modality and of several, are those of a plain
// computation over all items: of random collections, with vectors in memory and without, with
// filters, targets, cut-offs, cursors and after writes and alterations.
func TestMetrics(t *testing.T) {
	dbkit.LongTest(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkMetrics(t, seed) })
	}
}

func checkMetrics(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 9))
	metrics := []db.Metric{"", db.Cosine, db.Dot, db.L2}
	dim := 1 + r.IntN(40)
	sparse := seed%4 == 3
	m := &metricsModel{items: map[string]map[string][]float32{}, even: map[string]bool{}, rows: map[string]uint32{}, schema: db.Schema{
		Modalities: []db.Modality{
			{Name: "image", Dim: dim, Sparse: sparse, Metric: metrics[r.IntN(4)]}, {Name: "other", Dim: 3, Metric: metrics[r.IntN(4)]},
			{Name: "text", Dim: dim, Sparse: sparse, SpaceOf: "image"}, {Name: "sound", Dim: dim, Sparse: sparse, SpaceOf: "text"}, {Name: "never", Dim: dim, Sparse: sparse, SpaceOf: "image"},
			{Name: "alone", Dim: dim, Sparse: sparse, Metric: metrics[r.IntN(4)]},
		},
		Fields: []db.Field{{Name: "even", Type: db.Bool, Indexed: true}},
	}}
	opts := &db.Options{FS: vfs.NewMem(), RerankCacheBytes: []int64{0, -1, 15_000, 40_000}[r.IntN(4)]}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { d.Close() }()
	c, err := d.CreateCollection(ctx, "main", m.schema)
	if err != nil {
		t.Fatal(err)
	}
	m.schema = dbkit.MustSchema(t, c)
	scale := math.Pow(10, float64(r.IntN(5)*4-8))
	var drawn [][]float32 // earlier vectors of the great space
	vector := func(dim int) []float32 {
		x := make([]float32, dim)
		for j := range x {
			x[j] = float32(r.NormFloat64() * scale)
		}
		switch r.IntN(12) {
		case 0:
			clear(x)
		case 1:
			if len(drawn) > 0 && dim != 3 {
				copy(x, drawn[r.IntN(len(drawn))]) // equal to that of another item, or of another modality
			}
		case 2:
			for j := range x {
				x[j] *= []float32{1e18, 1e-25, 1e-3}[j%3]
			}
		}
		if dim != 3 {
			drawn = append(drawn, x)
		}
		return x
	}
	put := func(key string) {
		it := &db.Item{Key: key, Vectors: map[string][]float32{}, Sparse: map[string]db.Sparse{}, Fields: map[string]any{"even": r.IntN(2) == 0}}
		vectors := map[string][]float32{}
		for _, o := range m.schema.Modalities {
			if o.Name == "never" || r.IntN(3) == 0 {
				continue
			}
			x := vector(o.Dim)
			vectors[o.Name] = x
			if o.Sparse {
				it.Sparse[o.Name] = sparseOf(x)
			} else {
				it.Vectors[o.Name] = x
			}
		}
		if _, err := c.Put(ctx, it); err != nil {
			t.Fatal(err)
		}
		m.items[key], m.even[key] = vectors, it.Fields["even"].(bool)
	}
	for i := range 60 + r.IntN(200) {
		put(fmt.Sprint("k", i))
	}
	check := func() {
		t.Helper()
		for _, o := range m.schema.Modalities { // which rows items have, answers alone tell
			x := make([]float32, o.Dim)
			x[0] = 1
			q := db.Query{From: o.Name, Vector: x, K: 10_000}
			res, err := c.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range res.Hits {
				m.rows[h.Key] = h.Row
			}
		}
		for range effort.Of(25, 6) {
			m.checkOne(t, r, c)
		}
	}
	check()
	if err := d.WaitForIndex(ctx); err != nil {
		t.Fatal(err)
	}
	check()
	for range 40 {
		put(fmt.Sprint("k", r.IntN(300)))
		if key := fmt.Sprint("k", r.IntN(300)); m.items[key] != nil && r.IntN(2) == 0 {
			if _, err := c.Delete(ctx, key); err != nil {
				t.Fatal(err)
			}
			delete(m.items, key)
		}
	}
	check()
	for range 3 {
		a := db.Alteration{SpaceOf: map[string]string{}, Metrics: map[string]db.Metric{}}
		switch r.IntN(3) {
		case 0:
			a.SpaceOf["alone"], a.Metrics["text"] = "sound", metrics[1+r.IntN(3)]
		case 1:
			a.SpaceOf[[]string{"image", "text", "alone"}[r.IntN(3)]] = ""
		case 2:
			a.Metrics[[]string{"image", "alone", "other"}[r.IntN(3)]] = metrics[r.IntN(4)]
		}
		mustAlter(t, c, a)
		m.schema = dbkit.MustSchema(t, c)
		check()
	}
	dbkit.CheckSound(t, d, "at the end")
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", opts)
	c = dbkit.MustCollection(t, d, "main")
	if now := dbkit.MustSchema(t, c); !reflect.DeepEqual(now, m.schema) {
		t.Errorf("opened again: %+v, want %+v", now, m.schema)
	}
	check()
}

// checkOne compares the answers to a random query with the model.
func (m *metricsModel) checkOne(t *testing.T, r *rand.Rand, c *db.Collection) {
	t.Helper()
	from := m.schema.Modalities[r.IntN(len(m.schema.Modalities))]
	q := db.Query{From: from.Name}
	if r.IntN(2) == 0 {
		q.To = m.schema.Modalities[r.IntN(len(m.schema.Modalities))].Name
	}
	if r.IntN(3) == 0 {
		q.Where = "even = true"
	}
	keys := slices.Sorted(maps.Keys(m.items))
	key := keys[r.IntN(len(keys))]
	x := m.items[key][from.Name]
	for _, name := range m.compared(from.Name, "") { // the vector of a neighbour will do
		if y := m.items[key][name]; x == nil && y != nil {
			x = y
		}
	}
	if x == nil {
		return
	}
	switch {
	case r.IntN(3) == 0 && m.items[key][from.Name] != nil:
		q.Key, q.ExcludeSelf = key, r.IntN(2) == 0
	case from.Sparse:
		s := sparseOf(x)
		q.Sparse = &s
	default:
		q.Vector = x
	}
	if all := m.answer(q, x); len(all) > 0 && r.IntN(3) == 0 {
		q.MinSimilarity = all[r.IntN(len(all))].Similarity
		if metric := m.modality(from.Name).Metric; metric == db.L2 && q.MinSimilarity == 0 {
			q.MinSimilarity = .5
		}
	}
	want := m.answer(q, x)
	zero := !slices.ContainsFunc(x, func(v float32) bool { return v != 0 })
	if zero && m.modality(from.Name).Metric == "" {
		if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrInvalid) {
			t.Fatalf("%+v: %v", q, err)
		}
		return
	}
	same := func(what string, got []db.Hit, n int) {
		t.Helper()
		if len(got) != min(n, len(want)) {
			t.Fatalf("%+v by %q: %s: %d hits, want %d of %d", q, m.modality(from.Name).Metric, what, len(got), n, len(want))
		}
		for i, h := range got {
			if w := want[i]; h.Key != w.Key || h.Row != w.Row || h.Similarity != w.Similarity || h.Distance != -1 || !math.IsNaN(h.Score) {
				t.Fatalf("%+v by %q: %s: hit %d is %+v, want %+v", q, m.modality(from.Name).Metric, what, i, h, w)
			}
		}
	}
	for _, k := range []int{1, 1 + r.IntN(20), 10_000} {
		q.K = k
		res, err := c.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		same("search", res.Hits, k)
		if (res.Next != "") != (len(want) > k) {
			t.Fatalf("%+v: the cursor is %q, of %d hits", q, res.Next, len(want))
		}
	}
	var paged []db.Hit
	for q.K = 3 + r.IntN(40); ; {
		page, err := c.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, page.Hits...)
		if q.After = page.Next; q.After == "" || len(paged) > len(want) {
			break
		}
	}
	same("pages", paged, len(want))
	near, err := dbkit.Collect(c.Neighbors(ctx, q))
	if err != nil {
		t.Fatal(err)
	}
	same("neighbours", near, len(want))
	all, err := c.SearchAll(ctx, []db.Query{q, q})
	if err != nil {
		t.Fatal(err)
	}
	same("one of many", all[1].Hits, q.K)
	q.Include = db.IncludeVectors
	x1, res, err := c.Explain(ctx, q, -1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range res.Hits {
		if len(res.Hits[i].Item.Vectors)+len(res.Hits[i].Item.Sparse) != len(m.items[res.Hits[i].Key]) {
			t.Fatalf("%+v: hit %d has %+v", q, i, res.Hits[i].Item)
		}
		res.Hits[i].Item = nil
	}
	same("explain", res.Hits, q.K)
	vectors := 0
	for key, has := range m.items {
		if q.To != "" && has[q.To] == nil || q.ExcludeSelf && key == q.Key || q.Where != "" && !m.even[key] {
			continue
		}
		for _, name := range m.compared(q.From, q.To) {
			if has[name] != nil {
				vectors++
			}
		}
	}
	if x1.Plan != "vectors" || x1.Metric != string(cmp.Or(m.modality(from.Name).Metric, db.Cosine)) || !slices.Equal(x1.Modalities, m.compared(q.From, q.To)) || x1.Scanned != vectors {
		t.Fatalf("%+v: %+v, want %v of %d vectors", q, x1, m.compared(q.From, q.To), vectors)
	}
}

// Distances that are too small or too great for similarities to tell them apart are in order, and so
// are the pages.
func TestL2OfAllScales(t *testing.T) {
	for _, scale := range []float64{1e-15, 1e-6, 1, 1e12} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
		c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 2, Metric: db.L2}}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 { // 49 is the nearest
			if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": {float32(float64(100-i) * scale), 0}}}); err != nil {
				t.Fatal(err)
			}
		}
		q := db.Query{From: "e", Vector: []float32{0, 0}, K: 7} // zeros have distances
		n := 49
		for {
			res, err := c.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range res.Hits {
				if h.Key != fmt.Sprint(n) {
					t.Fatalf("scale %g: %s in place of %d", scale, h.Key, n)
				}
				n--
			}
			if q.After = res.Next; q.After == "" {
				break
			}
		}
		if n != -1 {
			t.Errorf("scale %g: it ends before %d", scale, n)
		}
		dbkit.MustClose(t, d)
	}
}

// An inner product that float32 cannot hold is the greatest number that it can.
func TestDotBeyondFloat32(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 1, Metric: db.Dot}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []float32{1e30, -1e30, 1e31} {
		if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": {v}}}); err != nil {
			t.Fatal(err)
		}
	}
	q := db.Query{From: "e", Vector: []float32{1e30}, K: 1}
	for i, want := range []db.Hit{{Key: "0", Similarity: math.MaxFloat32}, {Key: "2", Similarity: math.MaxFloat32}, {Key: "1", Similarity: -math.MaxFloat32}} {
		res, err := c.Search(ctx, q)
		if err != nil || res.Hits[0].Key != want.Key || res.Hits[0].Similarity != want.Similarity || (res.Next == "") != (i == 2) {
			t.Fatalf("page %d: %+v, %v", i, res, err)
		}
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
		if got := dbkit.MustSchema(t, c).Modalities; !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	m := func(name string, metric db.Metric, of string) db.Modality {
		return db.Modality{Name: name, Dim: 4, Metric: metric, SpaceOf: of}
	}
	var c *db.Collection
	for _, r := range []struct {
		given, want []db.Modality
		says        string
	}{
		{given: []db.Modality{m("a", db.Cosine, ""), m("b", "", "")}, want: []db.Modality{m("a", "", ""), m("b", "", "")}},
		{given: []db.Modality{m("a", "", "b"), m("b", "", "c"), m("c", db.Dot, "")}, want: []db.Modality{m("a", db.Dot, ""), m("b", db.Dot, "a"), m("c", db.Dot, "a")}},
		{given: []db.Modality{m("a", "", "b"), m("b", db.L2, "a"), m("c", db.L2, "")}, want: []db.Modality{m("a", db.L2, ""), m("b", db.L2, "a"), m("c", db.L2, "")}},
		{given: []db.Modality{m("a", "", "a")}, says: `the space of modality "a": it names itself`},
		{given: []db.Modality{m("a", "", "z")}, says: `the space of modality "a": there is no modality "z": collection "c`},
		{given: []db.Modality{m("a", "", ""), {Name: "b", Dim: 5, SpaceOf: "a"}}, says: `modality "b" is of dimension 5, and "a" is of dimension 4: they cannot share a space`},
		{given: []db.Modality{m("a", "", ""), {Name: "b", Dim: 4, Sparse: true, SpaceOf: "a"}}, says: `modality "b" is sparse, of dimension 4, and "a" is of dimension 4: they cannot share a space`},
		{given: []db.Modality{m("a", db.Dot, ""), m("b", db.Cosine, "a")}, says: `modality "b" has the metric cosine, and "a", which shares its space, dot: a space has one metric`},
		{given: []db.Modality{m("a", "manhattan", "")}, says: `modality "a": unknown metric "manhattan": cosine, dot and l2 are possible`},
	} {
		made, err := create(r.given...)
		switch {
		case r.says != "":
			if !errors.Is(err, db.ErrInvalid) || !strings.Contains(fmt.Sprint(err), r.says) || strings.Count(err.Error(), "fddhdb: ") != 1 {
				t.Errorf("%+v: %v", r.given, err)
			}
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
	mustAlter(t, c, db.Alteration{Metrics: map[string]db.Metric{"c": ""}, SpaceOf: map[string]string{"a": ""}}) // it is so
	mustAlter(t, c, db.Alteration{AddModalities: []db.Modality{m("d", "", "")}, SpaceOf: map[string]string{"d": "a"}})
	is(c, m("a", db.L2, ""), m("b", "", ""), m("c", "", "b"), m("d", db.L2, "a"))
	mustAlter(t, c, db.Alteration{SpaceOf: map[string]string{"c": ""}})
	mustAlter(t, c, db.Alteration{SpaceOf: map[string]string{"b": "", "c": "a"}, Metrics: map[string]db.Metric{"d": db.Dot}})
	want := []db.Modality{m("a", db.Dot, ""), m("b", "", ""), m("c", db.Dot, "a"), m("d", db.Dot, "a")}
	is(c, want...)
	for _, r := range []struct {
		a    db.Alteration
		says string
	}{
		{db.Alteration{Metrics: map[string]db.Metric{"z": db.Dot}}, `unknown modality "z"`},
		{db.Alteration{Metrics: map[string]db.Metric{"a": "far"}}, `modality "a": unknown metric "far"`},
		{db.Alteration{Metrics: map[string]db.Metric{"a": db.Dot, "c": db.L2}}, `modality "c" has the metric l2, and "a", which shares its space, dot`},
		{db.Alteration{SpaceOf: map[string]string{"b": "a"}}, `modality "b" has the metric cosine, and "a", which shares its space, dot`},
		{db.Alteration{SpaceOf: map[string]string{"b": "b"}}, `the space of modality "b": it names itself`},
		{db.Alteration{SpaceOf: map[string]string{"z": ""}}, `unknown modality "z"`},
		{db.Alteration{AddModalities: []db.Modality{m("e", db.L2, "a")}}, `modality "e" has the metric l2, and "a", which shares its space, dot`},
		{db.Alteration{AddModalities: []db.Modality{m("e", db.L2, "a")}, Metrics: map[string]db.Metric{"a": db.Cosine}}, `modality "e" has the metric l2, and "a", which shares its space, cosine`},
		{db.Alteration{AddModalities: []db.Modality{{Name: "e", Dim: 5, SpaceOf: "a"}}}, `they cannot share a space`},
	} {
		if err := c.Alter(ctx, r.a); !errors.Is(err, db.ErrInvalid) || !strings.Contains(fmt.Sprint(err), r.says) {
			t.Errorf("%+v: %v", r.a, err)
		}
		is(c, want...)
	}
	codes, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	if err := codes.Alter(ctx, db.Alteration{Metrics: map[string]db.Metric{"a": db.Dot}}); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "bring codes") {
		t.Error(err)
	}

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
		{[]db.Modality{m("a", db.Dot, ""), m("c", db.Dot, "")}, `modality "c" is of dimension 4, by dot, in the space of a, not of dimension 4, by dot`},
		{[]db.Modality{m("a", db.Dot, ""), m("b", db.Dot, "a")}, `modality "b" is of dimension 4, not of dimension 4, by dot, in the space of a`},
	} {
		_, err := d.EnsureCollection(ctx, name, db.Schema{Modalities: r.wanted})
		if r.says == "" && err != nil || r.says != "" && (!errors.Is(err, db.ErrExists) || !strings.Contains(err.Error(), r.says)) {
			t.Errorf("%+v: %v", r.wanted, err)
		}
	}
}

// The descriptor has a version of its own exactly where a modality has a metric or shares a space.
// Index-only copies and backups keep both, and so does a repair that has the copy of a space alone.
func TestMetricsAreStored(t *testing.T) {
	for _, shared := range []bool{false, true} {
		opts := &db.Options{FS: vfs.NewMem()}
		d := dbkit.MustOpen(t, "db", opts)
		schema := dbkit.PairsSchema
		if shared {
			schema.Modalities = []db.Modality{{Name: "image", Dim: 8, Metric: db.L2}, {Name: "text", Dim: 5, Metric: db.Dot}}
		}
		c, err := d.CreateCollection(ctx, "main", schema)
		if err != nil {
			t.Fatal(err)
		}
		putAll(t, c, dbkit.Pairs(60, synth.Config{}))
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
		want := dbkit.MustSchema(t, c)
		key := codec.CollectionKey(codec.KindCollection, 1)
		is := indexOnlyOf(t, d, opts)
		if s := dbkit.MustSchema(t, dbkit.MustCollection(t, is, "main")); !s.IndexOnly || !slices.Equal(s.Modalities, want.Modalities) {
			t.Errorf("index-only: %+v", s)
		}
		dbkit.MustClose(t, is)
		keyValue{key, nil}.put(t, d)
		dbkit.MustClose(t, d)
		if _, err := db.Repair(ctx, "db", opts, db.RepairOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		d = dbkit.MustOpen(t, "db", opts)
		c = dbkit.MustCollection(t, d, "main")
		if s := dbkit.MustSchema(t, c); !reflect.DeepEqual(s, want) {
			t.Errorf("repaired: %+v, want %+v", s, want)
		}
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
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), strings.TrimSpace(says))) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// A cursor is of the metric and of the space that its answer began with.
func TestCursorsOfMetrics(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "a", Dim: 2}, {Name: "b", Dim: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		if _, err := c.Put(ctx, &db.Item{Vectors: map[string][]float32{"a": {1, float32(i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	q := db.Query{From: "a", Vector: []float32{1, 1}, K: 3}
	for _, a := range []db.Alteration{{Metrics: map[string]db.Metric{"a": db.Dot}}, {Metrics: map[string]db.Metric{"a": ""}}, {SpaceOf: map[string]string{"b": "a"}}} {
		page, err := c.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		mustAlter(t, c, a)
		q.After = page.Next
		if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "the metric and the space") {
			t.Errorf("%+v: %v", a, err)
		}
		q.After = ""
	}
	for least, metric := range map[float32]db.Metric{1.5: db.Cosine, -1.5: db.L2, 2: db.L2, float32(math.Inf(1)): db.Dot, float32(math.NaN()): db.L2} {
		mustAlter(t, c, db.Alteration{Metrics: map[string]db.Metric{"a": metric}})
		q.MinSimilarity = least
		if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "least similarity") {
			t.Errorf("%v by %s: %v", least, metric, err)
		}
	}
}
