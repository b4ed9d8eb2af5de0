package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

var (
	reranks = []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric}
	plans   = []db.Plan{db.PlanAuto, db.PlanMemory, db.PlanScan, db.PlanFilter, db.PlanDisk, db.PlanBlockScan}
	filters = []string{"", "number < 40", "label = 'label 1' OR NOT has(sound)", "number >= 1e9",
		"number IN (3, 33, 50.0, 70.5) AND label != 'label 2'"}
)

// trained returns a collection of three modalities, one of them sparse. Some of its
// items lack modalities, labels, or all modalities but one.
func trained(t *testing.T) *db.Collection {
	t.Helper()
	set := Pairs{
		Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "words", Dim: 12, Sparse: true},
			{Name: "sound", Dim: 5}},
		LabelsPerItem: 2, Missing: .3, Unlabelled: .3, Seed: 1,
	}
	d := Open(t, "", nil)
	c, err := d.CreateCollection(t.Context(), "main", set.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if err := Load(t.Context(), d, c, set.Items(0, 120)); err != nil {
		t.Fatal(err)
	}
	o := fit.Options{ // leaves nothing to choose
		Bits: codeBits(), Anchors: 20,
		Features: map[string]model.FeatureKind{}, Map: map[string]model.MapKind{},
		Gamma: map[string]float64{},
	}
	for _, m := range set.Modalities {
		o.Features[m.Name], o.Map[m.Name], o.Gamma[m.Name] = model.FeaturesRaw, model.MapRBF, .1
	}
	if _, err := c.Train(t.Context(), db.TrainOptions{Options: o}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(t.Context(), "item 17", "item 60"); err != nil {
		t.Fatal(err)
	}
	return c
}

// codeBits keeps the lookups of plans in the store short if everything is slow.
func codeBits() int {
	if testing.Short() {
		return 8
	}
	return 16
}

// queries returns queries of all kinds: orders, plans and filters in turn.
func queries(to ...string) []db.Query {
	var all []db.Query
	set := Pairs{Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "words", Dim: 12, Sparse: true},
		{Name: "sound", Dim: 5}}, Seed: 1}
	for it := range set.Items(120, 126) {
		words := it.Sparse["words"]
		for _, q := range []db.Query{
			{From: "image", Vector: it.Vectors["image"]}, {From: "words", Sparse: &words},
			{From: "sound", Key: "item 5"},
			{From: "words", Key: "item 6", ExcludeSelf: true},
			{Key: fmt.Sprint("item ", len(all)), ExcludeSelf: len(all)%2 == 0},
			{Key: fmt.Sprint("item ", len(all))}, {Code: []byte{byte(len(all)), 0x5a}[:codeBits()/8]},
		} {
			i := len(all)
			q.To, q.K = to[i%len(to)], []int{0, 1, 7, 200}[i%4]
			q.Plan, q.Where = plans[i%len(plans)], filters[i%len(filters)]
			if q.Plan == db.PlanDisk { // looks up all possible codes before it knows that there are no more
				q.K = 1 + i%7
			}
			q.Rerank = reranks[i/2%3]
			all = append(all, q)
		}
	}
	return all
}

// The database and the oracle agree on queries of all kinds.
func TestSearchesOfLearnedCodes(t *testing.T) {
	CheckSearches(t, trained(t), queries("", "image", "words", "sound")...)
}

// A copy without vectors gives the same answers, and is verified in the same way.
func TestSearchesOfIndexOnlyCopies(t *testing.T) {
	fs := vfs.NewMem()
	d := Open(t, "", &db.Options{FS: fs})
	set := Pairs{Missing: .4}
	c, err := d.CreateCollection(t.Context(), "main", set.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if err := Load(t.Context(), d, c, set.Items(0, 60)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 8, Anchors: 10}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Checkpoint(t.Context(), "copy", db.CheckpointOptions{IndexOnly: true}); err != nil {
		t.Fatal(err)
	}
	if c, err = Open(t, "copy", &db.Options{FS: fs}).Collection("main"); err != nil {
		t.Fatal(err)
	}
	CheckSearches(t, c,
		db.Query{Key: "item 2", From: "image", To: "text"},
		db.Query{From: "image", Vector: make([]float32, 16), Where: "has(text) AND NOT has(image)",
			Rerank: db.RerankAsymmetric})
}

// A snapshot and a space of its own keep their answers, whatever is written meanwhile.
func TestSearchesOfSnapshotsAndSpaces(t *testing.T) {
	d := Open(t, "", nil)
	set := Pairs{}
	c, err := d.CreateCollection(t.Context(), "main", set.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if err := Load(t.Context(), d, c, set.Items(0, 80)); err != nil {
		t.Fatal(err)
	}
	for _, bits := range []int{8, 24} {
		if _, err := c.Train(t.Context(),
			db.TrainOptions{Options: fit.Options{Bits: bits, Anchors: 10}}); err != nil {
			t.Fatal(err)
		}
	}
	second, err := c.InSpace(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	CheckSearches(t, c, db.Query{Key: "item 9"})
	CheckSearches(t, second, db.Query{Key: "item 9"}, db.Query{Code: make([]byte, 3)})
	s, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, err := s.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteWhere(t.Context(), "number < 50"); err != nil {
		t.Fatal(err)
	}
	CheckSearches(t, before, db.Query{Key: "item 9", Where: "number < 70"})
	o, err := NewOracle(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	if hits, err := o.Hits(t.Context(), db.Query{Key: "item 9"}); err != nil || len(hits) != 80 ||
		hits[0].Distance != 0 {
		t.Errorf("%d hits, %v", len(hits), err)
	}
	for _, q := range []db.Query{{Key: "item 9", After: "x"}, {Key: "nobody"},
		{Key: "item 9", Where: "colour = 1"}} {
		if _, err := o.Hits(t.Context(), q); err == nil {
			t.Errorf("%+v is answered", q)
		}
		if err := o.CheckRadius(t.Context(), q, 3); err == nil {
			t.Errorf("%+v passes", q)
		}
	}
}

// A changed collection differs from an older oracle in every way in which an answer can
// be wrong. Each is noticed, and the message names it.
func TestWrongAnswersAreNoticed(t *testing.T) {
	code := func(it *db.Item, to byte) *db.Item {
		it.Code = slices.Clone(it.Code)
		it.Code[0] ^= to
		return it
	}
	q := db.Query{Key: "item 3", K: 20, Where: "number < 30"}
	for name, test := range map[string]struct {
		change func(c *db.Collection, it *db.Item) error
		says   string
	}{
		"missing": {func(c *db.Collection, it *db.Item) error {
			_,
				err := c.Delete(t.Context(), it.Key)
			return err
		}, `"item 5" at distance`},
		"distance": {func(c *db.Collection, it *db.Item) error {
			_,
				err := c.Put(t.Context(), code(it, 1))
			return err
		}, "distance"},
		"field": {func(c *db.Collection, it *db.Item) error {
			it.Fields["number"] = 99
			_, err := c.Put(t.Context(), it)
			return err
		}, "item 5"},
		"too many": {func(c *db.Collection, it *db.Item) error {
			it.Key = "another"
			_, err := c.Put(t.Context(), it)
			return err
		}, "another"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Open(t, "", nil)
			c, err := d.CreateCollection(t.Context(), "main", Codes{Bits: 16, Centres: 1}.Schema())
			if err != nil {
				t.Fatal(err)
			}
			if err := Load(t.Context(), d, c, Codes{Bits: 16, Centres: 1}.Items(0, 15)); err != nil {
				t.Fatal(err)
			}
			o, err := NewOracle(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if err := o.check(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			it, err := c.Get(t.Context(), "item 5")
			if err == nil {
				err = test.change(c, it)
			}
			if err != nil {
				t.Fatal(err)
			}
			search, radius, where := o.CheckSearch(t.Context(), q), o.CheckRadius(t.Context(), q, 16),
				o.CheckWhere(t.Context(), q.Where)
			if name == "distance" {
				where = search // the change does not affect it
			}
			if search == nil || radius == nil || where == nil {
				t.Fatalf("search: %v; radius: %v; where: %v", search, radius, where)
			}
			if !strings.Contains(search.Error(), test.says) ||
				!strings.Contains(search.Error(), `query by key "item 3" where number < 30`) {
				t.Errorf("the message is %v", search)
			}
			expect(t, failing(t, func(
				t testing.TB) {
				o.report(t, []db.Query{q, {Code: []byte{1, 2}, K: 20, Where: q.Where}})
			}),
				test.says, "query by code 0102")
			expect(t, failing(t, func(t testing.TB) {
				CheckSearches(t, c, db.Query{Key: "item 3", Where: "nothing = 1"}, db.Query{Code: []byte{1}})
			}), "nothing = 1", "query by code 01")
		})
	}
}

// Codes that searches use and items do not have are noticed before anything is
// compared.
func TestOtherCodesAreNoticed(t *testing.T) {
	c := loaded(t, Open(t, "", nil), 20)
	for says, change := range map[string]func(o *Oracle){
		`code of item "item 3"`: func(o *Oracle) { o.byKey["item 3"].Code[0] ^= 1 },
		`an item "item 3"`:      func(o *Oracle) { delete(o.byKey, "item 3") },
		"differ by 1 items": func(o *Oracle) {
			o.items = append(o.items, &db.Item{Key: "more",
				Code: []byte{1, 2, 3, 4}})
		},
	} {
		o, err := NewOracle(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		change(o)
		if err := o.readCodes(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}
