package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/route"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A writer writes keys of its own, one call after the other, and knows what has to be there.
type writer struct {
	t      *testing.T
	codes  *cluster.Collection
	name   string
	r      *rand.Rand
	n      int
	has    map[string]*db.Item
	calls  int
	most   time.Duration // that a write has taken
	split  int           // batches that were refused, as their keys are of several shards now
	across int           // batches of keys that are of several shards in the end
}

func newWriter(t *testing.T, c *cluster.Client, name string, seed uint64) *writer {
	return &writer{t: t, codes: c.Collection("codes"), name: name, r: rand.New(rand.NewPCG(seed, 7)),
		has: map[string]*db.Item{}}
}

// key returns one of the keys of the writer, which are of a few shards, however many there are.
func (w *writer) key(of, modulo int) string {
	for i := w.r.IntN(1000); ; i++ {
		if key := fmt.Sprint(w.name, "-", i%2000); shard.Of(key, modulo) == of%modulo && (i%2000)%40 == 0 {
			return key
		}
		if i > 1<<20 {
			w.t.Fatal("no such key")
		}
	}
}

func (w *writer) item(key string) *db.Item {
	w.n++
	it := &db.Item{Key: key, Code: []byte{byte(w.r.Uint32()), byte(w.r.Uint32())},
		Payload: fmt.Append(nil, w.name, " ", w.n), Labels: []string{"written"},
		Fields: map[string]any{"year": int64(w.n % 50)}}
	if w.n%60 == 0 { // by way of an object
		it.Payload = append(it.Payload, bytes.Repeat([]byte("."), 600_000)...)
	}
	return it
}

// commit commits changes, and says what has to be there then.
func (w *writer) commit(ctx context.Context, b *cluster.Batch, put []*db.Item, deleted ...string) error {
	begin := time.Now()
	err := b.Commit(ctx)
	w.most = max(w.most, time.Since(begin))
	w.calls++
	if err != nil {
		return err
	}
	for _, it := range put {
		w.has[it.Key] = it
	}
	for _, key := range deleted {
		delete(w.has, key)
	}
	return nil
}

// step makes one write, and reads what it has written.
func (w *writer) step(ctx context.Context) error {
	b := w.codes.NewBatch()
	key := w.key(w.r.IntN(8), 8)
	var err error
	switch k := w.r.IntN(10); {
	case k < 4:
		it := w.item(key)
		b.Put(it)
		err = w.commit(ctx, b, []*db.Item{it})
	case k < 6:
		it := w.item(key)
		b.PutIf(it, w.has[key])
		err = w.commit(ctx, b, []*db.Item{it})
	case k < 7:
		b.Delete(key)
		err = w.commit(ctx, b, nil, key)
	case k < 8: // of one shard now, and maybe not afterwards, or of one shard in the end
		of := w.r.IntN(2)
		one, two := w.item(w.key(of, 2)), w.item(w.key(of, 2))
		if one.Key == two.Key {
			return nil
		}
		b.PutIf(one, w.has[one.Key])
		b.Put(two)
		if err = w.commit(ctx, b, []*db.Item{one, two}); errors.Is(err, db.ErrInvalid) &&
			strings.Contains(err.Error(), "only items of one shard") {
			w.split++
			err = nil
		} else if shard.Of(one.Key, 8) != shard.Of(two.Key, 8) {
			w.across++
		}
		key = two.Key
	default: // a condition that does not hold
		of := w.r.IntN(2)
		one, two := w.item(w.key(of, 2)), w.item(w.key(of, 2))
		b.Expect(one.Key, w.item(one.Key))
		b.Put(two)
		if err = w.commit(ctx, b, []*db.Item{two}); errors.Is(err, db.ErrConflict) ||
			errors.Is(err, db.ErrInvalid) {
			err = nil
		} else if err == nil {
			err = fmt.Errorf("a condition holds that does not: %s", one.Key)
		}
		key = two.Key
	}
	if err != nil {
		return err
	}
	it, err := w.codes.Get(ctx, key)
	if want := w.has[key]; errors.Is(err, db.ErrNotFound) && want == nil {
		return nil
	} else if err != nil || want == nil || !bytes.Equal(it.Payload, want.Payload) {
		return fmt.Errorf("%s is %.40q, want %.40q: %w", key, payload(it), payload(want), err)
	}
	return nil
}

func payload(it *db.Item) []byte {
	if it == nil {
		return nil
	}
	return it.Payload
}

// keepOn calls f again and again until stop; an error ends it, and fails the test.
func keepOn(t *testing.T, all *sync.WaitGroup, ctx context.Context, what string,
	f func(ctx context.Context) error) {
	all.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := f(context.WithoutCancel(ctx)); err != nil {
				t.Errorf("%s, call %d: %v", what, n, err)
				return
			}
		}
	})
}

// A place is a route to one node.
type place string

func (p place) Nodes(int) []string { return []string{string(p)} }
func (p place) Refresh()           {}

// equal compares what the replicas of each shard have.
func (h *house) equal() {
	h.t.Helper()
	digests := map[int]map[string]bool{}
	for name, n := range h.nodes {
		router, err := route.New(h.conn("client"), "test", place(name), nil)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, s := range n.Status().Shards {
			a, err := router.Ask(h.t.Context(), &wire.Request{Verb: wire.Digest, Shard: s.Shard,
				From: s.Applied, Wait: 5000})
			if err != nil {
				h.t.Fatal(err)
			}
			if digests[s.Shard] == nil {
				digests[s.Shard] = map[string]bool{}
			}
			digests[s.Shard][fmt.Sprintf("%d %x", a.Applied, a.Digest)] = true
		}
		router.Close()
	}
	for s, all := range digests {
		if len(all) != 1 {
			h.t.Errorf("replicas of shard %d differ: %v", s, all)
		}
	}
}

// A cluster grows twice while several clients write and search: nothing that was acknowledged is lost, or
// there twice, no call fails, and the answers are those of one database with the same items.
func TestGrow(t *testing.T) {
	h := build(t, 3, 3, 2, 2)
	a, b := h.connect(), h.connect()
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	codes, one := codesOf(t, a),
		mustCreate(t, d, "codes", db.Schema{Bits: 16,
			Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}}})
	const still = 400 // items that nobody changes
	var items []*db.Item
	for i := range still {
		items = append(items, &db.Item{Key: fmt.Sprint("still", i), Code: []byte{byte(i), byte(i >> 3)},
			Labels: []string{"still", fmt.Sprint("l", i%7)}})
	}
	importAll(t, codes, items)
	dbkit.PutAll(t, d, one, items)

	pairs, err := a.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	single, learned := mustCreate(t, d, "pairs", dbkit.PairsSchema),
		dbkit.Pairs(300, synth.Config{Seed: 5, Missing: .2})
	importAll(t, pairs, learned[:250])
	dbkit.PutAll(t, d, single, learned[:250])
	dbkit.MustTrain(t, single, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 20, Seed: 1}})
	var file bytes.Buffer
	if err := single.ExportModel(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	if _, err := pairs.ImportModel(t.Context(), &file, true); err != nil {
		t.Fatal(err)
	}
	byImage := cluster.Query{Query: db.Query{From: "image", Vector: learned[3].Vectors["image"], To: "text",
		K: 30, Rerank: db.RerankProjection}}
	want, err := pairs.Search(t.Context(), byImage)
	if err != nil {
		t.Fatal(err)
	}

	// A write whose message comes again after the growth, and what a client asks of it.
	again := keyOf2("again", 1, 8)
	retried := wire.Op{ID: wire.NewID(), Kind: wire.Write,
		Changes: []wire.Change{{Collection: "codes", Kind: wire.Put,
			Item: &wire.Item{Key: again, Code: []byte{1, 1}, Payload: []byte("first")}}}}
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		t.Fatal(err)
	}
	message, err := retried.Encode()
	if err != nil {
		t.Fatal(err)
	}
	publish := func(number int) {
		if _, err := js.Publish(t.Context(), fmt.Sprint("fddhdb.test.log.", number), message); err != nil {
			t.Fatal(err)
		}
	}
	publish(1)
	if _, err := codes.Put(t.Context(), &db.Item{Key: again, Code: []byte{1, 1},
		Payload: []byte("second")}); err != nil {
		t.Fatal(err)
	}
	page, err := codes.Search(t.Context(), cluster.Query{Query: db.Query{Code: []byte{1, 2}, K: 5}})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var writers []*writer
	for i, c := range []*cluster.Client{a, a, b} {
		w := newWriter(t, c, fmt.Sprint("w", i), uint64(i))
		writers = append(writers, w)
		keepOn(t, &all, ctx, w.name, w.step)
	}
	var counted atomic.Int64 // what the one who counts has written, and others have to see
	keepOn(t, &all, ctx, "count up", func(ctx context.Context) error {
		n := counted.Load() + 1
		_, err := a.Collection("codes").Put(ctx, &db.Item{Key: "counted", Code: []byte{0, 0},
			Payload: fmt.Append(nil, n)})
		counted.Store(n)
		return err
	})
	last, other := 0, h.connect()
	keepOn(t, &all, ctx, "read what counts up", func(ctx context.Context) error {
		it, err := other.Collection("codes").Get(ctx, "counted")
		if errors.Is(err, db.ErrNotFound) && last == 0 {
			return nil
		} else if err != nil {
			return err
		}
		n := 0
		if _, err := fmt.Sscan(string(it.Payload), &n); err != nil || n < last {
			return fmt.Errorf("it is %q, and was %d before: %v", it.Payload, last, err)
		}
		last = n
		return nil
	})
	for _, c := range []*cluster.Client{b, other} {
		keepOn(t, &all, ctx, "search", func(ctx context.Context) error {
			res, err := c.Collection("codes").Search(ctx,
				cluster.Query{Query: db.Query{Code: []byte{3, 4}, K: 10_000, Include: db.IncludeLabels}})
			if err != nil {
				return err
			}
			found, seen := 0, map[string]bool{}
			for _, hit := range res.Hits {
				if seen[hit.Key] {
					return fmt.Errorf("%s is there twice", hit.Key)
				}
				if seen[hit.Key] = true; slices.Contains(hit.Item.Labels, "still") {
					found++
				}
			}
			if n, err := c.Collection("codes").Count(ctx, "label = 'still'"); err != nil || n != still ||
				found != still {
				return fmt.Errorf("%d found and %d counted, not %d: %v", found, n, still, err)
			}
			return nil
		})
	}
	keepOn(t, &all, ctx, "search by the model", func(ctx context.Context) error {
		res, err := b.Collection("pairs").Search(ctx, byImage)
		if err != nil {
			return err
		}
		for i, hit := range res.Hits {
			if w := want.Hits[i]; hit.Distance != w.Distance || hit.Score != w.Score {
				return fmt.Errorf("hit %d is %+v, and was %+v", i, hit, w)
			}
		}
		return nil
	})
	time.Sleep(200 * time.Millisecond)
	for shards := 4; shards <= 8; shards *= 2 {
		begin := time.Now()
		var closed time.Time
		err := a.Grow(t.Context(), cluster.GrowOptions{Progress: func(stage string, done, of int64) {
			switch stage {
			case cluster.GrowClose:
				closed = time.Now()
			case cluster.GrowRemove:
				if done == 0 {
					t.Logf("%d shards: it took %v until writes waited, %v until they went on", shards,
						closed.Sub(begin), time.Since(closed))
				}
			}
		}})
		if err != nil || a.Shards() != shards {
			t.Fatal(a.Shards(), err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	stop()
	all.Wait()

	total := still + 2
	for _, w := range writers {
		t.Logf("%s: %d writes, the longest took %v; %d across, %d of several shards then", w.name, w.calls,
			w.most, w.across, w.split)
		total += len(w.has)
	}
	fresh := h.connect()
	for _, c := range []*cluster.Client{a, other, fresh} {
		if n := count(t, c); n != total {
			t.Errorf("%d items, want %d", n, total)
		}
	}
	for _, w := range writers {
		for key, it := range w.has {
			got, err := fresh.Collection("codes").Get(t.Context(), key)
			if err != nil || !bytes.Equal(got.Payload, it.Payload) {
				t.Fatalf("%s: %.40q, want %.40q, %v", key, payload(got), it.Payload, err)
			}
			dbkit.PutAll(t, d, one, []*db.Item{it})
		}
	}
	owner := fresh.Placement()[shard.Of(again, 8)].Shard
	publish(owner)
	for _, shard := range []int{1, owner} { // by the number of before, and by the one of now
		if applied, refused, err := fresh.Outcome(t.Context(),
			&cluster.UnknownError{ID: retried.ID, Shard: shard}); err != nil || refused != nil || !applied {
			t.Error("of a write before the growth:", applied, refused, err)
		}
	}
	if it, err := fresh.Collection("codes").Get(t.Context(), again); err != nil ||
		string(it.Payload) != "second" {
		t.Errorf("a write of before was applied again: %q, %v", payload(it), err)
	}
	dbkit.PutAll(t, d, one, []*db.Item{{Key: again, Code: []byte{1, 1}},
		{Key: "counted", Code: []byte{0, 0}}})
	p := pair{t, fresh.Collection("codes"), one, 0}
	p.compare("codes", db.Query{Code: []byte{3, 4}, K: 50}, -1)
	p.compare("codes within", db.Query{Code: []byte{7, 9}, K: 50}, 5)
	p.compare("codes by key", db.Query{Key: "still17", K: 30}, -1)
	// Later items and another model go to the new shards as they did before.
	importAll(t, pairs, learned[250:])
	dbkit.PutAll(t, d, single, learned[250:])
	p = pair{t, fresh.Collection("pairs"), single, 0}
	p.compare("pairs", byImage.Query, -1)
	if _, err := pairs.Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10, Seed: 3}, Activate: true}); err != nil {
		t.Error(err)
	}
	if _, err := codes.Search(t.Context(),
		cluster.Query{Query: db.Query{Code: []byte{1, 2}, K: 5, After: page.Next}}); !errors.Is(err,
		db.ErrInvalid) || !strings.Contains(err.Error(), "from the start") {
		t.Error("a cursor of before:", err)
	}
	eventually(t, "nodes have the shards of now alone", func() bool {
		n := 0
		for _, node := range h.nodes {
			for _, s := range node.Status().Shards {
				if n++; s.Shard < 6 || s.Problem != "" {
					return false
				}
			}
		}
		return n == 16
	})
	h.equal()
	if left := fresh.Growing(); left != 0 {
		t.Error("it still grows to", left)
	}
}

// keyOf2 returns a key of a shard of so many.
func keyOf2(prefix string, of, shards int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint(prefix, i); shard.Of(key, shards) == of {
			return key
		}
	}
}

// A growth that is interrupted anywhere goes on when it is called again, while clients write.
func TestGrowInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	h := buildLogs(t, 1, 2, 1, 2, 32<<20)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 200)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	w := newWriter(t, h.connect(), "w", 1)
	keepOn(t, &all, ctx, "write", w.step)
	shards := 1
	for _, at := range []struct {
		stage string
		done  int64
		trim  bool // the log of the shard is trimmed beyond what its parts have
	}{{cluster.GrowBegin, 1, false}, {cluster.GrowCopy, 1, true}, {cluster.GrowClose, 0, false},
		{cluster.GrowSwitch, 0, false}, {cluster.GrowRemove, 0, false}} {
		in, cancel := context.WithCancel(t.Context())
		err := h.connect().Grow(in, cluster.GrowOptions{Progress: func(stage string, done, of int64) {
			if stage == at.stage && done >= at.done {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			t.Errorf("%v: it was not interrupted", at)
		}
		t.Logf("%v: %v", at, err)
		if at.trim {
			for i := range 20 {
				putSome(t, c, 10*i, 10*i+10)
			}
			if _, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil {
				t.Error(err)
			}
		}
		if at.stage == cluster.GrowClose || at.stage == cluster.GrowSwitch {
			// Reads go on. A write may wait; if it ends before the growth it has certainly not happened.
			if n, err := c.Collection("codes").Count(t.Context(), "label = 'l3'"); err != nil || n == 0 {
				t.Error(n, err)
			}
			short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, err := c.Collection("codes").Put(short, &db.Item{Key: "k0", Code: []byte{0, 0},
				Labels: []string{"l0"}})
			cancel()
			if errors.Is(err, cluster.ErrUnknown) {
				t.Error(err)
			}
			t.Log("a write meanwhile: ", err)
		}
		if err := c.Grow(t.Context(), cluster.GrowOptions{}); err != nil {
			t.Fatal(at, err)
		}
		if shards *= 2; c.Shards() != shards {
			t.Fatalf("%v: %d shards, want %d", at, c.Shards(), shards)
		}
	}
	stop()
	all.Wait()
	h.inStep(2, 200+len(w.has))
	h.equal()
	if n := count(t, c); n != 200+len(w.has) {
		t.Errorf("%d items, want %d", n, 200+len(w.has))
	}
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	for name := range js.StreamNames(t.Context()).Name() {
		if strings.HasPrefix(name, "FDDHDB_") {
			logs++
		}
	}
	if logs != shards {
		t.Errorf("%d logs of %d shards", logs, shards)
	}
}

// Shards move after a growth, and the cluster comes back from its backups: from those of before, as long as
// not all shards have one of their own, and then from these.
func TestMoveAndRestoreAfterGrowth(t *testing.T) {
	h := build(t, 1, 3, 2, 2)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 300)
	if err := c.Grow(t.Context(), cluster.GrowOptions{}); err != nil {
		t.Fatal(err)
	}
	putSome(t, c, 300, 400)
	p := c.Placement()[1]
	to := slices.DeleteFunc([]string{"n0", "n1", "n2"},
		func(n string) bool { return slices.Contains(p.Nodes, n) })[0]
	if err := c.Move(t.Context(), 0, p.Nodes[0], to); !errors.Is(err, db.ErrInvalid) &&
		!errors.Is(err, db.ErrNotFound) {
		t.Error("a shard that is gone:", err)
	}
	if err := c.Move(t.Context(), p.Shard, p.Nodes[0], to); err != nil {
		t.Fatal(err)
	}
	h.inStep(2, 400)
	h.equal()
	nc := h.conn("admin")
	clusters := 0
	restored := func(want int) *cluster.Client {
		t.Helper()
		clusters++
		name := fmt.Sprint("again", clusters)
		if err := cluster.Create(t.Context(), nc, name,
			cluster.CreateOptions{Servers: 1, Replicas: 1, Nodes: []string{"x"},
				From: filepath.Join(h.dir, "backups"), LogBytes: 16 << 20}); err != nil {
			t.Fatal(err)
		}
		n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: name, Node: "x",
			Dir: filepath.Join(h.dir, name), Conn: nc, Backups: filepath.Join(h.dir, "backups"),
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		again, err := cluster.Connect(t.Context(), nc, name, cluster.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { again.Close() })
		if n := count(t, again); n != want {
			t.Errorf("%s has %d items, want %d", name, n, want)
		}
		return again
	}
	// What another cluster has left there under the numbers that this one would take.
	left := filepath.Join(h.dir, "backups", "shard-0007.json")
	if err := os.WriteFile(left,
		[]byte(`{"cluster":"another","shard":7,"repository":"shard-0007","backup":"b","shards":8}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Grow(t.Context(), cluster.GrowOptions{}); !errors.Is(err, db.ErrExists) ||
		!strings.Contains(err.Error(), "shard-0007") || c.Growing() != 0 {
		t.Error(err, c.Growing())
	}
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}
	if again := restored(300); again.Shards() != 2 {
		t.Errorf("%d shards", again.Shards())
	}
	if all, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil ||
		len(all) != 4 || all[0].Shard != 2 {
		t.Fatal(all, err)
	}
	for i := range 2 { // nobody needs them any more
		if err := os.Remove(filepath.Join(h.dir, "backups", fmt.Sprintf("shard-%04d.json", i))); err != nil {
			t.Fatal(err)
		}
	}
	again := restored(400)
	if again.Shards() != 4 || again.Placement()[0].Shard != 2 {
		t.Errorf("%v", again.Placement())
	}
	putSome(t, again, 350, 500)
	if err := again.Grow(t.Context(), cluster.GrowOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := count(t, again); n != 500 || again.Shards() != 8 {
		t.Errorf("%d items, %d shards", n, again.Shards())
	}
}

// Without a place for backups a cluster does not grow, and says so.
func TestGrowWithoutBackups(t *testing.T) {
	h := build(t, 1, 1, 1, 1)
	n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "other", Node: "x", Dir: t.TempDir(),
		Conn: h.conn("x"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := cluster.Create(t.Context(), h.conn("admin"), "other",
		cluster.CreateOptions{Shards: 1, Servers: 1, Replicas: 1, Nodes: []string{"x"},
			LogBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Connect(t.Context(), h.conn("admin"), "other", cluster.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	codesOf(t, c)
	if err := c.Grow(t.Context(), cluster.GrowOptions{}); !errors.Is(err, db.ErrInvalid) ||
		!strings.Contains(err.Error(), "no place for backups") {
		t.Error(err)
	}
	if c.Shards() != 1 || c.Growing() != 0 {
		t.Error(c.Shards(), c.Growing())
	}
}

// A part that lacks an item, as somebody else has written to its log, does not take over: it begins anew.
func TestGrowMendsAPart(t *testing.T) {
	h := build(t, 1, 2, 1, 2)
	c := h.connect()
	codes := codesOf(t, c)
	putSome(t, c, 0, 100)
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		t.Fatal(err)
	}
	key, put := keyOf2("lost", 0, 2), false
	err = h.connect().Grow(t.Context(), cluster.GrowOptions{Progress: func(stage string, done, of int64) {
		if stage != cluster.GrowCopy || done < of || put {
			return
		}
		put = true
		if _, err := js.Publish(t.Context(), "fddhdb.test.log.1", []byte{0, 0xff}); err != nil {
			t.Error(err)
		}
		if _, err := codes.Put(t.Context(), &db.Item{Key: key, Code: []byte{1, 2}}); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || !put {
		t.Fatal(c.Shards(), put, err)
	}
	if _, err := codes.Get(t.Context(), key); err != nil {
		t.Error(err)
	}
	if n := count(t, c); n != 101 {
		t.Errorf("%d items", n)
	}
	h.inStep(2, 101)
	h.equal()
	left, err := filepath.Glob(filepath.Join(h.dir, "n*", "shard-0001.left-*"))
	if err != nil || len(left) == 0 {
		t.Errorf("nothing was made anew: %q, %v", left, err)
	}
}

// A part that does not come to its end, as it cannot apply what is in its log, begins anew: writes do not
// wait for it for ever. A node that cannot begin with its parts, as it has no place for backups, does not
// hold up the others.
func TestGrowPastTrouble(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	cluster.GrowInShort(t, time.Second, 2*time.Second)
	h := build(t, 1, 2, 1, 2)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 100)
	h.leave("n1")
	n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "test", Node: "n1",
		Dir: filepath.Join(h.dir, "n1"), Conn: h.conn("n1"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h.nodes["n1"] = n
	stuck := wire.Op{ID: wire.NewID(), Kind: wire.Write,
		Changes: []wire.Change{{Collection: "nosuch", Kind: wire.Put,
			Item: &wire.Item{Key: keyOf2("k", 0, 2), Code: []byte{1, 1}}}},
		Forward: &wire.Forward{Seq: 1, Decided: true}}
	message, err := stuck.Encode()
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		t.Fatal(err)
	}
	var end uint64
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = h.connect().Grow(ctx, cluster.GrowOptions{Progress: func(stage string, done, of int64) {
		if stage != cluster.GrowClose {
			return
		}
		ack, err := js.Publish(t.Context(), "fddhdb.test.log.1", message)
		if err != nil {
			t.Error(err)
			return
		}
		end = ack.Sequence
	}})
	if err != nil {
		t.Fatal(err)
	}
	// A replica of the first attempt does not go on with the log of the second one: there is a gap.
	s, err := js.Stream(t.Context(), "FDDHDB_test_1")
	if err != nil {
		t.Fatal(err)
	}
	if first := s.CachedInfo().State.FirstSeq; end == 0 || first < end+2 {
		t.Errorf("the log of a part ended with %d, and that in its place begins with %d", end, first)
	}
	left, err := filepath.Glob(filepath.Join(h.dir, "n0", "shard-0001.left-*"))
	if err != nil || len(left) == 0 {
		t.Errorf("nothing was made anew: %q, %v", left, err)
	}
	if n := count(t, h.connect()); n != 100 {
		t.Errorf("%d items", n)
	}
}
