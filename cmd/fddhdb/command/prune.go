package command

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/backup"
)

func pruneCommand(e *env) *cobra.Command {
	var o common
	var opt backup.PruneOptions
	cmd := &cobra.Command{
		Use:     "prune URL --keep N",
		Short:   "Delete old backups",
		GroupID: groupBackup,
		Long: usage.Prose(`
			Prune deletes all backups but the newest N, and then all that the rest does not
			need, leftovers of interrupted backups too. Where backups of several databases are
			kept together, N of each stay; the same holds for backups of single collections and
			for index-only ones.

			Backups may go on meanwhile, on other machines too. --dry-run deletes nothing and
			says what would be deleted.
` + repositoryHelp),
		Example: usage.Example(`
			fddhdb prune /mnt/backups/wiki --keep 30
			fddhdb prune s3://my-bucket/wiki --keep 7 --dry-run`),
		Args: urlArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("keep"):
				return exit.Usagef("prune needs to know how many backups stay: fddhdb prune URL --keep N")
			case opt.Keep < 1:
				return exit.Usagef("--keep %d: 1 or more backups can stay", opt.Keep)
			}
			start := time.Now()
			store, err := openRepository(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			bar := e.NewProgress()
			defer bar.End()
			opt.Progress = bar.Report
			p, err := backup.Prune(cmd.Context(), store, opt)
			bar.End()
			if err != nil {
				return repositoryError(args[0], err)
			}
			for _, id := range p.Damaged {
				e.Warnf("backup %s lacks something, fddhdb verify says what; it stays, and does not count", id)
			}
			if o.json {
				return e.PrintJSON(newPruneJSON(p, opt.DryRun, time.Since(start).Seconds()))
			}
			e.printPruning(p, opt.DryRun)
			return nil
		},
	}
	o.registerJSON(cmd)
	f := cmd.Flags()
	f.IntVar(&opt.Keep, "keep", 0, "how many backups stay, the newest `N` of each database")
	f.BoolVar(&opt.DryRun, "dry-run", false, "delete nothing, say what would be deleted")
	return cmd
}

func (e *env) printPruning(p *backup.Pruning, dryRun bool) {
	deleted := "deleted"
	if dryRun {
		deleted = "would delete"
	}
	for _, m := range p.Deleted {
		e.Printf("%s %s of %s: %s\n", deleted, m.ID, term.When(m.Time), content(m))
	}
	e.Printf("%s %s and %s, %s; %s kept\n", deleted, term.Plural(len(p.Deleted), "backup", "backups"),
		term.Plural(p.Objects, "object", "objects"), term.Size(p.Bytes), term.Plural(len(p.Kept), "backup", "backups"))
	if p.Running > 0 {
		e.Printf("%s being made: what is new for them stays too\n", term.Plural(p.Running, "backup is", "backups are"))
	}
}

// pruneJSON is the --json form of prune.
type pruneJSON struct {
	Deleted []string `json:"deleted"` // ids of deleted backups
	Kept    []string `json:"kept"`
	Damaged []string `json:"damaged"` // of those that are kept
	Objects int      `json:"objects"` // deleted objects
	Bytes   int64    `json:"bytes"`   // of the deleted objects
	DryRun  bool     `json:"dry_run"` // nothing was deleted
	Seconds float64  `json:"seconds"`
}

func newPruneJSON(p *backup.Pruning, dryRun bool, seconds float64) pruneJSON {
	ids := func(list []*backup.Manifest) []string {
		s := []string{}
		for _, m := range list {
			s = append(s, m.ID)
		}
		return s
	}
	return pruneJSON{ids(p.Deleted), ids(p.Kept), append([]string{}, p.Damaged...), p.Objects, p.Bytes, dryRun, seconds}
}
