package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/svgchart"
)

// directions are the measured pairs of modalities.
var directions = [2]string{"image → text", "text → image"}

// A way is a way to go on after the first training.
type way struct {
	name     string
	labelled bool // items come with their labels
	updated  bool // the projections are updated after each chunk
	teacher  db.Teacher
	retrain  bool // a new training on everything, at the end
	look     svgchart.Style
}

var ways = []way{
	{name: "updated", labelled: true, updated: true, teacher: db.TeacherLabels,
		look: svgchart.Style{Color: svgchart.Blue, Mark: svgchart.Circle}},
	{name: "never updated", labelled: true, look: svgchart.Style{Color: svgchart.Sky, Dashes: "6 3"}},
	{name: "trained on all", labelled: true, retrain: true,
		look: svgchart.Style{Color: svgchart.Blue, Mark: svgchart.Diamond, Alone: true}},
	{name: "stronger modality, guarded", updated: true, teacher: db.TeacherAuto,
		look: svgchart.Style{Color: svgchart.Green, Mark: svgchart.Square}},
	{name: "stronger modality", updated: true, teacher: db.TeacherModality,
		look: svgchart.Style{Color: svgchart.Vermillion, Mark: svgchart.Triangle}},
	{name: "self", updated: true, teacher: db.TeacherSelf,
		look: svgchart.Style{Color: svgchart.Purple, Dashes: "8 2 2 2", Mark: svgchart.Diamond}},
	{name: "never updated", look: svgchart.Style{Color: svgchart.Grey, Dashes: "6 3"}},
}

// A curve is the result of one way.
type curve struct {
	way
	updates, adopted int           // sums over all seeds
	took             time.Duration // of the updates, or of the training at the end; sum over all seeds
	points           []point       // ascending by the number of items
}

// A point has the figures after so many items.
type point struct {
	items int
	maps  [2][]float64 // mAP, [direction][seed]
}

// measure goes all ways with each seed.
func measure(ctx context.Context, s settings) (_ []*curve, err error) {
	d, err := db.Open(s.dir, &db.Options{NoSync: true}) // what a crash would lose can be made again
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	curves := make([]*curve, len(ways))
	for i, w := range ways {
		curves[i] = &curve{way: w}
	}
	for seed := range s.seeds {
		set, err := newSet(s, uint64(seed))
		if err != nil {
			return nil, err
		}
		for _, cv := range curves {
			name := strings.ReplaceAll(fmt.Sprintf("%s %s seed %d", heading(cv), strings.ReplaceAll(cv.name,
				",", ""), seed), " ", "-")
			if err := set.stream(ctx, d, name, s, cv); err != nil {
				return nil, fmt.Errorf("collection %s: %w", name, err)
			}
		}
	}
	return curves, nil
}

// stream trains a new collection on the first items; that gives the same model each
// time. Then it goes on in the way of the curve, and adds what it measures to the
// curve.
func (set *set) stream(ctx context.Context, d *db.DB, name string, s settings, cv *curve) error {
	c, err := d.CreateCollection(ctx, name, set.schema())
	if err != nil {
		return err
	}
	if err := set.put(ctx, d, c, 0, s.first(), true); err != nil {
		return err
	}
	if err := set.train(ctx, c); err != nil {
		return err
	}
	if !cv.retrain {
		if err := set.evaluate(ctx, c, s.first(), cv); err != nil {
			return err
		}
	}
	const marks = 10 // points on the curve
	for seen := s.first(); seen < s.items; {
		end := min(seen+s.chunk, s.items)
		if err := set.put(ctx, d, c, seen, end, cv.labelled); err != nil {
			return err
		}
		if cv.updated {
			start := time.Now()
			u, err := c.Update(ctx, db.UpdateOptions{Teacher: cv.teacher})
			if err != nil {
				return err
			}
			cv.took += time.Since(start)
			cv.updates++
			if u.Adopted.Unlabelled != "" {
				cv.adopted++
			}
		}
		if !cv.retrain && end*marks/s.items > seen*marks/s.items {
			if err := set.evaluate(ctx, c, end, cv); err != nil {
				return err
			}
		}
		seen = end
	}
	if !cv.retrain {
		return nil
	}
	start := time.Now()
	if _, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Seed: set.seed},
		Activate: true}); err != nil {
		return err
	}
	cv.took += time.Since(start)
	return set.evaluate(ctx, c, s.items, cv)
}

// train trains on the present items. From the second time on it gives the options that
// the first one has chosen, which saves time.
func (set *set) train(ctx context.Context, c *db.Collection) error {
	t, err := c.Train(ctx, db.TrainOptions{Options: set.chosen})
	unfit := func(c *fit.Choice) bool { return c.Unfit != "" } // too few items to choose by
	if err != nil || set.chosen.Start != 0 || slices.ContainsFunc(slices.Collect(maps.Values(t.Choices)),
		unfit) {
		return err
	}
	set.chosen = t.Settle(set.chosen)
	return nil
}

// put stores the items from from to to-1, all or none.
func (set *set) put(ctx context.Context, d *db.DB, c *db.Collection, from, to int, labelled bool) error {
	batch := d.NewBatch()
	for i := from; i < to; i++ {
		if err := batch.Put(c, set.item(i, labelled)); err != nil {
			return err
		}
	}
	return batch.Commit(ctx)
}

// evaluate adds a point to the curve: mAP of the queries over the items that have been
// seen.
func (set *set) evaluate(ctx context.Context, c *db.Collection, seen int, cv *curve) error {
	found, err := c.Evaluate(ctx, set.evaluation(seen))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(cv.points, func(p point) bool { return p.items == seen })
	if at < 0 {
		at = len(cv.points)
		cv.points = append(cv.points, point{items: seen})
	}
	for i, r := range found { // in the order of the schema, like directions
		cv.points[at].maps[i] = append(cv.points[at].maps[i], r.Hamming.MAP)
	}
	return nil
}
