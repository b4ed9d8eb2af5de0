package db_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// BenchmarkCheckpoint makes checkpoints of 200,000 items of two modalities of 128
// dimensions, of which 5,000 have labels, with codes of 128 bits, and reports what they
// take of the disk, as a share of the whole.
func BenchmarkCheckpoint(b *testing.B) {
	d, c := openStreams(b, 200_000)
	need(c.Train(ctx, streamOptions))(b)
	must(b, d.Compact(ctx))
	whole := int64(0)
	for _, kind := range []struct {
		name string
		opt  db.CheckpointOptions
	}{{"full", db.CheckpointOptions{}}, {"collection", db.CheckpointOptions{Collection: "main"}}, {"index-only", db.CheckpointOptions{IndexOnly: true}}} {
		b.Run(kind.name, func(b *testing.B) {
			above := b.TempDir()
			var bytes int64
			for i := range b.N {
				dir := filepath.Join(above, fmt.Sprint(i))
				must(b, d.Checkpoint(ctx, dir, kind.opt))
				bytes = bytesIn(b, dir)
			}
			if whole == 0 {
				whole = bytes
			}
			b.ReportMetric(float64(bytes)/1e6, "MB")
			b.ReportMetric(100*float64(bytes)/float64(whole), "%-of-full")
			b.ReportMetric(200_000/(b.Elapsed().Seconds()/float64(b.N)), "items/s")
		})
	}
}

// bytesIn is how long the files of a folder are.
func bytesIn(b *testing.B, dir string) (bytes int64) {
	must(b, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	}))
	return bytes
}
