package db_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// checkpoints are ways to make one.
var checkpoints = map[string]db.CheckpointOptions{
	"full": {}, "one collection": {Collection: "main"}, "index-only": {IndexOnly: true},
}

// openForCheckpoints makes a small database in "db", on a file system that a test has
// its hands on; nothing is written in the background.
func openForCheckpoints(t testing.TB, fsys vfs.FS) (*db.DB, []*db.Item) {
	t.Helper()
	d, c := openNew(t, "db", &db.Options{FS: fsys}, dbkit.PairsSchema)
	items := dbkit.Pairs(60, synth.Config{})
	train(t, c, items[:50], db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	must(t, d.Compact(ctx))
	putAll(t, c, items[50:])
	must(t, d.WaitForIndex(ctx))
	return d, items
}

// there returns the names in the root of a file system, but for that of the database.
func there(t testing.TB, fsys vfs.FS) []string {
	t.Helper()
	names := need(fsys.List(""))(t)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "db" })
}

// checkCopy opens a checkpoint of openForCheckpoints.
func checkCopy(t testing.TB, fsys vfs.FS, dir, what string) {
	t.Helper()
	d, err := db.Open(dir, &db.Options{FS: fsys, MustExist: true})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	c := dbkit.MustCollection(t, d, "main")
	gives(t, 60, what)(c.Count(t.Context(), ""))
	r, err := c.Search(ctx, db.Query{Key: "k7", K: 60})
	failIf(t, err != nil || len(r.Hits) != 60, "%s: %v, %v", what, r, err)
	all, _ := dbkit.Findings(t, d, db.VerifyOptions{Deep: true})
	for _, f := range all {
		t.Errorf("%s: %v", what, f)
	}
	fine(t, d.Close(), what)
}

// Whichever change to the file system fails while a checkpoint is made: it is an error,
// nothing is left, the database goes on, and the next attempt comes to its end.
func TestEveryFailedChangeOfACheckpoint(t *testing.T) {
	dbkit.LongTest(t)
	for what, opt := range checkpoints {
		t.Run(what, func(t *testing.T) {
			// not those of the store itself, which it has flushed
			fail := &dbkit.FailOnce{Fired: true, On: func(op errorfs.Op) bool {
				return dbkit.IsWrite(op) && !strings.HasPrefix(op.Path, "db")
			}}
			mem := vfs.NewMem()
			fsys := errorfs.Wrap(mem, fail)
			d, _ := openForCheckpoints(t, fsys)
			defer func() { dbkit.MustClose(t, d) }()
			for k := range sampled(7) {
				fail.Arm(k)
				err := d.Checkpoint(ctx, "copy", opt)
				fired := fail.Disarm()
				stopIf(t, err != nil && (!errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrFailed) ||
					strings.Count(err.Error(), "fddhdb: ") != 1), "change %d failed: %v", k, err)
				if left := there(t, mem); err == nil && !slices.Equal(left, []string{"copy"}) ||
					err != nil && !(len(left) == 0 || slices.Equal(left, []string{"copy.incomplete"})) {
					t.Fatalf("change %d failed with %v, and there is %v", k, err, left)
				}
				if _, err := dbkit.MustCollection(t, d, "main").Put(ctx, &db.Item{Key: "k1"}); err != nil {
					t.Fatalf("change %d failed, and then a write: %v", k, err)
				}
				need(dbkit.MustCollection(t, d, "main").Put(ctx, dbkit.Pairs(60, synth.Config{})[1]))(t)
				if err != nil {
					if k%8 > 0 {
						continue
					}
					must(t, d.Checkpoint(ctx, "copy", opt), "change", k, "failed, and the next attempt")
				}
				checkCopy(t, mem, "copy", fmt.Sprintf("change %d failed", k))
				must(t, mem.RemoveAll("copy"))
				if !fired {
					t.Logf("%d changes failed in turn", k)
					return
				}
			}
		})
	}
}

// A read that fails is an error of the checkpoint, and nothing is left of it.
func TestEveryFailedReadOfACheckpoint(t *testing.T) {
	dbkit.LongTest(t)
	for what, opt := range checkpoints {
		mem := vfs.NewMem()
		fail := &dbkit.FailOnce{Fired: true,
			On: func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileReadAt }}
		fsys := errorfs.Wrap(mem, fail)
		d, _ := openForCheckpoints(t, fsys)
		dbkit.MustClose(t, d)
		for k := range sampled(11) {
			d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys, CacheBytes: 1})
			must(t, d.WaitForIndex(ctx))
			fail.Arm(k)
			err := d.Checkpoint(ctx, "copy", opt)
			fired := fail.Disarm()
			left := there(t, mem)
			stopIf(t, (err == nil) != slices.Equal(left, []string{"copy"}) || err != nil && len(left) > 0,
				"%s, read %d failed: %v, and there is %v", what, k, err, left)
			failIf(t, err != nil && (!errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrCorrupt)),
				"%s, read %d failed: %v", what, k, err)
			dbkit.MustClose(t, d)
			if err == nil {
				checkCopy(t, mem, "copy", what)
				must(t, mem.RemoveAll("copy"))
			}
			if !fired {
				break
			}
		}
	}
}

// Whenever the machine stops: a checkpoint is there whole, or there is none, and it can
// be made again; the database is what it was.
func TestCrashesAroundACheckpoint(t *testing.T) {
	dbkit.LongTest(t)
	for what, opt := range checkpoints {
		t.Run(what, func(t *testing.T) {
			c := newCrasher(t)
			d, _ := openForCheckpoints(t, errorfs.Wrap(c.mem, c))
			c.begin(0, what, effort.Of(1, 3))
			must(t, d.Checkpoint(ctx, "copy", opt))
			c.begin(0, "", 0)
			c.crashes = append(c.crashes, crash{"at the end", c.mem.CrashClone(vfs.CrashCloneCfg{}), 1})
			dbkit.MustClose(t, d)
			whole := 0
			for i, cr := range c.crashes {
				_, err := cr.fs.Stat("copy")
				if err == nil {
					whole++
					checkCopy(t, cr.fs, "copy", cr.what)
				} else if !errors.Is(err, fs.ErrNotExist) || cr.step == 1 {
					t.Errorf("%s: %v", cr.what, err)
				}
				if i%10 > 0 && err != nil {
					continue
				}
				d, err := db.Open("db", &db.Options{FS: cr.fs, MustExist: true})
				must(t, err, cr.what)
				err = d.Checkpoint(ctx, "copy", opt)
				failIf(t, err != nil && !errors.Is(err, db.ErrExists), "%s: %v", cr.what, err)
				dbkit.MustClose(t, d)
				checkCopy(t, cr.fs, "copy", cr.what)
				checkCopy(t, cr.fs, "db", cr.what)
			}
			failIf(t, whole == 0, "none was whole")
			t.Logf("%d crashes, in %d of them it was whole", len(c.crashes), whole)
		})
	}
}

// at is called with every operation on a file system.
type at func(n int)

type counted struct {
	mu sync.Mutex
	n  int
	at at
}

func (c *counted) MaybeError(errorfs.Op) error {
	c.mu.Lock()
	c.n++
	n, at := c.n, c.at
	c.mu.Unlock()
	if at != nil {
		at(n)
	}
	return nil
}

func (c *counted) String() string { return "counted" }

// Wherever it is cancelled, and wherever Close comes, a checkpoint leaves nothing, or is complete.
func TestCancelledCheckpoint(t *testing.T) {
	t.Parallel()
	for what, opt := range checkpoints {
		for _, closes := range []bool{false, true} {
			mem := vfs.NewMem()
			count := &counted{}
			fsys := errorfs.Wrap(mem, count)
			d, _ := openForCheckpoints(t, fsys)
			completed := 0
			for k := 1; ; k += 3 + k/4 {
				if testing.Short() {
					k *= 3
				}
				ctx, cancel := context.WithCancel(ctx)
				closed := make(chan error, 1)
				count.mu.Lock()
				count.n, count.at = 0, func(n int) {
					switch {
					case n == k && closes:
						go func() { closed <- d.Close() }()
					case n == k:
						cancel()
					}
				}
				count.mu.Unlock()
				err := d.Checkpoint(ctx, "copy", opt)
				count.mu.Lock()
				reached := count.n >= k
				count.at = nil
				count.mu.Unlock()
				want := context.Canceled
				if closes {
					want = db.ErrClosed
				}
				stopIf(t, err != nil && !errors.Is(err, want), "%s, at operation %d: %v", what, k, err)
				left := there(t, mem)
				stopIf(t, (err == nil) != slices.Equal(left, []string{"copy"}) || err != nil && len(left) > 0,
					"%s, at operation %d: %v, and there is %v", what, k, err, left)
				if closes && reached {
					must(t, <-closed)
					d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
				}
				if err == nil {
					completed++
					checkCopy(t, mem, "copy", what)
					must(t, mem.RemoveAll("copy"))
				}
				cancel()
				if !reached {
					break
				}
			}
			dbkit.MustClose(t, d)
			failIf(t, completed == 0, "%s was never complete", what)
		}
	}
}

// A checkpoint takes no folder that it may not have.
func TestCheckpointRefuses(t *testing.T) {
	mem := vfs.NewMem()
	d, _ := openForCheckpoints(t, mem)
	write := func(path string) {
		t.Helper()
		f := need(mem.Create(path, vfs.WriteCategoryUnspecified))(t)
		f.Close()
	}
	for _, dir := range []string{"empty", "foreign.incomplete", "photos.incomplete/store",
		"left.incomplete/creating", "left.incomplete/store"} {
		must(t, mem.MkdirAll(dir, 0o755))
	}
	write("foreign.incomplete/thesis")
	write("photos.incomplete/FDDHDB")
	write("left.incomplete/INCOMPLETE")
	write("left.incomplete/FDDHDB")
	write("left.incomplete/creating/half")
	write("left.incomplete/store/MANIFEST-000001")
	for dir, want := range map[string]error{"empty": db.ErrExists, "db": db.ErrExists,
		"foreign": db.ErrExists, "photos": db.ErrExists, "db/": db.ErrExists} {
		for what, opt := range checkpoints {
			err := d.Checkpoint(ctx, dir, opt)
			failIf(t, !errors.Is(err, want) || !strings.Contains(err.Error(), strings.Trim(dir, "/")),
				"%s to %s: %v", what, dir, err)
		}
	}
	for _, path := range []string{"foreign.incomplete/thesis", "photos.incomplete/store",
		"photos.incomplete/FDDHDB"} {
		fine(t, errOf(mem.Stat(path)))
	}
	errorIs(t, d.Checkpoint(ctx, "copy", db.CheckpointOptions{Collection: "nosuch"}), db.ErrNotFound)
	for what, opt := range checkpoints { // over what a killed one has left, into folders that are not there
		dir := mem.PathJoin("above", what, "left")
		must(t, d.Checkpoint(ctx, dir, opt))
		checkCopy(t, mem, dir, what)
	}
	must(t, d.Checkpoint(ctx, "left", db.CheckpointOptions{}))
	checkCopy(t, mem, "left", "over what another has left")
	// Only one goes on at a time to one folder.
	var second error
	opt := db.CheckpointOptions{IndexOnly: true, Progress: func(string, int64, int64) {
		if second == nil {
			second = d.Checkpoint(ctx, "busy", db.CheckpointOptions{})
		}
	}}
	err := d.Checkpoint(ctx, "busy", opt)
	failIf(t, err != nil || !errors.Is(second, db.ErrLocked) && !errors.Is(second, db.ErrExists),
		"%v, and at the same time %v", err, second)
	checkCopy(t, mem, "busy", "of two at a time")
	db.State(d).Engine.Log.Fail(errors.New("the disk is gone"))
	for what, opt := range checkpoints {
		err := d.Checkpoint(ctx, "late", opt)
		failIf(t, !errors.Is(err, db.ErrFailed), "%s of a failed database: %v", what, err)
	}
	_ = d.Close()
	errorIs(t, d.Checkpoint(ctx, "late", db.CheckpointOptions{}), db.ErrClosed)
}

// Paths are those of the operating system, too, and a full disk of the copy does not fail the database.
func TestCheckpointOnDisk(t *testing.T) {
	d, c, _ := openPairs(t, -1, 60, synth.Config{})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	t.Chdir(t.TempDir())
	for what, opt := range checkpoints {
		dir := what + "/"
		must(t, d.Checkpoint(ctx, dir, opt))
		checkCopy(t, vfs.Default, what, what)
		errorIs(t, d.Checkpoint(ctx, dir, opt), db.ErrExists)
	}
	got := listing(t, ".")
	failIf(t, len(got) != len(checkpoints), "there is %v", got)
}

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
	train(t, news, items, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 12}})
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
		train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
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
	d, c := openNew(t, "db", &db.Options{FS: fsys}, dbkit.PairsSchema, dbkit.Pairs(80, synth.Config{})...)
	defer d.Close()
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
			n, err := c.Count(ctx, "label = 'class1'")
			failIf(t, n == 0 || err != nil, "%s: %d items with a label, %v", what, n, err)
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
	d, c := openNew(t, filepath.Join(dir, "db"), nil, db.Schema{Bits: 8})
	defer d.Close()
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

// indexOnlyOf makes an index-only copy of a database, and opens it.
func indexOnlyOf(t testing.TB, d *db.DB, opts *db.Options) *db.DB {
	t.Helper()
	must(t, d.Checkpoint(ctx, "index-only", db.CheckpointOptions{IndexOnly: true}))
	is := dbkit.MustOpen(t, "index-only", opts)
	t.Cleanup(func() { _ = is.Close() })
	return is
}

// What an index-only collection lacks it says it lacks, what would change items is
// refused, and spaces can be changed as ever.
func TestIndexOnlyCollection(t *testing.T) {
	dbkit.LongTest(t)
	var log strings.Builder
	opts := &db.Options{
		FS: vfs.NewMem(), UpdateItems: 1, UpdateInterval: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	d := manyKinds(t, &db.Options{FS: opts.FS})
	is := indexOnlyOf(t, d, opts)
	c, was := dbkit.MustCollection(t, is, "main"), dbkit.MustCollection(t, d, "main")
	items, full := dbkit.AllItems(t, c), dbkit.AllItems(t, was)
	b := is.NewBatch()
	errorsAre(t, db.ErrReadOnly, map[string]error{
		"put":      errOf(c.Put(ctx, full[0])),
		"merge":    errOf(c.Merge(ctx, &db.Item{Key: "k1", Payload: []byte("x")})),
		"delete":   errOf(c.Delete(ctx, "k1")),
		"where":    errOf(c.DeleteWhere(ctx, "label = 'class1'")),
		"batch":    b.Put(c, full[0]),
		"labels":   is.NewBatch().RegisterLabels(c, []string{"new"}),
		"alter":    c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}),
		"train":    errOf(c.Train(ctx, db.TrainOptions{})),
		"update":   errOf(c.Update(ctx, db.UpdateOptions{})),
		"reindex":  errOf(c.Reindex(ctx, db.ReindexOptions{})),
		"restore":  errOf(c.RestoreRevision(ctx, 0, 1)),
		"commit":   b.Commit(ctx),
		"in space": errOf(need(c.InSpace(1, 0))(t).Update(ctx, db.UpdateOptions{})),
	}, "index-only", "fddhdb: ")
	vectors := db.Query{From: "image", To: "text", Vector: full[0].Vectors["image"], Recall: 1}
	errorsAre(t, db.ErrInvalid, map[string]error{
		"recall": errOf(c.Search(ctx, vectors)),
		"created": errOf(is.CreateCollection(ctx, "other",
			db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 3}}, IndexOnly: true})),
	}, "index-only")
	schema := need(c.Schema())(t)
	for i, it := range items {
		var has []string
		for _, m := range schema.Modalities {
			if full[i].Vectors[m.Name] != nil {
				has = append(has, m.Name)
			}
		}
		failIf(t, it.Vectors != nil || it.Sparse != nil || cmp.Diff(has, it.Modalities) != "" ||
			full[i].Modalities != nil, "item %d: %+v", i, it)
	}

	// A query by key has no features to start from, and starts from the code.
	byCode := need(was.Search(ctx, db.Query{Key: "k5", To: "text", K: 9}))(t)
	byKey, err := c.Search(ctx, db.Query{Key: "k5", From: "image", To: "text", K: 9})
	failIf(t, err != nil || !oracle.SameHits(byCode.Hits, byKey.Hits), "by key: %+v, %v", byKey, err)
	errorIs(t, errOf(c.Search(ctx, db.Query{Key: "k5", From: "sound", To: "text"})), db.ErrInvalid)
	// Evaluation and encoding take the vectors that they are given.
	e := db.Evaluation{Queries: map[string][][]float32{"image": {vectors.Vector}},
		Labels: [][]string{{"class1"}}}
	want := need(was.Evaluate(ctx, e))(t)
	got, err := c.Evaluate(ctx, e)
	failIf(t, err != nil || cmp.Diff(want, got) != "", "%v, %s", err, cmp.Diff(want, got))
	code, z := need2(was.Encode(full[0]))(t)
	code2, z2, err := c.Encode(full[0])
	failIf(t, err != nil || cmp.Diff([]any{code, z}, []any{code2, z2}) != "", "encode: %x, %v", code2, err)
	s, err := c.Stats(ctx)
	failIf(t, err != nil || !s.IndexOnly || s.Taught != 0 || s.Pending != 0 || s.Modalities[0].Items == 0,
		"stats %+v, %v", s, err)

	// Spaces: each is complete, and nothing comes that would have to be coded.
	spaces, err := c.Spaces(ctx)
	stopIf(t, err != nil || len(spaces) != 2 || spaces[0].StatisticsBytes != 0, "%+v, %v", spaces, err)
	must(t, c.Activate(ctx, 1))
	gives(t, db.Space(2))(c.Rollback(ctx))
	dbkit.CheckSound(t, is, "spaces changed")
	must(t, c.DropSpace(ctx, 1))
	must(t, is.DropCollection(ctx, "mainly-news"))
	// Others are written to, of given codes too, and what has gone can be cleared away.
	putAll(t, dbkit.MustCollection(t, is, "codes"), []*db.Item{{Key: "x", Code: []byte{1, 2}}})
	other := need(is.CreateCollection(ctx, "other", dbkit.PairsSchema))(t)
	train(t, other, dbkit.Pairs(60, synth.Config{}),
		db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	must(t, is.Compact(ctx))
	dbkit.CheckSound(t, is, "dropped")
	dbkit.MustClose(t, is)
	is = dbkit.MustOpen(t, "index-only", opts)
	defer is.Close()
	equal(t, items, dbkit.AllItems(t, dbkit.MustCollection(t, is, "main")),
		cmp.Transformer("", func(it db.Item) any {
			return []any{it.Key, it.Labels, it.Fields, it.Payload, it.Modalities}
		}))
	dbkit.CheckSound(t, is, "opened again")
	dbkit.MustClose(t, is)
	failIf(t, log.Len() > 0, "in the background: %s", &log)
}

// A program that knows versions of descriptors up to 0 does not open an index-only
// collection, and this one none of a version to come.
func TestIndexOnlyDescriptor(t *testing.T) {
	fsys := vfs.NewMem()
	d, _ := openForCheckpoints(t, fsys)
	defer d.Close()
	is := indexOnlyOf(t, d, &db.Options{FS: fsys})
	b := need(record.Get(db.State(is).Engine.DB, codec.CollectionKey(codec.KindCollection, 1)))(t)
	var stored map[string]any
	err := json.Unmarshal(b, &stored)
	stopIf(t, err != nil || stored["index_only"] != true, "%s, %v", b, err)
	for text, ok := range map[string]bool{
		`{"id":1,"name":"a","bits":8}`:                                                                 true,
		`{"id":1,"name":"a","modalities":[{"name":"x","dim":1}]}`:                                      true,
		`{"id":1,"name":"a","modalities":[{"name":"x","dim":1}],"index_only":true}`:                    true,
		`{"id":1,"name":"a","bits":8,"index_only":true}`:                                               false,
		`{"id":1,"name":"a","bits":8,"modalities":[{"name":"x","dim":1}],"index_only":true,"more":{}}`: false,
	} {
		_, err := record.DecodeDescriptor([]byte(text))
		failIf(t, (err == nil) != ok, "%s: %v", text, err)
	}
}

// Verify finds in an index-only collection what should not be there, and codes that are
// not those of their labels.
func TestVerifyIndexOnly(t *testing.T) {
	dbkit.LongTest(t)
	fsys := vfs.NewMem()
	d := manyKinds(t, &db.Options{FS: fsys})
	is := indexOnlyOf(t, d, &db.Options{FS: fsys})
	v := dbkit.CheckSound(t, is, "as it is")
	s := need(dbkit.MustCollection(t, is, "main").Stats(ctx))(t)
	whole := dbkit.CheckSound(t, d, "the original")
	failIf(t, v.CodesUnchecked == 0 || v.CodesChecked == 0 || v.CodesChecked+
		v.CodesUnchecked != whole.CodesChecked+whole.CodesUnchecked, "%+v, of the whole %+v; %+v", v, whole,
		s)
	copied := func(key []byte) []byte {
		b, err := record.Get(db.State(d).Engine.DB, key)
		stopIf(t, err != nil || b == nil, "%x: %v", key, err)
		return b
	}
	first := func(prefix []byte) (key []byte) {
		errorIs(t, record.ForEach(db.State(d).Engine.DB, prefix, func(k, _ []byte) error {
			key = append([]byte{}, k...)
			return record.ErrStopped
		}), record.ErrStopped)
		return key
	}
	counters := need(codec.DecodeCounters(copied(codec.CollectionKey(codec.KindCounters, 1))))(t)
	labelled := dbkit.AllItems(t, dbkit.MustCollection(t, d, "main"))[1]
	stopIf(t, labelled.CodeFrom != "labels", "%+v", labelled)
	for what, c := range map[string]struct {
		key, value []byte
		says       string
	}{
		"features":    {codec.FeatureKey(1, 5, 0), []byte{1}, "index-only"},
		"statistics":  {codec.ChunkKey(codec.KindStatistics, 1, 2, 0), []byte{1}, "there is a chunk 0 of 0"},
		"lessons":     {first(codec.NumberKey(codec.KindLessons, 1, 2)), nil, "index-only"},
		"retractions": {codec.RetractionKey(1, 2, 0), []byte{1}, "index-only"},
		"pending":     {codec.OnlineRowsKey(1, 2, codec.SetPending, 0), []byte{1, 0}, "index-only"},
		"counters":    {codec.CollectionKey(codec.KindCounters, 1), counters.Append(nil), "index-only"},
		"labels":      {codec.NumberKey(codec.KindItem, 1, 1), mustRecord(t, nil), "of labels, and it has none"},
		"code": {codec.NumberKey(codec.KindItem, 1, 1), mustRecord(t, []uint32{0, 1, 2, 3}),
			"it is not that of its labels"},
	} {
		before, err := record.Get(db.State(is).Engine.DB, c.key)
		must(t, err)
		if c.value == nil {
			c.value = copied(c.key)
		}
		must(t, db.State(is).Engine.DB.Set(c.key, c.value, nil))
		all, _ := dbkit.Findings(t, is, db.VerifyOptions{Deep: true})
		found := false
		for _, f := range all {
			found = found || strings.Contains(f.Problem, c.says) && f.Collection == "main"
		}
		failIf(t, !found, "%s: %v", what, all)
		if before == nil {
			err = db.State(is).Engine.DB.Delete(c.key, nil)
		} else {
			err = db.State(is).Engine.DB.Set(c.key, before, pebble.Sync)
		}
		must(t, err)
	}
	dbkit.CheckSound(t, is, "as it was")
}

func mustRecord(t testing.TB, labels []uint32) []byte {
	t.Helper()
	return need((&codec.ItemRecord{Labels: labels}).Append(nil))(t)
}

// Rows that wait for another code, as a label of theirs has just got a direction, keep the
// one that they have: nothing in the background gives them another.
func TestIndexOnlyWhileLabelsGrow(t *testing.T) {
	dbkit.LongTest(t)
	var log strings.Builder
	fsys := vfs.NewMem()
	d, items := openForCheckpoints(t, fsys)
	defer d.Close()
	c := dbkit.MustCollection(t, d, "main")
	for _, it := range items[:20] {
		it.Labels = []string{"grown"}
	}
	putAll(t, c, items[:20])
	must(t, taught(c).GrowLabels(ctx, 0, new(report.Update)))
	before := sayings(t, c, items, false)
	is := indexOnlyOf(t, d, &db.Options{FS: fsys,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	only := dbkit.MustCollection(t, is, "main")
	spaces, err := only.Spaces(ctx)
	stopIf(t, err != nil || spaces[0].Recode != 20, "%+v, %v", spaces, err)
	dbkit.CheckSound(t, is, "as it is")
	sameSayings(t, before, sayings(t, only, items, false))
	dbkit.MustClose(t, is)
	failIf(t, log.Len() > 0, "in the background: %s", &log)
}
