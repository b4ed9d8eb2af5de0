package apply_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

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
	turns := make(chan struct{}, 1)
	has := func() (said []string) { // after what there is to do
		t.Helper()
		if err := s.MakeIndexes(t.Context(), turns); err != nil {
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
		real, err := c.VectorIndexes()
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
		all, err := c.VectorIndexes()
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
	// The index of a database that was none of a cluster stays.
	c, err := s.DB.Collection("c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.IndexVectors(t.Context(), db.IndexOptions{Modality: "image"}); err != nil {
		t.Fatal(err)
	}
	err = apply.Begin(t.Context(), s.DB, apply.Identity{Cluster: "third", Shard: 0, Shards: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, s.DB)
	s = open("third")
	expect("image", "complete", "in the database")
	dbkit.MustClose(t, s.DB)
}
