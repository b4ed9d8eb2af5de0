package db_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

var backupItems = flag.Int("backup.items", 0, "how many items TestBytesOfTheNextBackup makes; a million for the figures of docs/DURABILITY.md")

// A backup after a hundredth of the items was appended stores at most a twentieth of
// the bytes, though nothing was compacted by hand. Backups find the store at rest, as those
// of a night do: what compactions of the writes before have still to rewrite, a later one stores.
func TestBytesOfTheNextBackup(t *testing.T) {
	n := *backupItems
	if n == 0 {
		t.Skip("takes minutes: -backup.items 1000000")
	}
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}}}))(t)
	r := rand.New(rand.NewPCG(1, 1))
	centres := make([][]float32, 40)
	for i := range centres {
		centres[i] = make([]float32, 256)
		for j := range centres[i] {
			centres[i][j] = float32(r.NormFloat64())
		}
	}
	next := 0
	put := func(n, size int, key func() int) {
		for done := 0; done < n; done += size {
			b := d.NewBatch()
			for range size {
				class := r.IntN(len(centres))
				x := make([]float32, 256)
				for j := range x {
					x[j] = centres[class][j] + float32(r.NormFloat64())
				}
				must(t, b.Put(c, &db.Item{
					Key: fmt.Sprint(key()), Labels: []string{fmt.Sprint("class", class)},
					Vectors: map[string][]float32{"image": x[:128], "text": x[128:]},
				}))
			}
			must(t, b.Commit(ctx))
		}
	}
	appended := func() int { next++; return next - 1 }
	written := func() int { return r.IntN(next) }
	repo := mustFolder(t)
	back := func(what string) float64 {
		atRest(d)
		start := time.Now()
		m := mustBackup(t, d, repo, db.BackupOptions{})
		share := float64(m.BytesNew) / float64(m.BytesTotal)
		t.Logf("%s: %.1f s, %d of %d bytes are new: %.2f %%", what, time.Since(start).Seconds(), m.BytesNew, m.BytesTotal, 100*share)
		return share
	}
	after := func(size int, key func() int, what string) float64 {
		put(n/100, size, key)
		return back(what)
	}
	first := min(n, 20_000)
	put(first, first, appended)
	dbkit.MustTrain(t, c, db.TrainOptions{})
	put(n-first, min(n-first, 98_000), appended)
	back("first")
	back("again, without a change")
	if share := after(n/100, appended, "a hundredth appended at once"); share > .05 {
		t.Errorf("%.1f %% are new", 100*share)
	}
	if share := after(100, appended, "a hundredth appended in batches of 100"); share > .05 {
		t.Errorf("%.1f %% are new", 100*share)
	}
	for i := range 6 {
		after(100, appended, fmt.Sprintf("the same, %d more", i+1))
	}
	for range 3 {
		after(100, written, "a hundredth written over, scattered, in batches of 100")
	}
	dir := t.TempDir()
	start := time.Now()
	need(db.Restore(ctx, repo, dir, nil, db.RestoreOptions{}))(t)
	t.Logf("restored and verified: %.1f s", time.Since(start).Seconds())
	other := dbkit.MustOpen(t, dir, &db.Options{MustExist: true})
	defer dbkit.MustClose(t, other)
	for range 100 {
		q := db.Query{From: "image", To: "text", Key: fmt.Sprint(written()), K: 50}
		want := need(c.Search(ctx, q))(t)
		got, err := dbkit.MustCollection(t, other, "main").Search(ctx, q)
		if err != nil || !slices.Equal(got.Hits, want.Hits) {
			t.Errorf("%s: %v, or other hits", q.Key, err)
		}
	}
}

// atRest waits until the store has nothing to compact any more.
func atRest(d *db.DB) {
	for quiet := 0; quiet < 20; quiet++ {
		if m := db.State(d).Engine.DB.Metrics(); m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0 {
			quiet = 0
		}
		time.Sleep(100 * time.Millisecond)
	}
}
