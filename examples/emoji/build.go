package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"iter"
	"reflect"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// schema describes an emoji in the collection. The key is its character, the payload
// its picture as PNG. The held-out emoji have no labels, so the database itself says
// what it was trained on.
var schema = db.Schema{
	Modalities: []db.Modality{{Name: "picture", Dim: pictureDim}, {Name: "words", Dim: wordsDim}},
	Fields:     []db.Field{{Name: "name", Type: db.String}, {Name: "group", Type: db.String}},
}

// trainOptions returns the options for n training emoji. A code needs at least as many bits as there are
// labels. All emoji are anchors, and the gamma of words is larger than the default, .01, for the sake of free
// queries: a single word is not like any whole name. With .01 such a word finds an emoji that has it in its
// name first for .157 of the words, with .1 for .356, and mAP is the same (four-fold cross-validation on the
// training emoji). With all emoji as anchors and a small gamma, training fits each of them exactly. Then
// nothing is left to order the emoji within one code.
func trainOptions(n int) db.TrainOptions {
	return db.TrainOptions{Options: fit.Options{
		Bits:     maxLabels,
		Anchors:  n,
		Seed:     1,
		Features: map[string]model.FeatureKind{"picture": model.FeaturesRaw, "words": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"picture": model.MapRBF, "words": model.MapRBF},
		Gamma:    map[string]float64{"picture": fit.DefaultGamma, "words": 0.1},
	}}
}

// A finder is the database, with what queries need besides. All of it is read from the
// database.
type finder struct {
	db      *db.DB
	emoji   *db.Collection
	entries map[string]entry // by pictureID
	learned int              // number of entries that training saw
	words   *vocabulary      // of the names that training saw
}

// An entry is what an answer shows of an emoji.
type entry struct {
	key, name, group string
	heldOut          bool
}

// openFinder opens the database in dir or creates an empty one.
func openFinder(ctx context.Context, dir string) (*finder, error) {
	d, err := db.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	f := &finder{db: d}
	if err := f.load(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return f, nil
}

func (f *finder) close() error { return f.db.Close() }

// load reads the names from the collection, after creating it in an empty database.
func (f *finder) load(ctx context.Context) (err error) {
	f.emoji, err = f.db.Collection("emoji")
	if errors.Is(err, db.ErrNotFound) {
		if others, err := f.db.Collections(); err != nil {
			return err
		} else if len(others) > 0 {
			return errors.New("this is the database of another program: name another folder")
		}
		f.emoji, err = f.db.CreateCollection(ctx, "emoji", schema)
	}
	if err != nil {
		return err
	}
	if s, err := f.emoji.Schema(); err != nil {
		return err
	} else if !reflect.DeepEqual(s, schema) {
		return errors.New("the collection \"emoji\" of this database is not of this program's making: name another folder")
	}
	return f.read(f.emoji.Items(ctx, ""))
}

// read takes in the names of items, and learns the vocabulary of those that training sees.
func (f *finder) read(items iter.Seq2[*db.Item, error]) error {
	f.entries = make(map[string]entry)
	var names []string
	for item, err := range items {
		if err != nil {
			return err
		}
		e := entry{key: item.Key, heldOut: len(item.Labels) == 0}
		e.name, _ = item.Fields["name"].(string)
		e.group, _ = item.Fields["group"].(string)
		f.entries[pictureID(e.key)] = e
		if !e.heldOut {
			names = append(names, e.name)
		}
	}
	f.learned, f.words = len(names), learnVocabulary(names)
	return nil
}

// complete reports whether build has ended in this database. The held-out emoji come
// last, in one commit.
func (f *finder) complete() bool { return len(f.entries) > f.learned }

// build draws the emoji, trains on most of them, measures with the others and then adds
// these. It writes again what an interrupted build has left.
func (f *finder) build(ctx context.Context, out io.Writer) error {
	var d *dataset
	err := step(out, "Drawing the emoji", func() (did string, err error) {
		d, err = loadDataset(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d pictures, of the font in this program", len(d.items)), nil
	})
	if err != nil {
		return err
	}
	train, held := d.split()
	var items []*db.Item
	err = step(out, "Describing them", func() (did string, err error) {
		items, err = describe(ctx, d, learnVocabulary(d.names(train)))
		return fmt.Sprintf("each picture by %d numbers, each name by %d", pictureDim, wordsDim), err
	})
	if err != nil {
		return err
	}
	err = step(out, "Storing", func() (did string, err error) {
		err = f.put(ctx, items, train)
		return fmt.Sprintf("%d with their labels; %d are held out", len(train), len(held)), err
	})
	if err != nil {
		return err
	}
	err = step(out, "Training", func() (did string, err error) {
		t, err := f.emoji.Train(ctx, trainOptions(len(train)))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("codes of %d bits from %d labels", t.Bits, t.Labels), nil
	})
	if err != nil {
		return err
	}
	if err := f.measure(ctx, out, d, items, train, held); err != nil {
		return err
	}
	for _, i := range held {
		items[i].Labels = nil // nobody has labelled new items in real life, either
	}
	err = step(out, "Adding the others", func() (did string, err error) {
		err = f.put(ctx, items, held)
		return fmt.Sprintf("%d, without labels: their codes come from their features", len(held)), err
	})
	if err != nil {
		return err
	}
	return f.load(ctx)
}

// step runs work. It prints what before, and the result and the time after it.
func step(out io.Writer, what string, work func() (did string, err error)) error {
	fmt.Fprintf(out, "%-18s", what)
	start := time.Now()
	did, err := work()
	if err != nil {
		fmt.Fprintln(out)
		return fmt.Errorf("%s: %w", strings.ToLower(what), err)
	}
	fmt.Fprintf(out, "%5.1f s   %s\n", time.Since(start).Seconds(), did)
	return nil
}

// describe makes an item of every emoji, with its labels.
func describe(ctx context.Context, d *dataset, v *vocabulary) ([]*db.Item, error) {
	pictures, err := allPictureFeatures(ctx, d.pictures)
	if err != nil {
		return nil, err
	}
	items := make([]*db.Item, len(d.items))
	err = inParallel(ctx, len(items), func() func(int) error {
		encoder := png.Encoder{CompressionLevel: png.BestSpeed}
		return func(i int) error {
			e := d.items[i]
			var file bytes.Buffer
			if err := encoder.Encode(&file, d.pictures[i]); err != nil {
				return fmt.Errorf("picture of %s: %w", e.char, err)
			}
			items[i] = &db.Item{
				Key:     e.char,
				Vectors: map[string][]float32{"picture": pictures[i]},
				Labels:  d.labels[i],
				Fields:  map[string]any{"name": e.name, "group": e.group},
				Payload: file.Bytes(),
			}
			// One that is held out and has no known word gets no vector. Its item then has
			// no words, and is found by its picture alone.
			if words, ok := v.embed(e.name); ok {
				items[i].Vectors["words"] = words
			}
			return nil
		}
	})
	return items, err
}

// put stores the items with the numbers rows in one commit.
func (f *finder) put(ctx context.Context, items []*db.Item, rows []int) error {
	b := f.db.NewBatch()
	for _, i := range rows {
		if err := b.Put(f.emoji, items[i]); err != nil {
			return err
		}
	}
	return b.Commit(ctx)
}

// measure searches the training emoji for every held-out one, and prints the quality of
// the answers.
func (f *finder) measure(ctx context.Context, out io.Writer, d *dataset, items []*db.Item, train,
	held []int) error {
	retrievals, err := f.evaluate(ctx, items, held)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nEach of the %d held out searches the %d. A hit is right if it is of the same one of\n"+
		"nine groups: animals, food, flags ...\n\n", len(held), len(train))
	const row = "  %-18s %8s %18s\n"
	fmt.Fprintf(out, row, "", "mAP", "first 10 right")
	percent := func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	for _, r := range retrievals {
		fmt.Fprintf(out, row, r.From+" -> "+r.To, fmt.Sprintf("%.3f", r.Hamming.MAP),
			percent(r.Hamming.PrecisionAt))
	}
	chance := d.chance(held, train)
	fmt.Fprintf(out, row, "by chance", fmt.Sprintf("%.3f", chance), percent(chance))
	fmt.Fprintln(out)
	return nil
}

// evaluate returns the figures with the held-out items as queries.
func (f *finder) evaluate(ctx context.Context, items []*db.Item, held []int) ([]report.Retrieval, error) {
	e := db.Evaluation{Queries: make(map[string][][]float32), Top: 10}
	for _, i := range held {
		for _, m := range schema.Modalities {
			x, ok := items[i].Vectors[m.Name]
			if !ok {
				x = make([]float32, m.Dim) // a query without a vector counts as a failure
			}
			e.Queries[m.Name] = append(e.Queries[m.Name], x)
		}
		e.Labels = append(e.Labels, items[i].Labels)
	}
	return f.emoji.Evaluate(ctx, e)
}
