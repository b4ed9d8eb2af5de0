package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

func trainCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLearn, "train DIR", "Learn codes, from labels or without", `
		Train learns codes from the labelled items that make the modalities comparable
		(FDDH), and gives every item a code: labelled items the code of their labels, other
		items the code of their vectors. Searches then find by codes, and new items get
		their codes as they are stored.

		Training makes a space of codes. The first space of a collection is active:
		searches use it. A later space stands by, and new items get codes in it too, until
		activate or --activate makes it the active one. Compare it first: search --space,
		eval --space. Each space costs disk and time of every write; drop deletes it. If
		training fails or is interrupted, everything stays as it was.

		Train learns two things.
		  codes        one for each set of labels: --bits, --sweeps, --seed, --start.
		               --method labels (the default) keeps items at the code of their
		               labels; joint and paper move them, by --mu and --delta
		  projections  one for each modality, from vectors to codes. --features: what is
		               done to a vector first. --map: rbf measures distances to --anchors
		               vectors of items, within --width (1: the mean squared distance of
		               two vectors); linear takes the vector itself; rbf+linear has both.
		               --gamma: the weight of the ridge. --aim labels (the default): fit
		               the directions of the labels, rare labels favoured by --prior. --aim
		               codes: fit the binary codes, as published
		Settings that you do not give are chosen for each modality by measuring, with
		labelled items left out one at a time. That needs 50 items of it; with fewer,
		defaults are used.

		--fusion says how the projections of an item without labels combine into one
		code: their sum, or one modality alone. By default their weights are learned.

		Each label needs a bit. With more labels than bits training is refused, unless
		--label-embedding is given: similar labels then get codes that are near to each
		other. The label mAP that is printed says what that costs; 1 is nothing.

		Without labels you need no training: search compares vectors, and index makes that
		fast. You need codes of vectors for search within a radius, export, and index-only
		copies. --method itq learns them from vectors of one modality, --method cca-itq from
		pairs of modalities, each from at most 20,000 items. There --bits is 256 and
		--features l2 unless given.

		--json prints every setting that was tried, and the time of each phase.
		docs/TUNING.md says what to change when.`, `
		fddhdb train wiki.db
		fddhdb train wiki.db --bits 128 --gamma image=1e-4 --gamma text=1e-4
		fddhdb train wiki.db --anchors 800 --prior 0.25
		fddhdb train wiki.db --features text=hellinger --map text=rbf+linear --rows 1000
		fddhdb train pairs.db --method cca-itq`).OnCollection()
	var o flags.Settings
	o.Register(v.Flags)
	v.Flags.BoolVar(&o.Activate, "activate", false, "make it the active space, as the first training always does")
	usage.Matter(v.Flags, "bits", "method", "features", "map", "anchors", "label-embedding", "rows",
		"seed", "activate", "collection", "json")
	return v.Does(func() error {
		err := o.Complete(v.Flags)
		if err == nil {
			err = o.LeaveOpen(v.Flags)
		}
		if err != nil {
			return err
		}
		return v.Change(func() error {
			o.Progress = v.Progress().Report
			t, err := v.Collection.Train(v.Ctx, o.TrainOptions)
			if err != nil {
				return trainError(err)
			}
			for _, w := range t.Warnings() {
				v.Warnf("warning: %s", w)
			}
			for _, name := range slices.Sorted(maps.Keys(o.Width)) {
				if ch, learned := t.Chosen[name]; learned && ch.Map == model.MapLinear {
					v.Warnf("warning: --width %s=%s has no effect, as a linear map was chosen for it: give --map %[1]s=rbf to have one", name, term.Setting(o.Width[name]))
				}
			}
			for _, name := range t.LeftOut {
				v.Warnf("warning: no %sitem has a vector of modality %q, so nothing is learned of it: import some, and train again, before searching by it",
					map[bool]string{false: "labelled "}[t.Method.LabelFree()], name)
			}
			return v.Show(t, func() { printTraining(v, t) })
		})
	})
}

// trainError distinguishes errors of items from errors of flags, and adds advice.
func trainError(err error) error {
	var singular *model.SingularError
	var many *fit.BitsError
	switch {
	case errors.As(err, &many):
		return exit.Usagef("%s", strings.Replace(err.Error(),
			"label embedding (LabelEmbedding, --label-embedding)", "--label-embedding", 1))
	case errors.Is(err, model.ErrNoLabels):
		return exit.Failedf("%w, and fddhdb index makes that fast. Labels come in with import --labels or put --labels", err)
	case errors.Is(err, model.ErrOneClass):
		return exit.Failedf("%w, or learn without labels, from all items: --method itq or cca-itq", err)
	case errors.Is(err, fit.ErrNoItems), errors.Is(err, fit.ErrOneVector), errors.Is(err, fit.ErrUnpaired),
		errors.Is(err, model.ErrNotFinite), errors.As(err, &singular):
		return exit.Failedf("%w", err)
	}
	return err
}

// printTraining prints what was done, how good it is, and what comes next. --json has the rest.
func printTraining(v *run.Verb, t *report.Training) {
	what := "items without labels"
	if !t.Method.LabelFree() {
		what = "labelled items with " + term.Plural(t.Labels, "label", "labels")
	}
	v.Printf("trained collection %s on %s %s in %s: space %d, revision %d\n%d bits, %s, for %s\n", v.Collection.Name(),
		term.Thousands(t.TrainItems), what, term.Seconds(t.Seconds["total"]), t.Space, t.Revision, t.Bits,
		term.Plural(t.DistinctCodes, "distinct code", "distinct codes"), term.Plural(t.Items, "item",
			"items"))
	for _, name := range slices.Sorted(maps.Keys(t.Choices)) {
		if choice := t.Choices[name]; choice.Unfit != "" {
			v.Printf("%s gets the default settings: %s\n", name, choice.Unfit)
		}
	}
	if m := t.Embedding; m != nil {
		v.Printf("%s in %s: label mAP %.4f, least %.4f; 1 if nothing were lost\n",
			term.Plural(t.Labels, "label", "labels"), term.Plural(m.Dims, "dimension", "dimensions"), m.MAP,
			m.MAPLeast)
	}
	good := map[string]float64{}
	for name, choice := range t.Choices {
		if choice.Unfit == "" {
			good[name] = choice.MAP
		}
	}
	if f := t.Fusion; f != nil && len(f.Directions) > 0 {
		good = f.Directions
	}
	var found []string
	for _, of := range slices.Sorted(maps.Keys(good)) {
		found = append(found, fmt.Sprintf("%s %.4f", of, good[of]))
	}
	if len(found) > 0 {
		v.Printf("mAP of items whose labels were left out: %s\n", strings.Join(found, ", "))
	}
	v.Printf("%s\n", v.SpaceHint(t.Space, t.Active))
}

func indexCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLearn, "index DIR [--modality NAME]", "Make an index of vectors, for searches by vectors among many",
		`
		Index makes searches by vectors faster, from some ten thousand vectors on. It needs
		no labels. It puts the vectors of the modality into cells around centres. Then it
		takes some items as queries, and measures how many of their nearest it finds.

		A search looks at as much as its --recall needs: at .95 it finds 95% of the nearest,
		on average over queries, in a fraction of the time. index --recall is the default of
		searches. Found items are compared exactly, and filters hold.

		Every query compares new and changed items, until the index takes in some hundred of
		them in the background. Items of a new kind fit no cell, and queries go on comparing
		them. When enough has come, changed or gone, the index is made again in the
		background. --drop deletes it.`, `
		fddhdb index photos.db
		fddhdb index photos.db --modality image --recall .95
		fddhdb search photos.db --from image --vectors query.npy --recall .9`).OnCollection()
	var opt db.IndexOptions
	drop := false
	v.Flags.StringVar(&opt.Modality, "modality", "",
		"the modality `NAME` of the vectors; not needed where there is one")
	flags.Recall(v.Flags, &opt.Recall, "`X`, above 0 and up to 1, that searches get which do not say (default .99)")
	v.Flags.BoolVar(&drop, "drop", false, "delete the index of the modality")
	return v.Does(func() error {
		if drop && v.Given("recall") {
			return exit.Usagef("--drop deletes an index: leave out --recall")
		}
		return v.Change(func() error {
			if opt.Modality == "" {
				var names []string
				for _, m := range v.Schema.Modalities {
					names = append(names, m.Name)
				}
				if len(names) != 1 {
					return exit.Usagef("--modality NAME is missing: collection %q has %s", v.Collection.Name(),
						cmp.Or(strings.Join(names, ", "), "no vectors, its items bring codes"))
				}
				opt.Modality = names[0]
			}
			if _, err := v.FindModality("--modality", opt.Modality); err != nil {
				return err
			}
			if drop {
				if err := v.Collection.DropVectorIndex(v.Ctx, opt.Modality); err != nil {
					return err
				}
				return v.Tell(map[string]string{"modality": opt.Modality}, "dropped the index of the vectors of %s",
					opt.Modality)
			}
			opt.Progress = v.Progress().Report
			x, err := v.Collection.IndexVectors(v.Ctx, opt)
			if err != nil {
				return err
			}
			return v.Show(x, func() { printIndex(v, x) })
		})
	})
}

// printIndex prints a new index: what searches find with it.
func printIndex(v *run.Verb, x *report.VectorIndex) {
	size := ""
	if x.Cells > 0 { // a cluster does not know it
		size = ": " + term.Plural(x.Cells, "cell", "cells") + ", " + term.Size(int64(x.Bytes))
	}
	v.Printf("indexed %s of modality %s of collection %s in %s%s\n", term.Plural(x.Entries, "vector", "vectors"),
		x.Modality, v.Collection.Name(), term.Seconds(x.Seconds["total"]), size)
	for _, why := range x.Waiting {
		v.Printf("not yet on %s\n", term.Plain(why))
	}
	// by number of neighbors, with the fewest cells; nil: none has the recall
	best := map[int]*report.RecallPoint{}
	for i := range x.Measured {
		p := &x.Measured[i]
		if now := best[p.K]; min(p.Recall-p.Error, p.Worst) < x.Recall || now != nil &&
			now.Probes <= p.Probes {
			p = now
		}
		best[x.Measured[i].K] = p
	}
	for _, k := range slices.Sorted(maps.Keys(best)) {
		if p := best[k]; p != nil {
			v.Printf("of the nearest %d a search finds %.3f, in %.0f cells of %d\n", k, p.Recall, p.Probes, x.Cells)
		} else {
			v.Printf("of the nearest %d a search finds all, by comparing all vectors: no number of cells is enough\n", k)
		}
	}
	v.Printf("searches ask for a recall of %v: give another one with --recall\n", x.Recall)
}
