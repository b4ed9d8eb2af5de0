package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A model that is learned across shards is that of one database with the items of the shards one after the
// other: every item has the same code, and the same answers come.
func TestTrain(t *testing.T) {
	const shards = 3
	h := build(t, 3, 3, shards, 2)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pairs.Train(t.Context(), db.TrainOptions{Options: fit.Options{Bits: 16}}); !errors.Is(err,
		fit.ErrNoItems) {
		t.Error("without items:", err)
	}
	items := dbkit.Pairs(600, synth.Config{Seed: 5, Missing: .2})
	for i, it := range items {
		if i%5 == 0 {
			it.Labels = nil
		}
	}
	importAll(t, pairs, items)
	slices.SortStableFunc(items,
		func(a, b *db.Item) int { return shard.Of(a.Key, shards) - shard.Of(b.Key, shards) })
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	one := mustCreate(t, d, "pairs", dbkit.PairsSchema)
	dbkit.PutAll(t, d, one, items)
	for _, opt := range []db.TrainOptions{
		{Options: fit.Options{Bits: 24, Anchors: 40, Seed: 3}},
		{Options: fit.Options{Bits: 16, Anchors: 20, Aim: model.AimCodes}, Rows: 300, Activate: true},
		{Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ}, Activate: true},
	} {
		want := dbkit.MustTrain(t, one, opt)
		var got *cluster.Training
		beside(t, func(ctx context.Context) error {
			_, err := pairs.Search(ctx,
				cluster.Query{Query: db.Query{From: "image", Vector: items[0].Vectors["image"]}})
			return err
		}, func() {
			if got, err = pairs.Train(t.Context(), opt); err != nil {
				t.Fatal(err)
			}
		})
		if got.Items == 0 || fmt.Sprint(got.LeftOut) != fmt.Sprint(want.LeftOut) {
			t.Errorf("learned from %d items, without %v", got.Items, got.LeftOut)
		}
		for it, err := range one.Items(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			is, err := pairs.Get(t.Context(), it.Key)
			if err != nil || !slices.Equal(is.Code, it.Code) || is.CodeFrom != it.CodeFrom {
				t.Fatalf("%s has code %x, from %s, and in one database %x, from %s; %v", it.Key, is.Code,
					is.CodeFrom, it.Code, it.CodeFrom, err)
			}
		}
		pair{t, pairs, one, 1e-6}.compare(fmt.Sprint(opt.Bits, " bits"),
			db.Query{From: "image", Vector: items[9].Vectors["image"], To: "text", K: 50,
				Rerank: db.RerankProjection}, -1)
	}
	h.inStep(2, 600)
}

// A training, and an update, go on with other nodes when one is lost that has a part of it.
func TestTrainingsOutlastNodes(t *testing.T) {
	h := build(t, 1, 3, 4, 2)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	importAll(t, pairs, dbkit.Pairs(600, synth.Config{Seed: 5}))
	h.inStep(2, 600)
	nodes := []string{"n0", "n1", "n2"}
	if testing.Short() {
		nodes = nodes[:1]
	}
	for i, node := range nodes {
		told := 0
		lose := func(string, int64, int64) {
			if told--; told == 0 {
				h.leave(node)
			}
		}
		again := func() {
			if h.nodes[node] != nil {
				t.Fatalf("%s has not been lost", node)
			}
			h.open(node)
			h.inStep(2, 600)
		}
		told = 2 + 3*i // nodes have sessions, and sums
		got, err := pairs.Train(t.Context(), db.TrainOptions{Activate: true,
			Options: fit.Options{Bits: 16, Anchors: 40, Progress: lose}})
		if err != nil || got.Items != 600 {
			t.Fatalf("without %s: %+v, %v", node, got, err)
		}
		again()
		told = 1 // the others may not have summed yet
		up, err := pairs.Update(t.Context(), cluster.UpdateOptions{Progress: lose})
		if err != nil || up.Items["image"] != 600 {
			t.Fatalf("an update without %s: %+v, %v", node, up, err)
		}
		again()
		all, err := pairs.Spaces(t.Context())
		if err != nil || len(all) != i+1 || all[i].Items != 600 || all[i].Shards != 4 {
			t.Fatalf("%+v, %v", all, err)
		}
	}
}

// A trainer that is gone while shards make codes leaves nothing: the next one completes the space that a
// shard uses already, and drops any other.
func TestKilledTrainings(t *testing.T) {
	h := build(t, 1, 1, 2, 1)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(3000, synth.Config{Seed: 5})
	small := slices.IndexFunc(items, func(it *db.Item) bool { return shard.Of(it.Key, 2) == 0 })
	kept := []*db.Item{items[small]} // one shard has an item, and is complete at once
	for _, it := range items {
		if shard.Of(it.Key, 2) == 1 {
			kept = append(kept, it)
		}
	}
	importAll(t, pairs, kept)
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 40}, Activate: true}
	before := 0
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := pairs.Train(ctx, opt)
			done <- err
		}()
		eventually(t, "a space is being built", func() bool {
			all, err := pairs.Spaces(t.Context())
			return err == nil && len(all) > before &&
				(all[before].State == "building" || all[before].Items == len(kept))
		})
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := pairs.Train(t.Context(), opt); err != nil {
			t.Fatal(err)
		}
		all, err := pairs.Spaces(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.State == "building" || s.Shards != 2 || s.Items != len(kept) {
				t.Errorf("%+v", s)
			}
		}
		before = len(all)
	}
}

// One at a time trains.
func TestOneTrains(t *testing.T) {
	h := build(t, 1, 1, 2, 1)
	a, b := h.connect(), h.connect()
	pairs, err := a.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	importAll(t, pairs, dbkit.Pairs(300, synth.Config{Seed: 5}))
	begun, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		once := false
		_, err := pairs.Train(t.Context(),
			db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10, Progress: func(string, int64, int64) {
				if !once {
					once = true
					close(begun)
					<-goOn
				}
			}}})
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal("it did not tell of its progress", err)
	}
	if _, err := b.Collection("pairs").Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 16}}); !errors.Is(err, db.ErrBusy) {
		t.Error(err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := b.Collection("pairs").Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}); err != nil {
		t.Error(err)
	}
}

// An update across shards is that of one database in which the same items have come, changed and gone: the
// projections are the same but for rounding, and what is put afterwards has the same code.
func TestUpdate(t *testing.T) {
	const shards = 3
	h := build(t, 3, 3, shards, 2)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pairs.Update(t.Context(), cluster.UpdateOptions{}); !errors.Is(err, db.ErrNoModel) {
		t.Error("without a model:", err)
	}
	items := dbkit.Pairs(700, synth.Config{Seed: 5, Missing: .2})
	for i, it := range items {
		if i%7 == 0 || i >= 600 {
			it.Labels = nil
		}
	}
	first, later, last := items[:400], items[400:600], items[600:]
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	one := mustCreate(t, d, "pairs", dbkit.PairsSchema)
	put := func(some []*db.Item) {
		t.Helper()
		importAll(t, pairs, some)
		dbkit.PutAll(t, d, one, some)
	}
	slices.SortStableFunc(first,
		func(a, b *db.Item) int { return shard.Of(a.Key, shards) - shard.Of(b.Key, shards) })
	put(first)
	opt := db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 40, Seed: 3}}
	dbkit.MustTrain(t, one, opt)
	if _, err := pairs.Train(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	put(later)
	for _, it := range first[:60] { // that have taught, and go
		_, err := one.Delete(t.Context(), it.Key)
		if err = errors.Join(err, pairs.Delete(t.Context(), it.Key)); err != nil {
			t.Fatal(err)
		}
	}
	var moved []*db.Item // that have taught, and change
	for i, it := range first[60:120] {
		as := *it
		as.Vectors, as.Labels = later[i].Vectors, later[i].Labels
		moved = append(moved, &as)
	}
	put(moved)
	dbkit.MustUpdate(t, one, db.UpdateOptions{Teacher: db.TeacherLabels})
	var u *cluster.Update
	beside(t, func(ctx context.Context) error {
		_, err := pairs.Search(ctx,
			cluster.Query{Query: db.Query{From: "image", Vector: later[0].Vectors["image"]}})
		return err
	}, func() {
		if u, err = pairs.Update(t.Context(), cluster.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	if !u.Revised || u.Revision != 2 || u.Space != 1 || u.Items["image"] < 300 || len(u.Grown) > 0 {
		t.Errorf("%+v", u)
	}
	same := func(what string) {
		t.Helper()
		a, b := encoder(t, one.ExportModel),
			encoder(t, func(ctx context.Context, w io.Writer) error { return pairs.ExportModel(ctx, w, 0) })
		z, w := make([]float64, 32), make([]float64, 32)
		for _, it := range last {
			x, has := it.Vectors["image"]
			if !has {
				continue
			}
			if err := errors.Join(a.Project(z, 0, x), b.Project(w, 0, x)); err != nil {
				t.Fatal(err)
			}
			for j := range z {
				if math.Abs(z[j]-w[j]) > 1e-8*(1+math.Abs(z[j])) {
					t.Fatalf("%s: %s projects to %v, and in one database to %v", what, it.Key, w[j], z[j])
				}
			}
		}
	}
	same("updated")
	put(last)
	for it, err := range one.Items(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		is, err := pairs.Get(t.Context(), it.Key)
		if err != nil || !slices.Equal(is.Code, it.Code) || is.CodeFrom != it.CodeFrom {
			t.Fatalf("%s has code %x, from %s, and in one database %x, from %s; %v", it.Key, is.Code,
				is.CodeFrom, it.Code, it.CodeFrom, err)
		}
	}
	pair{t, pairs, one, 1e-6}.compare("updated", db.Query{From: "image", Vector: items[9].Vectors["image"],
		To: "text", K: 50, Rerank: db.RerankProjection}, -1)
	h.inStep(2, 640)
}

// encoder returns an encoder with the model that an export writes.
func encoder(t *testing.T, export func(context.Context, io.Writer) error) *model.Encoder {
	t.Helper()
	var b bytes.Buffer
	if err := export(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	f, err := fit.UnmarshalFile(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]uint32, len(f.Labels()))
	for i := range ids {
		ids[i] = uint32(i)
	}
	m, err := f.Model(ids)
	if err != nil {
		t.Fatal(err)
	}
	return m.NewEncoder()
}

// Labels that have come since get directions, and their items codes of their own, the same on every shard; a
// label beyond the bits gets none, and is named.
func TestUpdateGrowsLabels(t *testing.T) {
	h := build(t, 3, 3, 2, 2)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(300, synth.Config{Seed: 5, Classes: 6})
	importAll(t, pairs, items[:200])
	if _, err := pairs.Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 8, Anchors: 30}}); err != nil {
		t.Fatal(err)
	}
	for i, it := range items[200:] {
		it.Labels = []string{[]string{"a", "b", "c", "d"}[i%4]}
	}
	importAll(t, pairs, items[200:])
	u, err := pairs.Update(t.Context(), cluster.UpdateOptions{GrowLabels: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(u.Grown) < 2 || len(u.Grown)+len(u.NoDirection) != 4 {
		t.Errorf("%+v", u)
	}
	codes := map[string][]byte{}
	for _, it := range items[200:] {
		is, err := pairs.Get(t.Context(), it.Key)
		if err != nil {
			t.Fatal(err)
		}
		label := it.Labels[0]
		if !slices.Contains(u.Grown, label) {
			continue
		}
		if is.CodeFrom != "labels" || codes[label] != nil && !bytes.Equal(codes[label], is.Code) {
			t.Errorf("%s of label %s has code %x from %s, others have %x", it.Key, label, is.Code,
				is.CodeFrom, codes[label])
		}
		codes[label] = is.Code
	}
	again, err := pairs.Update(t.Context(), cluster.UpdateOptions{GrowLabels: true, Space: 1})
	if err != nil || again.Revision != 3 || len(again.Grown) != 0 ||
		len(again.NoDirection) != len(u.NoDirection) {
		t.Errorf("%+v, %v", again, err)
	}
	h.inStep(2, 300)
	if _, err := pairs.Update(t.Context(), cluster.UpdateOptions{Space: 9}); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	if _, err := pairs.Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 8, Method: model.MethodCCAITQ},
			Activate: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := pairs.Update(t.Context(), cluster.UpdateOptions{}); !errors.Is(err, db.ErrInvalid) {
		t.Error("learned without labels:", err)
	}
}

// A revision that has reached one shard only holds up no search: all are asked by the one before, cursors go
// on, and the next update brings the shards together.
func TestARevisionOfOneShard(t *testing.T) {
	h := build(t, 1, 2, 2, 2)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(400, synth.Config{Seed: 5})
	importAll(t, pairs, items[:200])
	if _, err := pairs.Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 30}}); err != nil {
		t.Fatal(err)
	}
	q := cluster.Query{Query: db.Query{From: "image", Vector: items[1].Vectors["image"], K: 30}}
	search := func() *cluster.Result {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := pairs.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := search()
	h.reviseOne(pairs, 1, items[200:])
	again := search()
	if again.Revision != 1 || fmt.Sprint(again.Hits) != fmt.Sprint(first.Hits) {
		t.Errorf("%+v, and before %+v", again, first)
	}
	u, err := pairs.Update(t.Context(), cluster.UpdateOptions{})
	if err != nil || u.Revision != 3 {
		t.Fatalf("%+v, %v", u, err)
	}
	if r := search(); r.Revision != 3 {
		t.Errorf("revision %d", r.Revision)
	}
	q.After = first.Next // of revision 1, which both still have
	if r := search(); r.Revision != 1 || len(r.Hits) != 30 || r.Hits[0].Distance < first.Hits[29].Distance {
		t.Errorf("%+v", r)
	}
	h.inStep(2, 200)
}

// reviseOne puts an update of the model, by some items, into the log of one shard, as one leaves that is
// killed.
func (h *house) reviseOne(c *cluster.Collection, shard int, items []*db.Item) {
	h.t.Helper()
	var file bytes.Buffer
	if err := c.ExportModel(h.t.Context(), &file, 0); err != nil {
		h.t.Fatal(err)
	}
	d := dbkit.MustOpen(h.t, h.t.TempDir(), nil)
	defer dbkit.MustClose(h.t, d)
	one := mustCreate(h.t, d, "pairs", dbkit.PairsSchema)
	dbkit.PutAll(h.t, d, one, items)
	if _, err := one.ImportModel(h.t.Context(), &file, db.ImportModelOptions{}); err != nil {
		h.t.Fatal(err)
	}
	dbkit.MustUpdate(h.t, one, db.UpdateOptions{Teacher: db.TeacherLabels})
	file.Reset()
	if err := one.ExportModel(h.t.Context(), &file); err != nil {
		h.t.Fatal(err)
	}
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		h.t.Fatal(err)
	}
	op := &wire.Op{ID: wire.NewID(), Kind: wire.ReviseSpace, Collection: "pairs",
		File: file.Bytes(), Space: 1, Revision: 2}
	log := journal.New(js, "test", shard)
	info, err := log.Info(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	op.Base = info.Last
	messages, err := op.Messages()
	if err != nil || len(messages) != 1 {
		h.t.Fatal(len(messages), err)
	}
	if _, _, err = log.Append(h.t.Context(), op.ID.String(), journal.Control, messages[0], ""); err != nil {
		h.t.Fatal(err)
	}
	eventually(h.t, "the shard has the revision", func() bool {
		for _, n := range h.nodes {
			for _, s := range n.Status().Shards {
				if s.Shard == shard && s.Applied < op.Base+1 {
					return false
				}
			}
		}
		return true
	})
}
