package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

func modelsCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupSpaces, "models DIR", "List the spaces of codes and the revisions of their models", `
		Models lists the spaces of codes that a collection has, and of each the
		revisions that are kept: the one that training made, and the last 8.

		A space is what train or reindex makes: a code for every item, comparable with the
		others in it. Searches use the active space. Others stand by: compare them (--space),
		activate them or drop them. A revision is what update makes of the projections of a
		space; the codes that items have stay.

		Of a space, parent is the space whose model it took over. Taught counts the items that
		its projections have learned from, pending those that have not taught yet.

		Drift says how far new items were from those of the training, before they taught: how
		much more of what labels teach the projections miss, on a sample, at most over the
		modalities. It is near 0 for items like those of the training. Above 0.2 the data has
		moved away from the model: train again, and compare. A space that was learned without
		labels has one revision; stats tells of its drift.

		With --json it prints an object a line for each space, with the drift of each modality
		and the report of its training.`, `
		fddhdb models wiki.db
		fddhdb models wiki.db --space 1 --json`).
		OnCollection().PrintsLines().
		OfSpace("only space `N`")
	return v.Does(func() error {
		return v.Look(func() error {
			items, err := v.Collection.Count(v.Ctx, "")
			if err != nil {
				return err
			}
			spaces, err := v.Collection.Spaces(v.Ctx)
			if err != nil {
				return err
			}
			spaces = slices.DeleteFunc(spaces,
				func(s report.SpaceInfo) bool { return v.Given("space") && s.Space != v.Space })
			return run.List(v, spaces, func() { printSpaces(v.Env, v.Collection.Name(), spaces, items) })
		})
	})
}

// printSpaces prints the spaces of a collection of so many items, each followed by its
// revisions.
func printSpaces(e *run.Env, collection string, spaces []report.SpaceInfo, items int) {
	if len(spaces) == 0 {
		e.Printf("%s\n", e.At.Words(fmt.Sprintf("collection %s has no model yet: run fddhdb train", collection)))
		return
	}
	var rows [][]any
	for i := range spaces {
		s := &spaces[i]
		state := string(s.State)
		switch {
		case s.State == report.SpaceBuilding:
			state = fmt.Sprintf("building, %d%%", 100*min(s.Built, items)/max(items, 1))
		case s.Previous:
			state += ", was active"
		}
		row := []any{
			s.Space, state, s.Revision, term.OrNoCell(s.Parent), term.TimeCell(s.Created), s.Bits,
			term.CountCell(s.Items), term.CountCell(s.Codes), term.CountCell(s.Taught),
			term.CountCell(s.Pending), term.BytesCell(s.ModelBytes),
		}
		if s.Created.IsZero() { // a cluster does not know these
			for _, i := range []int{4, 7, 8, 9, 10} {
				row[i] = term.NoCell
			}
		}
		rows = append(rows, row)
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
		if s.Recode > 0 {
			e.Printf(", %s still to get the code of new labels: %s",
				term.Plural(s.Recode, "item", "items"), e.At.Words("fddhdb update"))
		}
		e.Printf("\n")
		printRevisions(e, s)
	}
}

// printRevisions prints the revisions of a space, each with its largest drift.
func printRevisions(e *run.Env, s *report.SpaceInfo) {
	var rows [][]any
	for i := range s.Revisions {
		r := &s.Revisions[i]
		drift := term.NoCell
		if worst := slices.Collect(maps.Values(r.Drift)); len(worst) > 0 {
			drift = term.NumberCell(slices.Max(worst), 3)
		}
		var notes []string
		for note, is := range map[string]bool{"in use": r.Revision == s.Revision,
			"train again": r.Drift.TrainAgain()} {
			if is {
				notes = append(notes, note)
			}
		}
		slices.Sort(notes)
		rows = append(rows, []any{r.Revision, term.OrNoCell(r.Parent), term.TimeCell(r.Created),
			revisionTeacher(s, r), term.CountCell(r.Items), drift, strings.Join(notes, ", ")})
	}
	e.PrintTable([]term.Column{term.Right("revision"), term.Right("parent"), term.Left("created"),
		term.Left("teacher"), term.Right("taught"), term.Right("drift"), term.Left("")}, rows)
}

// revisionTeacher returns the teacher of items without labels.
func revisionTeacher(s *report.SpaceInfo, r *report.RevisionInfo) string {
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

// export --model and import --model carry a model from one database to another. They are ways of
// their own through verbs that are else about items.

// exportModel writes the model of a space to a file.
func exportModel(v *run.Verb, path string) error {
	err := v.AloneOf("space")
	if err == nil {
		err = v.CheckStdout(path == outfile.Stdout)
	}
	if err != nil {
		return err
	}
	return v.Look(func() error {
		stats, err := v.Collection.Stats(v.Ctx)
		if err != nil {
			return err
		}
		var model bytes.Buffer
		if err := v.Collection.ExportModel(v.Ctx, &model); err != nil {
			return err
		}
		files := outfile.NewSet(v.Stdout)
		defer files.Discard()
		f, err := files.Create(path)
		if err != nil {
			return err
		}
		size := int64(model.Len())
		_, _ = model.WriteTo(f) // Commit meets the error
		if err := files.Commit(); err != nil {
			return err
		}
		return v.TellBeside(path == outfile.Stdout,
			map[string]any{"space": stats.Space, "bits": stats.Bits, "bytes": size},
			"exported the model of space %d: codes of %d bits, %s", stats.Space, stats.Bits, term.Size(size))
	})
}

// activationForm is the --json form of activate and rollback. Before is the same where nothing has changed.
type activationForm struct {
	Space  db.Space `json:"space"` // active now
	Before db.Space `json:"before"`
}

func activateCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupSpaces, "activate DIR --space N", "Make another space of codes the active one", `
		Activate makes the space N, which stands by, the one that searches use, at once
		and whole. The one before stands by from then on, is kept current by every write
		like any other, and rollback goes back to it. Models lists the spaces; search
		and eval with --space compare them beforehand.`, `
		fddhdb eval wiki.db --space 2 --vectors text=query_text.npy --labels query_labels.npy
		fddhdb activate wiki.db --space 2`).
		OnCollection().OfSpace("the space to activate, by number `N`")
	return v.Does(func() error {
		if !v.Given("space") {
			return exit.Usagef("--space N is missing: which space to activate; fddhdb models %s lists them", v.Dir)
		}
		return v.Change(func() error {
			before, err := v.Collection.Stats(v.Ctx)
			if err == nil {
				err = v.Collection.Activate(v.Ctx, v.Space)
			}
			if err != nil {
				return err
			}
			change := fmt.Sprintf("now; space %d stands by, and rollback goes back to it", before.Space)
			switch {
			case before.Space == v.Space:
				change = "already"
			case v.At != nil:
				change = fmt.Sprintf("now; space %d stands by", before.Space)
			}
			return v.Tell(activationForm{v.Space, before.Space}, "space %d of collection %s is the active one %s",
				v.Space, v.Collection.Name(), change)
		})
	})
}

func rollbackCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupSpaces, "rollback DIR", "Go back to the space, or to a revision, before", `
		Rollback makes the space that was active before the present one active again, at
		once and whole: it takes back an activate, or a train --activate. A second one
		takes back the first.

		--revision R takes back updates instead. It puts the projections of revision R back
		in use, as a new revision of the active space or of --space N. Models lists the
		revisions that are kept. What items have taught since is taken out, and they teach
		again only if you write them again. You can put back a later revision too, but the
		next update starts from what is left. Labels that update --grow-labels has given a
		direction stay: no revision from before that can come back.`, `
		fddhdb rollback wiki.db
		fddhdb rollback wiki.db --revision 3`).
		OnCollection().OfSpace("with --revision: the space, by number `N` (default: the active one)")
	var revision uint32
	v.Flags.Uint32Var(&revision, "revision", 0, "put revision `R` of the space back in use")
	return v.Does(func() error {
		switch {
		case v.Given("revision") && revision == 0:
			return exit.Usagef("--revision 0: revisions are numbered from 1")
		case v.Given("space") && !v.Given("revision"):
			return exit.Usagef("--space goes with --revision: fddhdb activate %s --space %d makes that space the active one", v.Dir, v.Space)
		}
		return v.Change(func() error {
			if v.Given("revision") {
				u, err := v.Collection.RestoreRevision(v.Ctx, v.Space, revision)
				if err != nil {
					return revisionError("--revision", revision, err)
				}
				again := ""
				if u.Forgotten > 0 {
					again = "\n" + term.Plural(u.Forgotten, "item that has taught since is",
						"items that have taught since are") + " taken out again; written again, or by training, they teach"
				}
				return v.Tell(u, "space %d of collection %s: the projections of revision %d are back in use, as revision %d%s",
					u.Space, v.Collection.Name(), revision, u.Revision, again)
			}
			before, err := v.Collection.Stats(v.Ctx)
			if err != nil {
				return err
			}
			now, err := v.Collection.Rollback(v.Ctx)
			if err != nil {
				return run.RightLine(err) // there is no earlier space
			}
			return v.Tell(activationForm{now, before.Space},
				"space %d of collection %s is the active one again; space %d stands by", now, v.Collection.Name(), before.Space)
		})
	})
}

// revisionError adds the flag to the error of a revision that is not kept.
func revisionError(flag string, revision uint32, err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return exit.Usagef("%s %d: %s; fddhdb models lists those that are kept", flag, revision,
			exit.Reason(err.Error()))
	}
	return run.RightLine(err)
}

func reindexCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupSpaces, "reindex DIR", "Make the codes of all items again, in a new space", `
		Reindex makes a new space with the latest model of another one, and a code in it for
		every item. Items without labels then have the codes that the projections of today
		give. The items and the other space stay as they are. When the new space is complete
		it stands by: activate makes searches use it.

		An interrupted reindex goes on in the background when the database is opened next,
		and reindex without --space then waits for it. Models shows how far a space is; drop
		gives it up.`, `
		fddhdb reindex wiki.db
		fddhdb reindex wiki.db --space 1`).OnCollection().
		OfSpace("the space whose model it takes, by number `N` (default: the one that is being built, or the active one)")
	return v.Changes(func() error {
		begun := false
		r, err := v.Collection.Reindex(v.Ctx, db.ReindexOptions{Space: v.Space,
			Progress: func(stage string, done, total int64) {
				begun = true
				v.Progress().Report(stage, done, total)
			}})
		switch {
		case begun && errors.Is(err, context.Canceled):
			return exit.Wrap(err, "what is done is kept: reindex goes on with it, fddhdb models shows how far it is")
		case err != nil:
			return err
		}
		return v.Tell(r, "space %d of collection %s made from space %d: %s with a code, in %s\n%s", r.Space,
			v.Collection.Name(), r.Parent, term.Plural(r.Items, "item", "items"), term.Seconds(r.Seconds),
			v.SpaceHint(r.Space, r.Active))
	})
}

func updateCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupSpaces, "update DIR", "Let the model learn from the items since its training", `
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
		rollback --revision takes one back.`, `
		fddhdb update wiki.db
		fddhdb update wiki.db --teacher labels --json
		fddhdb update wiki.db --grow-labels`).
		OnCollection().OfSpace("the space to update, by number `N` (default: the active one)")
	var teacher string
	var opt db.UpdateOptions
	v.Flags.StringVar(&teacher, "teacher", "auto",
		"`WHO` teaches items without labels: auto, labels, modality or self")
	v.Flags.BoolVar(&opt.GrowLabels, "grow-labels", false,
		"give labels that training has not seen codes of their own first")
	return v.Does(func() (err error) {
		if opt.Teacher, err = db.ParseTeacher(teacher); err != nil {
			return exit.Usagef("--teacher %q: auto, labels, modality and self are possible", teacher)
		}
		return v.Change(func() error {
			opt.Space, opt.Progress = v.Space, v.Progress().Report
			u, err := v.Collection.Update(v.Ctx, opt)
			if err != nil {
				return err
			}
			return v.Show(u, func() { printUpdate(v.Env, v.Collection.Name(), u) })
		})
	})
}

// printUpdate prints the new revision, the drift of the data, and the number of items that wait for an
// update.
func printUpdate(e *run.Env, collection string, u *report.Update) {
	if u.Revised {
		e.Printf("space %d of collection %s is at revision %d now, in %s\n", u.Space, collection, u.Revision,
			term.Seconds(u.Seconds))
	} else {
		e.Printf("space %d of collection %s stays at revision %d\n", u.Space, collection, u.Revision)
	}
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{u.Labelled, "labelled item has taught its labels", "labelled items have taught their labels"},
		{u.Unlabelled, "item without a known label has taught", "items without a known label have taught"},
		{u.Refused, "item without a known label is refused, and stays pending",
			"items without a known label are refused, and stay pending"},
		{u.Skipped - u.Refused, "item has taught nothing", "items have taught nothing"},
		{u.Forgotten, "item that had taught is taken out again: stored again since, or deleted",
			"items that had taught are taken out again: stored again since, or deleted"},
		{len(u.Grown), "label has a direction now: " + labelNames(u.Grown),
			"labels have a direction now: " + labelNames(u.Grown)},
		{u.Recoded, "item has another code now", "items have another code now"},
		{len(u.NoDirection), "label finds no direction left: train again, with more bits if there are more labels than bits",
			"labels find no direction left: train again, with more bits if there are more labels than bits"},
	} {
		if x.n > 0 {
			e.Printf("%s\n", term.Plural(x.n, x.one, x.many))
		}
	}
	if u.Reason != "" {
		e.Printf("why: %s\n", u.Reason)
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
