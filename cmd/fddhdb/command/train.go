package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

func trainCommand(e *env) *cobra.Command {
	v := e.verb(groupLearn, "train DIR", "Learn codes, from labels or without", `
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
		fddhdb train pairs.db --method cca-itq`).onCollection()
	var o flags.Settings
	o.Register(v.f)
	v.f.BoolVar(&o.Activate, "activate", false, "make it the active space, as the first training always does")
	usage.Matter(v.f, "bits", "method", "features", "map", "anchors", "label-embedding", "rows",
		"seed", "activate", "collection", "json")
	return v.does(func() error {
		err := o.Complete(v.f)
		if err == nil {
			err = o.LeaveOpen(v.f)
		}
		if err != nil {
			return err
		}
		return v.change(func() error {
			o.Progress = v.Progress().Report
			t, err := v.c.Train(v.ctx, o.TrainOptions)
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
			if v.json {
				return v.PrintJSON(t)
			}
			v.printTraining(t)
			return nil
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
func (v *verb) printTraining(t *report.Training) {
	what := "items without labels"
	if !t.Method.LabelFree() {
		what = "labelled items with " + term.Plural(t.Labels, "label", "labels")
	}
	v.Printf("trained collection %s on %s %s in %s: space %d, revision %d\n%d bits, %s, for %s\n", v.c.Name(),
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
	v.Printf("%s\n", v.spaceHint(t.Space, t.Active))
}
