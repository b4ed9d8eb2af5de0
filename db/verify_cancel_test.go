package db_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// The statistics of a space cost much a row, and few records hold what many rows have taught:
// Verify nevertheless tells how far it has come there, and ends there with its context.
func TestVerifyCanBeCancelledInStatistics(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, c, dbkit.Pairs(200, synth.Config{})) // one record of lessons
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	var told []int64
	verify := func(ctx context.Context, cancel func()) error {
		told = nil
		_, err := d.Verify(ctx, db.VerifyOptions{Deep: true, Progress: func(stage string, done, _ int64) {
			if strings.HasSuffix(stage, ": statistics") {
				if told = append(told, done); len(told) == 4 {
					cancel()
				}
			}
		}}, nil)
		return err
	}
	if err := verify(ctx, func() {}); err != nil {
		t.Fatal(err)
	}
	if len(told) < 10 || told[len(told)-1] <= told[0] {
		t.Errorf("progress is %v", told)
	}
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := verify(cancelled, cancel); !errors.Is(err, context.Canceled) || len(told) != 4 {
		t.Errorf("cancelled at %v: %v", told, err)
	}
}

// A repair says where it adds up statistics, and ends there with its context, and the damaged
// store stays.
func TestRepairCanBeCancelledInStatistics(t *testing.T) {
	dbkit.LongTest(t)
	p := newPatient(t)
	p.put(codec.NumberKey(codec.KindStatistics, 1, 1), []byte("damage"))
	before := list(t, p.fs, p.dir)
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := db.Repair(cancelled, p.dir, p.options(), db.RepairOptions{Progress: func(s string, _, _ int64) {
		if strings.Contains(s, ": statistics of space ") {
			cancel()
		}
	}}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if after := list(t, p.fs, p.dir); after != before {
		t.Errorf("it has left %s, before there was %s", after, before)
	}
}
