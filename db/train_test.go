package db_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/fit"
)

// What is written while a training runs gets its code from the new model, and
// what is deleted meanwhile stays deleted.
func TestWritesDuringTraining(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, 150, 200, synth.Config{Seed: 1})
	var once [2]sync.Once
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Progress: func(phase string, _,
		_ int64) {
		i := 0
		if phase == "encode" {
			i = 1
		}
		once[i].Do(func() { // at the start, and when the rows of the snapshot have been coded
			putAll(t, c, items[150+25*i:175+25*i])
			swapped := *items[3+i]
			swapped.Vectors, swapped.Labels = items[60].Vectors, nil
			fine(t, errOf(c.Put(ctx, &swapped)))
			gives(t, 1)(c.Delete(ctx, items[10+i].Key))
			errorIs(t, errOf(c.Train(ctx, db.TrainOptions{})), db.ErrBusy)
		})
	}}})
	got := dbkit.AllItems(t, c)
	stopIf(t, len(got) != 198, "%d items", len(got))
	for _, it := range got {
		want, _ := need2(c.Encode(it))(t)
		switch it.Key {
		case items[3].Key, items[4].Key:
			failIf(t, it.CodeFrom != "fused" || !slices.Equal(it.Code, want),
				"item %s has code %x from %q, want %x", it.Key, it.Code, it.CodeFrom, want)
		case items[10].Key, items[11].Key:
			t.Errorf("item %s is back", it.Key)
		default:
			failIf(t, it.CodeFrom != "labels", "item %s has its code from %q", it.Key, it.CodeFrom)
		}
	}
	checkCodesByLabel(t, got)
}

// Labels without a vector have the code that items with them have, and several have one together also where
// no item has them all.
func TestEncodeLabels(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, 150, 150, synth.Config{Seed: 1})
	errorIs(t, third(c.Encode(&db.Item{Labels: items[0].Labels})), db.ErrNoModel)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	var all []string
	for _, it := range dbkit.AllItems(t, c) {
		code, z := need2(c.Encode(&db.Item{Labels: it.Labels}))(t)
		failIf(t, !slices.Equal(code, it.Code) || z != nil, "labels %q have code %x and not %x", it.Labels, code,
			it.Code)
		if len(all) == 0 || it.Labels[0] != all[0] && len(all) == 1 {
			all = append(all, it.Labels[0])
		}
	}
	both, _ := need2(c.Encode(&db.Item{Labels: all}))(t)
	turned, _ := need2(c.Encode(&db.Item{Labels: []string{all[1], all[0]}}))(t)
	failIf(t, !slices.Equal(both, turned) || len(both) != 4, "%x and %x", both, turned)
	errorIs(t, third(c.Encode(&db.Item{Labels: []string{all[0], "unheard"}})), db.ErrInvalid)
	errorIs(t, third(c.Encode(&db.Item{})), db.ErrInvalid)
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
	t.Parallel()
	d, c, _ := openPairs(t, -1, 60, synth.Config{})
	putAll(t, c, []*db.Item{
		{Key: "empty"},
		{Key: "unlabelled", Vectors: dbkit.Pairs(1, synth.Config{Seed: 5})[0].Vectors},
		{Key: "strange", Labels: []string{"never trained"}},
	})
	first := dbkit.MustTrain(t, c, db.TrainOptions{Rows: 60})
	failIf(t, first.Space != 1 || first.TrainItems != 60 || first.Items != 61, "first training: %+v", first)
	before := need(c.Search(ctx, db.Query{Key: "k1", From: "image"}))(t)
	second := dbkit.MustTrain(t, c,
		db.TrainOptions{Options: fit.Options{Bits: 128, Method: model.MethodJoint}})
	failIf(t, second.Space != 2 || second.Bits != 128 || second.Items != 62, "second training: %+v", second)
	after := need(c.Search(ctx, db.Query{Key: "k1", From: "image"}))(t)
	failIf(t, before.Space != 1 || after.Space != 2 || after.Hits[0].Distance > 128,
		"searches in spaces %d and %d", before.Space, after.Space)
	items := dbkit.AllItems(t, c)
	for _, it := range items {
		if want := 16; it.Code != nil && len(it.Code) != want {
			t.Errorf("item %s has a code of %d bytes", it.Key, len(it.Code))
		}
	}
	it, _ := c.Get(ctx, "empty")
	failIf(t, it.Code != nil || it.CodeFrom != "", "an empty item has code %x from %q", it.Code, it.CodeFrom)
	errorIs(t, errOf(c.Search(ctx, db.Query{Key: "empty"})), db.ErrInvalid)
	d, _ = reopen(t, d, db.State(d).Engine.Dir, nil)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	dbkit.EqualItems(t, items, dbkit.AllItems(t, c))
	again := need(c.Search(ctx, db.Query{Key: "k1", From: "image"}))(t)
	equal(t, after, again)
}

func TestCancelledTrainingChangesNothing(t *testing.T) {
	t.Parallel()
	_, c, _ := openPairs(t, -1, 100, synth.Config{})
	first := dbkit.MustTrain(t, c, db.TrainOptions{})
	want := dbkit.AllItems(t, c)
	for _, phase := range []string{"", "encode"} {
		cctx, cancel := context.WithCancel(ctx)
		_, err := c.Train(cctx, db.TrainOptions{Options: fit.Options{Seed: 9, Progress: func(p string, _,
			_ int64) {
			if phase == "" || p == phase {
				cancel()
			}
		}}})
		cancel()
		failIf(t, !errors.Is(err, context.Canceled), "cancelled in phase %q: %v", phase, err)
	}
	dbkit.EqualItems(t, want, dbkit.AllItems(t, c))
	s, _ := c.Stats(ctx)
	failIf(t, s.Space != first.Space, "space %d", s.Space)
	dbkit.MustTrain(t, c, db.TrainOptions{})
}

// A modality that no labelled item has cannot be learned, and does not keep the others from it.
func TestModalityWithoutLabelledItemsIsLeftOut(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(60, synth.Config{})
	for _, it := range items[:50] {
		delete(it.Vectors, "image")
	}
	unlabel(items[50:])
	putAll(t, c, items)
	tr := dbkit.MustTrain(t, c, db.TrainOptions{})
	failIf(t, !slices.Equal(tr.LeftOut, []string{"image"}) || len(tr.Chosen) != 1 || tr.Items != 60, "%+v",
		tr)
	for range 2 {
		errorIs(t, errOf(c.Search(ctx, db.Query{From: "image", Vector: items[55].Vectors["image"]})),
			db.ErrNoModel)
		r, err := c.Search(ctx, db.Query{From: "text", To: "image", Vector: items[55].Vectors["text"]})
		failIf(t, err != nil || len(r.Hits) != 10 || r.Hits[0].Key != "k55",
			"search from text to image: %+v, %v", r, err)
		it, err := c.Get(ctx, "k55")
		failIf(t, err != nil || it.CodeFrom != "fused", "%+v, %v", it, err)
		d, c = reopen(t, d, db.State(d).Engine.Dir, nil)
	}
	dbkit.MustClose(t, d)
}

// Far away from all anchors a kernel says nothing, and a code made of nothing would
// be the same for all such vectors.
func TestVectorsFarFromTheTrainingSet(t *testing.T) {
	t.Parallel()
	_, c, _ := openPairs(t, -1, 60, synth.Config{})
	dbkit.MustTrain(t, c, db.TrainOptions{})
	far := dbkit.Pairs(1, synth.Config{})[0]
	for _, x := range far.Vectors {
		for j := range x {
			x[j] *= 255
		}
	}
	far.Labels = nil
	errorIs(t, errOf(c.Search(ctx, db.Query{From: "text", Vector: far.Vectors["text"]})), db.ErrInvalid)
	errorIs(t, third(c.Encode(far)), db.ErrInvalid)
	e := db.Evaluation{Queries: map[string][][]float32{"text": {far.Vectors["text"]}},
		Labels: [][]string{{"class0"}}}
	errorIs(t, errOf(c.Evaluate(ctx, e)), db.ErrInvalid)
	need(c.Put(ctx, far))(t)
	it, err := c.Get(ctx, far.Key)
	failIf(t, err != nil || it.Code != nil || it.CodeFrom != "", "%+v, %v", it, err)
}

func TestPanicInACallbackEndsTheTraining(t *testing.T) {
	t.Parallel()
	_, c, _ := openPairs(t, -1, 50, synth.Config{})
	func() {
		defer func() { failIf(t, recover() == nil, "the panic is the caller's own and has to come back") }()
		c.Train(ctx, db.TrainOptions{Options: fit.Options{Progress: func(phase string, _, _ int64) {
			if phase == "encode" {
				panic("mine")
			}
		}}})
	}()
	dbkit.MustTrain(t, c, db.TrainOptions{})
}

// The comment of TrainOptions names the stages that Progress hears, and no others.
func TestTrainOptionsNameTheStages(t *testing.T) {
	t.Parallel()
	_, c, _ := openPairs(t, -1, 300, synth.Config{Classes: 4, Seed: 1})
	heard := map[string]bool{}
	for _, opt := range []db.TrainOptions{
		dbkit.TinyTraining(1),
		{Options: fit.Options{Bits: 16, Anchors: 6}}, // the defaults choose the rest
	} {
		opt.Progress = func(stage string, _, _ int64) {
			stage, _, _ = strings.Cut(stage, " ")
			heard[stage] = true
		}
		dbkit.MustTrain(t, c, opt)
	}
	source := need(os.ReadFile("train.go"))(t)
	comment, _, _ := strings.Cut(string(source), "type TrainOptions struct")
	_, comment, _ = strings.Cut(comment, "// Progress hears the stages")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z]+)"`).FindAllStringSubmatch(comment, -1) {
		named[m[1]] = true
	}
	delete(named, "moments") // no map of these needs them
	delete(heard, "moments")
	failIf(t, !maps.Equal(heard, named), "heard %v, the comment names %v", heard, named)
}

// A process that ended while it built a space is in nobody's way: the same training again
// takes its place, and a reindexing is completed first.
func TestTrainSettlesWhatAnotherProcessLeft(t *testing.T) {
	t.Parallel()
	items := mixedPairs(200, 4)
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, items)
	leave := func(prepare func(v *state.View, cv *state.CollectionView) (*learn.NewSpace, error)) uint32 {
		t.Helper()
		sp := need(taught(c).Install(ctx, true, prepare))(t)
		errorIs(t, errOf(c.Train(ctx, smallTraining)), db.ErrBusy)
		must(t, db.Inside(c).Look(ctx, func(s *state.CollectionState) error { // as opening does
			s.SpaceByID(sp.ID).Left = true
			return nil
		}))
		return sp.ID
	}
	spaces := func() (ids []uint32) {
		must(t, db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
			for i := range cv.Spaces {
				if sp := &cv.Spaces[i]; sp.Numbers.Building {
					t.Errorf("space %d is being built", sp.Space.ID)
				}
				ids = append(ids, cv.Spaces[i].Space.ID)
			}
			return nil
		}))
		return ids
	}
	train := func() *report.Training {
		t.Helper()
		return need(c.Train(ctx, smallTraining))(t)
	}
	leave(func(v *state.View, cv *state.CollectionView) (*learn.NewSpace, error) {
		l, err := learn.TrainOn(ctx, v, cv, learn.TrainOptions(smallTraining))
		if err != nil {
			return nil, err
		}
		return l.NewSpace(ctx, v, cv, false)
	})
	errorIs(t, errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: -8}})), db.ErrInvalid)
	fine(t, db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
		failIf(t, cv.Building() == nil, "an impossible training has dropped what was left")
		return nil
	}))
	tr := train()
	failIf(t, tr.Space != 2 || !tr.Active || tr.Items != inSpace(t, c, 2).Codes.Coded, "%+v", tr)
	ids := spaces()
	failIf(t, len(ids) != 1 || ids[0] != 2, "spaces %v", ids)
	leave(func(v *state.View, cv *state.CollectionView) (*learn.NewSpace, error) {
		return db.Learning(db.Of(c)).Reinstall(ctx, v, cv, true)
	})
	tr = train()
	failIf(t, tr.Space != 4 || tr.Active, "%+v", tr)
	ids = spaces()
	failIf(t, len(ids) != 3 || inSpace(t, c, 3).Codes.Coded != inSpace(t, c, 2).Codes.Coded, "spaces %v", ids)
}

// A training for which there is not enough memory says so, and leaves the collection as it
// was: another map can be trained at once.
func TestTrainingWithoutMemory(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "text", Dim: 20_000, Sparse: true}}}))(t)
	var items []*db.Item
	for i := range 100 {
		class := uint32(i % 4)
		items = append(items, &db.Item{
			Key: fmt.Sprint(i), Labels: []string{fmt.Sprint(class)},
			Sparse: map[string]db.Sparse{"text": {Index: []uint32{class, 10 + uint32(i)}, Value: []float32{1,
				2}}},
		})
	}
	putAll(t, c, items)
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, MemoryBytes: 1 << 30,
		Map: map[string]model.MapKind{"text": model.MapLinear}}}
	_, err := c.Train(ctx, opt)
	var memory *fit.MemoryError
	stopIf(t, !errors.As(err, &memory) || !errors.Is(err, db.ErrInvalid) || memory.Modality != "text" ||
		memory.Needed <= 1<<30, "%v", err)
	spaces := need(c.Spaces(ctx))(t)
	failIf(t, len(spaces) != 0, "%+v", spaces)
	opt.Map = nil // chosen
	dbkit.MustTrain(t, c, opt)
}

func TestTrainingModalities(t *testing.T) {
	s := db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: 4}, {Name: "sound", Dim: 3}, {Name: "caption", Dim: 4, SpaceOf: "image"},
		{Name: "words", Dim: 9, Sparse: true},
	}}
	modalities, places, leftOut, shared := db.TrainingModalities(s, func(i int) bool { return i != 1 })
	got := fmt.Sprint(modalities, places, leftOut, shared)
	failIf(t, got != "[{image 4 false} {caption 4 false} {words 9 true}] [0 2 3] [sound] [[image caption]]",
		"%v", got)
	// One that is alone in its space, as the other is left out, shares it with nobody.
	_, _, _, shared = db.TrainingModalities(s, func(i int) bool { return i > 0 })
	failIf(t, shared != nil, "%v", shared)
}

// TestMoreLabelsThanBits: refused with both numbers; with label embedding every item has the code of its
// labels, which is there after reopening, and vectors find their labels.
func TestMoreLabelsThanBits(t *testing.T) {
	dbkit.LongTest(t)
	dir := t.TempDir()
	d, c := openNew(t, dir, nil, dbkit.PairsSchema)
	items := dbkit.Pairs(300, synth.Config{Classes: 40, Noise: .1, Seed: 4})
	putAll(t, c, items)
	opt := db.TrainOptions{Options: fit.Options{Bits: 16}}
	var bits *fit.BitsError
	_, err := c.Train(ctx, opt)
	stopIf(t, !errors.Is(err, db.ErrInvalid) || !errors.As(err, &bits) || bits.Labels != 40 ||
		bits.Bits != 16, "%v", err)
	opt.LabelEmbedding = true
	tr := dbkit.MustTrain(t, c, opt)
	failIf(t, tr.Embedding == nil || tr.Embedding.Dims != 16 || tr.Labels != 40 || tr.Items != 300, "%+v", tr)
	d, _ = reopen(t, d, dir, nil)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	right := 0
	for _, it := range items[:100] {
		hits := need(c.Search(ctx, db.Query{From: "image", Vector: it.Vectors["image"], To: "text", K: 1}))(t)
		found := need(c.Get(ctx, hits.Hits[0].Key))(t)
		if found.Labels[0] == it.Labels[0] {
			right++
		}
	}
	if right < 80 { // chance is 2 or 3
		t.Errorf("%d of 100 images find a text of their label", right)
	}
}

// TestHardCollections: what is hard about items neither fails nor gives anything
// that is not a number, and every item has a code.
func TestHardCollections(t *testing.T) {
	dbkit.LongTest(t)
	each := func(items []*db.Item, modality string, f func(i int, x []float32)) {
		for i, it := range items {
			if x := it.Vectors[modality]; x != nil {
				f(i, x)
			}
		}
	}
	for name, change := range map[string]func(items []*db.Item){
		"one class of nearly all": func(items []*db.Item) { relabel(items[1:], "cat") },
		"a label on every item": func(items []*db.Item) {
			for _, it := range items {
				it.Labels = append(it.Labels, "all")
			}
		},
		"one item a class": func(items []*db.Item) {
			for i, it := range items {
				it.Labels = []string{fmt.Sprint("l", i)}
			}
		},
		"no item complete": func(items []*db.Item) {
			for i, it := range items {
				delete(it.Vectors, []string{"image", "text"}[i%2])
			}
		},
		"no labelled item with text": func(items []*db.Item) {
			for i, it := range items {
				if i < 40 {
					delete(it.Vectors, "text")
				} else {
					it.Labels = nil
				}
			}
		},
		"zero vectors": func(items []*db.Item) { each(items, "text", func(_ int, x []float32) { clear(x) }) },
		"huge": func(items []*db.Item) {
			each(items, "image", func(_ int, x []float32) {
				for j := range x {
					x[j] *= 1e30
				}
			})
		},
		"tiny": func(items []*db.Item) {
			each(items, "image", func(_ int, x []float32) {
				for j := range x {
					x[j] *= 1e-30
				}
			})
		},
		"all equal": func(items []*db.Item) {
			each(items, "image", func(_ int, x []float32) { copy(x, items[0].Vectors["image"]) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := dbkit.OpenPairs(t)
			items := dbkit.Pairs(60, synth.Config{Classes: 4, Seed: 1})
			change(items)
			putAll(t, c, items)
			tr := dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 64}})
			failIf(t, tr.Items < 40 || tr.DistinctCodes < 2, "%+v", tr)
			fine(t, errOf(json.Marshal(tr)))
			for _, it := range items[:10] {
				if it.Vectors["image"] == nil {
					continue
				}
				r, err := c.Search(ctx, db.Query{From: "image", Vector: it.Vectors["image"], To: "image",
					K: 3})
				stopIf(t, err != nil || len(r.Hits) == 0, "%v, %v", r, err)
			}
		})
	}
}

// sharedSet reads one of the real data sets that stand beside a checkout of the
// repository: the first count items of a part as items, and what queries need.
func sharedSet(t testing.TB, set, part string) (vectors map[string][][]float32, labels [][]string) {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "data", set)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the data set %s is not here: %v", set, err)
	}
	vectors = map[string][][]float32{}
	for _, m := range []string{"image", "text"} {
		data, rows, cols, err := files.ReadAll(filepath.Join(dir, part+"_"+m+".npy"))
		must(t, err)
		for i := range rows {
			vectors[m] = append(vectors[m], data[i*cols:(i+1)*cols])
		}
	}
	l := need(files.ReadLabels(filepath.Join(dir, part+"_labels.npy")))(t)
	for _, set := range l.Sets {
		var names []string
		for _, i := range set {
			names = append(names, l.Names[i])
		}
		labels = append(labels, names)
	}
	return vectors, labels
}

// openShared makes a database of the training part of a real data set.
func openShared(t testing.TB, set string) *db.Collection {
	t.Helper()
	vectors, labels := sharedSet(t, set, "train")
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	t.Cleanup(func() { d.Close() })
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: len(vectors["image"][0])}, {Name: "text", Dim: len(vectors["text"][0])},
	}}))(t)
	var items []*db.Item
	for i := range labels {
		items = append(items, &db.Item{Key: strconv.Itoa(i), Labels: labels[i], Vectors: map[string][]float32{
			"image": vectors["image"][i], "text": vectors["text"][i],
		}})
	}
	putAll(t, c, items)
	return c
}

// authorsSettings are those of the authors' experiments.
func authorsSettings(bits int, seed uint64) db.TrainOptions {
	return db.TrainOptions{Options: fit.Options{
		Bits: bits, Seed: seed, Anchors: 800, Aim: model.AimCodes,
		Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
		Width:    map[string]float64{"image": 1, "text": 1},
		Gamma:    map[string]float64{"image": 1e-4, "text": 1e-4},
	}}
}

func TestRealSetsRetrieveAsTheReference(t *testing.T) {
	dbkit.LongTest(t)
	for _, tc := range []struct {
		set                      string
		imageToText, textToImage float64
	}{{"wiki", .365, .753}, {"ucidigits", .867, .981}} {
		if tc.set == "wiki" && !effort.Long() {
			continue
		}
		t.Run(tc.set, func(t *testing.T) {
			c := openShared(t, tc.set)
			dbkit.MustTrain(t, c, authorsSettings(64, 1))
			vectors, labels := sharedSet(t, tc.set, "query")
			got := need(c.Evaluate(ctx, db.Evaluation{Queries: vectors, Labels: labels}))(t)
			for i, want := range []float64{tc.imageToText, tc.textToImage} {
				// One seed: the standard deviation over seeds is about .01.
				if m := got[i].Hamming.MAP; math.Abs(m-want) > .04 {
					t.Errorf("%s->%s: mAP %.3f, the reference implementation %.3f", got[i].From, got[i].To, m,
						want)
				}
			}
		})
	}
}

// meanAveragePrecision is computed from codes as a user has them, by the definition: rank by (distance,
// position), average the precision at each relevant item.
func meanAveragePrecision(queries [][]byte, queryLabels [][]string, codes [][]byte,
	labels [][]string) float64 {
	sum := 0.0
	for i, q := range queries {
		order := make([]int, len(codes))
		dist := make([]int, len(codes))
		for j, c := range codes {
			order[j] = j
			for b := range c {
				dist[j] += bits.OnesCount8(c[b] ^ q[b])
			}
		}
		sort.SliceStable(order, func(a, b int) bool { return dist[order[a]] < dist[order[b]] })
		found, ap := 0, 0.0
		for rank, j := range order {
			if slices.ContainsFunc(labels[j],
				func(l string) bool { return slices.Contains(queryLabels[i], l) }) {
				found++
				ap += float64(found) / float64(rank+1)
			}
		}
		if found > 0 {
			sum += ap / float64(found)
		}
	}
	return sum / float64(len(queries))
}

// withinRadius returns precision and recall of all pairs within a radius.
func withinRadius(queries [][]byte, queryLabels [][]string, codes [][]byte, labels [][]string,
	radius int) (precision, recall float64) {
	var within, good, relevant float64
	for i, q := range queries {
		for j, c := range codes {
			dist := 0
			for b := range c {
				dist += bits.OnesCount8(c[b] ^ q[b])
			}
			match := slices.ContainsFunc(labels[j],
				func(l string) bool { return slices.Contains(queryLabels[i], l) })
			if match {
				relevant++
			}
			if dist <= radius {
				within++
				if match {
					good++
				}
			}
		}
	}
	return good / within, good / relevant
}

func TestEvaluateAgreesWithTheDefinition(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	all := dbkit.Pairs(260, synth.Config{Seed: 3, Classes: 6, LabelsPerItem: 2, Noise: 1.5})
	items, queries := all[:200:200], all[200:]
	items[20].Labels = nil                          // unlabelled, coded by its features
	items[30].Vectors = nil                         // of no modality: in no answer
	delete(items[31].Vectors, "text")               // of one
	items = append(items, &db.Item{Key: "no code"}) // of nothing
	items[40].Labels = append(items[40].Labels, "not learned")
	train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: 32}, Rows: 30})

	e := db.Evaluation{Queries: map[string][][]float32{}, Top: 10}
	for _, q := range queries {
		e.Labels = append(e.Labels, q.Labels)
		for m, x := range q.Vectors {
			e.Queries[m] = append(e.Queries[m], x)
		}
	}
	got, err := c.Evaluate(ctx, e)
	must(t, err)
	stopIf(t, len(got) != 2 || got[0].From != "image" || got[0].To != "text" || got[1].From != "text" ||
		got[1].To != "image", "%+v", got)
	for _, r := range got {
		var codes, queryCodes [][]byte
		var labels [][]string
		for it := range every(t, c.Items(ctx, "")) {
			if it.Vectors[r.To] != nil {
				codes, labels = append(codes, it.Code), append(labels, it.Labels)
			}
		}
		for _, x := range e.Queries[r.From] {
			code, _ := need2(c.EncodeQuery(ctx, db.Query{From: r.From, Vector: x}))(t)
			queryCodes = append(queryCodes, code)
		}
		want := meanAveragePrecision(queryCodes, e.Labels, codes, labels)
		failIf(t, math.Abs(r.Hamming.MAP-want) > 1e-12 || r.Hamming.Database != len(codes) ||
			r.Hamming.Queries != 60, "%s->%s: %+v, want mAP %g over %d", r.From, r.To, r.Hamming, want,
			len(codes))
		within2, recall2 := withinRadius(queryCodes, e.Labels, codes, labels, 2)
		p := r.Hamming.ByRadius[2]
		failIf(t, len(r.Hamming.ByRadius) != 33 || math.Abs(p.Precision-within2) > 1e-12 ||
			math.Abs(p.Recall-recall2) > 1e-12, "%s->%s: %+v, want %g, %g", r.From, r.To, p, within2, recall2)
		for _, m := range []eval.Metrics{r.Hamming, r.Asymmetric} {
			failIf(t, len(m.ByTop) != 5 || m.ByTop[4].K != 100 || m.ByTop[4].Precision < .4, "%s->%s: %+v",
				r.From, r.To, m.ByTop)
		}
		failIf(t, r.Hamming.MAP < .4 || r.Asymmetric.MAP < .4, "%s->%s: %+v", r.From, r.To, r)
	}

	// Scored by a truth in which nothing is relevant.
	e.Truth = make([][]string, len(items))
	got, err = c.Evaluate(ctx, e)
	failIf(t, err != nil || got[0].Hamming.MAP != 0, "%+v, %v", got, err)
	for name, bad := range map[string]db.Evaluation{
		"no queries":       {},
		"unknown modality": {Queries: map[string][][]float32{"smell": {{1}}}, Labels: [][]string{{"a"}}},
		"labels missing":   {Queries: e.Queries, Labels: e.Labels[:3]},
		"truth too short":  {Queries: e.Queries, Labels: e.Labels, Truth: e.Truth[:3]},
		"dimension":        {Queries: map[string][][]float32{"text": {{1}}}, Labels: [][]string{{"a"}}},
		"top":              {Queries: e.Queries, Labels: e.Labels, Top: -1},
	} {
		_, err := c.Evaluate(ctx, bad)
		failIf(t, !errors.Is(err, db.ErrInvalid), "%s: %v", name, err)
	}
}

// In a collection with one modality a query by the key of an item orders the items of its code by its vector.
// The item itself comes first, though its code comes from its labels and not from its vector.
func TestKeyOfOneModality(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	t.Cleanup(func() { dbkit.MustClose(t, d) })
	one := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8}}}
	c := need(d.CreateCollection(ctx, "main", one))(t)
	var items []*db.Item
	for _, it := range dbkit.Pairs(120, synth.Config{Seed: 3}) {
		it.Vectors = map[string][]float32{"image": it.Vectors["image"]}
		items = append(items, it)
	}
	train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: 16}})
	cosine := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab, aa, bb = ab+float64(a[i]*b[i]), aa+float64(a[i]*a[i]), bb+float64(b[i]*b[i])
		}
		return ab / math.Sqrt(aa*bb)
	}
	byKey := map[string]*db.Item{}
	for _, it := range dbkit.AllItems(t, c) {
		byKey[it.Key] = it
	}
	for _, it := range items[:20] {
		r := need(c.Search(ctx, db.Query{Key: it.Key, K: 120}))(t)
		failIf(t, r.Hits[0].Key != it.Key || r.Hits[0].Distance != 0, "item %s finds %+v first", it.Key, r.Hits[0])
		last := math.Inf(1)
		for _, h := range r.Hits {
			if !slices.Equal(byKey[h.Key].Code, byKey[it.Key].Code) {
				break
			}
			similar := cosine(byKey[h.Key].Vectors["image"], byKey[it.Key].Vectors["image"])
			failIf(t, similar > last+.02, "item %s: %s with %g behind %g", it.Key, h.Key, similar, last)
			last = similar
		}
	}
}
