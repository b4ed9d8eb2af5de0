package apply_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A shard that an update has not reached has the number of the others behind the next one; an update that is
// applied again changes nothing; an older one, or one of a trainer that has lost its lease, is refused.
func TestRevisions(t *testing.T) {
	s := openState(t)
	items := dbkit.Pairs(200, synth.Config{Seed: 5})
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	elsewhere, err := d.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.PutAll(t, d, elsewhere, items[:100])
	dbkit.MustTrain(t, elsewhere, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	seq := s.Position().Seq
	apply1 := func(o *wire.Op) error {
		t.Helper()
		seq++
		o.ID, o.Base, o.Collection = wire.NewID(), seq-1, "pairs"
		return must(t, s, message(t, seq, o))[0].Err()
	}
	with := func(o wire.Op) *wire.Op {
		var b bytes.Buffer
		if err := elsewhere.ExportModel(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		o.File = b.Bytes()
		return &o
	}
	revision := func(want uint32) {
		t.Helper()
		c, err := s.DB.Collection("pairs")
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.Spaces(t.Context())
		if err != nil || len(all) != 1 || all[0].Space != 4 || all[0].Revision != want {
			t.Fatalf("%+v, %v", all, err)
		}
	}
	if err := apply1(&wire.Op{Kind: wire.CreateCollection, Schema: &dbkit.PairsSchema}); err != nil {
		t.Fatal(err)
	}
	if err := apply1(with(wire.Op{Kind: wire.ReviseSpace, Space: 4, Revision: 2})); !errors.Is(err,
		db.ErrNotFound) {
		t.Error("a space that is not there:", err)
	}
	if err := apply1(with(wire.Op{Kind: wire.ImportModel, Space: 4})); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*wire.Op{{Kind: wire.ActivateSpace, Space: 4},
		with(wire.Op{Kind: wire.ImportModel, Space: 5}),
		with(wire.Op{Kind: wire.ReviseSpace, Space: 4, Revision: 2})} {
		if err := apply1(o); !errors.Is(err, db.ErrConflict) {
			t.Error("while a space is built:", err)
		}
	}
	if err := apply1(&wire.Op{Kind: wire.BuildSpace, Space: 4, Rows: 1}); err != nil {
		t.Fatal(err)
	}
	revision(1)
	dbkit.PutAll(t, d, elsewhere, items[100:])
	dbkit.MustUpdate(t, elsewhere, db.UpdateOptions{Teacher: db.TeacherLabels})
	third := with(wire.Op{Kind: wire.ReviseSpace, Space: 4, Revision: 3, Fence: 8})
	// Interrupted it has been applied in part.
	third.ID, third.Collection = wire.NewID(), "pairs"
	halves := 0
	for left := int64(0); left < 200; left += 3 {
		ctx := &interrupted{Context: t.Context()}
		ctx.left.Store(left)
		if _, err := s.Apply(ctx, []apply.Message{message(t, seq+1, third)}); err == nil {
			seq++
			break
		}
		if _, err := s.DB.Mark("cluster/doing"); err == nil {
			halves++
		} else if !errors.Is(err, db.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if halves == 0 {
		t.Error("it was not interrupted in the middle")
	}
	if err := apply1(third); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.Mark("cluster/doing"); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	revision(3)
	again := *third
	if err := apply1(&again); err != nil {
		t.Error("once more:", err)
	}
	old := *third
	if old.Fence = 7; !errors.Is(apply1(&old), db.ErrConflict) {
		t.Error("a trainer that has lost its lease is not refused")
	}
	old.Fence, old.Revision = 9, 2
	if err := apply1(&old); !errors.Is(err, db.ErrExists) {
		t.Error("an old number:", err)
	}
	revision(3)
}

// An interrupted context ends after some looks at it.
type interrupted struct {
	context.Context
	left atomic.Int64
}

func (i *interrupted) Err() error {
	if i.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func (i *interrupted) Deadline() (time.Time, bool) { return time.Time{}, false }

// The codes of a space come some rows at a time, with writes between. What comes of them follows from the
// log: also the order of hits at one distance, whatever interrupts a replica.
func TestSpacesAreBuiltBesideWrites(t *testing.T) {
	r := seed.Rand(t, 7, 7)
	items := dbkit.Pairs(900, synth.Config{Seed: 8})
	for _, it := range items { // so that almost every item has a code of its own
		for _, x := range it.Vectors {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
		}
	}
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	elsewhere, err := d.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.PutAll(t, d, elsewhere, items[:200])
	dbkit.MustTrain(t, elsewhere, db.TrainOptions{Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ}})
	var file bytes.Buffer
	if err := elsewhere.ExportModel(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	var log []apply.Message
	add := func(o wire.Op) {
		o.ID, o.Base = wire.NewID(), uint64(len(log))
		log = append(log, message(t, uint64(len(log)+1), &o))
	}
	changes := func(kind wire.ChangeKind, items ...*db.Item) (o wire.Op) {
		o.Kind = wire.Write
		for _, it := range items {
			o.Changes = append(o.Changes, wire.Change{Collection: "pairs", Kind: kind, Item: wire.ItemOf(it)})
		}
		return o
	}
	add(wire.Op{Kind: wire.CreateCollection, Collection: "pairs", Schema: &dbkit.PairsSchema})
	next := 400
	add(changes(wire.Put, items[:next]...))
	for space := db.Space(3); space < 6; space++ {
		add(wire.Op{Kind: wire.ImportModel, Collection: "pairs", Space: space, File: file.Bytes()})
		for rows := uint64(1); rows < 900; rows += 20 + r.Uint64N(90) {
			add(wire.Op{Kind: wire.BuildSpace, Collection: "pairs", Space: space, Rows: rows})
			for range r.IntN(10) {
				switch it := items[r.IntN(next)]; r.IntN(3) {
				case 0:
					add(changes(wire.Delete, &db.Item{Key: it.Key}))
				case 1:
					add(changes(wire.Put, it))
				default:
					add(changes(wire.Put, items[next%900]))
					next = min(next+1, 900)
				}
			}
		}
		add(wire.Op{Kind: wire.BuildSpace, Collection: "pairs", Space: space, Rows: 1 << 40})
		add(wire.Op{Kind: wire.ActivateSpace, Collection: "pairs", Space: space})
	}
	answers := func(interrupt bool) string {
		fs := vfs.NewMem()
		open := func() *apply.State {
			d, err := db.Open("db", &db.Options{FS: fs, NoSync: true, NoResume: true})
			if err != nil {
				t.Fatal(err)
			}
			s, err := apply.Open(t.Context(), d, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open()
		for {
			at := int(s.Position().Seq)
			if at == len(log) {
				break
			}
			ctx := t.Context()
			if interrupt && r.IntN(3) == 0 {
				stops := &interrupted{Context: ctx}
				stops.left.Store(r.Int64N(40))
				ctx = stops
			}
			all, err := s.Apply(ctx, log[at:min(len(log), at+1+r.IntN(6))])
			for _, a := range all {
				if a.Fault != nil {
					t.Fatalf("message %d: %v", a.Seq, a.Err())
				}
			}
			if err != nil && ctx == t.Context() {
				t.Fatal(err)
			}
			if interrupt && r.IntN(4) == 0 {
				dbkit.MustClose(t, s.DB)
				s = open()
			}
		}
		defer dbkit.MustClose(t, s.DB)
		text, err := s.Digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.DB.Collection("pairs")
		if err != nil {
			t.Fatal(err)
		}
		for space := db.Space(3); space < 6; space++ {
			in, err := c.InSpace(space, 0)
			if err != nil {
				t.Fatal(err)
			}
			res, err := in.Search(t.Context(), db.Query{Code: []byte{0xf0, 7}, K: 1000})
			if err != nil || len(res.Hits) == 0 {
				t.Fatal(err)
			}
			for _, h := range res.Hits {
				text += fmt.Sprintf(" %s:%d", h.Key, h.Distance)
			}
		}
		return text
	}
	want := answers(false)
	for range effort.Of(12, 4) {
		if got := answers(true); got != want {
			t.Fatalf("an interrupted replica has\n%s\nand another one\n%s", got, want)
		}
	}
}
