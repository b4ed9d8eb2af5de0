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
			Train learns, from the labelled items, codes that make the modalities
			comparable (FDDH), and gives every item its code: to a labelled one that of
			its labels, to any other that of its vectors. From then on search finds by
			codes, and new items get theirs as they are stored.

			It learns two things. One is a code for each set of labels: --bits, --sweeps,
			--seed, --method, and --mu and --delta of the methods joint and paper. The
			other is a projection for each modality that brings vectors near what their
			labels teach. --aim says what projections learn: labels, the directions of the
			labels themselves, in which --prior favours rare ones, from 0, not at all, to
			1, and less --centre of what all labels have in common; or codes, their signs,
			as published. What projections start from is chosen for each modality, by
			leaving labelled items out one at a time, and can be given instead. --features
			says what is done to a vector first: raw, zscore, hellinger, log, l2 or
			hellinger-l2. --map says what becomes of it: rbf, distances to --anchors
			vectors drawn from the items, linear, the vector itself, or rbf+linear, both.
			--width says how far an rbf map sees: 1 is the mean squared distance of two
			vectors. --gamma is the weight of the ridge. Features and maps are compared
			first, with few anchors; for those that are taken, widths and gammas are
			compared with more. With fewer than 50 items they are raw, rbf, 1 and 0.01, and
			the prior is 0.25. The centre is 1 where each item has one label (0 with fewer
			than 5 labels); where items have several it is 0.5, or 0 if that is clearly
			better.

			Each label needs a bit. With more labels than bits training is refused, unless
			--label-embedding is given: labels whose items look alike then get codes that
			are near to each other, and the aim labels is weighted: projections learn the
			signs, as by the aim codes, with more weight for rare labels by --prior. What
			that costs is printed: with the code of each label alone as a query, the mAP of
			the items under the codes of their labels, 1 if nothing were lost.

			How the code of an item without labels is made of the projections of its vectors
			is measured, too, on labelled items whose labels are left out: their sum, a
			weighted sum or one of them alone, less a part of the mean aim of the training
			items, or whole.
			--fusion gives it instead: sum, or the name of a modality, which then makes the
			codes alone wherever an item has it.

			Training makes a space of codes. The first one of a collection is active:
			searches use it. A later one stands by, and is kept current like the others,
			until it is activated, so that it can be compared with the active one before
			(search --space, eval --space); with --activate it replaces that one at once.
			Until training is done everything stays as it was, also if it fails or is
			interrupted. Spaces that are of no use any more take space, and time of every
			write: drop deletes them.

			Of what it prints: bit balance is 0 where every bit splits the items in
			halves and 1 where all bits are constant; constant bits tell nothing apart;
			distinct codes are usually few, one for each set of labels. Condition is an
			estimate of how ill-conditioned the regression of a modality is; from 1e+12 on
			there is a warning.

			Without labels nothing has to be learned: search compares vectors, and index makes
			that fast. Codes of vectors alone serve within a radius, for export and in
			index-only copies, and across modalities. --method itq makes them of principal
			axes that are turned to fit, for vectors of one modality. cca-itq is for items
			with several modalities: it takes directions in which the vectors of an item
			correlate, so that a text finds the picture that it came with. Both learn from a
			sample of at most 20,000 items, whatever their labels; --bits is 256 and
			--features l2 unless given, and what else is about labels is refused. What is
			near by such codes is near by the cosine of vectors: the longer they are the
			more so. There is nothing to update: train again when stats shows drift. search
			--recall looks at vectors instead.

			When items get labels later (import --merge --labels), train again, without
			--method: it learns from the labelled items, in a space beside the other.
			search --space and eval --space look at either.
			docs/TUNING.md says from how many labels on which of them finds more.`),
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
				if t.Method.LabelFree() {
					e.printLabelFree(c, t, stats)
				} else {
					unlabelled, err := c.CountWhere(cmd.Context(), "NOT has(label)")
					if err != nil { // the training has succeeded
						e.Warnf("warning: items without labels are not counted: %v", err)
					}
					e.printTraining(c, t, stats, unlabelled)
				}
				e.Printf("\n%s\n", spaceHint(args[0], c.Name(), t.Space, t.Active))
				return nil
			})
		},
	}
	o.register(cmd)
	o.Settings.Register(cmd.Flags())
	cmd.Flags().BoolVar(&o.Activate, "activate", false, "make it the active space, as the first training always does")
	usage.Matter(cmd.Flags(), "bits", "method", "features", "map", "anchors", "label-embedding", "rows", "seed", "activate", "collection", "json")
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
		return exit.Usagef("%s", strings.Replace(err.Error(), "label embedding (LabelEmbedding, --label-embedding)", "--label-embedding", 1))
	case errors.Is(err, model.ErrNoLabels):
		return exit.Failedf("%w, and fddhdb index makes that fast. Labels come in with import --labels or put --labels", err)
	case errors.Is(err, model.ErrOneClass):
		return exit.Failedf("%w, or learn without labels, from all items: --method itq or cca-itq", err)
	case errors.Is(err, fit.ErrNoItems), errors.Is(err, fit.ErrOneVector), errors.Is(err, fit.ErrUnpaired), errors.Is(err, model.ErrNotFinite), errors.As(err, &singular):
		return exit.Failedf("%w", err)
	}
	return err
}

func (e *env) printTraining(c *db.Collection, t *db.Training, s *db.CollectionStats, unlabelled int) {
	e.Printf("trained collection %s on %s with %s: space %d, revision %d\n",
		c.Name(), term.Plural(t.TrainItems, "labelled item", "labelled items"), term.Plural(t.Labels, "label", "labels"), t.Space, t.Revision)
	if unlabelled > 0 {
		e.Printf("%s without labels get codes by the vectors that they have\n",
			term.Plural(unlabelled, "item", "items"))
	}
	e.Printf("\n")
	var rows [][]any
	for _, name := range t.LeftOut {
		e.Warnf("warning: no labelled item has a vector of modality %q, so nothing is learned of it: put labels on items that have one, and train again, before searching by it", name)
	}
	for _, m := range s.Modalities {
		ch, learned := t.Chosen[m.Name]
		if !learned {
			continue
		}
		var anchors, width, sigma any = term.NoCell, term.NoCell, term.NoCell
		if ch.Map != model.MapLinear {
			anchors, width, sigma = term.CountCell(ch.Anchors), term.Setting(ch.Width), term.Setting(ch.Sigma)
		}
		rows = append(rows, []any{m.Name, ch.FeatureMap.String(), ch.Map.String(), anchors, width, sigma, term.Setting(ch.Gamma), fmt.Sprintf("%.1g", ch.Condition), term.CountCell(ch.Items)})
	}
	e.PrintTable([]term.Column{term.Left("modality"), term.Left("features"), term.Left("map"), term.Right("anchors"), term.Right("width"), term.Right("sigma"), term.Right("gamma"), term.Right("condition"), term.Right("items")}, rows)
	e.Printf("\n")
	e.printChoices(t, s)
	e.printEmbedding(t)
	e.printFusion(t, s)
	aim := aimText(t.Aim.String(), &t.Prior)
	if t.Aim == model.AimLabels {
		aim += ", centre " + term.Setting(t.Centre)
	}
	pairs := []term.Pair{
		term.NewPair("bits", fmt.Sprint(t.Bits)),
		term.NewPair("method", fmt.Sprintf("%s, %s", t.Method, term.Plural(t.Sweeps, "sweep", "sweeps"))),
		term.NewPair("aim", aim),
		term.NewPair("bit balance", fmt.Sprintf("%.3f", t.BitBalance)),
		term.NewPair("constant bits", constantBits(t)),
		term.NewPair("distinct codes", fmt.Sprintf("%s of the labels, %s of all items", term.Thousands(t.DistinctCodes), term.Thousands(s.DistinctCodes))),
		term.NewPair("items with a code", fmt.Sprintf("%s of %s", term.Thousands(s.CodedItems), term.Thousands(s.Items))),
	}
	e.PrintPairs(append(pairs,
		term.NewPair("memory", fmt.Sprintf("about %s MiB", term.Thousands(max(1, t.MemoryBytes>>20)))),
		term.NewPair("seconds", phases(t.Seconds))))
}

// printChoices prints the settings that were tried: the best gamma for each pair of
// features and map, and how far below the choice it is.
func (e *env) printChoices(t *db.Training, s *db.CollectionStats) {
	var rows [][]any
	for _, m := range s.Modalities {
		choice := t.Choices[m.Name]
		switch {
		case choice == nil:
			continue
		case choice.Unfit != "":
			e.Printf("nothing is chosen for %s, which gets the defaults: %s\n\n", m.Name, choice.Unfit)
			continue
		}
		refined := choice.Refinements()
		for _, tried := range append(choice.Settings(), refined...) {
			note := ""
			switch {
			case tried.FeatureMap != choice.FeatureMap || tried.Map != choice.Map:
			case len(refined) > 0 && !tried.Refined:
				note = "taken"
			case !tried.Refined || tried.Width == choice.Width:
				note = "chosen"
			}
			var anchors, width any = term.NoCell, term.NoCell
			if tried.Map != model.MapLinear {
				anchors, width = term.CountCell(tried.Anchors), term.Setting(tried.Width)
			}
			rows = append(rows, []any{
				m.Name, tried.FeatureMap.String(), tried.Map.String(), anchors, width, term.Setting(tried.Gamma),
				term.NumberCell(tried.MAP, 4), term.NumberCell(tried.StdErr, 4), note,
			})
		}
	}
	if len(rows) > 0 {
		e.PrintTable([]term.Column{term.Left("tried"), term.Left("features"), term.Left("map"), term.Right("anchors"), term.Right("width"), term.Right("gamma"), term.Right("mAP"), term.Right("+-"), term.Left("")}, rows)
		e.Printf("\n")
	}
	for _, m := range s.Modalities {
		choice := t.Choices[m.Name]
		if choice == nil {
			continue
		}
		against := func(what string, d *fit.Margin) {
			if d != nil {
				e.Printf("%s: %s +- %.4f against %s (%v, %v, gamma %s)\n", m.Name, term.Difference(d.MAP), d.StdErr, what, d.FeatureMap, d.Map, term.Setting(d.Gamma))
			}
		}
		against("the default", choice.OverDefault)
		against("the best other", choice.OverRunnerUp)
	}
	if c := t.CentreChoice; c != nil {
		var tried []string
		for _, x := range c.Tried {
			tried = append(tried, fmt.Sprintf("%.4f with %s, %.4f without labels", x.MAP, term.Setting(x.Centre), x.Unlabelled))
		}
		e.Printf("centre: %s, mAP %s\n", term.Setting(c.Chosen), strings.Join(tried, "; "))
	}
	if p := t.PriorChoice; p != nil {
		var tried []string
		for _, x := range p.Tried {
			tried = append(tried, fmt.Sprintf("%.4f with %s", x.MAP, term.Setting(x.Prior)))
		}
		e.Printf("prior: %s, mAP %s\n", term.Setting(p.Chosen), strings.Join(tried, ", "))
	}
	switch st := t.Start; {
	case st.MAP == nil && st.Chosen == 1:
	case st.MAP == nil:
		e.Printf("codes: start %d, as given\n", st.Chosen)
	case st.Chosen == 1:
		e.Printf("codes: the first of %d starts, mAP %.4f\n", len(st.MAP), st.MAP[0])
	default:
		e.Printf("codes: start %d of %d, mAP %.4f against %.4f of the first\n", st.Chosen, len(st.MAP), st.MAP[st.Chosen-1], st.MAP[0])
	}
	if len(rows) > 0 {
		e.Printf("\n")
	}
}

// aimText returns what projections learn of labels in words. The aim codes has no prior.
func aimText(aim string, prior *float64) string {
	if aim == model.AimCodes.String() || prior == nil {
		return aim
	}
	return fmt.Sprintf("%s, prior %s", aim, term.Setting(*prior))
}

// phases returns the time of a training in words, longest phases first.
func phases(by map[string]float64) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(by)), func(n string) bool { return n == "total" })
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case by[a] > by[b]:
			return -1
		case by[a] < by[b]:
			return 1
		}
		return 0
	})
	var parts []string
	for _, n := range names {
		if by[n] >= .005 {
			parts = append(parts, fmt.Sprintf("%s %.2f", n, by[n]))
		}
	}
	total := fmt.Sprintf("%.2f", by["total"])
	if len(parts) == 0 {
		return total
	}
	return total + ": " + strings.Join(parts, ", ")
}
