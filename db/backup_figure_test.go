package db

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
)

var backupItems = flag.Int("backup.items", 0, "how many items TestBytesOfTheNextBackup makes; a million for the figures of docs/DURABILITY.md")

// A backup after a hundredth of the items was appended stores at most a twentieth of
// the bytes, though nothing was compacted by hand.
func TestBytesOfTheNextBackup(t *testing.T) {
	n := *backupItems
	if n == 0 {
		t.Skip("takes minutes: -backup.items 1000000")
	}
	d := mustOpen(t, t.TempDir(), nil)
	defer mustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", Schema{Modalities: []Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}}})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	centres := make([][]float32, 40)
	for i := range centres {
		centres[i] = make([]float32, 256)
		for j := range centres[i] {
			centres[i][j] = float32(r.NormFloat64())
		}
	}
	item := func(key string) *Item {
		class := r.IntN(len(centres))
		x := make([]float32, 256)
		for j := range x {
			x[j] = centres[class][j] + float32(r.NormFloat64())
		}
		return &Item{Key: key, Labels: []string{fmt.Sprint("class", class)}, Vectors: map[string][]float32{"image": x[:128], "text": x[128:]}}
	}
	next := 0
	put := func(n, size int) {
		for range n / size {
			b := d.NewBatch()
			for range size {
				if err := b.Put(c, item(fmt.Sprint(next))); err != nil {
					t.Fatal(err)
				}
				next++
			}
			if err := b.Commit(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	store := mustFolder(t)
	back := func(what string) *backup.Manifest {
		start := time.Now()
		m := mustBackup(t, d, store, BackupOptions{})
		t.Logf("%s: %.1f s, %d of %d bytes are new: %.2f %%", what, time.Since(start).Seconds(), m.BytesNew, m.BytesTotal,
			100*float64(m.BytesNew)/float64(m.BytesTotal))
		return m
	}
	share := func(m *backup.Manifest) float64 { return float64(m.BytesNew) / float64(m.BytesTotal) }
	first := min(n, 20_000)
	put(first, first)
	mustTrain(t, c, TrainOptions{})
	put(n-first, min(n-first, 100_000))
	back("first")
	back("again, without a change")
	put(n/100, n/100)
	if m := back("a hundredth appended at once"); share(m) > .05 {
		t.Errorf("%.1f %% are new", 100*share(m))
	}
	put(n/100, 100)
	if m := back("a hundredth appended in batches of 100"); share(m) > .05 {
		t.Errorf("%.1f %% are new", 100*share(m))
	}
	for range n / 100 / 100 {
		b := d.NewBatch()
		for range 100 {
			if err := b.Put(c, item(fmt.Sprint(r.IntN(next)))); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	back("a hundredth written over, scattered, in batches of 100")
	dir := t.TempDir()
	start := time.Now()
	if _, err := Restore(ctx, store, dir, nil, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("restored and verified: %.1f s", time.Since(start).Seconds())
}
