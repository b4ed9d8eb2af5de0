package db_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// manyKinds is a database with all sorts of records: a learned collection of several
// spaces, views and revisions, one with sparse vectors, and one of given codes.
func manyKinds(t testing.TB, opts *db.Options) *db.DB {
	t.Helper()
	d := verified(t, opts)
	news := need(d.CreateCollection(ctx, "mainly-news", db.Schema{ // "main" begins its name
		Modalities: []db.Modality{{Name: "image", Dim: 6},
			{Name: "text", Dim: synth.NUSWideText, Sparse: true}},
	}))(t)
	items := dbkit.Bags(t, 3, 60)
	putAll(t, news, items)
	dbkit.MustTrain(t, news, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 12}})
	putAll(t, news, items[:9])
	for i, it := range items[40:] {
		it.Labels = []string{fmt.Sprint("new", i%2)}
	}
	putAll(t, news, items[40:])
	dbkit.MustUpdate(t, news, db.UpdateOptions{GrowLabels: true})
	return d
}

// sayings are what a collection says when it is asked many things in many ways, a line
// each; where vectors of items count, only if they are to be there.
func sayings(t testing.TB, c *db.Collection, like []*db.Item, vectors bool) []string {
	t.Helper()
	var out []string
	say := func(what string, answer any, err error) {
		out = append(out, fmt.Sprintf("%s: %+v, %v", what, answer, err))
	}
	schema := need(c.Schema())(t)
	for it, err := range c.Items(ctx, "") {
		if !vectors && it != nil {
			it.Vectors, it.Sparse, it.Modalities = nil, nil, nil
		}
		must(t, err)
		say("item", *it, err)
	}
	labels, err := c.Labels()
	say("labels", labels, err)
	filters := []string{"", "label = 'class1'", "NOT label = 'class1'"}
	for _, f := range schema.Fields {
		if f.Indexed {
			filters = append(filters, map[db.FieldType]string{db.Int: f.Name + " > -20",
				db.Float: f.Name + " <= 10.5", db.Bool: f.Name + " = true",
				db.String: f.Name + " IN ('title 1', 'title 3')"}[f.Type])
		}
	}
	targets := []string{""}
	for _, m := range schema.Modalities {
		filters = append(filters, "has("+m.Name+")")
		targets = append(targets, m.Name)
	}
	for _, where := range filters {
		n, err := c.Count(ctx, where)
		say("count "+where, n, err)
	}
	spaces := need(c.Spaces(ctx))(t)
	for _, sp := range spaces {
		in := need(c.InSpace(sp.Space, 0))(t)
		say("space", []any{sp.Space, sp.State, sp.Previous, sp.Bits, sp.Revision, sp.Items, sp.Codes,
			sp.Recode, sp.Checksum}, nil)
		training, err := json.Marshal(sp.Training)
		say("training", string(training), err)
		for _, r := range sp.Revisions {
			say("revision", r, nil)
		}
		for _, to := range targets {
			for x, err := range in.Codes(ctx, to) {
				say("code for "+to, x, err)
			}
			var queries []db.Query
			for i := 0; i < len(like); i += 1 + len(like)/5 {
				it := like[i]
				for _, m := range schema.Modalities {
					if x, ok := it.Sparse[m.Name]; ok {
						queries = append(queries, db.Query{From: m.Name, Sparse: &x})
					} else if x := it.Vectors[m.Name]; x != nil {
						queries = append(queries, db.Query{From: m.Name, Vector: x})
					}
				}
				queries = append(queries, db.Query{Key: it.Key},
					db.Query{Code: dbkit.RandomCodes(1, sp.Bits, uint64(i))[0]})
				if vectors && len(targets) > 1 {
					queries = append(queries, db.Query{From: targets[1+i%(len(targets)-1)], Key: it.Key})
				}
			}
			for i, q := range queries {
				q.To, q.K = to, 7
				q.Where = filters[i%len(filters)]
				// auto compares vectors, which a copy may lack
				q.Rerank = []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric}[i%3]
				for _, plan := range dbkit.AllPlans {
					if plan == db.PlanDisk {
						continue // very many lookups
					}
					q.Plan, q.After = plan, ""
					for range 3 { // pages
						r, err := in.Search(ctx, q)
						what := fmt.Sprintf("space %d query %d to %q by %v where %s", sp.Space, i, to, plan,
							q.Where)
						if err != nil {
							say(what, nil, err)
							break
						}
						say(what, *r, nil)
						if q.After = r.Next; q.After == "" {
							break
						}
					}
				}
				q.Plan, q.After = db.PlanAuto, ""
				n, err := dbkit.CountWithin(in, q, sp.Bits/3)
				say("within", n, err)
				for _, near := range []struct {
					plan   db.Plan
					radius int
				}{{db.PlanAuto, sp.Bits / 4}, {db.PlanDisk, 3}} {
					q.Plan = near.plan
					runs, err := in.SearchRadius(ctx, q, near.radius)
					if err != nil {
						say("runs", nil, err)
						continue
					}
					all, err := dbkit.Collect(runs.Hits(ctx))
					say("runs", all, err)
					runs.Close()
				}
			}
		}
	}
	return out
}

// sameSayings compares what two collections say.
func sameSayings(t testing.TB, want, got []string) {
	t.Helper()
	stopIf(t, len(want) < 100, "only %d answers", len(want))
	for i := range want {
		if i >= len(got) || want[i] != got[i] {
			t.Fatalf("answer %d of %d:\n%s\nnot\n%s", i, len(want), got[min(i, len(got)-1)], want[i])
		}
	}
	failIf(t, len(got) != len(want), "%d answers, not %d", len(got), len(want))
}

// An extract is of the state that it was asked for, whatever is written meanwhile.
func TestExtractWhileWriting(t *testing.T) {
	dbkit.LongTest(t)
	fsys := vfs.NewMem()
	d := manyKinds(t, &db.Options{FS: fsys})
	c, items := dbkit.MustCollection(t, d, "main"), dbkit.Pairs(200, synth.Config{Seed: 9})
	like := dbkit.AllItems(t, c)
	for i, opt := range []db.CheckpointOptions{{Collection: "main"}, {IndexOnly: true}} {
		snap := need(d.Snapshot())(t)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for n := w; ; n += 2 {
					select {
					case <-stop:
						return
					default:
					}
					it := *items[n%len(items)]
					it.Key = fmt.Sprint("k", n%300)
					if _, err := c.Put(ctx, &it); err != nil {
						t.Error(err)
						return
					}
					if _, err := c.Delete(ctx, fmt.Sprint("k", (n+77)%300)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		fine(t, errOf(c.Update(ctx, db.UpdateOptions{})))
		dir := fmt.Sprint("copy", i)
		must(t, db.CheckpointOf(ctx, d, snap, dir, opt))
		close(stop)
		wg.Wait()
		is := dbkit.MustOpen(t, dir, &db.Options{FS: fsys})
		then := need(snap.Collection("main"))(t)
		sameSayings(t, sayings(t, then, like, !opt.IndexOnly),
			sayings(t, dbkit.MustCollection(t, is, "main"), like, !opt.IndexOnly))
		dbkit.CheckSound(t, is, "of a state before")
		dbkit.MustClose(t, is)
		snap.Close()
	}
}

// secret is text that no compression can hide.
func secret(n int) string {
	return string(bytes.ToUpper(fmt.Appendf(nil, "%x", dbkit.RandomCodes(1, 256, uint64(n))[0])))
}

// Nothing of other collections, of what has gone or of vectors is in the files of what leaves it out.
func TestExtractHoldsNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := dbkit.MustOpen(t, filepath.Join(dir, "db"), nil)
	defer d.Close()
	type told struct {
		what, text string
		in         func(db.CheckpointOptions) bool
	}
	var secrets []told
	tell := func(what string, n int, in func(db.CheckpointOptions) bool) string {
		s := secret(n)
		secrets = append(secrets, told{what, s[len(s)-24:], in}) // beginnings may be shared
		return s
	}
	for i, name := range []string{"mine", "theirs"} {
		in := func(o db.CheckpointOptions) bool { return o.Collection == "" || o.Collection == name }
		c := need(d.CreateCollection(ctx, name, dbkit.PairsSchema))(t)
		items := dbkit.Pairs(60, synth.Config{Seed: uint64(i)})
		it := items[7]
		it.Key = tell(name+" key", 10*i, in)
		it.Labels = append(it.Labels, tell(name+" label", 10*i+1, in))
		it.Fields = map[string]any{"title": tell(name+" field", 10*i+2, in)}
		it.Payload = []byte(tell(name+" payload", 10*i+3, in))
		vector := string(record.AppendVector(nil, model.Dense(it.Vectors["image"])))
		secrets = append(secrets, told{name + " vector", vector[1:],
			func(o db.CheckpointOptions) bool { return in(o) && !o.IndexOnly }})
		putAll(t, c, items)
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
		never := func(db.CheckpointOptions) bool { return false }
		putAll(t, c, []*db.Item{{Key: "gone", Payload: []byte(tell(name+" deleted", 10*i+4, never))},
			{Key: "was", Payload: []byte(tell(name+" replaced", 10*i+5, never))}})
		need(c.Delete(ctx, "gone"))(t)
		putAll(t, c, []*db.Item{{Key: "was"}})
	}
	for i, opt := range []db.CheckpointOptions{{}, {Collection: "mine"},
		{Collection: "theirs", IndexOnly: true}, {IndexOnly: true}} {
		to := filepath.Join(dir, fmt.Sprint("copy", i))
		must(t, d.Checkpoint(ctx, to, opt))
		var all strings.Builder
		for _, content := range filesOf(t, to) {
			all.WriteString(content)
		}
		for _, s := range secrets {
			there := strings.Contains(all.String(), s.text)
			// so that it is known to be found where it is
			if full := opt.Collection == "" && !opt.IndexOnly; full {
				if s.in(opt) && !there { // what was deleted may be there, until tables are compacted
					t.Errorf("%s is not in the files of a full checkpoint", s.what)
				}
			} else if there != s.in(opt) {
				t.Errorf("%+v: %s is in the files: %v", opt, s.what, there)
			}
		}
	}
}

// A space that is being built is completed in a copy of the collection, and is no part of an index-only one.
func TestExtractWhileBuilding(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	putAll(t, c, dbkit.Pairs(80, synth.Config{}))
	extracted := 0
	check := func(what string) {
		for _, only := range []bool{false, true} {
			dir := fmt.Sprint("copy", extracted)
			extracted++
			if err := d.Checkpoint(ctx, dir, db.CheckpointOptions{Collection: "main",
				IndexOnly: only}); err != nil {
				t.Error(err)
				return
			}
			is := dbkit.MustOpen(t, dir, &db.Options{FS: fsys})
			c := dbkit.MustCollection(t, is, "main")
			fine(t, complete(c))
			spaces, err := c.Spaces(ctx)
			if want := map[bool]int{false: 1, true: 0}[only]; what == "trained again" {
				want++
				failIf(t, err != nil || len(spaces) != want, "%s: spaces %+v, %v", what, spaces, err)
			}
			if n, err := c.Count(ctx, "label = 'class1'"); n == 0 || err != nil {
				t.Errorf("%s: %d items with a label, %v", what, n, err)
			}
			dbkit.CheckSound(t, is, what)
			dbkit.MustClose(t, is)
		}
	}
	check("untrained")
	for _, what := range []string{"trained", "trained again"} {
		checked := false
		_, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10,
			Progress: func(phase string, done, total int64) {
				if phase == "encode" && !checked {
					checked = true
					check(what)
				}
			}}})
		stopIf(t, err != nil || !checked, "%v, %v", err, checked)
	}
}

// A copy of a copy is the same, also index-only of what is so already.
func TestCheckpointOfACheckpoint(t *testing.T) {
	dbkit.LongTest(t)
	fsys := vfs.NewMem()
	d := manyKinds(t, &db.Options{FS: fsys})
	opt := db.CheckpointOptions{IndexOnly: true}
	must(t, d.Checkpoint(ctx, "once", opt))
	once := dbkit.MustOpen(t, "once", &db.Options{FS: fsys})
	defer once.Close()
	for name, opt := range map[string]db.CheckpointOptions{"twice": opt, "whole": {}} {
		must(t, once.Checkpoint(ctx, name, opt))
		again := dbkit.MustOpen(t, name, &db.Options{FS: fsys})
		want, got := map[string]string{}, map[string]string{}
		for d, into := range map[*db.DB]map[string]string{once: want, again: got} {
			must(t, record.ForEach(db.State(d).Engine.DB, nil, func(key, value []byte) error {
				into[string(key)] = string(value)
				return nil
			}))
		}
		uuid := string(codec.DatabaseKey(codec.RecordUUID))
		same := want[uuid] == got[uuid]
		failIf(t, same != (name == "whole"), "%s: the same UUID: %v", name, same)
		got[uuid] = want[uuid]
		diff := cmp.Diff(want, got)
		failIf(t, diff != "", "%v, %v", name, diff)
		dbkit.MustClose(t, again)
	}
}

// Values are of any length that items may have; tables are not.
func TestExtractOfLargeItems(t *testing.T) {
	effort.Slow(t)
	defer func(was uint64) { store.TableBytes = was }(store.TableBytes)
	store.TableBytes = 4 << 20
	dir := t.TempDir()
	d := dbkit.MustOpen(t, filepath.Join(dir, "db"), nil)
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
	want := map[string][32]byte{}
	payload := make([]byte, store.TableBytes/2)
	r := rand.NewChaCha8([32]byte{})
	for i := range 3 {
		_, _ = r.Read(payload)
		key := fmt.Sprint(i)
		want[key] = sha256.Sum256(payload)
		need(c.Put(ctx, &db.Item{Key: key, Code: []byte{byte(i)}, Payload: payload}))(t)
	}
	must(t, d.Checkpoint(ctx, filepath.Join(dir, "copy"), db.CheckpointOptions{Collection: "main"}))
	is := dbkit.MustOpen(t, filepath.Join(dir, "copy"), nil)
	defer is.Close()
	tables := need(filepath.Glob(filepath.Join(dir, "copy", store.StoreName, "*.sst")))(t)
	large := 0
	for _, path := range tables {
		info, err := os.Stat(path)
		failIf(t, err != nil || info.Size() > int64(store.TableBytes)*7/4, "%s has %d bytes, %v", path,
			info.Size(), err)
		if info.Size() > int64(store.TableBytes)/4 {
			large++
		}
	}
	failIf(t, large < 2, "%d large tables", large)
	for it, err := range dbkit.MustCollection(t, is, "main").Items(ctx, "") {
		stopIf(t, err != nil || want[it.Key] != sha256.Sum256(it.Payload), "item %s: %v", it.Key, err)
		delete(want, it.Key)
	}
	failIf(t, len(want) > 0, "%d items are not there", len(want))
}
