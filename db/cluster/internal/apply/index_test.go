package apply_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A replica has the indexes that its log asks for, in whatever order they and the items come, and after it
// was closed or turned into a replica of another cluster. No other index of before stays.
func TestIndexes(t *testing.T) {
	fs := vfs.NewMem()
	open := func(cluster string) *apply.State {
		t.Helper()
		d, err := db.Open("db", &db.Options{FS: fs, NoSync: true, NoResume: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := apply.Open(t.Context(), d, apply.Identity{Cluster: cluster, Shard: 0, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open("c")
	apply1 := func(op wire.Op) error {
		t.Helper()
		op.ID, op.Base = wire.NewID(), s.Position().Seq
		b, err := op.Encode()
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Apply(t.Context(), []apply.Message{{Seq: op.Base + 1, Data: b,
			Control: op.Kind != wire.Write}})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].Err()
	}
	has := func() (said []string) { // after what there is to do
		t.Helper()
		if err := s.MakeIndexes(t.Context()); err != nil {
			t.Fatal(err)
		}
		c, err := s.DB.Collection("c")
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Indexes(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			said = append(said, x.Modality)
			if x.Complete != (x.Entries > 0) || x.Complete != (x.Problem == "") {
				t.Errorf("%+v", x)
			}
			if x.Complete {
				said = append(said, "complete")
			}
		}
		real, err := dbkit.VectorIndexes(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range real {
			if x.Complete {
				said = append(said, "in the database")
			}
		}
		return said
	}
	expect := func(want ...string) {
		t.Helper()
		if got := has(); strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%q, not %q", got, want)
		}
	}
	index := func(modality string, recall float64) error {
		return apply1(wire.Op{Kind: wire.IndexVectors, Collection: "c", Modality: modality, Recall: recall})
	}
	drop := func(modality string) error {
		return apply1(wire.Op{Kind: wire.DropIndex, Collection: "c", Modality: modality})
	}
	create := func() {
		t.Helper()
		err := apply1(wire.Op{Kind: wire.CreateCollection, Collection: "c", Schema: &db.Schema{
			Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "words", Dim: 50, Sparse: true}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	fill := func() {
		t.Helper()
		r, op := rand.New(rand.NewPCG(1, 1)), wire.Op{Kind: wire.Write}
		for i := range 500 {
			x := make([]float32, 8)
			for j := range x {
				x[j] = float32(r.NormFloat64())
			}
			op.Changes = append(op.Changes, wire.Change{Collection: "c", Kind: wire.Put,
				Item: wire.ItemOf(&db.Item{Key: string(rune('a'+i%26)) + string(rune('a'+i/26)),
					Vectors: map[string][]float32{"image": x}})})
		}
		if err := apply1(op); err != nil {
			t.Fatal(err)
		}
	}
	if err := index("image", .9); !errors.Is(err, db.ErrNotFound) {
		t.Error("no collection:", err)
	}
	create()
	for modality, recall := range map[string]float64{"words": .9, "nosuch": .9, "image": 1.5} {
		if err := index(modality, recall); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s, recall %v: %v", modality, recall, err)
		}
	}
	if err := drop("image"); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	if err := index("image", .9); err != nil {
		t.Fatal(err)
	}
	expect("image") // there are no items
	fill()
	expect("image", "complete", "in the database")
	made := func() int {
		t.Helper()
		c, err := s.DB.Collection("c")
		if err != nil {
			t.Fatal(err)
		}
		all, err := dbkit.VectorIndexes(c)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].Index
	}
	first := made()
	dbkit.MustClose(t, s.DB)
	s = open("c")
	expect("image", "complete", "in the database")
	if made() != first {
		t.Error("it was made again")
	}
	if err := index("image", .8); err != nil {
		t.Fatal(err)
	}
	expect("image", "complete", "in the database")
	if made() == first {
		t.Error("another recall, and it was not made again")
	}
	err := apply.Begin(t.Context(), s.DB, apply.Identity{Cluster: "other", Shard: 0, Shards: 1}, 7)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, s.DB)
	s = open("other")
	expect("image", "complete", "in the database")
	if err := drop("image"); err != nil {
		t.Fatal(err)
	}
	expect()
	if err := index("image", .9); err != nil {
		t.Fatal(err)
	}
	expect("image", "complete", "in the database")
	if err := apply1(wire.Op{Kind: wire.DropCollection, Collection: "c"}); err != nil {
		t.Fatal(err)
	}
	create()
	fill()
	expect() // another collection of that name
	dbkit.MustClose(t, s.DB)
	// A replica says which indexes are to be there, and a database that was none has them.
	fs = vfs.NewMem()
	d, err := db.Open("db", &db.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.CreateCollection(t.Context(), "c",
		db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 2}}})
	for i := range 50 {
		if err == nil {
			_, err = c.Put(t.Context(), &db.Item{Key: string(rune('a' + i)),
				Vectors: map[string][]float32{"image": {float32(i), 1}}})
		}
	}
	if err == nil {
		_, err = c.IndexVectors(t.Context(), db.IndexOptions{Modality: "image"})
	}
	if err == nil {
		err = apply.Begin(t.Context(), d, apply.Identity{Cluster: "third", Shard: 0, Shards: 1}, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, d)
	s = open("third")
	expect("image", "complete", "in the database")
	if err := drop("image"); err != nil { // it is still there when the next cluster begins with it
		t.Fatal(err)
	}
	err = apply.Begin(t.Context(), s.DB, apply.Identity{Cluster: "fourth", Shard: 0, Shards: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, s.DB)
	s = open("fourth")
	expect()
	dbkit.MustClose(t, s.DB)
}

// What an operation says counts at once: an index that is being made as an earlier one says is given up, and
// what has hindered an earlier try is said no more.
func TestIndexesFollowTheLatestOperation(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	s, err := apply.Open(t.Context(), d, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	apply1 := func(op wire.Op) {
		t.Helper()
		op.ID, op.Base, op.Collection = wire.NewID(), s.Position().Seq, "c"
		b, err := op.Encode()
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Apply(t.Context(), []apply.Message{{Seq: op.Base + 1, Data: b, Control: true}})
		if err != nil || len(all) != 1 || all[0].Fault != nil {
			t.Fatal(all, err)
		}
	}
	apply1(wire.Op{Kind: wire.CreateCollection,
		Schema: &db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 64}}}})
	c, err := d.Collection("c")
	if err != nil {
		t.Fatal(err)
	}
	state := func() wire.Index {
		t.Helper()
		all, err := s.Indexes(t.Context(), c)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0]
	}
	index := wire.Op{Kind: wire.IndexVectors, Modality: "image", Recall: .9}
	apply1(index)
	if err := s.MakeIndexes(t.Context()); err != nil || state().Problem == "" {
		t.Fatal(err, state())
	}
	if apply1(index); state().Problem != "" {
		t.Errorf("of before: %+v", state())
	}
	r, b := rand.New(rand.NewPCG(2, 2)), d.NewBatch()
	for i := range 20_000 {
		x := make([]float32, 64)
		for j := range x {
			x[j] = float32(r.NormFloat64())
		}
		it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": x}}
		if err := b.Put(c, it); err != nil {
			t.Fatal(err)
		}
		if b.Full() || i == 19_999 {
			if err := b.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			b = d.NewBatch()
		}
	}
	<-s.Indexing()
	done := make(chan error, 1)
	go func() { done <- s.MakeIndexes(t.Context()) }()
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		all, err := dbkit.VectorIndexes(c)
		if err != nil {
			t.Fatal(err)
		}
		begun = len(all) > 0
	}
	apply1(wire.Op{Kind: wire.DropIndex, Modality: "image"})
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-s.Indexing() // and so it is looked at once more
	if err := s.MakeIndexes(t.Context()); err != nil {
		t.Error(err)
	}
	if all, err := dbkit.VectorIndexes(c); err != nil || len(all) > 0 {
		t.Error(all, err)
	}
}
