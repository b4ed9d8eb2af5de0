package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

func modelsCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	var pin, unpin uint32
	cmd := &cobra.Command{
		Use:     "models DIR",
		Short:   "List the spaces of codes and the revisions of their models",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Models lists the spaces of codes that a collection has, and of each the
			revisions that are kept: the one that training made, those that are pinned, and
			the last 8.

			A space is what train or reindex makes: a code for every item, comparable with the
			others in it. Searches use the active space. Others stand by: compare them (--space),
			activate them or drop them. A revision is what update makes of the projections of a
			space; the codes that items have stay.

			Of a space, parent is the space whose model it took over. The aim is what its
			projections learn of labels (see train), with the prior. Taught counts the items that
			its projections have learned from, pending those that have not taught yet.

			Of a revision, drift says for each modality how far new items were from those of the
			training, before they taught: how much more of what labels teach the projections miss,
			on a sample. It is near 0 for items like those of the training. Above 0.2 the data has
			moved away from the model: train again, and compare. A space that was learned without
			labels has one revision; stats tells of its drift. On a terminal a line of blocks shows
			how drift has gone.

			With --json it prints an object a line for each space, with the report of its training
			and checksums.`),
		Example: usage.Example(`
			fddhdb models wiki.db
			fddhdb models wiki.db --space 1 --json
			fddhdb models wiki.db --pin 3`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			switch {
			case flags.Changed("pin") && flags.Changed("unpin"):
				return exit.Usagef("models takes one of --pin and --unpin, not both")
			case flags.Changed("pin") && pin == 0, flags.Changed("unpin") && unpin == 0:
				return exit.Usagef("--pin and --unpin: revisions are numbered from 1")
			}
			with := e.lookAtCollection
			if pin != 0 || unpin != 0 {
				with = e.withCollection
			}
			return with(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				for _, flag := range []struct {
					name     string
					revision uint32
				}{{"--pin", pin}, {"--unpin", unpin}} {
					if flag.revision == 0 {
						continue
					}
					if err := c.PinRevision(cmd.Context(), space.n, flag.revision,
						flag.name == "--pin"); err != nil {
						return revisionError(flag.name, flag.revision, err)
					}
				}
				items, err := c.Count(cmd.Context(), "")
				if err != nil {
					return err
				}
				spaces, err := c.Spaces(cmd.Context())
				if err != nil {
					return err
				}
				if space.given() {
					spaces = only(spaces, space.n)
				}
				if !o.json {
					e.printSpaces(c.Name(), spaces, items)
					return nil
				}
				for _, s := range spaces {
					if err := e.PrintJSON(s); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	o.register(cmd)
	term.PrintsObjects(cmd)
	space.register(cmd, "only space `N`; with --pin and --unpin the space (default: the active one)")
	cmd.Flags().Uint32Var(&pin, "pin", 0, "keep revision `R`, however many come after it")
	cmd.Flags().Uint32Var(&unpin, "unpin", 0,
		"keep revision `R` no longer than others; it goes when the next one comes")
	return cmd
}

// only returns the space with number n, in a slice.
func only(spaces []db.SpaceInfo, n db.Space) []db.SpaceInfo {
	for i := range spaces {
		if spaces[i].Space == n {
			return spaces[i : i+1]
		}
	}
	return nil
}

// printSpaces prints the spaces of a collection of so many items, each followed by its
// revisions.
func (e *env) printSpaces(collection string, spaces []db.SpaceInfo, items int) {
	if len(spaces) == 0 {
		e.Printf("collection %s has no model yet: run fddhdb train\n", collection)
		return
	}
	var rows [][]any
	for i := range spaces {
		s := &spaces[i]
		rows = append(rows, []any{
			s.Space, spaceState(s, items), s.Revision, term.OrNoCell(s.Parent), term.TimeCell(s.Created),
			s.Bits,
			term.CountCell(s.Items), term.CountCell(s.Codes), term.CountCell(s.Taught),
			term.CountCell(s.Pending), term.BytesCell(s.ModelBytes),
		})
	}
	e.PrintTable([]term.Column{term.Right("space"), term.Left("state"), term.Right("revision"),
		term.Right("parent"), term.Left("created"), term.Right("bits"),
		term.Right("items"), term.Right("codes"), term.Right("taught"), term.Right("pending"),
		term.Right("model")}, rows)
	for i := range spaces {
		s := &spaces[i]
		if len(s.Revisions) == 0 {
			continue // the items bring their codes
		}
		e.Printf("\nspace %d", s.Space)
		if s.Training != nil && s.Training.Method.LabelFree() {
			e.Printf(", without labels, method %v", s.Training.Method)
		}
		if s.Aim != "" {
			e.Printf(", aim %s", aimText(s.Aim, s.Prior))
		}
		if s.Checksum != "" {
			e.Printf(", checksum %s", s.Checksum)
		}
		if s.Recode > 0 {
			e.Printf(", %s still to get the code of new labels: fddhdb update",
				term.Plural(s.Recode, "item", "items"))
		}
		e.Printf("\n")
		e.printRevisions(s)
		if e.ChartsShown() {
			for _, line := range chart.Drift(s) {
				e.Printf("%s\n", line)
			}
		}
	}
}

// spaceState returns the purpose of a space in words.
func spaceState(s *db.SpaceInfo, items int) string {
	switch {
	case s.State == db.SpaceBuilding:
		return fmt.Sprintf("building, %d%%", 100*min(s.Built, items)/max(items, 1))
	case s.Previous:
		return string(s.State) + ", was active"
	}
	return string(s.State)
}

// printRevisions prints the revisions of a space, a line for each revision and
// modality.
func (e *env) printRevisions(s *db.SpaceInfo) {
	var rows [][]any
	for i := range s.Revisions {
		r := &s.Revisions[i]
		of := []any{r.Revision, term.OrNoCell(r.Parent), term.TimeCell(r.Created), revisionTeacher(s, r),
			term.CountCell(r.Items), term.CountCell(r.Unlabelled), term.CountCell(r.Forgotten)}
		note := ""
		if r.Pinned {
			note = "pinned"
		}
		if r.Revision == s.Revision {
			note = joined("in use", note)
		}
		names := slices.Sorted(maps.Keys(r.Drift))
		if len(names) == 0 {
			rows = append(rows, slices.Concat(of, []any{term.TextCell(""), term.NoCell, note}))
		}
		for _, name := range names {
			x := r.Drift[name]
			if (db.Drift{name: x}).TrainAgain() {
				note = joined("train again", note)
			}
			rows = append(rows, slices.Concat(of, []any{term.TextCell(name), term.NumberCell(x, 3), note}))
			if note = ""; !e.Flat() {
				of = []any{"", "", "", "", "", "", ""}
			}
		}
	}
	e.PrintTable([]term.Column{term.Right("revision"), term.Right("parent"), term.Left("created"),
		term.Left("teacher"),
		term.Right("taught"), term.Right("unlabelled"), term.Right("forgotten"),
		term.Left("modality"), term.Right("drift"), term.Left("")}, rows)
}

// revisionTeacher returns the teacher of items without labels.
func revisionTeacher(s *db.SpaceInfo, r *report.RevisionInfo) string {
	switch {
	case r.Parent == 0 && s.Parent != 0:
		return "reindex"
	case r.Parent == 0:
		return "training"
	case r.Teacher == "":
		return term.OrDash(r.Reason) // the revision is not from items
	case r.Unlabelled > 0 && r.Lead != "":
		return r.Teacher + ", " + r.Lead
	}
	return r.Teacher
}

// orNone returns the number of a parent as text.
func orNone(n db.Space) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// joined joins two texts, without empty ones.
func joined(a, b string) string {
	if b == "" {
		return a
	}
	return a + ", " + b
}

// export --model and import --model carry a model from one database to another. They are ways of
// their own through verbs that are else about items.

// aloneOf refuses the flags of a verb that are given beside --model and are not about it.
func aloneOf(cmd *cobra.Command, about ...string) error {
	var others []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, name := range append(about, "model", "collection", "json", "mode") {
			if f.Name == name {
				return
			}
		}
		others = append(others, "--"+f.Name)
	})
	if len(others) > 0 {
		return exit.Usagef("--model is about a model and not about items: %s does not go with it",
			strings.Join(others, ", "))
	}
	return nil
}

// exportedModel is what export --model --json prints.
type exportedModel struct {
	Space db.Space `json:"space"`
	Bits  int      `json:"bits"`
	Bytes int64    `json:"bytes"`
}

// exportModel writes the model of a space to a file.
func (e *env) exportModel(cmd *cobra.Command, o *exportOptions, dir string) error {
	if err := aloneOf(cmd, "space"); err != nil {
		return err
	}
	if o.json && o.model == outfile.Stdout {
		return exit.Usagef("%s: standard output cannot be the file and have the JSON of --json or --mode, too: leave one of them out", outfile.Stdout)
	}
	return e.lookAtCollection(dir, &o.common, func(_ *db.DB, c *db.Collection) error {
		stats, err := c.Stats()
		if err != nil {
			return err
		}
		files := outfile.NewSet(e.Stdout)
		defer files.Discard()
		f, err := files.Create(o.model)
		if err != nil {
			return err
		}
		n := &countingWriter{w: f}
		if err := c.ExportModel(cmd.Context(), n); err != nil {
			return err
		}
		if err := files.Commit(); err != nil {
			return err
		}
		done := fmt.Sprintf("exported the model of space %d: codes of %d bits, %s", stats.Space, stats.Bits,
			term.Size(n.n))
		switch {
		case o.json:
			return e.PrintJSON(exportedModel{stats.Space, stats.Bits, n.n})
		case o.model == outfile.Stdout:
			e.Notef("%s", done)
		default:
			e.Printf("%s\n", done)
		}
		return nil
	})
}

// A countingWriter passes bytes on to w. n is how many it has passed on.
type countingWriter struct {
	w io.Writer
	n int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.n += int64(n)
	return n, err
}

// importModel makes a space with the model of a file.
func (e *env) importModel(cmd *cobra.Command, o *importOptions, dir string) error {
	if err := aloneOf(cmd); err != nil {
		return err
	}
	f, err := os.Open(o.model)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return exit.Failedf("--model %s: %w", o.model, err)
	}
	defer f.Close()
	bar := e.NewProgress()
	defer bar.End()
	return e.withCollection(dir, &o.common, func(_ *db.DB, c *db.Collection) error {
		t, err := c.ImportModel(cmd.Context(), bufio.NewReader(f),
			db.ImportModelOptions{Progress: bar.Report})
		bar.End()
		switch {
		case errors.Is(err, db.ErrInvalid): // the command line is right
			return exit.Failedf("--model %s: %s", o.model, exit.Reason(err.Error()))
		case err != nil:
			return err
		case o.json:
			return e.PrintJSON(t)
		}
		e.Printf("space %d of collection %s: codes of %d bits, by a model that %s with %s taught; %s have codes\n", t.Space, c.Name(), t.Bits,
			term.Plural(t.TrainItems, "item", "items"), term.Plural(t.Labels, "label", "labels"),
			term.Plural(t.Items, "item", "items"))
		e.Printf("%s\n", spaceHint(dir, c.Name(), t.Space, t.Active))
		return nil
	})
}

func activateCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	cmd := &cobra.Command{
		Use:     "activate DIR --space N",
		Short:   "Make another space of codes the active one",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Activate makes the space N, which stands by, the one that searches use, at once
			and whole. The one before stands by from then on, is kept current by every write
			like any other, and rollback goes back to it. Models lists the spaces; search
			and eval with --space compare them beforehand.`),
		Example: usage.Example(`
			fddhdb eval wiki.db --space 2 --vectors text=query_text.npy --labels query_labels.npy
			fddhdb activate wiki.db --space 2`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !space.given() {
				return exit.Usagef("--space N is missing: which space to activate; fddhdb models %s lists them", args[0])
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				before, err := c.Stats()
				if err != nil {
					return err
				}
				if err := c.Activate(cmd.Context(), space.n); err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(activationJSON{space.n, before.Space})
				}
				if before.Space == space.n {
					e.Printf("space %d of collection %s is the active one already\n", space.n, c.Name())
					return nil
				}
				e.Printf("space %d of collection %s is the active one now; space %d stands by, and rollback goes back to it\n",
					space.n, c.Name(), before.Space)
				return nil
			})
		},
	}
	o.register(cmd)
	space.register(cmd, "the space to activate, by number `N`")
	return cmd
}

// activationJSON is the --json form of activate and rollback.
type activationJSON struct {
	Space  db.Space `json:"space"`  // active now
	Before db.Space `json:"before"` // active before; the same if nothing has changed
}

func rollbackCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	var revision uint32
	cmd := &cobra.Command{
		Use:     "rollback DIR",
		Short:   "Go back to the space, or to a revision, before",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Rollback makes the space that was active before the present one active again, at
			once and whole: it takes back an activate, or a train --activate. A second one
			takes back the first.

			--revision R takes back updates instead. It puts the projections of revision R back
			in use, as a new revision of the active space or of --space N. Models lists the
			revisions that are kept. What items have taught since is taken out, and they teach
			again only if you write them again. You can put back a later revision too, but the
			next update starts from what is left. Labels that update --grow-labels has given a
			direction stay: no revision from before that can come back.`),
		Example: usage.Example(`
			fddhdb rollback wiki.db
			fddhdb rollback wiki.db --revision 3`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			toRevision := cmd.Flags().Changed("revision")
			switch {
			case toRevision && revision == 0:
				return exit.Usagef("--revision 0: revisions are numbered from 1")
			case space.given() && !toRevision:
				return exit.Usagef("--space goes with --revision: fddhdb activate %s --space %d makes that space the active one", args[0], space.n)
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				if toRevision {
					return e.restoreRevision(cmd.Context(), c, space.n, revision, o.json)
				}
				return e.rollback(cmd.Context(), c, o.json)
			})
		},
	}
	o.register(cmd)
	space.register(cmd, "with --revision: the space, by number `N` (default: the active one)")
	cmd.Flags().Uint32Var(&revision, "revision", 0, "put revision `R` of the space back in use")
	return cmd
}

// rollback returns to the space before.
func (e *env) rollback(ctx context.Context, c *db.Collection, json bool) error {
	before, err := c.Stats()
	if err != nil {
		return err
	}
	now, err := c.Rollback(ctx)
	if errors.Is(err, db.ErrInvalid) {
		return exit.Failedf("%w", err) // the command line is right; there is no earlier space
	}
	if err != nil {
		return err
	}
	if json {
		return e.PrintJSON(activationJSON{now, before.Space})
	}
	e.Printf("space %d of collection %s is the active one again; space %d stands by\n", now, c.Name(),
		before.Space)
	return nil
}

// restoreRevision makes a revision current again.
func (e *env) restoreRevision(ctx context.Context, c *db.Collection, space db.Space, revision uint32,
	json bool) error {
	u, err := c.RestoreRevision(ctx, space, revision)
	if err != nil {
		return revisionError("--revision", revision, err)
	}
	if json {
		return e.PrintJSON(u)
	}
	e.Printf("space %d of collection %s: the projections of revision %d are back in use, as revision %d\n",
		u.Space, c.Name(), revision, u.Revision)
	if n := u.Forgotten; n > 0 {
		e.Printf("%s taken out again; written again, or by training, they teach\n",
			term.Plural(n, "item that has taught since is", "items that have taught since are"))
	}
	return nil
}

// revisionError adds the flag to the error of a revision that is not kept.
func revisionError(flag string, revision uint32, err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return exit.Usagef("%s %d: %s; fddhdb models lists those that are kept", flag, revision,
			exit.Reason(err.Error()))
	}
	if errors.Is(err, db.ErrInvalid) {
		return exit.Failedf("%w", err) // the command line is right
	}
	return err
}

func reindexCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	var opt db.ReindexOptions
	cmd := &cobra.Command{
		Use:     "reindex DIR",
		Short:   "Make the codes of all items again, in a new space",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Reindex makes a new space with the latest model of another one, and a code in it for
			every item. Items without labels then have the codes that the projections of today
			give. The items and the other space stay as they are. When the new space is complete
			it stands by: activate makes searches use it.

			An interrupted reindex goes on in the background when the database is opened next,
			and reindex without --space then waits for it. Models shows how far a space is; drop
			gives it up.`),
		Example: usage.Example(`
			fddhdb reindex wiki.db
			fddhdb reindex wiki.db --space 1`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				bar := e.NewProgress()
				defer bar.End()
				begun := false
				opt.Space = space.n
				opt.Progress = func(stage string, done, total int64) {
					begun = true
					bar.Report(stage, done, total)
				}
				r, err := c.Reindex(cmd.Context(), opt)
				bar.End()
				if begun && errors.Is(err, context.Canceled) {
					return exit.Wrap(err, "what is done is kept: reindex goes on with it, fddhdb models shows how far it is")
				}
				if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(r)
				}
				e.printReindexing(args[0], &o, r)
				return nil
			})
		},
	}
	o.register(cmd)
	space.register(cmd, "the space whose model it takes, by number `N` (default: the one that is being built, or the active one)")
	return cmd
}

func (e *env) printReindexing(dir string, o *common, r *db.Reindexing) {
	from := ""
	if r.Parent != 0 {
		from = " from space " + orNone(r.Parent)
	}
	e.Printf("space %d of collection %s made%s: %s with a code, in %s\n",
		r.Space, o.collection, from, term.Plural(r.Items, "item", "items"), term.Seconds(r.Seconds))
	e.Printf("%s\n", spaceHint(dir, o.collection, r.Space, r.Active))
}

// spaceHint returns whether searches use a new space, and if not how to make them.
func spaceHint(dir, collection string, space db.Space, active bool) string {
	if active {
		return "it is active: searches use it"
	}
	of := ""
	if collection != "main" {
		of = " --collection " + collection
	}
	n := orNone(space)
	return "it stands by: compare it by search and eval with --space " + n + ",\n" +
		"and make it the active one by fddhdb activate " + dir + of + " --space " + n
}

func updateCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	var teacher string
	var opt db.UpdateOptions
	cmd := &cobra.Command{
		Use:     "update DIR",
		Short:   "Let the model learn from the items since its training",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Update lets the projections of a space learn from the items that were written since
			its training or last update, and makes a revision of it. The codes that items have
			stay, and stay comparable. Queries and new items are encoded by the new projections.
			Items that have taught, and were replaced or deleted since, are taken out again.

			Items with a label that the model knows always teach what its aim says: the
			directions of their labels, or the code.
			--teacher says who teaches the others:
			  auto      the modality that finds labelled items best, if that is better:
			            it is tried on a copy, and adopted only if labelled items that are
			            held back are found better for it
			  labels    nobody: they wait for another update
			  modality  that modality, untried
			  self      each modality itself

			A label that training has not seen is kept with its items, which count as
			unlabelled if they have no other. --grow-labels gives each such label a
			direction of its own in the code space, and its items new codes. There are as
			many directions left as bits exceed the labels, or one more; for more, train
			again.

			Models shows the revisions, and whether the data moves away from the model;
			rollback --revision takes one back.`),
		Example: usage.Example(`
			fddhdb update wiki.db
			fddhdb update wiki.db --teacher labels --json
			fddhdb update wiki.db --grow-labels`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opt.Teacher, err = db.ParseTeacher(teacher); err != nil {
				return exit.Usagef("--teacher %q: auto, labels, modality and self are possible", teacher)
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				opt.Space = space.n
				bar := e.NewProgress()
				defer bar.End()
				opt.Progress = bar.Report
				u, err := c.Update(cmd.Context(), opt)
				bar.End()
				if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(u)
				}
				e.printUpdate(c.Name(), u)
				return nil
			})
		},
	}
	o.register(cmd)
	space.register(cmd, "the space to update, by number `N` (default: the active one)")
	cmd.Flags().StringVar(&teacher, "teacher", "auto",
		"`WHO` teaches items without labels: auto, labels, modality or self")
	cmd.Flags().BoolVar(&opt.GrowLabels, "grow-labels", false,
		"give labels that training has not seen codes of their own first")
	return cmd
}

// printUpdate prints the result of an update in words.
func (e *env) printUpdate(collection string, u *db.Update) {
	if u.Revised {
		e.Printf("space %d of collection %s is at revision %d now, in %s\n", u.Space, collection, u.Revision,
			term.Seconds(u.Seconds))
	} else {
		e.Printf("space %d of collection %s stays at revision %d\n", u.Space, collection, u.Revision)
	}
	if n := u.Labelled; n > 0 {
		their := "their"
		if n == 1 {
			their = "its"
		}
		e.Printf("%s taught %s labels\n", term.Plural(n, "labelled item has", "labelled items have"), their)
	}
	if n := u.Unlabelled; n > 0 {
		by := "each modality itself"
		if u.Lead != "" {
			by = "modality " + u.Lead
		}
		e.Printf("%s taught, led by %s\n", term.Plural(n, "item without a known label has",
			"items without a known label have"), by)
	}
	if n := u.Refused; n > 0 {
		e.Printf("%s refused, and stay pending\n", term.Plural(n, "item without a known label is",
			"items without a known label are"))
	}
	if n := u.Skipped - u.Refused; n > 0 {
		e.Printf("%s taught nothing\n", term.Plural(n, "item has", "items have"))
	}
	if u.Reason != "" {
		e.Printf("why: %s\n", u.Reason)
	}
	if n := u.Forgotten; n > 0 {
		e.Printf("%s taken out again: stored anew since, or deleted\n",
			term.Plural(n, "item that had taught is", "items that had taught are"))
	}
	if len(u.Grown) > 0 {
		e.Printf("%s a direction now: %s\n", term.Plural(len(u.Grown), "label has", "labels have"),
			labelNames(u.Grown))
	}
	if n := u.Recoded; n > 0 {
		e.Printf("%s another code now\n", term.Plural(n, "item has", "items have"))
	}
	if len(u.NoDirection) > 0 {
		e.Printf("no direction is left for %s: %s; train again, with more bits if there are more labels than bits\n",
			term.Plural(len(u.NoDirection), "label", "labels"), labelNames(u.NoDirection))
	}
	for _, name := range slices.Sorted(maps.Keys(u.Drift)) {
		e.Printf("drift of %s: %s\n", name, driftText(name, u.Drift[name]))
	}
	if u.Items+u.Skipped+u.Forgotten+u.Recoded+len(u.Grown) == 0 {
		e.Printf("there is nothing new to learn from\n")
	}
}

// labelNames lists the first of many labels.
func labelNames(names []string) string {
	const most = 20
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], " and "+term.Plural(n, "other", "others")
	}
	return term.Plain(strings.Join(names, ", ")) + more
}
