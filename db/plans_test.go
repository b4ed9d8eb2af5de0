package db_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/mih"
)

// However a query is asked and whichever plan answers it, the answer is the same:
// that of the definition where the codes are given, in the present state and in
// every snapshot, whether the codes are in memory yet or not.

// ledger is a codes-only collection by definition: items by row, and when each
// code was first given to one of those that carry it.
type ledger struct {
	keys  map[string]int // key -> row
	codes map[int]string // row -> code
	ages  map[string]int // of the codes that some item has
	rows  int
	aged  int
}

func newLedger() *ledger {
	return &ledger{keys: map[string]int{}, codes: map[int]string{}, ages: map[string]int{}}
}

func (l *ledger) carried(code string) bool {
	for _, c := range l.codes {
		if c == code {
			return true
		}
	}
	return false
}

func (l *ledger) put(key string, code []byte) {
	row, ok := l.keys[key]
	if !ok {
		row = l.rows
		l.rows++
		l.keys[key] = row
	} else if l.codes[row] == string(code) {
		return
	} else {
		l.drop(row)
	}
	if !l.carried(string(code)) {
		l.ages[string(code)] = l.aged
		l.aged++
	}
	l.codes[row] = string(code)
}

func (l *ledger) drop(row int) {
	c := l.codes[row]
	delete(l.codes, row)
	if !l.carried(c) {
		delete(l.ages, c)
	}
}

func (l *ledger) delete(key string) {
	if row, ok := l.keys[key]; ok {
		delete(l.keys, key)
		l.drop(row)
	}
}

// answer returns all items in the order of a query by code.
func (l *ledger) answer(code []byte) []db.Hit {
	var hits []db.Hit
	for key, row := range l.keys {
		d := 0
		for i, b := range []byte(l.codes[row]) {
			d += bits.OnesCount8(b ^ code[i])
		}
		hits = append(hits, db.Hit{Key: key, Row: uint32(row), Distance: d, Score: math.NaN()})
	}
	slices.SortFunc(hits, func(a, b db.Hit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance),
			cmp.Compare(l.ages[l.codes[int(a.Row)]], l.ages[l.codes[int(b.Row)]]), cmp.Compare(a.Row, b.Row))
	})
	return hits
}

// coldCollection returns the present state of a collection as it is when a large
// database has just been opened: its codes are not in memory.
func coldCollection(d *db.DB, c *db.Collection) (cold *db.Collection, release func()) {
	now := db.State(d).Current.Load()
	v := &state.View{Snap: db.State(d).Engine.DB.NewSnapshot(), Sequence: now.Sequence}
	v.Refs.Store(1)
	for cv := range now.Collections.Values() {
		without := *cv
		without.Codes.Table = nil
		v.Catalogue = v.Catalogue.With(&without)
	}
	return db.AtView(c, v)
}

func within(hits []db.Hit, r int) []db.Hit {
	return slices.DeleteFunc(slices.Clone(hits), func(h db.Hit) bool { return h.Distance > r })
}

// checkAnswers asks for the neighbours of q in every way and compares the answers
// with want, all of them in order.
func checkAnswers(t *rapid.T, c *db.Collection, q db.Query, want []db.Hit) {
	fail := func(what string, plan db.Plan, got, want []db.Hit, err error) {
		t.Helper()
		t.Fatalf("%s, plan %v: %v\n got %v\nwant %v", what, plan, err, got, want)
	}
	s, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	k := rapid.IntRange(1, len(want)+3).Draw(t, "k")
	r := rapid.IntRange(0, 9).Draw(t, "radius")
	if len(want) > 0 && rapid.Bool().Draw(t, "exact") {
		r = want[rapid.IntRange(0, len(want)-1).Draw(t, "of")].Distance
	}
	near := within(want, r)
	all := k
	for _, plan := range dbkit.AllPlans {
		q.Plan, q.K, k = plan, all, all
		// To know that there are no more, lookups would have to try every value.
		exhausts := plan != db.PlanDisk || s.Bits <= 8
		if !exhausts {
			if len(want) == 0 {
				continue
			}
			k = min(k, (len(want)+1)/2)
			q.K = k
		}
		res, err := c.Search(ctx, q)
		if err != nil || !oracle.SameHits(res.Hits, want[:min(k, len(want))]) {
			fail(fmt.Sprintf("k = %d", k), plan, hitsOf(res), want[:min(k, len(want))], err)
		}
		if (res.Next != "") != (k < len(want)) {
			t.Fatalf("k = %d of %d, plan %v: next is %q", k, len(want), plan, res.Next)
		}
		_, res, err = c.Explain(ctx, q, -1)
		if err != nil || !oracle.SameHits(res.Hits, want[:min(k, len(want))]) {
			fail(fmt.Sprintf("explain k = %d", k), plan, hitsOf(res), want[:min(k, len(want))], err)
		}
		_, res, err = c.Explain(ctx, q, r)
		if err != nil || !oracle.SameHits(res.Hits, near[:min(k, len(near))]) || res.Total != len(near) {
			fail(fmt.Sprintf("explain r = %d", r), plan, hitsOf(res), near[:min(k, len(near))], err)
		}
		if n, err := c.CountRadius(ctx, q, r); n != len(near) || err != nil {
			t.Fatalf("plan %v: %d counted within %d, want %d: %v", plan, n, r, len(near), err)
		}
		checkRuns(t, c, q, r, near)
		if !exhausts {
			continue
		}
		hits, err := dbkit.Collect(c.Neighbors(ctx, q))
		if err != nil || !oracle.SameHits(hits, want) {
			fail("neighbours", plan, hits, want, err)
		}
		hits = nil
		for h, err := range c.Neighbors(ctx, q) {
			if err != nil {
				t.Fatal(err)
			}
			if hits = append(hits, h); len(hits) == k {
				break
			}
		}
		if !oracle.SameHits(hits, want[:min(k, len(want))]) {
			fail("some neighbours", plan, hits, want[:min(k, len(want))], nil)
		}
	}
	checkPages(t, c, q, -1, want)
	checkPages(t, c, q, r, near)
}

func hitsOf(r *db.Result) []db.Hit {
	if r == nil {
		return nil
	}
	return r.Hits
}

func checkRuns(t *rapid.T, c *db.Collection, q db.Query, r int, want []db.Hit) {
	runs, err := c.SearchRadius(ctx, q, r)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	if runs.Total() != len(want) {
		t.Fatalf("plan %v: %d within %d, want %d", q.Plan, runs.Total(), r, len(want))
	}
	for range 2 { // they can be read again
		hits, err := dbkit.Collect(runs.Hits(ctx))
		if err != nil || !oracle.SameHits(hits, want) {
			t.Fatalf("plan %v: hits of the runs within %d: %v, want %v: %v", q.Plan, r, hits, want, err)
		}
	}
	at := 0
	for run, err := range runs.All(ctx) {
		if err != nil {
			t.Fatalf("plan %v: runs within %d: %v", q.Plan, r, err)
		}
		got, in := run.Rows, []uint32(nil)
		for range got {
			if at == len(want) || want[at].Distance != run.Distance {
				t.Fatalf("plan %v: a run at %d in place of %v", q.Plan, run.Distance, want[min(at, len(want)-1)])
			}
			in = append(in, want[at].Row)
			at++
		}
		slices.Sort(in)
		if len(got) == 0 || !slices.Equal(got, in) {
			t.Fatalf("plan %v: a run at %d has rows %v, want %v", q.Plan, run.Distance, got, in)
		}
	}
	if at != len(want) {
		t.Fatalf("plan %v: runs have %d rows of %d", q.Plan, at, len(want))
	}
	if k := q.K; k > 0 {
		res, err := runs.First(ctx, k)
		if err != nil || !oracle.SameHits(res.Hits, want[:min(k, len(want))]) || res.Total != len(want) {
			t.Fatalf("plan %v: first %d: %v, %v", q.Plan, k, res, err)
		}
		if (res.Next != "") != (k < len(want)) {
			t.Fatalf("plan %v: first %d of %d: next is %q", q.Plan, k, len(want), res.Next)
		}
	}
}

// checkPages reads the answer by pages of random sizes, each by another plan.
func checkPages(t *rapid.T, c *db.Collection, q db.Query, radius int, want []db.Hit) {
	for at := 0; ; {
		q.K = rapid.IntRange(1, 12).Draw(t, "page")
		q.Plan = rapid.SampledFrom(dbkit.AllPlans).Draw(t, "plan")
		if q.Plan == db.PlanDisk && radius < 0 && at+q.K > len(want)/2 {
			q.Plan = db.PlanAuto // see checkAnswers
		}
		var res *db.Result
		var err error
		if radius < 0 {
			res, err = c.Search(ctx, q)
		} else {
			res, err = dbkit.FirstWithin(c, q, radius)
		}
		if err != nil {
			t.Fatal(err)
		}
		end := min(at+q.K, len(want))
		if !oracle.SameHits(res.Hits, want[at:end]) {
			t.Fatalf("plan %v, radius %d: hits %d to %d: %v, want %v", q.Plan, radius, at, end, res.Hits, want[at:end])
		}
		if at = end; (res.Next == "") != (at == len(want)) {
			t.Fatalf("plan %v, radius %d: next after %d of %d is %q", q.Plan, radius, at, len(want), res.Next)
		}
		if res.Next == "" {
			return
		}
		q.After = res.Next
	}
}

// forceBuild indexes all codes, as happens by itself when they are many.
func forceBuild(t *rapid.T, d *db.DB) {
	done := map[*state.CodeSet]bool{}
	for built, err := true, error(nil); built; {
		built, err = db.State(d).Index(ctx, 0, func(_ *state.View, set *state.CodeSetView) *mih.Build {
			if set.Table == nil || done[set.Set] {
				return nil
			}
			done[set.Set] = true
			return set.Table.Rebuild()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// moment is a state that was, and what is expected of it.
type moment struct {
	snapshot *db.Snapshot
	c, cold  *db.Collection
	release  func()
	code     []byte
	want     []db.Hit
}

func (m *moment) close(t *rapid.T) {
	m.release()
	if err := m.snapshot.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAllPlansAgreeWithTheDefinition(t *testing.T) {
	dbkit.LongTest(t)
	for _, q := range []int{8, 64, 136} {
		t.Run(fmt.Sprint(q, " bits"), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkHistory(t, q) })
		})
	}
}

// drawCode draws one of a few codes, or any near them.
func drawCode(t *rapid.T, q int) []byte {
	b := make([]byte, q/8)
	x := rapid.Uint16().Draw(t, "code")
	if rapid.Bool().Draw(t, "few") {
		x &= 0x0103
	}
	// Spread over the substrings, so that those that are far are soon found.
	for j := range 16 {
		b[j*len(b)/16] ^= byte(x>>j&1) << (j % 8)
	}
	return b
}

func checkHistory(t *rapid.T, q int) {
	opts := &db.Options{FS: vfs.NewMem()}
	d, err := db.Open("db", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: q})
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger()
	var moments []*moment
	key := func() string { return fmt.Sprintf("k%d", rapid.IntRange(0, 70).Draw(t, "key")) }
	for range rapid.IntRange(2, 12).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"put", "batch", "batch", "merge", "delete", "build", "compact", "reopen", "moment"}).Draw(t, "op") {
		case "put":
			k, code := key(), drawCode(t, q)
			if _, err := c.Put(ctx, &db.Item{Key: k, Code: code}); err != nil {
				t.Fatal(err)
			}
			l.put(k, code)
		case "merge":
			k, code := key(), drawCode(t, q)
			if _, err := c.Merge(ctx, &db.Item{Key: k, Code: code}); err != nil {
				t.Fatal(err)
			}
			l.put(k, code)
		case "delete":
			k := key()
			if _, err := c.Delete(ctx, k); err != nil {
				t.Fatal(err)
			}
			l.delete(k)
		case "batch":
			b := d.NewBatch()
			same := drawCode(t, q)
			for range rapid.IntRange(1, 50).Draw(t, "changes") {
				k := key()
				switch rapid.IntRange(0, 5).Draw(t, "change") {
				case 0:
					b.Delete(c, k)
					l.delete(k)
				case 1:
					b.Put(c, &db.Item{Key: k, Code: same})
					l.put(k, same)
				default:
					code := drawCode(t, q)
					b.Put(c, &db.Item{Key: k, Code: code})
					l.put(k, code)
				}
			}
			if err := b.Commit(ctx); err != nil {
				t.Fatal(err)
			}
		case "build":
			forceBuild(t, d)
		case "compact":
			if err := d.Compact(ctx); err != nil {
				t.Fatal(err)
			}
		case "reopen":
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			for _, m := range moments {
				if _, err := m.c.Search(ctx, db.Query{Code: m.code}); !errors.Is(err, db.ErrClosed) {
					t.Fatalf("a snapshot of a closed database: %v", err)
				}
			}
			moments = nil
			if rapid.Bool().Draw(t, "bare") {
				opts.IndexCacheBytes = -1
			} else {
				opts.IndexCacheBytes = 0
			}
			if d, err = db.Open("db", opts); err != nil {
				t.Fatal(err)
			}
			if c, err = d.Collection("main"); err != nil {
				t.Fatal(err)
			}
		case "moment":
			m := &moment{code: drawCode(t, q)}
			m.want = l.answer(m.code)
			if m.snapshot, err = d.Snapshot(); err != nil {
				t.Fatal(err)
			}
			if m.c, err = m.snapshot.Collection("main"); err != nil {
				t.Fatal(err)
			}
			m.cold, m.release = coldCollection(d, c)
			moments = append(moments, m)
		}
	}
	query := db.Query{Code: drawCode(t, q)}
	want := l.answer(query.Code)
	checkAnswers(t, c, query, want)
	if len(want) > 0 { // by the key of an item: its code
		k := want[rapid.IntRange(0, len(want)-1).Draw(t, "by key")].Key
		byKey := l.answer([]byte(l.codes[l.keys[k]]))
		i := slices.IndexFunc(byKey, func(h db.Hit) bool { return h.Key == k })
		itself := byKey[i]
		byKey = slices.Delete(byKey, i, i+1)
		exclude := rapid.Bool().Draw(t, "exclude")
		if !exclude { // it is the first with its code, which is the nearest
			byKey = slices.Insert(byKey, 0, itself)
		}
		checkAnswers(t, c, db.Query{Key: k, ExcludeSelf: exclude}, byKey)
	}
	cold, release := coldCollection(d, c)
	checkAnswers(t, cold, query, want)
	release()
	for _, m := range moments {
		checkAnswers(t, m.c, db.Query{Code: m.code}, m.want)
		checkAnswers(t, m.cold, db.Query{Code: m.code}, m.want)
		m.close(t)
	}
}

// A learned collection orders by scores and cosines too, which the definition
// here does not compute: all ways must agree on one order, and that must have the
// right items at the right distances, and the scores that Encode implies. The codes are those
// of the definition.
func TestAllPlansAgreeOnLearnedCodes(t *testing.T) {
	dbkit.LongTest(t)
	rapid.Check(t, func(t *rapid.T) {
		opts := &db.Options{FS: vfs.NewMem()}
		d, err := db.Open("db", opts)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
		if err != nil {
			t.Fatal(err)
		}
		trained := false
		var done []func()
		for range rapid.IntRange(2, 10).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"batch", "batch", "delete", "train", "train", "build", "compact", "reopen", "moment"}).Draw(t, "op") {
			case "batch":
				b := d.NewBatch()
				for range rapid.IntRange(1, 30).Draw(t, "puts") {
					b.Put(c, drawPair(t))
				}
				if err := b.Commit(ctx); err != nil {
					t.Fatal(err)
				}
			case "delete":
				if _, err := c.Delete(ctx, drawPair(t).Key, drawPair(t).Key); err != nil {
					t.Fatal(err)
				}
			case "train":
				opt := fit.Options{Bits: 8, Anchors: 4, Seed: 1}
				opt.Fusion = fit.Fusion{Rule: fit.FusionSum}
				_, err := c.Train(ctx, db.TrainOptions{Options: opt})
				trained = trained || err == nil
			case "build":
				forceBuild(t, d)
			case "compact":
				if err := d.Compact(ctx); err != nil {
					t.Fatal(err)
				}
			case "reopen":
				for _, f := range done {
					f()
				}
				done = nil
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				if d, err = db.Open("db", opts); err != nil {
					t.Fatal(err)
				}
				if c, err = d.Collection("main"); err != nil {
					t.Fatal(err)
				}
			case "moment":
				if !trained {
					continue
				}
				s, err := d.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				then, err := s.Collection("main")
				if err != nil {
					t.Fatal(err)
				}
				cold, release := coldCollection(d, c)
				q, want := learnedAnswer(t, c)
				done = append(done, func() {
					if want != nil {
						checkAnswers(t, then, q, want)
						checkAnswers(t, cold, q, want)
					}
					release()
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
		checkSpaces(t, d)
		if !trained {
			return
		}
		q, want := learnedAnswer(t, c)
		if want != nil {
			checkAnswers(t, c, q, want)
			cold, release := coldCollection(d, c)
			checkAnswers(t, cold, q, want)
			release()
		}
		for _, f := range done {
			f()
		}
	})
}

func drawPair(t *rapid.T) *db.Item {
	it := &db.Item{Key: fmt.Sprintf("k%d", rapid.IntRange(0, 50).Draw(t, "key")), Vectors: map[string][]float32{}}
	class := rapid.IntRange(0, 2).Draw(t, "class")
	for _, m := range dbkit.PairsSchema.Modalities {
		if rapid.IntRange(0, 4).Draw(t, "lacks") == 0 {
			continue
		}
		x := make([]float32, m.Dim)
		noise := rapid.Uint32().Draw(t, m.Name)
		for j := range x {
			x[j] = float32(noise>>(2*j)&3)/2 - .75
		}
		x[class] += 4
		it.Vectors[m.Name] = x
	}
	if rapid.IntRange(0, 2).Draw(t, "labelled") == 0 {
		it.Labels = []string{string(rune('a' + class))}
	}
	return it
}

// learnedAnswer draws a query and returns it with the whole answer, which it
// checks.
func learnedAnswer(t *rapid.T, c *db.Collection) (db.Query, []db.Hit) {
	q := db.Query{Rerank: rapid.SampledFrom([]db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric, db.RerankAsymmetric}).Draw(t, "rerank"),
		To: rapid.SampledFrom([]string{"", "image", "text"}).Draw(t, "to")}
	items := map[string]*db.Item{}
	coded := 0
	var all []*db.Item
	for it, err := range c.Items(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, it)
		if it.Code != nil {
			coded++
			if q.To == "" || it.Vectors[q.To] != nil {
				items[it.Key] = it
			}
		}
	}
	var z []float64
	var code []byte
	var err error
	switch pair := drawPair(t); {
	case pair.Vectors["text"] != nil:
		q.From, q.Vector = "text", pair.Vectors["text"]
		if code, z, err = c.EncodeQuery(ctx, db.Query{From: "text", To: q.To, Vector: q.Vector}); err != nil {
			return q, nil // the model does not know texts
		}
	case len(all) > 0:
		q.Key = all[rapid.IntRange(0, len(all)-1).Draw(t, "by key")].Key
		it := all[slices.IndexFunc(all, func(it *db.Item) bool { return it.Key == q.Key })]
		if code = it.Code; code == nil {
			return q, nil
		}
	default:
		q.Code, code = []byte{1}, []byte{1}
	}
	q.K = len(items) + 1
	res, err := c.Search(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Hits) != len(items) {
		t.Fatalf("%d hits, want %d", len(res.Hits), len(items))
	}
	seen := roaring.New()
	for i, h := range res.Hits {
		it := items[h.Key]
		d := 0
		for j := range code {
			d += bits.OnesCount8(code[j] ^ it.Code[j])
		}
		if d != h.Distance || !seen.CheckedAdd(h.Row) {
			t.Fatalf("hit %+v: the distance is %d", h, d)
		}
		if z != nil && math.Abs(oracle.Score(z, string(it.Code))-h.Score) > 1e-9 {
			t.Fatalf("hit %+v: the score is %g", h, oracle.Score(z, string(it.Code)))
		}
		if i > 0 {
			last := res.Hits[i-1]
			wrong := last.Distance > d || last.Distance == d && last.Score < h.Score
			if q.Rerank == db.RerankAsymmetric && z != nil {
				wrong = last.Score < h.Score
			}
			if wrong {
				t.Fatalf("%+v comes before %+v", last, h)
			}
		}
	}
	q.K = 0
	return q, res.Hits
}
