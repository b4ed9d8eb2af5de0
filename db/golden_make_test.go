package db_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
	"github.com/fddhdb/fddhdb/model"
)

// The golden database is what an earlier build of this format has written, and in goldenText is what is in it. This file
// makes both, where the format has changed:
//
//	go test ./db -run TestMakeGolden -update-golden
const (
	goldenArchive = "testdata/golden.tar.gz"
	goldenText    = "testdata/golden.txt"
)

var updateGolden = flag.Bool("update-golden", false, "make the golden database again")

func TestMakeGolden(t *testing.T) {
	if !*updateGolden {
		t.Skip("only with -update-golden")
	}
	mem := vfs.NewCrashableMem()
	makeGolden(t, mem)
	b := packFolder(t, mem.CrashClone(vfs.CrashCloneCfg{}), "golden")
	if err := os.WriteFile(goldenArchive, b, 0o666); err != nil {
		t.Fatal(err)
	}
	left := vfs.NewMem()
	unpackFolder(t, left, "golden", goldenArchive)
	d := dbkit.MustOpen(t, "golden", &db.Options{FS: left, ReadOnly: true})
	defer dbkit.MustClose(t, d)
	if err := os.WriteFile(goldenText, []byte(goldenListing(t, d)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// makeGolden makes a database that has some of everything that can be stored, in tables and
// in the log, and leaves it as after a crash.
func makeGolden(t *testing.T, mem *vfs.MemFS) {
	d := dbkit.MustOpen(t, "golden", &db.Options{FS: mem})
	defer func() { d.Close() }()
	shared := goldenCollection(t, d, "shared", db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5}, {Name: "words", Dim: 200, Sparse: true}},
		Fields: []db.Field{
			{"title", db.String, true}, {"note", db.String, false}, {"year", db.Int, true}, {"size", db.Int, false},
			{"price", db.Float, true}, {"weight", db.Float, false}, {"new", db.Bool, true}, {"seen", db.Bool, false},
		},
	})
	items := goldenItems(100)
	putAll(t, shared, items[:60])
	dbkit.MustTrain(t, shared, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 12, Seed: 1}})
	goldenPut(t, shared, items[55:70])
	if _, err := shared.Update(ctx, db.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	dbkit.MustTrain(t, shared, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 12, Seed: 2}, Activate: true})
	if err := shared.PinRevision(ctx, 1, 1, true); err != nil {
		t.Fatal(err)
	}
	// What follows is learned only in part, and some of what was learned goes.
	goldenPut(t, shared, items[70:90])
	if _, err := shared.Update(ctx, db.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Delete(ctx, "k3", "k50", "k80"); err != nil {
		t.Fatal(err)
	}

	// Projections have taught: the teacher is one of them.
	if _, err := shared.Update(ctx, db.UpdateOptions{Teacher: db.TeacherModality, GrowLabels: true}); err != nil {
		t.Fatal(err)
	}

	// The aims that are not labels.
	aims := goldenCollection(t, d, "aims", dbkit.PairsSchema)
	few := dbkit.Pairs(80, synth.Config{Seed: 6, Classes: 12})
	putAll(t, aims, few[:60])
	dbkit.MustTrain(t, aims, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10, Aim: model.AimCodes}})
	dbkit.MustTrain(t, aims, db.TrainOptions{Options: fit.Options{Bits: 8, Anchors: 10, LabelEmbedding: true}, Activate: true})
	goldenPut(t, aims, few[60:])
	if _, err := aims.Update(ctx, db.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	// Metrics, and modalities that share a space: without a model, and with one. Alterations gave some.
	near := goldenCollection(t, d, "metrics", db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: 8, Metric: db.L2}, {Name: "text", Dim: 5}, {Name: "caption", Dim: 8, SpaceOf: "image"},
		{Name: "words", Dim: 200, Sparse: true, Metric: db.Dot},
	}})
	if err := near.Alter(ctx, db.Alteration{
		AddModalities: []db.Modality{{Name: "sound", Dim: 5}}, SpaceOf: map[string]string{"sound": "text"}, Metrics: map[string]db.Metric{"text": db.Dot},
	}); err != nil {
		t.Fatal(err)
	}
	for _, it := range goldenItems(40) {
		it.Fields = nil
		if i := len(it.Payload); it.Vectors["image"] != nil && i%2 == 0 {
			it.Vectors["caption"] = it.Vectors["image"]
			it.Vectors["image"] = slices.Repeat([]float32{.5}, 8)
		}
		goldenPut(t, near, []*db.Item{it})
	}
	learned := goldenCollection(t, d, "learned", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8, Metric: db.L2}, {Name: "text", Dim: 5, Metric: db.Dot}}})
	for _, it := range dbkit.Pairs(50, synth.Config{Seed: 8}) {
		goldenPut(t, learned, []*db.Item{it})
	}
	dbkit.MustTrain(t, learned, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	// Codes without labels, by each method.
	free := goldenCollection(t, d, "free", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 12}}, Fields: embeddedSchema.Fields})
	goldenPut(t, free, embeddedItems(0, 40, 12, 1))
	dbkit.MustTrain(t, free, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 24, Seed: 1}})
	dbkit.MustTrain(t, free, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 8}, Activate: true})
	goldenPut(t, free, embeddedItems(40, 10, 12, 1))
	paired := goldenCollection(t, d, "paired", pairedSchema)
	goldenPut(t, paired, pairedItems(70))
	dbkit.MustTrain(t, paired, db.TrainOptions{Options: fit.Options{Method: model.MethodCCAITQ, Bits: 16}})

	putMarks(t, d, "position", "1", "gone", "1", "log/1", "one")
	putMarks(t, d, "position", "20", "gone", "")

	// Indexes of vectors: of two metrics, one with rows whose entry is out of date, and rows that it does
	// not know.
	for _, modality := range []string{"image", "text"} {
		if _, err := near.IndexVectors(ctx, db.IndexOptions{Modality: modality, Recall: .9}); err != nil {
			t.Fatal(err)
		}
	}
	for _, it := range goldenItems(60)[30:] {
		it.Fields = nil
		goldenPut(t, near, []*db.Item{it})
	}

	// Encoders: of a collection with spaces, whose descriptors have a copy.
	if err := shared.SetEncoders(ctx, []db.Encoder{
		{"words", db.InputText, []string{"python3", "bag of words.py"}}, {"image", db.InputFile, []string{"/opt/clip", "--file"}},
		{"image", db.InputText, []string{"/opt/clip"}},
	}); err != nil {
		t.Fatal(err)
	}

	// Times, indexed and not.
	times := goldenCollection(t, d, "times", db.Schema{Bits: 8, Fields: []db.Field{{"at", db.Time, true}, {"seen", db.Time, false}}})
	for i := range 30 {
		at := time.Date(1969+i, time.December, 31, 23, 59, 59, i*1000, time.UTC)
		goldenPut(t, times, []*db.Item{{Key: fmt.Sprint(i), Code: []byte{byte(i)}, Fields: map[string]any{"at": at, "seen": at.AddDate(-30*i, 0, 0)}}})
	}

	// Thousands of items share few codes, so that postings and rows have both forms.
	codes := goldenCollection(t, d, "codes", db.Schema{Bits: 16, Fields: []db.Field{{"n", db.Int, true}}})
	b := d.NewBatch()
	for i := range 700 {
		n := i * i % 97
		it := &db.Item{Key: fmt.Sprintf("c%04d", i), Code: []byte{byte(n), byte(i % 5)}}
		if i%10 == 0 {
			it.Fields, it.Labels = map[string]any{"n": i}, []string{fmt.Sprintf("tenth %d", i%3)}
		}
		if err := b.Put(codes, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	goldenCollection(t, d, "empty", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 3}}})
	gone := goldenCollection(t, d, "gone", db.Schema{Bits: 8})
	goldenPut(t, gone, []*db.Item{{Key: "x", Code: []byte{1}}})
	if err := d.DropCollection(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}

	// And now what stays in the log.
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "golden", &db.Options{FS: mem})
	shared, aims, codes = dbkit.MustCollection(t, d, "shared"), dbkit.MustCollection(t, d, "aims"), dbkit.MustCollection(t, d, "codes")
	goldenPut(t, shared, items[85:])
	goldenPut(t, codes, []*db.Item{{Code: []byte{7, 7}}, {Key: "c0001", Code: []byte{9, 9}}})
	if _, err := aims.Delete(ctx, "k7"); err != nil {
		t.Fatal(err)
	}

	// A space that is being built: its builder is ended half way.
	cancelled, cancel := context.WithCancel(ctx)
	_, err := shared.Reindex(cancelled, db.ReindexOptions{Rate: 50, Progress: func(_ string, done, _ int64) {
		if done > 0 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := store.SyncDir(mem, "golden/store"); err != nil { // what has been removed is gone for good
		t.Fatal(err)
	}
}

func goldenCollection(t *testing.T, d *db.DB, name string, s db.Schema) *db.Collection {
	t.Helper()
	c, err := d.CreateCollection(ctx, name, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func goldenPut(t *testing.T, c *db.Collection, items []*db.Item) {
	t.Helper()
	for _, it := range items {
		if _, err := c.Put(ctx, it); err != nil {
			t.Fatal(err)
		}
	}
}

// goldenItems makes items that have, and lack, everything that an item can have.
func goldenItems(n int) []*db.Item {
	items := dbkit.Pairs(n, synth.Config{Seed: 3, Missing: .2})
	for i, it := range items {
		it.Fields = map[string]any{
			"title": fmt.Sprintf("title %d", i%7), "note": fmt.Sprintf("note ü %d", i), "year": int64(2000 - 3*i),
			"size": int64(i) << 33, "price": float64(i) / 8, "weight": -float64(i) * 1.5, "new": i%2 == 0, "seen": i%3 == 0,
		}
		if i%4 == 1 {
			delete(it.Fields, "year")
			delete(it.Fields, "title")
		}
		if i%3 > 0 {
			it.Sparse = map[string]db.Sparse{"words": {
				Index: []uint32{uint32(i % 11), 20 + uint32(it.Labels[0][5]), 110 + uint32(i%29)*3},
				Value: []float32{1, 2 + float32(i%3), .5},
			}}
		}
		if i%6 == 5 {
			it.Labels = nil
		}
		if i%5 == 0 {
			it.Payload = bytes.Repeat([]byte{byte(i), 0, 255}, i)
		}
	}
	return items
}

// packFolder returns a folder as a compressed archive, always of the same bytes for the
// same files.
func packFolder(t testing.TB, fsys vfs.FS, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	var walk func(rel string)
	walk = func(rel string) {
		names, err := fsys.List(path.Join(dir, rel))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		for _, name := range names {
			name := path.Join(rel, name)
			info, err := fsys.Stat(path.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				walk(name)
				continue
			}
			b := testfs.ReadFile(t, fsys, path.Join(dir, name))
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	walk("")
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// unpackFolder is the reverse of packFolder, durably.
func unpackFolder(t testing.TB, fsys vfs.FS, dir, archive string) {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(archive))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := fsys.MkdirAll(fsys.PathJoin(dir, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := fsys.Create(fsys.PathJoin(dir, filepath.FromSlash(h.Name)), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(f, r)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{fsys.PathJoin(dir, "store"), dir, fsys.PathDir(dir)} {
		if err := store.SyncDir(fsys, d); err != nil {
			t.Fatal(err)
		}
	}
}
