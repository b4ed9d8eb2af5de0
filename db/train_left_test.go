package db_test

import (
	"errors"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A process that ended while it built a space is in nobody's way: the same training again
// takes its place, and a reindexing is completed first.
func TestTrainSettlesWhatAnotherProcessLeft(t *testing.T) {
	items := mixedPairs(200, 4)
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, items)
	leave := func(prepare func(v *state.View, cv *state.CollectionView) (*learn.Foundation, error)) uint32 {
		t.Helper()
		sp, err := taught(c).Found(ctx, true, prepare)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Train(ctx, smallTraining); !errors.Is(err, db.ErrBusy) {
			t.Errorf("beside a call that builds: %v", err)
		}
		err = db.Inside(c).Look(ctx, func(s *state.CollectionState) error { // as opening does
			s.SpaceByID(sp.ID).Left = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return sp.ID
	}
	spaces := func() (ids []uint32) {
		err := db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
			for i := range cv.Spaces {
				if sp := &cv.Spaces[i]; sp.Numbers.Building {
					t.Errorf("space %d is being built", sp.Space.ID)
				}
				ids = append(ids, cv.Spaces[i].Space.ID)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	train := func() *db.Training {
		t.Helper()
		tr, err := c.Train(ctx, smallTraining)
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	leave(func(v *state.View, cv *state.CollectionView) (*learn.Foundation, error) {
		l, err := learn.TrainOn(ctx, v, cv, learn.TrainOptions(smallTraining))
		if err != nil {
			return nil, err
		}
		return l.Foundation(ctx, v, cv, false)
	})
	if _, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: -8}}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("an impossible training: %v", err)
	}
	if err := db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
		if cv.Building() == nil {
			t.Error("an impossible training has dropped what was left")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if tr := train(); tr.Space != 2 || !tr.Active || tr.Items != inSpace(t, c, 2).Codes.Coded {
		t.Errorf("%+v", tr)
	}
	if ids := spaces(); len(ids) != 1 || ids[0] != 2 {
		t.Errorf("spaces %v", ids)
	}
	leave(func(v *state.View, cv *state.CollectionView) (*learn.Foundation, error) {
		return db.Learning(db.Of(c)).Refound(ctx, v, cv, true)
	})
	if tr := train(); tr.Space != 4 || tr.Active {
		t.Errorf("%+v", tr)
	}
	if ids := spaces(); len(ids) != 3 || inSpace(t, c, 3).Codes.Coded != inSpace(t, c, 2).Codes.Coded {
		t.Errorf("spaces %v", ids)
	}
}
