package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// exported returns the model file of a collection.
func exported(t testing.TB, c *db.Collection) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.ExportModel(ctx, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// codeOrigins returns the codes of the items by key, with where they come from.
func codeOrigins(t testing.TB, c *db.Collection) map[string]string {
	t.Helper()
	codes := map[string]string{}
	for it, err := range c.Items(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		codes[it.Key] = fmt.Sprintf("%x %s", it.Code, it.CodeFrom)
	}
	return codes
}

// sameCodes compares the codes of two collections.
func sameCodes(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d items have codes, not %d", what, len(got), len(want))
	}
	for key, code := range want {
		if got[key] != code {
			t.Fatalf("%s: %s has %s, not %s", what, key, got[key], code)
		}
	}
}

// modelItems are items of several labels, some without, some without a modality.
func modelItems(n int, random uint64) []*db.Item {
	items := dbkit.Pairs(n, synth.Config{Seed: random, Classes: 6, LabelsPerItem: 2, Missing: .2})
	for i, it := range items {
		if it.Key = fmt.Sprint("k", i); i%5 == 0 {
			it.Labels = nil
		}
	}
	return items
}

// A model goes from one database to another, in which labels came in another order: the same items
// have the same codes there, as have those that are put later; searches answer as in the first one.
func TestModelsTravel(t *testing.T) {
	t.Parallel()
	items := modelItems(200, 3)
	for name, opt := range map[string]db.TrainOptions{
		"shared": {Options: fit.Options{Bits: 16, Anchors: 20}},
		"target": {Options: fit.Options{Bits: 24, Anchors: 20}},
		"codes":  {Options: fit.Options{Bits: 16, Anchors: 20, Aim: model.AimCodes}},
		"free":   {Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ}},
	} {
		t.Run(name, func(t *testing.T) {
			_, from := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:150])
			dbkit.MustTrain(t, from, opt)
			file := exported(t, from)

			backwards := slices.Clone(items[:150])
			slices.Reverse(backwards)
			wider := dbkit.PairsSchema
			wider.Modalities = append([]db.Modality{{Name: "sound", Dim: 3}}, wider.Modalities...)
			opts := &db.Options{FS: vfs.NewMem()}
			d := dbkit.MustOpen(t, "db", opts)
			to, err := d.CreateCollection(ctx, "other", wider)
			if err != nil {
				t.Fatal(err)
			}
			dbkit.PutAll(t, d, to, append([]*db.Item{{Key: "first", Labels: []string{"nobody knows it", "class5"}}}, backwards...))
			if _, err := to.Delete(ctx, "first"); err != nil {
				t.Fatal(err)
			}
			trained, err := to.ImportModel(ctx, bytes.NewReader(file), db.ImportModelOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !trained.Active || trained.Space != 1 || trained.Items != 150 || trained.Bits != opt.Bits || trained.TrainItems == 0 {
				t.Errorf("%+v", trained)
			}
			sameCodes(t, "imported", codeOrigins(t, from), codeOrigins(t, to))
			putAll(t, from, items[150:])
			putAll(t, to, items[150:])
			dbkit.MustClose(t, d)
			d = dbkit.MustOpen(t, "db", opts)
			defer func() { dbkit.MustClose(t, d) }()
			to = dbkit.MustCollection(t, d, "other")
			sameCodes(t, "put later", codeOrigins(t, from), codeOrigins(t, to))
			if name != "target" {
				q := db.Query{From: "image", Vector: items[1].Vectors["image"], K: 20}
				if name == "shared" || name == "free" {
					q.Rerank = db.RerankProjection
				}
				dbtest.CheckSearches(t, to, q)
			}
			dbkit.CheckSound(t, d, "imported")
		})
	}
}

// The file of two equal trainings is the same, whatever their times; that of a collection with the
// model of a file has the same model.
func TestModelFilesAreEqual(t *testing.T) {
	items := modelItems(120, 4)
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20, Seed: 5}}
	var files [][]byte
	for range 2 {
		_, c := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items)
		dbkit.MustTrain(t, c, opt)
		files = append(files, exported(t, c))
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two equal trainings have different files")
	}
	_, c := openWith(t, vfs.NewMem(), dbkit.PairsSchema, nil)
	if _, err := c.ImportModel(ctx, bytes.NewReader(files[0]), db.ImportModelOptions{}); err != nil {
		t.Fatal(err)
	}
	if again := exported(t, c); !bytes.Equal(again, files[0]) {
		t.Error("an empty collection with the model has another file")
	}
}

// An imported model goes on learning, from the items of its own collection; the space beside it is
// left as it was. A label that has lost its name stays behind.
func TestImportedModelsLearn(t *testing.T) {
	items := modelItems(300, 5)
	_, from := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:150])
	dbkit.MustTrain(t, from, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	if _, err := from.MergeLabel(ctx, "class1", "class2"); err != nil {
		t.Fatal(err)
	}
	if err := from.RenameLabel(ctx, "class3", "class1"); err != nil { // nobody has it any more
		t.Fatal(err)
	}
	file := exported(t, from)
	d, to := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[150:])
	dbkit.MustTrain(t, to, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 20}})
	before := codeOrigins(t, to)
	trained, err := to.ImportModel(ctx, bytes.NewReader(file), db.ImportModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if trained.Active || trained.Space != 2 {
		t.Errorf("%+v", trained)
	}
	sameCodes(t, "the space before", before, codeOrigins(t, to))
	in, err := to.InSpace(trained.Space)
	if err != nil {
		t.Fatal(err)
	}
	first := codeOrigins(t, in)
	update, err := in.Update(ctx, db.UpdateOptions{Space: trained.Space})
	if err != nil || !update.Revised || update.Labelled < 100 {
		t.Errorf("%+v, %v", update, err)
	}
	again := codeOrigins(t, in)
	for _, it := range items[150:] {
		if len(it.Labels) > 0 && first[it.Key] != again[it.Key] && strings.HasSuffix(first[it.Key], "labels map[]") {
			t.Errorf("%s had %s, and has %s", it.Key, first[it.Key], again[it.Key])
		}
	}
	dbkit.CheckSound(t, d, "updated")
}

// What is no model file, or not for the collection, is refused, and the collection is as it was.
func TestImportModelRefuses(t *testing.T) {
	items := modelItems(60, 6)
	_, from := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items)
	if err := from.ExportModel(ctx, new(bytes.Buffer)); !errors.Is(err, db.ErrNoModel) {
		t.Errorf("nothing is trained: %v", err)
	}
	dbkit.MustTrain(t, from, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	file := exported(t, from)
	flipped, newer := bytes.Clone(file), bytes.Clone(file)
	flipped[len(flipped)/2] ^= 1
	newer[4] = 9
	var format *codec.FormatError
	ended, cancel := context.WithCancel(ctx)
	cancel()
	other := dbkit.PairsSchema
	other.Modalities = []db.Modality{{Name: "image", Dim: 9}, {Name: "text", Dim: 5}}
	sparse := dbkit.PairsSchema
	sparse.Modalities = []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5, Sparse: true}}
	for what, c := range map[string]struct {
		schema db.Schema
		file   []byte
		is     func(error) bool
		says   string
	}{
		"empty":       {dbkit.PairsSchema, nil, invalid, "model file"},
		"cut":         {dbkit.PairsSchema, file[:len(file)-1], invalid, "model file"},
		"flipped bit": {dbkit.PairsSchema, flipped, invalid, "checksum"},
		"newer":       {dbkit.PairsSchema, newer, func(err error) bool { return errors.As(err, &format) }, "model file"},
		"dimension":   {other, file, invalid, `modality "image" of the model has 8 dimensions`},
		"form":        {sparse, file, invalid, `modality "text" of the model is sparse: false`},
		"modality":    {db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8}}}, file, invalid, `the model has a modality "text"`},
		"codes":       {db.Schema{Bits: 16}, file, invalid, "bring their codes"},
	} {
		_, to := openWith(t, vfs.NewMem(), c.schema, nil)
		_, err := to.ImportModel(ctx, bytes.NewReader(c.file), db.ImportModelOptions{})
		if err == nil || !c.is(err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := to.ImportModel(ended, bytes.NewReader(file), db.ImportModelOptions{}); err == nil {
			t.Errorf("%s: a cancelled import succeeds", what)
		}
		if spaces, err := to.Spaces(ctx); err != nil || len(spaces) > 0 && c.schema.Bits == 0 {
			t.Errorf("%s: %v, %v", what, spaces, err)
		}
		if labels, err := to.Labels(); err != nil || len(labels) > 0 {
			t.Errorf("%s: labels %v, %v", what, labels, err)
		}
	}
}

func invalid(err error) bool { return errors.Is(err, db.ErrInvalid) && !errors.Is(err, db.ErrCorrupt) }

// A space gets the number that is asked for, and what comes behind it the next one.
func TestImportModelNumber(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	dbkit.PutAll(t, d, c, modelItems(60, 1))
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	file := exported(t, c)
	take := func(number db.Space) (db.Space, error) {
		training, err := c.ImportModel(ctx, bytes.NewReader(file), db.ImportModelOptions{Space: number, Activate: true})
		if err != nil {
			return 0, err
		}
		return training.Space, nil
	}
	for _, x := range []struct {
		number, want db.Space
		is           error
	}{{7, 7, nil}, {7, 0, db.ErrExists}, {1, 0, db.ErrExists}, {4, 0, db.ErrExists}, {0, 8, nil}, {db.Space(1<<32 - 1), 0, db.ErrFull}, {12, 12, nil}, {8, 0, db.ErrExists}} {
		if got, err := take(x.number); got != x.want || !errors.Is(err, x.is) {
			t.Errorf("number %d: space %d, %v", x.number, got, err)
		}
	}
	if err := c.Activate(ctx, 8); err != nil {
		t.Fatal(err)
	}
	if err := c.DropSpace(ctx, 12); err != nil {
		t.Fatal(err)
	}
	if got, err := take(12); got != 12 || err != nil {
		t.Errorf("the number of one that was dropped: %d, %v", got, err)
	}
	dbkit.CheckSound(t, d, "with spaces of all numbers")
}
