package vectors

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// modality is that of the vectors.
const modality = "e"

// A database is fddhdb with an index of vectors.
type database struct {
	db     *db.DB
	main   *db.Collection
	recall float64
	answer *db.Result
}

// newDatabase imports and indexes the items of a file, with their numbers as keys, into a
// new database, as a user of package db does. It returns when the vectors are in memory.
func newDatabase(ctx context.Context, items string, dims int, folder string) (_ engine, _ *built, err error) {
	d, err := db.Open(folder, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: modality, Dim: dims}}})
	if err != nil {
		return nil, nil, err
	}
	start := time.Now()
	first, err := load(ctx, d, c, items, dims)
	if err != nil {
		return nil, nil, err
	}
	imported := time.Now()
	if _, err := c.IndexVectors(ctx, db.IndexOptions{}); err != nil {
		return nil, nil, err
	}
	b := &built{Threads: runtime.GOMAXPROCS(0), Import: imported.Sub(start).Seconds(), Build: time.Since(imported).Seconds()}
	e := &database{db: d, main: c, recall: 1}
	if err := e.search(ctx, first, 1); err != nil {
		return nil, nil, err
	}
	if err := d.WaitForIndex(ctx); err != nil {
		return nil, nil, err
	}
	stats, err := d.Stats()
	if err != nil {
		return nil, nil, err
	}
	b.Disk = stats.DiskBytes
	return e, b, nil
}

// load imports the items of a file, and returns the first one.
func load(ctx context.Context, d *db.DB, c *db.Collection, items string, dims int) (first []float32, err error) {
	b, n := d.NewBatch(), 0
	for row, err := range readRows(items, dims) {
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = row
		}
		if err := b.Put(c, &db.Item{Key: strconv.Itoa(n), Vectors: map[string][]float32{modality: row}}); err != nil {
			return nil, err
		}
		if n++; b.Full() {
			if err := b.Commit(ctx); err != nil {
				return nil, err
			}
			b = d.NewBatch()
		}
	}
	return first, b.Commit(ctx)
}

func (d *database) set(recall float64) { d.recall = recall }

func (d *database) search(ctx context.Context, query []float32, k int) (err error) {
	d.answer, err = d.main.Search(ctx, db.Query{From: modality, Vector: query, K: k, Recall: d.recall})
	return err
}

func (d *database) found() ([]int, error) {
	var items []int
	for _, h := range d.answer.Hits {
		i, err := strconv.Atoi(h.Key)
		if err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	return items, nil
}

func (d *database) close() error { return d.db.Close() }
