package apply_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
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
