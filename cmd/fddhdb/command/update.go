package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

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
	cmd.Flags().StringVar(&teacher, "teacher", "auto", "`WHO` teaches items without labels: auto, labels, modality or self")
	cmd.Flags().BoolVar(&opt.GrowLabels, "grow-labels", false, "give labels that training has not seen codes of their own first")
	return cmd
}

// printUpdate prints the result of an update in words.
func (e *env) printUpdate(collection string, u *db.Update) {
	if u.Revised {
		e.Printf("space %d of collection %s is at revision %d now, in %s\n", u.Space, collection, u.Revision, term.Seconds(u.Seconds))
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
		e.Printf("%s taught, led by %s\n", term.Plural(n, "item without a known label has", "items without a known label have"), by)
	}
	if n := u.Refused; n > 0 {
		e.Printf("%s refused, and stay pending\n", term.Plural(n, "item without a known label is", "items without a known label are"))
	}
	if n := u.Skipped - u.Refused; n > 0 {
		e.Printf("%s taught nothing\n", term.Plural(n, "item has", "items have"))
	}
	if u.Reason != "" {
		e.Printf("why: %s\n", u.Reason)
	}
	if n := u.Forgotten; n > 0 {
		e.Printf("%s taken out again: stored anew since, or deleted\n", term.Plural(n, "item that had taught is", "items that had taught are"))
	}
	if len(u.Grown) > 0 {
		e.Printf("%s a direction now: %s\n", term.Plural(len(u.Grown), "label has", "labels have"), labelNames(u.Grown))
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
