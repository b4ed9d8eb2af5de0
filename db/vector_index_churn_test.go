package db_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// What an index of vectors finds while clusters come, move and go. The flags make the histories of
// `make churn`; without them there is one of each kind, and short.
var (
	churnItems = flag.Int("churn.items", 3000,
		"vectors that are indexed before a history of TestRecallAfterChurn begins")
	churnSeeds   = flag.Int("churn.seeds", 1, "histories of each kind and metric")
	churnQueries = flag.Int("churn.queries", 60, "queries of each group of items, after each step")
)

// A churn is a collection of clusters of vectors, and what its items are now.
type churn struct {
	t      testing.TB
	r      *rand.Rand
	fs     vfs.FS
	d      *db.DB
	c      *db.Collection
	metric db.Metric
	asked  float64
	short  bool // each process writes some hundred items, and ends

	groups []*cluster
	keys   int
	worst  map[string]float64 // by group and k
}

// A cluster is where vectors come from, and those items that have come.
type cluster struct {
	name   string // of the step that made it
	centre []float64
	sigma  float64
	norms  float64 // the deviation of the logarithm of lengths
	items  map[string][]float32
}

const churnDims = 48

func (h *churn) cluster(name string, centre []float64, sigma float64) *cluster {
	g := &cluster{name: name, centre: centre, sigma: sigma, items: map[string][]float32{}}
	if h.metric == db.Dot {
		g.norms = .5
	}
	h.groups = append(h.groups, g)
	return g
}

// place draws the centre of a cluster: scale away from the others, which are 1 away from each other.
func (h *churn) place(scale float64) []float64 {
	x := make([]float64, churnDims)
	for j := range x {
		x[j] = h.r.NormFloat64() * scale
	}
	return x
}

// vector draws a vector of a cluster.
func (g *cluster) vector(r *rand.Rand) []float32 {
	x := make([]float32, len(g.centre))
	norm := math.Exp(g.norms * r.NormFloat64())
	for j, c := range g.centre {
		x[j] = float32(norm * (c + g.sigma*r.NormFloat64()))
	}
	return x
}

// put stores items, n of each cluster, in any order; those with a key get another vector.
func (h *churn) put(n int, clusters ...*cluster) {
	type entry struct {
		g   *cluster
		key string
	}
	var all []entry
	for _, g := range clusters {
		for range n {
			h.keys++
			all = append(all, entry{g, fmt.Sprint("k", h.keys)})
		}
	}
	h.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var items []*db.Item
	for _, e := range all {
		x := e.g.vector(h.r)
		e.g.items[e.key] = x
		items = append(items, &db.Item{Key: e.key, Vectors: map[string][]float32{"e": x}})
	}
	h.write(items, nil)
}

// move gives all items of a cluster vectors of another.
func (h *churn) move(from, to *cluster) {
	var items []*db.Item
	for _, key := range sortedKeys(from.items) {
		x := to.vector(h.r)
		to.items[key] = x
		items = append(items, &db.Item{Key: key, Vectors: map[string][]float32{"e": x}})
	}
	clear(from.items)
	h.write(items, nil)
}

// remove deletes a share of the items of clusters.
func (h *churn) remove(share float64, clusters ...*cluster) {
	var keys []string
	for _, g := range clusters {
		for _, key := range sortedKeys(g.items) {
			if h.r.Float64() < share {
				keys = append(keys, key)
				delete(g.items, key)
			}
		}
	}
	h.write(nil, keys)
}

func sortedKeys(m map[string][]float32) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// write puts items and deletes keys, in batches of some hundred.
func (h *churn) write(items []*db.Item, keys []string) {
	h.t.Helper()
	part := 500
	for len(items) > 0 || len(keys) > 0 {
		b := h.d.NewBatch()
		for _, it := range items[:min(part, len(items))] {
			must(h.t, b.Put(h.c, it))
		}
		items = items[min(part, len(items)):]
		for _, key := range keys[:min(part, len(keys))] {
			must(h.t, b.Delete(h.c, key))
		}
		keys = keys[min(part, len(keys)):]
		must(h.t, b.Commit(ctx))
		if h.short {
			dbkit.MustClose(h.t, h.d)
			h.open()
		}
	}
}

func (h *churn) open() {
	h.d = dbkit.MustOpen(h.t, "db", &db.Options{FS: h.fs})
	h.c = dbkit.MustCollection(h.t, h.d, "main")
}

// distance is what the metric ranks by: the nearest has the least.
func (h *churn) distance(x, q []float32) float64 {
	q = q[:len(x)]
	sum := 0.
	switch h.metric {
	case db.L2:
		for j, v := range x {
			d := float64(v) - float64(q[j])
			sum += d * d
		}
		return sum
	case db.Dot:
		for j, v := range x {
			sum -= float64(v) * float64(q[j])
		}
		return sum
	}
	square := 0.
	for j, v := range x {
		square += float64(v) * float64(v)
		sum -= float64(v) * float64(q[j])
	}
	return sum / math.Sqrt(square)
}

// found counts, for each k, the nearest items that searches find, and those that there are, by plain
// comparisons of all vectors.
func (h *churn) found(c *db.Collection, queries [][]float32, ks []int,
	all map[string][]float32) (found, wanted []int) {
	h.t.Helper()
	found, wanted = make([]int, len(ks)), make([]int, len(ks))
	vectors := slices.Collect(maps.Values(all))
	deepest := min(slices.Max(ks), len(all))
	var mu sync.Mutex
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(queries); i = int(next.Add(1)) - 1 {
				var nearest []float64 // of the first ones, which ascend; twice as many, until they are sorted
				floor := math.Inf(1)
				for j, x := range vectors {
					if d := h.distance(x, queries[i]); d < floor || len(nearest) < deepest {
						nearest = append(nearest, d)
					}
					if len(nearest) == 2*deepest || j == len(vectors)-1 {
						slices.Sort(nearest)
						nearest = nearest[:min(deepest, len(nearest))]
						floor = nearest[len(nearest)-1]
					}
				}
				for j, k := range ks {
					r, err := c.Search(ctx, db.Query{From: "e", Vector: queries[i], K: k, Recall: h.asked})
					if err != nil {
						h.t.Error(err)
						return
					}
					floor := nearest[min(k, len(all))-1]
					n := 0
					for _, hit := range r.Hits {
						if x, there := all[hit.Key]; !there {
							h.t.Errorf("%q is a hit, and gone", hit.Key)
						} else if h.distance(x, queries[i]) <= floor+1e-9*math.Abs(floor) {
							n++
						}
					}
					mu.Lock()
					found[j], wanted[j] = found[j]+n, wanted[j]+min(k, len(all))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return found, wanted
}

// check compares searches with plain comparisons of all vectors, for queries from each step's clusters.
func (h *churn) check(when string) {
	h.t.Helper()
	all := map[string][]float32{}
	bySteps := map[string][]*cluster{}
	for _, g := range h.groups {
		maps.Copy(all, g.items)
		if len(g.items) > 0 {
			bySteps[g.name] = append(bySteps[g.name], g)
		}
	}
	ks := []int{1, 10, 100}
	for step, clusters := range bySteps {
		queries := h.queries(*churnQueries, clusters)
		found, wanted := h.found(h.c, queries, ks, all)
		for j, k := range ks {
			q := db.Query{From: "e", Vector: queries[0], K: k, Recall: h.asked}
			x, _ := need2(dbkit.Explain(ctx, h.c, q, -1))(h.t)
			recall, expected := float64(found[j])/float64(wanted[j]), cmp.Or(x.Recall, 1)
			at := fmt.Sprintf("%s, queries like %s, k = %d", when, step, k)
			h.t.Logf("%s: found %.3f, expected %.3f (%s)", at, recall, expected, x.Plan)
			if w, there := h.worst[at]; !there || recall < w {
				h.worst[at] = recall
			}
			if recall >= h.least(*churnQueries, wanted[j]) {
				continue
			}
			// Of one neighbor some hundred queries say little: five times as many do.
			queries := slices.Concat(queries, h.queries(4**churnQueries, clusters))
			more, of := h.found(h.c, queries, []int{k}, all)
			if recall = float64(more[0]) / float64(of[0]); recall >= h.least(len(queries), of[0]) {
				h.t.Logf("%s: of %d queries found %.3f", at, len(queries), recall)
				continue
			}
			anew := h.anew(queries, k, all) // tells whether churn is at fault, or the measurement
			h.t.Errorf("%s, asked %v: %s: found %.3f, expected %.3f (%s); an index made anew: %.3f", h.metric,
				h.asked, at, recall, expected, x.Plan, anew)
		}
	}
}

// least is the recall that so many queries find at least, of so many nearest items.
func (h *churn) least(queries, wanted int) float64 {
	least := h.asked - .02
	if queries < 200 { // too few to tell
		least -= 3 * math.Sqrt(h.asked*(1-h.asked)/float64(wanted))
	}
	return least
}

// queries draws vectors of clusters.
func (h *churn) queries(n int, clusters []*cluster) [][]float32 {
	all := make([][]float32, n)
	for i := range all {
		all[i] = clusters[i%len(clusters)].vector(h.r)
	}
	return all
}

// anew is the recall of an index that is made of the items as they are.
func (h *churn) anew(queries [][]float32, k int, all map[string][]float32) float64 {
	h.t.Helper()
	other := &churn{t: h.t, fs: vfs.NewMem(), metric: h.metric, asked: h.asked}
	other.index(func() {
		items := make([]*db.Item, 0, len(all))
		for key, x := range all {
			items = append(items, &db.Item{Key: key, Vectors: map[string][]float32{"e": x}})
		}
		other.write(items, nil)
	})
	defer dbkit.MustClose(h.t, other.d)
	found, wanted := other.found(other.c, queries, []int{k}, all)
	return float64(found[0]) / float64(wanted[0])
}

// index makes a database, and an index of what put stores.
func (h *churn) index(put func()) {
	h.t.Helper()
	h.d = dbkit.MustOpen(h.t, "db", &db.Options{FS: h.fs})
	var err error
	h.c, err = h.d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "e", Dim: churnDims, Metric: h.metric}}})
	stopIf(h.t, err != nil, "%v", err)
	put()
	need(h.c.IndexVectors(ctx, db.IndexOptions{Recall: h.asked}))(h.t)
}

// settled waits until the index has taken in what has come, and needs no more.
func (h *churn) settled() {
	h.t.Helper()
	eventually(h.t, "the index has taken in what has come", func() bool {
		all, err := dbkit.VectorIndexes(h.c)
		return err == nil && len(all) > 0 && all[0].Complete && all[0].Unknown-all[0].Loose < 512 &&
			all[0].Loose < 512+all[0].Of/256
	})
}

// Histories of clusters that come, move and go: each begins with an index of clusters, or of vectors
// that have none.
var churnHistories = map[string]func(h *churn, step func(name string, do func(name string))){
	"other clusters come": func(h *churn, step func(string, func(string))) {
		step("new clusters", func(name string) {
			var more []*cluster
			for range 15 {
				more = append(more, h.cluster(name, h.place(1), .3))
			}
			h.put(*churnItems/60, more...)
		})
	},
	"one cluster comes": func(h *churn, step func(string, func(string))) {
		step("one cluster", func(name string) { h.put(*churnItems/20, h.cluster(name, h.place(1), .3)) })
	},
	"a tight cluster comes": func(h *churn, step func(string, func(string))) {
		step("near", func(name string) {
			g := h.groups[h.r.IntN(len(h.groups))]
			centre := slices.Clone(g.centre)
			for j := range centre {
				centre[j] += g.sigma * h.r.NormFloat64()
			}
			h.put(*churnItems/20, h.cluster(name, centre, g.sigma/20))
		})
	},
	"others in place of most": func(h *churn, step func(string, func(string))) {
		step("others", func(name string) {
			h.remove(.9, h.groups...)
			var more []*cluster
			for range 30 {
				more = append(more, h.cluster(name, h.place(1.5), .4))
			}
			h.put(*churnItems*9/10/30, more...)
		})
	},
	"most go": func(h *churn, step func(string, func(string))) {
		step("deleted", func(string) { h.remove(.9, h.groups...) })
	},
	"some go": func(h *churn, step func(string, func(string))) {
		step("deleted", func(string) { h.remove(.4, h.groups...) })
	},
	"outliers come": func(h *churn, step func(string, func(string))) {
		step("outliers", func(name string) {
			h.put(*churnItems/20, h.cluster(name, make([]float64, churnDims), 3))
		})
		step("between them", func(name string) {
			h.put(*churnItems/20, h.groups[0], h.groups[1], h.cluster(name, h.place(3), .3))
		})
	},
	"clusters among vectors without": func(h *churn, step func(string, func(string))) {
		step("clusters", func(name string) {
			var more []*cluster
			for range 10 {
				more = append(more, h.cluster(name, h.place(.9), .05))
			}
			h.put(*churnItems/100, more...)
		})
	},
	"clusters move": func(h *churn, step func(string, func(string))) {
		for round := range 4 {
			step(fmt.Sprint("moved ", round), func(name string) {
				for range 6 {
					from := h.groups[h.r.IntN(len(h.groups))]
					h.move(from, h.cluster(name, h.place(1), .3))
				}
			})
		}
	},
	"all of it": func(h *churn, step func(string, func(string))) {
		for round := range effort.Of(6, 3) {
			step(fmt.Sprint("round ", round), func(name string) {
				h.remove(.1+.8*h.r.Float64(), h.groups[h.r.IntN(len(h.groups))],
					h.groups[h.r.IntN(len(h.groups))])
				h.put(*churnItems/100, h.cluster(name, h.place(1), .3), h.cluster(name, h.place(1), .1),
					h.groups[h.r.IntN(len(h.groups))])
				h.move(h.groups[h.r.IntN(len(h.groups))], h.cluster(name, h.place(2), .3))
			})
		}
	},
}

// An index finds at least what was asked for, less .02, of queries like any of the items, while others
// come in their place: at once, and when it has taken them in.
func TestRecallAfterChurn(t *testing.T) {
	dbkit.LongTest(t)
	names := make([]string, 0, len(churnHistories))
	for name := range churnHistories {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		for j, metric := range []db.Metric{db.Cosine, db.L2, db.Dot} {
			if *churnSeeds == 1 && i%3 != j { // a sample
				continue
			}
			t.Run(fmt.Sprint(name, "/", cmp.Or(metric, "cosine")), func(t *testing.T) {
				worst := map[string]float64{}
				for s := range *churnSeeds {
					h := &churn{t: t, r: seed.Rand(t, uint64(s+1), uint64(i)), fs: vfs.NewMem(),
						metric: metric, asked: .99, short: (s+i)%2 == 1, worst: worst}
					if s%4 == 3 {
						h.asked = .9
					}
					churnHistory(h, name)
				}
				at := make([]string, 0, len(worst))
				for k := range worst {
					at = append(at, k)
				}
				slices.Sort(at)
				for _, k := range at {
					t.Logf("%.3f %s", worst[k], k)
				}
			})
		}
	}
}

func churnHistory(h *churn, name string) {
	short := h.short
	h.short = false
	h.index(func() {
		var first []*cluster
		if name == "clusters among vectors without" {
			first = append(first, h.cluster("first", make([]float64, churnDims), 1))
		} else {
			for range 60 {
				first = append(first, h.cluster("first", h.place(1), .3))
			}
		}
		h.put(*churnItems/len(first), first...)
	})
	h.check("indexed")
	h.short = short
	churnHistories[name](h, func(name string, do func(name string)) {
		do(name)
		h.check("after " + name)
		h.settled()
		h.check("after " + name + ", settled")
	})
	dbkit.CheckSound(h.t, h.d, name)
	dbkit.MustClose(h.t, h.d)
}

// Items that come while an index is being made are compared until it is complete, as its cells were found
// without them: what was measured says nothing of them.
func TestItemsThatComeMeanwhileWait(t *testing.T) {
	dbkit.LongTest(t)
	h := &churn{t: t, r: seed.Rand(t, 1, 2), fs: vfs.NewMem(), metric: db.Cosine, asked: .99,
		worst: map[string]float64{}}
	// more than are taken in at a time
	h.index(func() { h.put(18000, h.cluster("first", make([]float64, churnDims), 1)) })
	came := false
	_, err := h.c.IndexVectors(ctx, db.IndexOptions{Progress: func(string, int64, int64) {
		if !came {
			came = true
			h.put(100, h.cluster("meanwhile", h.place(1), .1))
		}
	}})
	must(t, err)
	all, err := dbkit.VectorIndexes(h.c)
	failIf(t, err != nil || len(all) != 1 || all[0].Unknown != 100 || all[0].Entries != 18000,
		"of 18,000 items and 100 that came meanwhile: %+v, %v", all, err)
	h.check("made meanwhile")
	dbkit.MustClose(t, h.d)
}

// A row that gains a vector while an index takes rows in is found afterwards.
func TestVectorsThatComeDuringAFold(t *testing.T) {
	t.Parallel()
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, indexedSchema)
	defer dbkit.MustClose(t, d)
	items := embedded(t, 0, effort.Of(4000, 1500), 48)
	first := slices.Clone(items)
	for i, it := range items {
		if i%3 == 0 {
			first[i] = &db.Item{Key: it.Key, Fields: it.Fields}
		}
	}
	dbkit.PutAll(t, d, c, first)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := 0; i < len(items); i += 3 {
			select {
			case <-stop:
				return
			default:
			}
			if items[i].Vectors == nil {
				continue
			}
			fine(t, errOf(c.Merge(ctx, &db.Item{Key: items[i].Key, Vectors: items[i].Vectors})))
		}
	})
	some, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fine(t, errOf(c.IndexVectors(some, db.IndexOptions{})))
	close(stop)
	wg.Wait()
	dbkit.CheckSound(t, d, "vectors came meanwhile")
}

// A row whose vector changes again while an index takes it in is found by its last vector.
func TestVectorsThatChangeDuringAFold(t *testing.T) {
	t.Parallel()
	items := embedded(t, 0, 300, 48)
	d, c := indexed(t, vfs.NewMem(), items)
	defer dbkit.MustClose(t, d)
	put := func(vector int) {
		t.Helper()
		need(c.Put(ctx, &db.Item{Key: "k0", Vectors: items[vector].Vectors, Fields: items[0].Fields}))(t)
	}
	put(100)
	held, ended := heldIn("readMerge"), make(chan error)
	go func() {
		_, err := db.State(d).TakeIn(held, db.Inside(c).ID, 1, 1, 100)
		ended <- err
	}()
	<-held.there
	put(200)
	close(held.goOn)
	fine(t, <-ended)
	hits := need(c.Search(ctx, db.Query{From: "e", Vector: items[200].Vectors["e"], K: 2}))(t).Hits
	failIf(t, !slices.ContainsFunc(hits, func(h db.Hit) bool { return h.Key == "k0" }), "found %v",
		keysOf(hits))
	dbkit.CheckSound(t, d, "taken in")
}

// An index is not used for another metric than that it was made for.
func TestAnIndexOfAnotherMetric(t *testing.T) {
	t.Parallel()
	items := embedded(t, 0, 1000, 48)
	d, c := indexed(t, vfs.NewMem(), items)
	defer dbkit.MustClose(t, d)
	q := db.Query{From: "e", Vector: items[7].Vectors["e"]}
	stopIf(t, !need(c.Search(ctx, q))(t).Approximate, "the index is not used")
	must(t, c.Alter(ctx, db.Alteration{Metrics: map[string]db.Metric{"e": db.L2}}))
	failIf(t, need(c.Search(ctx, q))(t).Approximate, "an index for cosines is used for l2")
}

// Where half of the vectors have come, changed or gone, and no process that writes has made the index anew
// yet, answers compare all: what was measured does not hold any more.
func TestAnOutgrownIndexIsNotUsed(t *testing.T) {
	t.Parallel()
	items := embedded(t, 0, 300, 48)
	for churn, used := range map[int]bool{1000: true, 2000: false} {
		fs := vfs.NewMem()
		d, c := indexed(t, fs, items)
		v := db.State(d).Latest()
		cv, _ := v.Collections.Get(db.Inside(c).ID)
		x := *cv.Indexes[0].VectorIndex
		v.Release()
		x.Churn = churn
		b := need(x.Encode())(t)
		keyValue{codec.NumberKey(codec.KindIndex, db.Inside(c).ID, x.ID), b}.put(t, d)
		d, c = reopen(t, d, "db", &db.Options{FS: fs, ReadOnly: true, MustExist: true})
		explain, r, err := dbkit.Explain(ctx, c, db.Query{From: "e", Vector: items[7].Vectors["e"]}, -1)
		if err != nil || r.Approximate != used || slices.Equal(explain.OutgrownIndexes,
			[]string{"e"}) == used {
			t.Errorf("%d of %d vectors have changed: the index is used: %v; %+v, %v", churn, len(items),
				r.Approximate, explain, err)
		}
		if all, err := dbkit.VectorIndexes(c); err != nil || len(all) != 1 || all[0].Outgrown == used {
			t.Errorf("%d of %d vectors have changed: %+v, %v", churn, len(items), all, err)
		}
		dbkit.MustClose(t, d)
	}
}

// oddItems returns items whose vectors fit no cell of an index of embedded ones.
func oddItems(n int) (odd []*db.Item) {
	for i := range n {
		x := make([]float32, 48)
		x[i%2], x[2+i%40] = -1, .1
		odd = append(odd, &db.Item{Key: fmt.Sprint("odd", i), Vectors: map[string][]float32{"e": x}})
	}
	return odd
}

// Vectors that fit no cell do not have an index made anew the sooner, the more processes find that.
func TestLooseVectorsOfManyProcesses(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	d, c := indexed(t, fs, embedded(t, 0, 300, 48))
	odd := oddItems(100)
	putAll(t, c, odd)
	for range 8 { // 800 would be more than it has
		need(db.State(d).TakeIn(ctx, db.Inside(c).ID, 1, 1, len(odd)))(t)
		d, c = reopen(t, d, "db", &db.Options{FS: fs})
	}
	defer dbkit.MustClose(t, d)
	all, err := dbkit.VectorIndexes(c)
	failIf(t, err != nil || len(all) != 1 || all[0].Index != 1, "the index was made anew: %v, %v", all, err)
}

// Vectors that fit no cell are counted as loose until they go.
func TestLooseVectorsThatGo(t *testing.T) {
	t.Parallel()
	d, c := indexed(t, vfs.NewMem(), embedded(t, 0, 300, 48))
	defer dbkit.MustClose(t, d)
	odd := oddItems(100)
	var keys []string
	for _, it := range odd {
		keys = append(keys, it.Key)
	}
	putAll(t, c, odd)
	need(db.State(d).TakeIn(ctx, db.Inside(c).ID, 1, 1, len(odd)))(t)
	loose := func() int {
		all, err := dbkit.VectorIndexes(c)
		stopIf(t, err != nil || len(all) != 1, "%v, %v", all, err)
		return all[0].Loose
	}
	n := loose()
	failIf(t, n != len(odd), "%d vectors of another kind have come, %d are loose", len(odd), n)
	need(c.Delete(ctx, keys...))(t)
	n = loose()
	failIf(t, n != 0, "they have gone, and %d are loose", n)
}

// A database that is opened again knows how much its cells had taken on when their promises were found:
// vectors like theirs fit, and more of them than an eighth do not.
func TestCellsAreOverfullAfterOpening(t *testing.T) {
	effort.Slow(t)
	fs := vfs.NewMem()
	items := embedded(t, 0, 2000, 48)
	d, _ := indexed(t, fs, items)
	for i, few := range []bool{true, false} {
		d, _ = reopen(t, d, "db", &db.Options{FS: fs})
		c := dbkit.MustCollection(t, d, "main")
		n := map[bool]int{true: 20, false: 400}[few]
		var more []*db.Item
		for j := range n {
			more = append(more, &db.Item{Key: fmt.Sprint("more", i, "-", j), Vectors: items[j%40].Vectors})
		}
		putAll(t, c, more)
		need(db.State(d).TakeIn(ctx, db.Inside(c).ID, 1, 1, n))(t)
		if all, err := dbkit.VectorIndexes(c); err != nil || few != (all[0].Loose < n/2) {
			t.Errorf("%d vectors like some have come, %d are loose, %v", n, all[0].Loose, err)
		}
	}
	dbkit.MustClose(t, d)
}

// An index is made while writers keep coming.
func TestAnIndexIsMadeUnderWrites(t *testing.T) {
	t.Parallel()
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, indexedSchema)
	defer dbkit.MustClose(t, d)
	items := embedded(t, 0, effort.Of(2000, 1000), 48)
	dbkit.PutAll(t, d, c, items)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 16 {
		wg.Go(func() {
			for i := w; ; i += 16 {
				select {
				case <-stop:
					return
				default:
				}
				it := *items[i%len(items)]
				if _, err := c.Put(ctx, &it); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	_, err := c.IndexVectors(ctx, db.IndexOptions{})
	close(stop)
	wg.Wait()
	fine(t, err)
	dbkit.CheckSound(t, d, "made")
}

// Pages go on behind items that are as near as each other, until nothing is left.
func TestPagesOfAnIndexEndAtTheEnd(t *testing.T) {
	dbkit.LongTest(t)
	for _, equal := range []int{0, 1, 100, 700} {
		items := embedded(t, 0, 1400, 48)
		x := embedded(t, 1<<20, 1, 48)[0].Vectors["e"]
		for i := range equal {
			items[2*i].Vectors = map[string][]float32{"e": x}
		}
		want := 0
		for _, it := range items {
			if it.Vectors != nil {
				want++
			}
		}
		d, c := indexed(t, vfs.NewMem(), items)
		for _, k := range []int{7, 50} {
			seen := map[string]bool{}
			q := db.Query{From: "e", Vector: x, K: k}
			for {
				r := need(c.Search(ctx, q))(t)
				for _, h := range r.Hits {
					stopIf(t, seen[h.Key], "%q comes twice", h.Key)
					seen[h.Key] = true
				}
				if q.After = r.Next; r.Next == "" {
					break
				}
			}
			if len(seen) < want*95/100 { // a page may lack some, and the next one goes on behind it
				t.Errorf("%d equal, pages of %d: they end behind %d of %d items", equal, k, len(seen), want)
			}
		}
		dbkit.MustClose(t, d)
	}
}

// A search that waits for an index to be loaded hears what becomes of it when that is dropped.
func TestAnIndexIsDroppedWhileItIsLoaded(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	d, _ := indexed(t, fs, embedded(t, 0, 12_000, 48)) // more than are loaded before Open returns
	dbkit.MustClose(t, d)
	x := embedded(t, 1<<20, 1, 48)[0].Vectors["e"]
	for range 5 {
		copied := vfs.NewMem()
		need(vfs.Clone(fs, copied, "db", "db"))(t)
		_ = copied.Remove("db/LOCK")
		d := dbkit.MustOpen(t, "db", &db.Options{FS: copied})
		c := dbkit.MustCollection(t, d, "main")
		var wg sync.WaitGroup
		begun := make(chan struct{}, 3)
		for range 3 {
			wg.Go(func() {
				begun <- struct{}{}
				defer func() {
					p := recover()
					failIf(t, p != nil, "panic: %v", p)
				}()
				if _, err := c.Search(ctx, db.Query{From: "e", Vector: x}); err != nil {
					t.Log(err)
				}
			})
		}
		for range 3 {
			<-begun
		}
		fine(t, c.DropVectorIndex(ctx, "e"))
		wg.Wait()
		dbkit.MustClose(t, d)
	}
}

// However large vectors are, what is stored of an index can be read again, and finds them.
func TestIndexesOfLargeVectors(t *testing.T) {
	dbkit.LongTest(t)
	for _, metric := range []db.Metric{db.Cosine, db.Dot, db.L2} {
		for _, scale := range []float32{1e-30, 1, 1e15, 1e19, 1e25, 1e37} {
			items := embedded(t, 0, 500, 48)
			x := embedded(t, 1<<20, 1, 48)[0].Vectors["e"]
			for i, it := range items {
				if i%50 == 11 || i%50 == 13 {
					it.Vectors = nil
				}
				for j := range it.Vectors["e"] {
					it.Vectors["e"][j] *= scale
				}
			}
			for j := range x {
				x[j] *= scale
			}
			name := fmt.Sprintf("%s of %g", metric, scale)
			fs := vfs.NewMem()
			d := dbkit.MustOpen(t, "db", &db.Options{FS: fs})
			schema := indexedSchema
			schema.Modalities = []db.Modality{{Name: "e", Dim: 48, Metric: metric}}
			c := need(d.CreateCollection(ctx, "main", schema))(t)
			dbkit.PutAll(t, d, c, items)
			some, cancel := context.WithTimeout(ctx, 30*time.Second)
			_, err := c.IndexVectors(some, db.IndexOptions{Cells: 16})
			cancel()
			if err != nil {
				t.Errorf("%s: %v", name, err)
				dbkit.MustClose(t, d)
				continue
			}
			findings, _ := dbkit.Findings(t, d, db.VerifyOptions{Deep: true})
			if len(findings) > 0 {
				t.Errorf("%s: %d findings, such as %v", name, len(findings), findings[0])
			}
			d, c = reopen(t, d, "db", &db.Options{FS: fs})
			exact := need(c.Search(ctx, db.Query{From: "e", Vector: x, Recall: 1, K: 20}))(t)
			r, err := c.Search(ctx, db.Query{From: "e", Vector: x, K: 20})
			if err != nil {
				t.Errorf("%s: opened again: %v", name, err)
			} else if found := shared(exact.Hits, r.Hits); found < 18 {
				t.Errorf("%s: %d of 20 are found, approximate: %v", name, found, r.Approximate)
			}
			dbkit.MustClose(t, d)
		}
	}
}

// One vector that is out of all proportion does not keep an index from being read.
func TestAnIndexWithOneLargeVector(t *testing.T) {
	dbkit.LongTest(t)
	for _, metric := range []db.Metric{db.Dot, db.L2} {
		items := embedded(t, 0, 500, 48)
		for i, it := range items {
			if i%50 == 11 || i%50 == 13 {
				it.Vectors = nil
			}
		}
		x := embedded(t, 1<<20, 1, 48)[0].Vectors["e"]
		fs := vfs.NewMem()
		d, c := indexedBy(t, fs, items, metric)
		long := make([]float32, 48)
		for i := range long {
			long[i] = 3e38
		}
		need(c.Put(ctx, &db.Item{Key: "long", Vectors: map[string][]float32{"e": long}}))(t)
		dbkit.PutAll(t, d, c, embedded(t, 2000, 600, 48)[20:580]) // so that it is taken in
		eventually(t, "merged", func() bool {
			all, err := dbkit.VectorIndexes(c)
			return err == nil && all[0].Unknown < 512
		})
		dbkit.CheckSound(t, d, string(metric))
		d, c = reopen(t, d, "db", &db.Options{FS: fs})
		for _, x := range [][]float32{x, long} {
			fine(t, errOf(c.Search(ctx, db.Query{From: "e", Vector: x, K: 20})), metric, "opened again")
		}
		dbkit.MustClose(t, d)
	}
}

func shared(a, b []db.Hit) (n int) {
	for _, h := range a {
		if slices.ContainsFunc(b, func(o db.Hit) bool { return o.Row == h.Row }) {
			n++
		}
	}
	return n
}

// Indexes come to rest, whatever their vectors are.
func TestIndexesComeToRest(t *testing.T) {
	dbkit.LongTest(t)
	rng := rand.New(rand.NewPCG(1, 2))
	base := make([]float32, 48)
	for i := range base {
		base[i] = float32(rng.NormFloat64())
	}
	for name, vector := range map[string]func(i int) []float32{
		"outliers": func(i int) []float32 {
			x := slices.Clone(base)
			if i%100 == 7 {
				for j := range x {
					x[j] = float32(rng.NormFloat64()) * 5
				}
			}
			return x
		},
		"last bit": func(i int) []float32 {
			x := slices.Clone(base)
			x[i%48] = math.Nextafter32(x[i%48], 100)
			return x
		},
		"far": func(i int) []float32 {
			x := slices.Clone(base)
			for j := range x {
				x[j] += 1e6 + float32(rng.NormFloat64())*.2
			}
			return x
		},
		"long tail": func(i int) []float32 {
			x := slices.Clone(base)
			s := float32(math.Exp(rng.NormFloat64() * 4))
			for j := range x {
				x[j] *= s
			}
			return x
		},
	} {
		for _, metric := range []db.Metric{db.Cosine, db.L2, db.Dot} {
			make := func(from, n int) (items []*db.Item) {
				for i := from; i < from+n; i++ {
					items = append(items, &db.Item{Key: fmt.Sprint(i),
						Vectors: map[string][]float32{"e": vector(i)},
						Fields:  map[string]any{"year": int64(1)}})
				}
				return items
			}
			d, c := indexedBy(t, vfs.NewMem(), make(0, 100), metric)
			dbkit.PutAll(t, d, c, make(100, 1100))
			stats := func() (int, int64, int) {
				all := need(dbkit.VectorIndexes(c))(t)
				s := need(d.Stats())(t)
				return all[0].Unknown, int64(s.Sequence), all[0].Cells
			}
			eventually(t, "merged", func() bool { n, _, _ := stats(); return n < 512 })
			// The indexer ends an operation when it has nothing left to do with an index.
			eventually(t, "the indexer rests", func() bool {
				a := need(d.Stats())(t)
				return !slices.ContainsFunc(a.Activity.Running,
					func(o event.RunningOperation) bool { return o.Op == event.OpIndex })
			})
			_, commits, cells := stats()
			t.Logf("%s by %s: %d cells, %d commits", name, metric, cells, commits)
			failIf(t, commits > 200, "%s by %s: %d cells, %d commits", name, metric, cells, commits)
			dbkit.MustClose(t, d)
		}
	}
}

// One index of a modality is made at a time.
func TestOneIndexAtATime(t *testing.T) {
	t.Parallel()
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, indexedSchema)
	defer dbkit.MustClose(t, d)
	dbkit.PutAll(t, d, c, embedded(t, 0, 500, 48))
	second := error(nil)
	need(c.IndexVectors(ctx, db.IndexOptions{Progress: func(stage string, _, _ int64) {
		if stage == "measure" {
			_, second = c.IndexVectors(ctx, db.IndexOptions{})
		}
	}}))(t)
	errorIs(t, second, db.ErrBusy, `"e"`, "wait")
	dbkit.CheckSound(t, d, "one made")
}

// An index that cannot be read is told by Explain and Stats, and searches compare all vectors until it
// is made anew.
func TestDamagedIndexIsTold(t *testing.T) {
	effort.Slow(t)
	fsys, items := vfs.NewMem(), embedded(t, 0, 3000, 48)
	d, _ := indexed(t, fsys, items)
	for key := range storeKeys(t, d) {
		if key[0] == codec.KindEntries {
			must(t, db.State(d).Engine.DB.Set(key, []byte("garbage"), nil))
		}
	}
	d, _ = reopen(t, d, "db", &db.Options{FS: fsys})
	defer dbkit.MustClose(t, d)
	c := dbkit.MustCollection(t, d, "main")
	q := db.Query{From: "e", Vector: items[5].Vectors["e"], K: 10}
	explain, found, err := dbkit.Explain(ctx, c, q, -1)
	failIf(t, err != nil || found.Approximate || len(found.Hits) != 10 || explain.Plan != "vectors" ||
		!slices.Equal(explain.DamagedIndexes, []string{"e"}), "%+v, %v, %v", explain, found, err)
	if s, err := c.Stats(ctx); err != nil ||
		!strings.Contains(s.VectorIndexes[0].Damage, "corruption found") {
		t.Errorf("%+v, %v", s.VectorIndexes, err)
	}
	need(c.IndexVectors(ctx, db.IndexOptions{}))(t)
	explain, _, err = dbkit.Explain(ctx, c, q, -1)
	failIf(t, err != nil || explain.Plan != "cells" || explain.DamagedIndexes != nil, "made anew: %+v, %v",
		explain, err)
	s, err := c.Stats(ctx)
	failIf(t, err != nil || s.VectorIndexes[0].Damage != "", "%+v, %v", s.VectorIndexes, err)
}
