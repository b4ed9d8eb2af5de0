package db_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// What is written while a training runs gets its code from the new model, and
// what is deleted meanwhile stays deleted.
func TestWritesDuringTraining(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(200, synth.Config{Seed: 1})
	putAll(t, c, items[:150])
	var once [2]sync.Once
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Progress: func(phase string, _, _ int64) {
		i := 0
		if phase == "encode" {
			i = 1
		}
		once[i].Do(func() { // at the start, and when the rows of the snapshot have been coded
			putAll(t, c, items[150+25*i:175+25*i])
			swapped := *items[3+i]
			swapped.Vectors, swapped.Labels = items[60].Vectors, nil
			if _, err := c.Put(ctx, &swapped); err != nil {
				t.Error(err)
			}
			if n, err := c.Delete(ctx, items[10+i].Key); n != 1 || err != nil {
				t.Error(n, err)
			}
			if _, err := c.Train(ctx, db.TrainOptions{}); !errors.Is(err, db.ErrBusy) {
				t.Errorf("a training inside a training: %v", err)
			}
		})
	}}})
	got := dbkit.AllItems(t, c)
	if len(got) != 198 {
		t.Fatalf("%d items", len(got))
	}
	for _, it := range got {
		want, _, err := c.Encode(it)
		if err != nil {
			t.Fatal(err)
		}
		switch it.Key {
		case items[3].Key, items[4].Key:
			if it.CodeFrom != "fused" || !slices.Equal(it.Code, want) {
				t.Errorf("item %s has code %x from %q, want %x", it.Key, it.Code, it.CodeFrom, want)
			}
		case items[10].Key, items[11].Key:
			t.Errorf("item %s is back", it.Key)
		default:
			if it.CodeFrom != "labels" {
				t.Errorf("item %s has its code from %q", it.Key, it.CodeFrom)
			}
		}
	}
	checkCodesByLabel(t, got)
}

// checkCodesByLabel checks that labelled items have one code a label set.
func checkCodesByLabel(t *testing.T, items []*db.Item) {
	t.Helper()
	codes := map[string]string{}
	for _, it := range items {
		if it.CodeFrom != "labels" {
			continue
		}
		key := fmt.Sprint(it.Labels)
		if code, ok := codes[key]; ok && code != string(it.Code) {
			t.Errorf("item %s, labels %v: code %x, others %x", it.Key, it.Labels, it.Code, code)
		}
		codes[key] = string(it.Code)
	}
}

func TestTrainingAgainReplacesTheSpace(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(60, synth.Config{}))
	putAll(t, c, []*db.Item{
		{Key: "empty"},
		{Key: "unlabelled", Vectors: dbkit.Pairs(1, synth.Config{Seed: 5})[0].Vectors},
		{Key: "strange", Labels: []string{"never trained"}},
	})
	first := dbkit.MustTrain(t, c, db.TrainOptions{Rows: 60})
	if first.Space != 1 || first.TrainItems != 60 || first.Items != 61 {
		t.Errorf("first training: %+v", first)
	}
	before, err := c.Search(ctx, db.Query{Key: "k1", From: "image"})
	if err != nil {
		t.Fatal(err)
	}
	second := dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 128, Method: model.MethodJoint}})
	if second.Space != 2 || second.Bits != 128 || second.Items != 62 {
		t.Errorf("second training: %+v", second)
	}
	after, err := c.Search(ctx, db.Query{Key: "k1", From: "image"})
	if err != nil {
		t.Fatal(err)
	}
	if before.Space != 1 || after.Space != 2 || after.Hits[0].Distance > 128 {
		t.Errorf("searches in spaces %d and %d", before.Space, after.Space)
	}
	items := dbkit.AllItems(t, c)
	for _, it := range items {
		if want := 16; it.Code != nil && len(it.Code) != want {
			t.Errorf("item %s has a code of %d bytes", it.Key, len(it.Code))
		}
	}
	if it, _ := c.Get(ctx, "empty"); it.Code != nil || it.CodeFrom != "" {
		t.Errorf("an empty item has code %x from %q", it.Code, it.CodeFrom)
	}
	if _, err := c.Search(ctx, db.Query{Key: "empty"}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("search from an item without a code: %v", err)
	}
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, db.State(d).Engine.Dir, nil)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	dbkit.EqualItems(t, items, dbkit.AllItems(t, c))
	again, err := c.Search(ctx, db.Query{Key: "k1", From: "image"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, again); diff != "" {
		t.Error("reopened:", diff)
	}
}

func TestCancelledTrainingChangesNothing(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(100, synth.Config{}))
	first := dbkit.MustTrain(t, c, db.TrainOptions{})
	want := dbkit.AllItems(t, c)
	for _, phase := range []string{"", "encode"} {
		cctx, cancel := context.WithCancel(ctx)
		_, err := c.Train(cctx, db.TrainOptions{Options: fit.Options{Seed: 9, Progress: func(p string, _, _ int64) {
			if phase == "" || p == phase {
				cancel()
			}
		}}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in phase %q: %v", phase, err)
		}
	}
	dbkit.EqualItems(t, want, dbkit.AllItems(t, c))
	if s, _ := c.Stats(); s.Space != first.Space {
		t.Errorf("space %d", s.Space)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{})
}

// A modality that no labelled item has cannot be learned, and does not keep the
// others from it.
func TestModalityWithoutLabelledItemsIsLeftOut(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(60, synth.Config{})
	for _, it := range items[:50] {
		delete(it.Vectors, "image")
	}
	for _, it := range items[50:] {
		it.Labels = nil
	}
	putAll(t, c, items)
	tr := dbkit.MustTrain(t, c, db.TrainOptions{})
	if !slices.Equal(tr.LeftOut, []string{"image"}) || len(tr.Chosen) != 1 || tr.Items != 60 {
		t.Errorf("%+v", tr)
	}
	for range 2 {
		if _, err := c.Search(ctx, db.Query{From: "image", Vector: items[55].Vectors["image"]}); !errors.Is(err, db.ErrNoModel) {
			t.Errorf("search by image: %v", err)
		}
		r, err := c.Search(ctx, db.Query{From: "text", To: "image", Vector: items[55].Vectors["text"]})
		if err != nil || len(r.Hits) != 10 || r.Hits[0].Key != "k55" {
			t.Errorf("search from text to image: %+v, %v", r, err)
		}
		if it, err := c.Get(ctx, "k55"); err != nil || it.CodeFrom != "fused" {
			t.Errorf("%+v, %v", it, err)
		}
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, db.State(d).Engine.Dir, nil)
		c = dbkit.MustCollection(t, d, "main")
	}
	dbkit.MustClose(t, d)
}

// Far away from all anchors a kernel says nothing, and a code made of nothing would
// be the same for all such vectors.
func TestVectorsFarFromTheTrainingSet(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(60, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{})
	far := dbkit.Pairs(1, synth.Config{})[0]
	for _, x := range far.Vectors {
		for j := range x {
			x[j] *= 255
		}
	}
	far.Labels = nil
	if _, err := c.Search(ctx, db.Query{From: "text", Vector: far.Vectors["text"]}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("search: %v", err)
	}
	if _, _, err := c.Encode(far); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("encode: %v", err)
	}
	e := db.Evaluation{Queries: map[string][][]float32{"text": {far.Vectors["text"]}}, Labels: [][]string{{"class0"}}}
	if _, err := c.Evaluate(ctx, e); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("evaluate: %v", err)
	}
	if _, err := c.Put(ctx, far); err != nil {
		t.Fatal(err)
	}
	if it, err := c.Get(ctx, far.Key); err != nil || it.Code != nil || it.CodeFrom != "" {
		t.Errorf("%+v, %v", it, err)
	}
}

func TestPanicInACallbackEndsTheTraining(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(50, synth.Config{}))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is the caller's own and has to come back")
			}
		}()
		c.Train(ctx, db.TrainOptions{Options: fit.Options{Progress: func(phase string, _, _ int64) {
			if phase == "encode" {
				panic("mine")
			}
		}}})
	}()
	dbkit.MustTrain(t, c, db.TrainOptions{})
}

// Readers, writers and trainings run together. Every answer has to be
// consistent in itself: keys resolve, codes are of the space named, the numbers fit.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Seed: 2, Missing: .1})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	var stop atomic.Bool
	var wg sync.WaitGroup
	loop := func(f func(i int) error) {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for w := range 2 {
		loop(func(i int) error { // half of the items come and go, whole
			it := items[150+(2*i+w)%150]
			if i%3 == 0 {
				_, err := c.Delete(ctx, it.Key)
				return err
			}
			return dbkit.Second(c.Put(ctx, it))
		})
	}
	loop(func(i int) error {
		r, err := c.Search(ctx, db.Query{From: "text", To: "image", Vector: items[i%100].Vectors["text"], K: 20})
		if items[i%100].Vectors["text"] == nil {
			if !errors.Is(err, db.ErrInvalid) {
				return fmt.Errorf("search without anything: %v", err)
			}
			return nil
		}
		if err == nil && len(r.Hits) != 20 {
			err = fmt.Errorf("%d hits", len(r.Hits))
		}
		return err
	})
	loop(func(int) error {
		n := 0
		for it, err := range c.Items(ctx) {
			if err != nil {
				return err
			}
			if len(it.Code) != 4 {
				return fmt.Errorf("item %s has code %x", it.Key, it.Code)
			}
			n++
		}
		if n < 150 {
			return fmt.Errorf("%d items", n)
		}
		s, err := d.Stats()
		if err == nil && (s.Items != s.Collections[0].CodedItems) {
			err = fmt.Errorf("%d items, %d codes", s.Items, s.Collections[0].CodedItems)
		}
		return err
	})
	for i := range effort.Of(4, 2) {
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20, Seed: uint64(i)}})
	}
	stop.Store(true)
	wg.Wait()
	checkCodesByLabel(t, dbkit.AllItems(t, c))
}

// The comment of TrainOptions names the stages that Progress hears, and no others.
func TestTrainOptionsNameTheStages(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(300, synth.Config{Classes: 4, Seed: 1}))
	heard := map[string]bool{}
	for _, opt := range []db.TrainOptions{
		dbkit.TinyTraining(1),
		{Options: fit.Options{Bits: 16, Anchors: 6}}, // the defaults choose the rest
	} {
		opt.Progress = func(stage string, _, _ int64) { heard[stage] = true }
		dbkit.MustTrain(t, c, opt)
	}
	source, err := os.ReadFile("train.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(source), "type TrainOptions struct")
	_, comment, _ = strings.Cut(comment, "// Progress hears the stages")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z]+)"`).FindAllStringSubmatch(comment, -1) {
		named[m[1]] = true
	}
	delete(named, "moments") // no map of these needs them
	delete(heard, "moments")
	if !maps.Equal(heard, named) {
		t.Errorf("heard %v, the comment names %v", heard, named)
	}
}
