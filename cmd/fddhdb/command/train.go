package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// trainOptions are the flags of train.
type trainOptions struct {
	common
	flags.Settings
}

func trainCommand(e *env) *cobra.Command {
	var o trainOptions
	cmd := &cobra.Command{
		Use:     "train DIR",
		Short:   "Learn codes, from labels or without",
		GroupID: groupLearn,
		Long: usage.Prose(`
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
			docs/TUNING.md says what to change when.`),
		Example: usage.Example(`
			fddhdb train wiki.db
			fddhdb train wiki.db --bits 128 --gamma image=1e-4 --gamma text=1e-4
			fddhdb train wiki.db --anchors 800 --prior 0.25
			fddhdb train wiki.db --features text=hellinger --map text=rbf+linear --rows 1000
			fddhdb train pairs.db --method cca-itq`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd.Flags()); err != nil {
				return err
			}
			if err := o.LeaveOpen(cmd.Flags()); err != nil {
				return err
			}
			bar := e.NewProgress()
			defer bar.End()
			o.Progress = bar.Report
			return e.withCollection(args[0], &o.common, func(_ *db.DB, c *db.Collection) error {
				t, err := c.Train(cmd.Context(), o.TrainOptions)
				bar.End()
				if err != nil {
					return trainError(err)
				}
				for _, w := range t.Warnings() {
					e.Warnf("warning: %s", w)
				}
				for _, name := range slices.Sorted(maps.Keys(o.Width)) {
					if ch, learned := t.Chosen[name]; learned && ch.Map == model.MapLinear {
						e.Warnf("warning: --width %s=%s has no effect, as a linear map was chosen for it: give --map %[1]s=rbf to have one", name, term.Setting(o.Width[name]))
					}
				}
				if o.json {
					return e.PrintJSON(t)
				}
				stats, err := statsIn(c, t.Space)
				if err != nil {
					return err
				}
				e.printTraining(c, t, stats)
				e.Printf("%s\n", spaceHint(args[0], c.Name(), t.Space, t.Active))
				return nil
			})
		},
	}
	o.register(cmd)
	o.Settings.Register(cmd.Flags())
	cmd.Flags().BoolVar(&o.Activate, "activate", false,
		"make it the active space, as the first training always does")
	usage.Matter(cmd.Flags(), "bits", "method", "features", "map", "anchors", "label-embedding", "rows",
		"seed", "activate", "collection", "json")
	return cmd
}

// statsIn returns the statistics of a collection in a space.
func statsIn(c *db.Collection, space db.Space) (*db.CollectionStats, error) {
	in, err := c.InSpace(space)
	if err != nil {
		return nil, err
	}
	return in.Stats()
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

// printTraining prints what was done, and how good it is. --json has the rest.
func (e *env) printTraining(c *db.Collection, t *db.Training, s *db.CollectionStats) {
	what, item := "items without labels", "no item has"
	if !t.Method.LabelFree() {
		what, item = "labelled items with "+term.Plural(t.Labels, "label", "labels"), "no labelled item has"
	}
	e.Printf("trained collection %s on %s %s in %s: space %d, revision %d\n",
		c.Name(), term.Thousands(t.TrainItems), what, term.Seconds(t.Seconds["total"]), t.Space, t.Revision)
	for _, name := range t.LeftOut {
		e.Warnf("warning: %s a vector of modality %q, so nothing is learned of it: import some, and train again, before searching by it", item, name)
	}
	var modalities []string // of the model, in order
	var rows [][]any
	for _, m := range s.Modalities {
		ch, learned := t.Chosen[m.Name]
		if !learned {
			continue
		}
		modalities = append(modalities, m.Name)
		row := []any{m.Name, ch.FeatureMap.String()}
		if !t.Method.LabelFree() {
			var anchors, found any = term.NoCell, term.NoCell
			if ch.Map != model.MapLinear {
				anchors = term.CountCell(ch.Anchors)
			}
			switch choice := t.Choices[m.Name]; {
			case choice == nil: // everything was given
			case choice.Unfit != "":
				e.Printf("%s gets the default settings: %s\n", m.Name, choice.Unfit)
			default:
				found = term.NumberCell(choice.MAP, 4)
			}
			row = append(row, ch.Map.String(), anchors, term.Setting(ch.Gamma), found)
		}
		rows = append(rows, append(row, term.CountCell(ch.Items)))
	}
	columns := []term.Column{term.Left("modality"), term.Left("features"), term.Left("map"),
		term.Right("anchors"), term.Right("gamma"), term.Right("mAP"), term.Right("items")}
	if t.Method.LabelFree() {
		columns = slices.Delete(columns, 2, 6)
	}
	e.Printf("\n")
	e.PrintTable(columns, rows)
	e.Printf("\n")
	if m := t.Embedding; m != nil {
		e.Printf("%s in %s: label mAP %.4f, least %.4f; 1 if nothing were lost\n",
			term.Plural(t.Labels, "label", "labels"), term.Plural(m.Dims, "dimension", "dimensions"), m.MAP,
			m.MAPLeast)
	}
	if f := t.Fusion; f != nil && len(modalities) > 1 {
		e.Printf("codes of items without labels: %s\n", fusionFormula(f.Weights, modalities))
		var found []string
		for _, d := range slices.Sorted(maps.Keys(f.Directions)) {
			found = append(found, fmt.Sprintf("%s %.4f", d, f.Directions[d]))
		}
		if len(found) > 0 {
			e.Printf("mAP of such items, measured without their labels: %s\n", strings.Join(found, ", "))
		}
	}
	e.Printf("%d bits, %s, for %s of %s\n", t.Bits, term.Plural(s.DistinctCodes, "distinct code",
		"distinct codes"),
		term.Thousands(s.CodedItems), term.Plural(s.Items, "item", "items"))
	if n := t.ConstantBits; n > 0 && n <= t.LikelyConstantBits() { // above that there is a warning
		e.Printf("%d of them are constant, as likely with %s: fewer bits would do\n", n,
			term.Plural(t.LabelSets, "set of labels", "sets of labels"))
	}
}

// fusionFormula returns the weights of a fusion as text: 0.26 x image + text.
func fusionFormula(weights map[string]float64, modalities []string) string {
	var terms []string
	for _, m := range modalities {
		switch w := weights[m]; w {
		case 0:
		case 1:
			terms = append(terms, m)
		default:
			terms = append(terms, term.Setting(w)+" x "+m)
		}
	}
	return strings.Join(terms, " + ")
}

// aimText returns what projections learn of labels in words. The aim codes has no prior.
func aimText(aim string, prior *float64) string {
	if aim == model.AimCodes.String() || prior == nil {
		return aim
	}
	return fmt.Sprintf("%s, prior %s", aim, term.Setting(*prior))
}
