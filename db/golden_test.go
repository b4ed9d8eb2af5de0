package db_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// goldenListing says what is in a database: everything that users can see and that is
// stored, but for spaces that are being built.
func goldenListing(t testing.TB, d *db.DB) string {
	t.Helper()
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	check := func(err error) {
		t.Helper()
		must(t, err)
	}
	for m, err := range d.Marks(ctx, "") {
		check(err)
		say("mark %s: %q", m.Name, m.Value)
	}
	names, err := d.Collections()
	check(err)
	for _, name := range names {
		c := dbkit.MustCollection(t, d, name)
		indexes, err := dbkit.VectorIndexes(c)
		check(err)
		for _, x := range indexes {
			type point struct { // as it was first listed
				K                            int
				Reach, Recall, Error, Probes float64
			}
			var points []point
			for _, p := range x.Measured {
				points = append(points, point{p.K, p.Reach, p.Recall, p.Error, p.Probes})
			}
			say("index %d of %s: complete %v, %d cells, recall %v, measured %v", x.Index, x.Modality,
				x.Complete, x.Cells, x.Recall, points)
		}
		schema, err := c.Schema()
		check(err)
		for _, e := range schema.Encoders {
			say("encoder of %s: of %s, %q, %x", e.Modality, e.Input, e.Command, e.Fingerprint)
		}
		labels, err := c.Labels()
		check(err)
		say("collection %s: %d bits, modalities %v, fields %v, labels %q", name, schema.Bits,
			goldenModalities(schema), schema.Fields, labels)
		spaces, err := c.Spaces(ctx)
		check(err)
		for _, s := range spaces {
			if s.State == report.SpaceBuilding {
				continue
			}
			say(
				"space %d: %s, previous %v, parent %d, %d bits, %d items, %d codes, %d have taught, %d pending, model %s", s.Space, s.State, s.Previous, s.Parent, s.Bits, s.Items, s.Codes, s.Taught, s.Pending, s.Checksum)
			for _, r := range s.Revisions {
				say("revision %d: of %d, teacher %q, %d items", r.Revision, r.Parent, r.Teacher, r.Items)
			}
			in, err := c.InSpace(s.Space, 0)
			check(err)
			for it, err := range in.Items(ctx, "") {
				check(err)
				say("%s: code %x %s", it.Key, it.Code, it.CodeFrom)
			}
		}
		for it, err := range c.Items(ctx, "") {
			check(err)
			fields := slices.Sorted(maps.Keys(it.Fields))
			for i, name := range fields {
				fields[i] = fmt.Sprintf("%s=%v", name, it.Fields[name])
			}
			say("%s: labels %q, fields %q, data %x", it.Key, it.Labels, fields, goldenSum(it))
		}
		for _, where := range []string{"label = 'class1'", "year > 1800", "price < 5 AND new = TRUE",
			"title IN ('title 2', 'title 3')", "n >= 350", "at < '1970'", "seen >= '1700'"} {
			n, err := c.Count(ctx, where)
			if _, unknown := errors.AsType[*db.WhereError](err); !unknown {
				check(err)
				say("%s: %d", where, n)
			}
		}
		for _, m := range schema.Modalities { // answers by vectors
			if m.Metric == "" && m.SpaceOf == "" {
				continue
			}
			for _, key := range []string{"k5", "k20"} {
				r, err := c.Search(ctx, db.Query{Key: key, From: m.Name, K: 6})
				if errors.Is(err, db.ErrInvalid) { // the item lacks the vector
					continue
				}
				check(err)
				say("search from %s of %q:%s", m.Name, key, goldenHits(r))
			}
		}
		for _, key := range []string{"k5", "k20", "c0010"} {
			for _, m := range append([]db.Modality{{}}, schema.Modalities...) {
				for _, rerank := range []db.Rerank{db.RerankNone, db.RerankProjection} {
					r, err := c.Search(ctx, db.Query{Key: key, From: m.Name, To: m.Name, K: 6,
						Rerank: rerank})
					if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrNoModel) ||
						errors.Is(err, db.ErrInvalid) {
						continue
					}
					check(err)
					say("search from %s of %q, %v: %v", m.Name, key, rerank, goldenHits(r))
				}
			}
		}
	}
	return b.String()
}

// goldenModalities lists modalities as listings of before metrics have them, and what a modality has
// of these.
func goldenModalities(s db.Schema) (all []string) {
	for _, m := range s.Modalities {
		text := fmt.Sprint(m.Name, " ", m.Dim, " ", m.Sparse)
		if m.Metric != "" || m.SpaceOf != "" {
			text += fmt.Sprintf(" metric %q, space of %q", m.Metric, m.SpaceOf)
		}
		all = append(all, "{"+text+"}")
	}
	return all
}

func goldenHits(r *db.Result) string {
	var b strings.Builder
	for _, h := range r.Hits {
		fmt.Fprintf(&b, " %s:%d", h.Key, max(h.Distance, 0)) // of answers by vectors the stored answers say 0
	}
	return b.String()
}

// goldenSum is a checksum of the vectors and the payload of an item.
func goldenSum(it *db.Item) []byte {
	h := fnv.New64a()
	number := func(x uint32) { h.Write(binary.LittleEndian.AppendUint32(nil, x)) }
	for _, name := range slices.Sorted(maps.Keys(it.Vectors)) {
		h.Write([]byte(name))
		for _, x := range it.Vectors[name] {
			number(math.Float32bits(x))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(it.Sparse)) {
		h.Write([]byte(name))
		for i, x := range it.Sparse[name].Index {
			number(x)
			number(math.Float32bits(it.Sparse[name].Value[i]))
		}
	}
	h.Write(it.Payload)
	return h.Sum(nil)
}

// checkGolden opens a database for reading and compares what is in it with the listing.
func checkGolden(t testing.TB, what string, fsys vfs.FS, want string) *db.DB {
	t.Helper()
	d, err := db.Open("golden", &db.Options{FS: fsys, ReadOnly: true})
	must(t, err, what)
	diff := gocmp.Diff(strings.Split(want, "\n"), strings.Split(goldenListing(t, d), "\n"))
	failIf(t, diff != "", "%s: %.2000s", what, diff)
	dbkit.MustClose(t, d)
	return d
}

func verifyGolden(t testing.TB, what string, fsys vfs.FS) {
	t.Helper()
	v, err := db.VerifyFolder(ctx, "golden", &db.Options{FS: fsys}, db.VerifyOptions{Deep: true},
		func(f report.Finding) error {
			t.Errorf("%s: %s", what, f)
			return nil
		})
	failIf(t, err != nil || v.CodesChecked == 0, "%s: %+v, %v", what, v, err)
}

// A database that an earlier build of this format wrote and did not close is read and written by this one.
func TestGolden(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewMem()
	unpackFolder(t, mem, "golden", goldenArchive)
	text := need(os.ReadFile(goldenText))(t)
	verifyGolden(t, "as it is", mem)
	d := checkGolden(t, "as it is", mem, strings.ReplaceAll(string(text), "\r\n", "\n"))
	uuid := d.UUID()
	d = dbkit.MustOpen(t, "golden", &db.Options{FS: mem})
	if r := d.Recovery(); d.UUID() != uuid || r.Problem != "" || len(r.Losses) > 0 {
		t.Errorf("UUID %q, and then %q: %+v", uuid, d.UUID(), r)
	}
	goldenWrites(t, d)
	after := goldenListing(t, d)
	dbkit.MustClose(t, d)
	verifyGolden(t, "after writing", mem)
	checkGolden(t, "after writing", mem, after)
}

// goldenWrites changes something in every collection, and waits until the space is complete
// that was being built.
func goldenWrites(t *testing.T, d *db.DB) {
	t.Helper()
	shared := dbkit.MustCollection(t, d, "shared")
	need(shared.Reindex(ctx, db.ReindexOptions{}))(t)
	goldenPut(t, shared, goldenItems(100)[20:24])
	need(shared.Merge(ctx, &db.Item{Key: "k30", Labels: []string{"new label"},
		Fields: map[string]any{"year": 7}}))(t)
	need(shared.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels}))(t)
	putMarks(t, d, "position", "21", "log/1", "", "log/2", "two")
	codes := dbkit.MustCollection(t, d, "codes")
	goldenPut(t, codes, []*db.Item{{Key: "c0003", Code: []byte{200, 200}}, {Code: []byte{0, 0}}})
	need(dbkit.MustCollection(t, d, "aims").Delete(ctx, "k10"))(t)
}

// The golden database is what an earlier build of this format has written, and in goldenText is what is in
// it. This file makes both, where the format has changed:
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
	must(t, os.WriteFile(goldenArchive, b, 0o666))
	left := vfs.NewMem()
	unpackFolder(t, left, "golden", goldenArchive)
	d := dbkit.MustOpen(t, "golden", &db.Options{FS: left, ReadOnly: true})
	defer dbkit.MustClose(t, d)
	must(t, os.WriteFile(goldenText, []byte(goldenListing(t, d)), 0o666))
}

// makeGolden makes a database that has some of everything that can be stored, in tables and
// in the log, and leaves it as after a crash.
func makeGolden(t *testing.T, mem *vfs.MemFS) {
	d := dbkit.MustOpen(t, "golden", &db.Options{FS: mem})
	defer func() { d.Close() }()
	shared := goldenCollection(t, d, "shared", db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5},
			{Name: "words", Dim: 200, Sparse: true}},
		Fields: []db.Field{
			{Name: "title", Type: db.String, Indexed: true}, {Name: "note", Type: db.String, Words: true},
			{Name: "year", Type: db.Int, Indexed: true}, {Name: "size", Type: db.Int},
			{Name: "price", Type: db.Float, Indexed: true}, {Name: "weight", Type: db.Float},
			{Name: "new", Type: db.Bool, Indexed: true}, {Name: "seen", Type: db.Bool},
		},
	})
	items := goldenItems(100)
	train(t, shared, items[:60], db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 12, Seed: 1}})
	goldenPut(t, shared, items[55:70])
	need(shared.Update(ctx, db.UpdateOptions{}))(t)
	dbkit.MustTrain(t, shared, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 12, Seed: 2},
		Activate: true})
	// What follows is learned only in part, and some of what was learned goes.
	goldenPut(t, shared, items[70:90])
	need(shared.Update(ctx, db.UpdateOptions{}))(t)
	need(shared.Delete(ctx, "k3", "k50", "k80"))(t)

	// Projections have taught: the teacher is one of them.
	need(shared.Update(ctx, db.UpdateOptions{Teacher: db.TeacherModality, GrowLabels: true}))(t)

	// The aims that are not labels.
	aims := goldenCollection(t, d, "aims", dbkit.PairsSchema)
	few := dbkit.Pairs(80, synth.Config{Seed: 6, Classes: 12})
	putAll(t, aims, few[:60])
	dbkit.MustTrain(t, aims, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10,
		Aim: model.AimCodes}})
	dbkit.MustTrain(t, aims, db.TrainOptions{Options: fit.Options{Bits: 8, Anchors: 10, LabelEmbedding: true},
		Activate: true})
	goldenPut(t, aims, few[60:])
	need(aims.Update(ctx, db.UpdateOptions{}))(t)

	// Metrics, and modalities that share a space: without a model, and with one. Alterations gave some.
	near := goldenCollection(t, d, "metrics", db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: 8, Metric: db.L2}, {Name: "text", Dim: 5},
		{Name: "caption", Dim: 8, SpaceOf: "image"},
		{Name: "words", Dim: 200, Sparse: true, Metric: db.Dot},
	}})
	must(t, near.Alter(ctx, db.Alteration{
		AddModalities: []db.Modality{{Name: "sound", Dim: 5}}, SpaceOf: map[string]string{"sound": "text"},
		Metrics: map[string]db.Metric{"text": db.Dot},
	}))
	for _, it := range goldenItems(40) {
		it.Fields = nil
		if i := len(it.Payload); it.Vectors["image"] != nil && i%2 == 0 {
			it.Vectors["caption"] = it.Vectors["image"]
			it.Vectors["image"] = slices.Repeat([]float32{.5}, 8)
		}
		goldenPut(t, near, []*db.Item{it})
	}
	learned := goldenCollection(t, d, "learned", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8,
		Metric: db.L2}, {Name: "text", Dim: 5, Metric: db.Dot}}})
	for _, it := range dbkit.Pairs(50, synth.Config{Seed: 8}) {
		goldenPut(t, learned, []*db.Item{it})
	}
	dbkit.MustTrain(t, learned, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	// Codes without labels, by each method.
	free := goldenCollection(t, d, "free", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 12}},
		Fields: embeddedSchema.Fields})
	goldenPut(t, free, embeddedItems(0, 40, 12, 1))
	dbkit.MustTrain(t, free, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 24,
		Seed: 1}})
	dbkit.MustTrain(t, free, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 8},
		Activate: true})
	goldenPut(t, free, embeddedItems(40, 10, 12, 1))
	paired := goldenCollection(t, d, "paired", pairedSchema)
	goldenPut(t, paired, pairedItems(70))
	dbkit.MustTrain(t, paired, db.TrainOptions{Options: fit.Options{Method: model.MethodCCAITQ, Bits: 16}})

	putMarks(t, d, "position", "1", "gone", "1", "log/1", "one")
	putMarks(t, d, "position", "20", "gone", "")

	// Indexes of vectors: of two metrics, one with rows whose entry is out of date, and rows that it does
	// not know.
	for _, modality := range []string{"image", "text"} {
		need(near.IndexVectors(ctx, db.IndexOptions{Modality: modality, Recall: .9}))(t)
	}
	for _, it := range goldenItems(60)[30:] {
		it.Fields = nil
		goldenPut(t, near, []*db.Item{it})
	}

	// Encoders: of a collection with spaces, whose descriptors have a copy.
	must(t, shared.Alter(ctx, db.Alteration{Encoders: []db.Encoder{
		{"words", db.InputText, []string{"python3", "bag of words.py"}, []byte{1, 0, 255}, false},
		{"image", db.InputFile, []string{"/opt/clip", "--file"}, nil, false},
		{"image", db.InputText, []string{"/opt/clip"}, nil, false},
	}}))

	// Times, indexed and not.
	times := goldenCollection(t, d, "times",
		db.Schema{Bits: 8, Fields: []db.Field{{Name: "at", Type: db.Time, Indexed: true},
			{Name: "seen", Type: db.Time}}})
	for i := range 30 {
		at := time.Date(1969+i, time.December, 31, 23, 59, 59, i*1000, time.UTC)
		goldenPut(t, times, []*db.Item{{Key: fmt.Sprint(i), Code: []byte{byte(i)},
			Fields: map[string]any{"at": at, "seen": at.AddDate(-30*i, 0, 0)}}})
	}

	// Thousands of items share few codes, so that postings and rows have both forms.
	codes := goldenCollection(t, d, "codes", db.Schema{Bits: 16,
		Fields: []db.Field{{Name: "n", Type: db.Int, Indexed: true}}})
	b := d.NewBatch()
	for i := range 700 {
		n := i * i % 97
		it := &db.Item{Key: fmt.Sprintf("c%04d", i), Code: []byte{byte(n), byte(i % 5)}}
		if i%10 == 0 {
			it.Fields, it.Labels = map[string]any{"n": i}, []string{fmt.Sprintf("tenth %d", i%3)}
		}
		must(t, b.Put(codes, it))
	}
	must(t, b.Commit(ctx))
	goldenCollection(t, d, "empty", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 3}}})
	gone := goldenCollection(t, d, "gone", db.Schema{Bits: 8})
	goldenPut(t, gone, []*db.Item{{Key: "x", Code: []byte{1}}})
	must(t, d.DropCollection(ctx, "gone"))
	must(t, d.Compact(ctx))

	// And now what stays in the log.
	d, _ = reopen(t, d, "golden", &db.Options{FS: mem})
	shared, aims, codes = dbkit.MustCollection(t, d, "shared"), dbkit.MustCollection(t, d, "aims"),
		dbkit.MustCollection(t, d, "codes")
	goldenPut(t, shared, items[85:])
	goldenPut(t, codes, []*db.Item{{Code: []byte{7, 7}}, {Key: "c0001", Code: []byte{9, 9}}})
	need(aims.Delete(ctx, "k7"))(t)

	// A space that is being built: its builder is ended half way.
	cancelled, cancel := context.WithCancel(ctx)
	_, err := shared.Reindex(cancelled, db.ReindexOptions{Rate: 50, Progress: func(_ string, done, _ int64) {
		if done > 0 {
			cancel()
		}
	}})
	stopIf(t, !errors.Is(err, context.Canceled), "%v", err)
	if err := store.SyncDir(mem, "golden/store"); err != nil { // what has been removed is gone for good
		t.Fatal(err)
	}
}

func goldenCollection(t *testing.T, d *db.DB, name string, s db.Schema) *db.Collection {
	t.Helper()
	return need(d.CreateCollection(ctx, name, s))(t)
}

func goldenPut(t *testing.T, c *db.Collection, items []*db.Item) {
	t.Helper()
	putEach(t, c, items)
}

// goldenItems makes items that have, and lack, everything that an item can have.
func goldenItems(n int) []*db.Item {
	items := dbkit.Pairs(n, synth.Config{Seed: 3, Missing: .2})
	for i, it := range items {
		it.Fields = map[string]any{
			"title": fmt.Sprintf("title %d", i%7), "note": fmt.Sprintf("note ü %d", i),
			"year": int64(2000 - 3*i),
			"size": int64(i) << 33, "price": float64(i) / 8, "weight": -float64(i) * 1.5, "new": i%2 == 0,
			"seen": i%3 == 0,
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

// packFolder returns a folder as a compressed archive, always of the same bytes for the same files.
func packFolder(t testing.TB, fsys vfs.FS, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := need(gzip.NewWriterLevel(&out, gzip.BestCompression))(t)
	w := tar.NewWriter(z)
	var walk func(rel string)
	walk = func(rel string) {
		names := need(fsys.List(path.Join(dir, rel)))(t)
		slices.Sort(names)
		for _, name := range names {
			name := path.Join(rel, name)
			info := need(fsys.Stat(path.Join(dir, name)))(t)
			if info.IsDir() {
				walk(name)
				continue
			}
			b := testfs.ReadFile(t, fsys, path.Join(dir, name))
			must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b)),
				ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}))
			need(w.Write(b))(t)
		}
	}
	walk("")
	must(t, errors.Join(w.Close(), z.Close()))
	return out.Bytes()
}

// unpackFolder is the reverse of packFolder, durably.
func unpackFolder(t testing.TB, fsys vfs.FS, dir, archive string) {
	t.Helper()
	b := need(os.ReadFile(filepath.FromSlash(archive)))(t)
	z := need(gzip.NewReader(bytes.NewReader(b)))(t)
	must(t, fsys.MkdirAll(fsys.PathJoin(dir, "store"), 0o755))
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		f := need(fsys.Create(fsys.PathJoin(dir, filepath.FromSlash(h.Name)), vfs.WriteCategoryUnspecified))(
			t)
		_, err = io.Copy(f, r)
		must(t, errors.Join(err, f.Sync(), f.Close()))
	}
	for _, d := range []string{fsys.PathJoin(dir, "store"), dir, fsys.PathDir(dir)} {
		must(t, store.SyncDir(fsys, d))
	}
}
