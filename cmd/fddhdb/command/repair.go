package command

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func repairCommand(e *env) *cobra.Command {
	var o common
	var deep, dryRun bool
	cmd := &cobra.Command{
		Use:     "repair DIR",
		Short:   "Mend a damaged database",
		GroupID: groupLook,
		Long: usage.Prose(`
			Repair makes a sound store of what can be read of a damaged one, also where the
			database does not open any more. What follows from items, models and what items have
			taught is made again: keys, sets, counters, indexes, and codes as reindex makes them.
			It prints what could not be saved, a line each, and the exit code is then 3. The new
			store is verified as by verify --deep before it takes the place of the old one; that
			stays in the folder of the database, as damaged-TIME, until you delete it.

			It looks for damage as verify --deep does, and does nothing where that finds
			nothing. With --deep=false it looks as verify does, which takes less time on a sound
			database: codes, projections and statistics that do not follow from labels and
			features are then no damage by themselves. What is made is verified with --deep
			either way.

			A damaged index-only copy is refused: make it again from its source.

			It needs disk space for a second store. When it is interrupted nothing is lost, and
			it can be run again. With --dry-run it does everything but the last step, to tell
			what would be lost.`),
		Example: usage.Example(`
			fddhdb repair wiki.db --dry-run
			fddhdb repair wiki.db`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if isFile(args[0]) {
				return exit.Usagef("not a database: %s is a file; a database is a folder", args[0])
			}
			p := e.NewProgress()
			defer p.End()
			opt := db.RepairOptions{Shallow: !deep, DryRun: dryRun, Progress: p.Report}
			list := findingList{env: e, json: o.json}
			var r *db.Repairing
			err := e.whileClosed(args[0], func() (err error) {
				r, err = db.Repair(cmd.Context(), args[0], nil, opt, list.print)
				return err
			})
			if err != nil {
				list.abort()
				return openError(args[0], err)
			}
			if err := list.finishRepair(r, args[0], dryRun); err != nil {
				return err
			}
			if r.Findings > 0 {
				return &notSavedError{r.Findings}
			}
			return nil
		},
	}
	o.registerJSON(cmd)
	cmd.Flags().BoolVar(&deep, "deep", true, "look for damage as verify --deep does; --deep=false: as verify does")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be lost, and change nothing")
	return cmd
}

// A notSavedError says that damage has destroyed something. It is a db.ErrCorrupt, for
// the exit code.
type notSavedError struct{ findings int }

func (e *notSavedError) Error() string {
	return term.Plural(e.findings, "finding", "findings") + ": something could not be saved"
}

// Advised marks an error whose text has advice; see exit.Message.
func (e *notSavedError) Advised() {}

func (e *notSavedError) Is(target error) bool { return target == db.ErrCorrupt }

// finishRepair prints the end of the output, after the list of losses.
func (l *findingList) finishRepair(r *db.Repairing, dir string, dryRun bool) error {
	if l.json {
		return l.endJSON(repairJSON{OK: r.Findings == 0, Repairing: r})
	}
	items := term.Plural(r.Items, "item", "items")
	switch {
	case !r.Damaged:
		l.env.Printf("OK: nothing to repair, %s\n", items)
	case dryRun:
		l.env.Printf("it can be repaired, with %s; nothing has been changed\n", items)
	case r.DamagedDir == "":
		l.env.Printf("repaired: %s\n", items)
	default:
		l.env.Printf("repaired: %s; the damaged store is now %s: delete it when you do not need it any more\n", items, filepath.Join(dir, r.DamagedDir))
	}
	return nil
}

// repairJSON is the --json form of repair, without the findings.
type repairJSON struct {
	OK bool `json:"ok"`
	*db.Repairing
}
