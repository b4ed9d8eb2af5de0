package db_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/mih"
)

// However a query is asked and whichever plan answers it, the answer is the same: that of the definition, in
// the present state and in every snapshot, whether the codes are in memory yet or not.

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

// forceBuild indexes all codes, as happens by itself when they are many.
func forceBuild(t *rapid.T, d *db.DB) {
	done := map[*state.CodeSet]bool{}
	for built := true; built; {
		built = need(db.State(d).Index(ctx, 0, func(_ *state.View, set *state.CodeSetView) *mih.Build {
			if set.Table == nil || done[set.Set] {
				return nil
			}
			done[set.Set] = true
			return set.Table.Rebuild()
		}))(t)
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

// checkAnswers compares the answers of every plan to a query with those of an oracle, and with each other.
func checkAnswers(t *rapid.T, c *db.Collection, o *dbkit.Oracle, bits int, q db.Query) {
	n := len(need(o.Hits(ctx, q))(t))
	q.K = n + 1
	all := need(c.Search(ctx, q))(t).Hits
	k := rapid.IntRange(1, n+3).Draw(t, "k")
	radius := rapid.IntRange(0, 9).Draw(t, "radius")
	if n > 0 && rapid.Bool().Draw(t, "exact") {
		radius = rapid.SampledFrom(all).Draw(t, "of").Distance
	}
	for _, q.Plan = range dbkit.AllPlans {
		q.K = k
		if q.Plan != db.PlanDisk || bits <= 8 {
			must(t, o.CheckSearch(ctx, q))
			// to know that there are no more, lookups would have to try every value
		} else if q.K = min(k, n/2); q.K == 0 {
			continue
		}
		res := need(c.Search(ctx, q))(t)
		_, explained, err := dbkit.Explain(ctx, c, q, -1)
		if want := all[:min(q.K, n)]; err != nil || !oracle.SameHits(res.Hits, want) ||
			!oracle.SameHits(explained.Hits, want) {
			t.Fatalf("k = %d, plan %v: %v, explained %v, want %v, %v", q.K, q.Plan, res.Hits, explained, want,
				err)
		}
		must(t, o.CheckRadius(ctx, q, radius))
		within := need(dbkit.FirstWithin(c, q, radius))(t)
		total := within.Total
		stopIf(t, !oracle.SameHits(within.Hits, all[:min(q.K, total)]),
			"radius %d, plan %v: %v, want the first %d of %v", radius, q.Plan, within.Hits, total, all)
	}
}

// Codes at one distance come in the order in which they were first given to an item that still is there.
func TestCodesOfOneDistanceComeByAge(t *testing.T) {
	_, c := dbkit.OpenCoded(t, 8)
	for _, code := range []byte{4, 1, 2, 4} {
		need(c.Put(ctx, &db.Item{Code: []byte{code}}))(t)
	}
	need(c.Put(ctx, &db.Item{Key: "1", Code: []byte{8}}))(t) // the only item with code 1 gets another
	need(c.Put(ctx, &db.Item{Code: []byte{1}}))(t)
	for _, plan := range dbkit.AllPlans {
		var keys []string
		for _, h := range need(c.Search(ctx, db.Query{Code: []byte{0}, Plan: plan}))(t).Hits {
			keys = append(keys, h.Key)
		}
		failIf(t, !slices.Equal(keys, []string{"0", "3", "2", "1", "4"}), "plan %v: %v", plan, keys)
	}
}

// moment is a state that was, with what an oracle knew of it then.
type moment struct {
	snapshot *db.Snapshot
	c, cold  *db.Collection
	oracles  []*dbkit.Oracle // of codes in memory, and of others
	release  func()
	query    db.Query
}

func checkHistory(t *rapid.T, q int) {
	opts := &db.Options{FS: vfs.NewMem()}
	d := need(db.Open("db", opts))(t)
	defer func() { _ = d.Close() }()
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: q}))(t)
	var moments []*moment
	key := func() string { return fmt.Sprintf("k%d", rapid.IntRange(0, 70).Draw(t, "key")) }
	for range rapid.IntRange(2, 12).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"put", "batch", "batch", "merge", "delete", "build", "compact",
			"reopen", "moment"}).Draw(t, "op") {
		case "put":
			k, code := key(), drawCode(t, q)
			need(c.Put(ctx, &db.Item{Key: k, Code: code}))(t)
		case "merge":
			k, code := key(), drawCode(t, q)
			need(c.Merge(ctx, &db.Item{Key: k, Code: code}))(t)
		case "delete":
			k := key()
			need(c.Delete(ctx, k))(t)
		case "batch":
			b := d.NewBatch()
			same := drawCode(t, q)
			for range rapid.IntRange(1, 50).Draw(t, "changes") {
				k := key()
				switch rapid.IntRange(0, 5).Draw(t, "change") {
				case 0:
					b.Delete(c, k)
				case 1:
					b.Put(c, &db.Item{Key: k, Code: same})
				default:
					code := drawCode(t, q)
					b.Put(c, &db.Item{Key: k, Code: code})
				}
			}
			must(t, b.Commit(ctx))
		case "build":
			forceBuild(t, d)
		case "compact":
			must(t, d.Compact(ctx))
		case "reopen":
			must(t, d.Close())
			for _, m := range moments {
				errorIs(t, errOf(m.c.Search(ctx, m.query)), db.ErrClosed)
			}
			moments = nil
			if rapid.Bool().Draw(t, "bare") {
				opts.IndexCacheBytes = -1
			} else {
				opts.IndexCacheBytes = 0
			}
			d = need(db.Open("db", opts))(t)
			c = need(d.Collection("main"))(t)
		case "moment":
			m := &moment{query: db.Query{Code: drawCode(t, q)}, snapshot: need(d.Snapshot())(t)}
			m.c = need(m.snapshot.Collection("main"))(t)
			m.cold, m.release = coldCollection(d, c)
			m.oracles = []*dbkit.Oracle{need(dbkit.NewOracle(ctx, m.c))(t),
				need(dbkit.NewOracle(ctx, m.cold))(t)}
			moments = append(moments, m)
		}
	}
	query := db.Query{Code: drawCode(t, q)}
	o := need(dbkit.NewOracle(ctx, c))(t)
	checkAnswers(t, c, o, q, query)
	if items := need(o.Items(""))(t); len(items) > 0 {
		checkAnswers(t, c, o, q, db.Query{Key: rapid.SampledFrom(items).Draw(t, "by key").Key,
			ExcludeSelf: rapid.Bool().Draw(t, "exclude")})
	}
	cold, release := coldCollection(d, c)
	checkAnswers(t, cold, need(dbkit.NewOracle(ctx, cold))(t), q, query)
	release()
	for _, m := range moments {
		checkAnswers(t, m.c, m.oracles[0], q, m.query)
		checkAnswers(t, m.cold, m.oracles[1], q, m.query)
		m.release()
		must(t, m.snapshot.Close())
	}
}
