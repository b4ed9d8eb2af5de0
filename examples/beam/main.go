// Beam builds what does not fit one process, on a laptop: it writes 200,000 pairs to files, learns a model of
// them and builds four databases, by pipelines of Apache Beam; then it restores these and searches them as
// one.
//
//	go run .
//	go run . -items 50000 -shards 2 -dir made
//
// Without flags of Beam (go run . -help lists them) everything runs in this process. With -dir, files and
// shards stay there.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/model/fit"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/beam"
	"github.com/fddhdb/fddhdb/internal/synth"
)

func main() {
	items := flag.Int("items", 200_000, "pairs to make")
	shards := flag.Int("shards", 4, "databases to build")
	dir := flag.String("dir", "", "where files and shards go, and stay (default: a folder that is removed)")
	flag.Parse()
	sdk.Init()                                     // a worker ends here
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Beam tells much
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *items, *shards, *dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, items, shards int, dir string) error {
	if dir == "" {
		made, err := os.MkdirTemp("", "fddhdb-example-beam-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	start := time.Now()
	done := func(format string, args ...any) {
		fmt.Printf(format+" (%.1f s)\n", append(args, time.Since(start).Seconds())...)
		start = time.Now()
	}

	// Files of pictures, texts and labels, as other programs would leave them.
	in := &beam.Input{
		Vectors: []beam.NamedGlob{{Modality: "image", Glob: dir + "/image-*.npy"},
			{Modality: "text", Glob: dir + "/text-*.npy"}},
		Labels: dir + "/labels-*.npy",
	}
	data := synth.Pairs(synth.Config{Items: items, Classes: 20, Dims: []int{64, 32}, Noise: 3, Seed: 1})
	if err := write(dir, data, 8); err != nil {
		return err
	}
	done("wrote %d pairs to 8 files of pictures, texts and labels", items)

	// A model of all of them.
	pipelines := &beam.Run{Temp: filepath.Join(dir, "temp")}
	trained, err := beam.Train(ctx, in, db.TrainOptions{Options: fit.Options{Bits: 64, Seed: 1}}, pipelines)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "pairs.model")
	if err := trained.Save(ctx, file); err != nil {
		return err
	}
	done("learned codes of %d bits from %d items", trained.Report.Bits, trained.Report.TrainItems)

	// A database of each shard, in a repository of backups.
	out := filepath.Join(dir, "shards")
	if err := os.RemoveAll(out); err != nil { // of an earlier run
		return err
	}
	built, err := beam.Build(ctx, in, beam.BuildOptions{Model: file, Out: out, Shards: shards}, pipelines)
	if err != nil {
		return err
	}
	done("built %d shards of %d items", len(built.Shards), built.Items)

	// Restored anywhere, here all in one place, they answer as one database.
	var parts []*db.Collection
	for _, s := range built.Shards {
		from, err := backup.Folder(filepath.Join(out, s.Repository))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, fmt.Sprintf("restored-%d", s.Shard))
		if err := os.RemoveAll(to); err != nil { // of an earlier run
			return err
		}
		if _, err := db.Restore(ctx, from, to, nil, db.RestoreOptions{ID: s.Backup}); err != nil {
			return err
		}
		d, err := db.Open(to, nil)
		if err != nil {
			return err
		}
		defer d.Close()
		c, err := d.Collection(built.Collection)
		if err != nil {
			return err
		}
		parts = append(parts, c)
	}
	done("restored and verified them")

	// Which texts belong to a picture: the ten nearest of each shard, and the nearest of these.
	const queries, k = 200, 10
	right := 0
	for i := range queries {
		label := data.Labels[i*items/queries]
		hits, err := search(ctx, parts,
			db.Query{From: "image", To: "text", Vector: data.Vectors[0][i*items/queries], K: k})
		if err != nil {
			return err
		}
		for _, h := range hits {
			var row int
			if _, err := fmt.Sscan(h.Key, &row); err != nil { // items without keys are numbered
				return err
			}
			if slices.Equal(data.Labels[row], label) {
				right++
			}
		}
	}
	done("asked %d pictures for %d texts each: %.1f %% have the label of the picture", queries, k,
		100*float64(right)/(queries*k))
	return nil
}

// search returns the k nearest of all shards.
func search(ctx context.Context, shards []*db.Collection, q db.Query) (hits []db.Hit, err error) {
	for _, c := range shards {
		r, err := c.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		hits = append(hits, r.Hits...)
	}
	slices.SortStableFunc(hits, func(a, b db.Hit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(b.Score, a.Score))
	})
	return hits[:min(q.K, len(hits))], nil
}

// write writes pairs to so many files of each kind.
func write(dir string, data *synth.Data, parts int) error {
	for f := range parts {
		part := data.Slice(f*data.Items()/parts, (f+1)*data.Items()/parts)
		for m, name := range []string{"image", "text"} {
			if err := npy.WriteAll(filepath.Join(dir, fmt.Sprintf("%s-%d.npy", name, f)),
				part.Vectors[m]); err != nil {
				return err
			}
		}
		rows := make([][]uint8, part.Items())
		for i, labels := range part.Labels {
			rows[i] = make([]uint8, 20)
			for _, l := range labels {
				rows[i][l] = 1
			}
		}
		if err := npy.WriteAll(filepath.Join(dir, fmt.Sprintf("labels-%d.npy", f)), rows); err != nil {
			return err
		}
	}
	return nil
}
