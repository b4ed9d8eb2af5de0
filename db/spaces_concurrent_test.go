package db_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// Writers, trainings, updates, activations, drops and searches at the same time: what
// is refused is refused with the words for it, and in the end everything fits together.
func TestSpacesUnderConcurrentUse(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem(), UpdateItems: 40}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { d.Close() }()
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.ViewItems(200, 11)
	putAll(t, c, items[:60])
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	rounds := 40
	if testing.Short() {
		rounds = 12
	}
	var all sync.WaitGroup
	first := seed.From(t, 1)
	each := func(name string, rounds int, f func(r *rand.Rand, i int) error, allowed ...error) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(first, uint64(len(name))))
			for i := range rounds {
				err := f(r, i)
				ok := err == nil
				for _, a := range allowed {
					ok = ok || errors.Is(err, a)
				}
				if !ok {
					t.Errorf("%s %d: %v", name, i, err)
				}
			}
		})
	}
	for w := range 2 {
		each(fmt.Sprint("writer", w), 4*rounds, func(r *rand.Rand, i int) error {
			b := d.NewBatch()
			for range 1 + r.IntN(5) {
				it := *items[r.IntN(len(items))]
				it.Key = fmt.Sprint("k", r.IntN(90))
				switch r.IntN(5) {
				case 0:
					b.Delete(c, it.Key)
				case 1:
					b.Merge(c, &db.Item{Key: it.Key, Payload: []byte{byte(i)}})
				case 2:
					b.Merge(c, &db.Item{Key: it.Key, Labels: []string{fmt.Sprint("new", r.IntN(3))}})
				default:
					b.Put(c, &it)
				}
			}
			return b.Commit(ctx)
		})
	}
	each("train", rounds/4, func(_ *rand.Rand, i int) error {
		opt := dbkit.TinyTraining(uint64(i))
		opt.Activate = i%3 == 0
		_, err := c.Train(ctx, opt)
		return err
	}, db.ErrBusy, db.ErrNotFound) // it may be dropped while it is being built
	spaceOf := func(r *rand.Rand) db.Space { return db.Space(1 + r.IntN(rounds/4+1)) }
	each("activate", rounds, func(r *rand.Rand, _ int) error { return c.Activate(ctx, spaceOf(r)) }, db.ErrNotFound, db.ErrBusy)
	each("rollback", rounds/2, func(*rand.Rand, int) error { _, err := c.Rollback(ctx); return err }, db.ErrInvalid)
	each("drop", rounds/2, func(r *rand.Rand, _ int) error { return c.DropSpace(ctx, spaceOf(r)) }, db.ErrNotFound, db.ErrInvalid)
	for u := range 2 {
		each(fmt.Sprint("update", u), rounds/2, func(r *rand.Rand, i int) error {
			opt := db.UpdateOptions{Teacher: db.Teacher(i % 4), GrowLabels: r.IntN(4) == 0}
			if r.IntN(2) == 0 {
				opt.Space = spaceOf(r)
			}
			_, err := c.Update(ctx, opt)
			return err
		}, db.ErrNotFound, db.ErrBusy)
	}
	each("restore", rounds/4, func(r *rand.Rand, _ int) error {
		_, err := c.RestoreRevision(ctx, 0, uint32(1+r.IntN(4)))
		return err
	}, db.ErrNotFound, db.ErrBusy, db.ErrInvalid)
	each("search", 3*rounds, func(r *rand.Rand, _ int) error {
		q := db.Query{Key: fmt.Sprint("k", r.IntN(90)), To: []string{"image", "text"}[r.IntN(2)]}
		if r.IntN(2) == 0 {
			q.Space = spaceOf(r)
		}
		_, err := c.Search(ctx, q)
		return err
	}, db.ErrNotFound, db.ErrBusy, db.ErrInvalid)
	all.Wait()
	checkSpaces(t, d)
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", opts)
	checkSpaces(t, d)
}
