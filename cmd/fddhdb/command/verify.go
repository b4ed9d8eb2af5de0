package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

func verifyCommand(e *env) *cobra.Command {
	var o common
	var deep, acknowledge bool
	cmd := &cobra.Command{
		Use:     "verify DIR|URL",
		Short:   "Look for damage",
		GroupID: groupLook,
		Long: usage.Prose(`
			Verify reads everything that a database has stored, of all collections, and compares
			what stands in more than one place: keys and rows, items and what finds them,
			codes and the rows that carry them, postings, models, counters. It prints what is
			wrong, a line each, and the exit code is then 3. It repairs nothing and changes
			nothing, and goes on behind what cannot be read.

			With --deep it also makes codes and projections again from labels and features, and
			the statistics from what items have taught. Codes of revisions that are not kept any
			more cannot be checked like that: they are counted.

			If the end of the log was damaged, or an older copy took the place of the store,
			commits that were durable are missing. That is a finding, and a warning of every
			verb, until --acknowledge says that you know it.

			Given where backups are kept, a URL or a folder, verify reads everything that the
			backups need, compares it with its checksums, and says what is missing or damaged.
			Restore checks whether the contents of a backup are sound.
` + repositoryHelp),
		Example: usage.Example(`
			fddhdb verify wiki.db
			fddhdb verify wiki.db --deep --json
			fddhdb verify s3://my-bucket/wiki`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if isFile(args[0]) {
				return exit.Usagef("not a database: %s is a file; a database is a folder", args[0])
			}
			if done, err := e.verifyRepository(cmd.Context(), args[0], deep, o.json); done {
				return err
			}
			p := e.NewProgress()
			defer p.End()
			opt := db.VerifyOptions{Deep: deep, Progress: p.Report}
			list := findingList{env: e, json: o.json, damage: db.ErrCorrupt}
			v, err := e.verifyDatabase(cmd.Context(), args[0], opt, list.print)
			if err != nil {
				list.abort()
				return openError(args[0], err)
			}
			err = list.finish(v, deep)
			if acknowledge && (err == nil || errors.Is(err, db.ErrCorrupt)) {
				err = errors.Join(err, e.acknowledge(cmd.Context(), args[0]))
			}
			return err
		},
	}
	o.registerJSON(cmd)
	cmd.Flags().BoolVar(&acknowledge, "acknowledge", false,
		"stop telling of the commits that are missing, after this time")
	cmd.Flags().BoolVar(&deep, "deep", false, "make codes, projections and statistics again, and compare")
	return cmd
}

// verifyDatabase verifies the database in dir, even if it is too damaged to be opened.
func (e *env) verifyDatabase(ctx context.Context, dir string, opt db.VerifyOptions,
	found func(db.Finding) error) (*db.Verification, error) {
	d, err := e.held(dir)
	if err != nil {
		return nil, err
	}
	if d != nil {
		return d.Verify(ctx, opt, found)
	}
	return db.VerifyFolder(ctx, dir, nil, opt, found)
}

// findingList prints findings as they come.
type findingList struct {
	env    *env
	json   bool
	damage error // error that is returned if there are findings
	begun  bool  // the beginning of the output was printed
}

func (l *findingList) print(f db.Finding) error { return l.add(f.String(), f) }

// add prints a finding, in words or as JSON.
func (l *findingList) add(text string, f any) error {
	if !l.json {
		l.env.Printf("%s\n", term.Plain(text))
		return nil
	}
	l.begin()
	b, err := term.JSON(f)
	if err == nil {
		l.env.Printf("%s", b)
	}
	return err
}

// begin prints the output before the first finding.
func (l *findingList) begin() {
	if l.begun {
		l.env.Printf(",")
		return
	}
	l.begun = true
	l.env.Printf(`{"findings":[`)
}

// finish prints the output after the findings.
func (l *findingList) finish(v *db.Verification, deep bool) error {
	return l.end(v.Findings, verifyJSON{OK: v.Findings == 0, Verification: v},
		fmt.Sprintf("%s, %s%s", term.Plural(v.Items, "item", "items"),
			term.Plural(v.Records, "record", "records"), deepText(v, deep)))
}

// end prints the figures, and returns the error if there are findings.
func (l *findingList) end(findings int, figures any, text string) error {
	switch {
	case l.json:
		if err := l.endJSON(figures); err != nil {
			return err
		}
	case findings == 0:
		l.env.Printf("OK: %s\n", text)
	}
	if findings > 0 {
		return fmt.Errorf("%w: %s", l.damage, term.Plural(findings, "finding", "findings"))
	}
	return nil
}

// endJSON prints the figures that follow the findings in JSON.
func (l *findingList) endJSON(figures any) error {
	b, err := term.JSON(figures)
	if err != nil {
		return err
	}
	if !l.begun {
		l.begin()
	}
	l.env.Printf("],%s\n", b[1:])
	return nil
}

// abort completes the output after an error.
func (l *findingList) abort() {
	if l.begun {
		l.env.Printf("],\"ok\":false}\n")
	}
}

func deepText(v *db.Verification, deep bool) string {
	if !deep {
		return ""
	}
	s := fmt.Sprintf("; the codes of %s made again", term.Plural(v.CodesChecked, "item", "items"))
	if v.CodesUnchecked > 0 {
		s += fmt.Sprintf(", those of %s not: their revisions, or vectors, are not there",
			term.Thousands(v.CodesUnchecked))
	}
	return s
}

// verifyJSON is the --json form of verify, without the findings.
type verifyJSON struct {
	OK bool `json:"ok"`
	*db.Verification
}

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
	cmd.Flags().BoolVar(&deep, "deep", true,
		"look for damage as verify --deep does; --deep=false: as verify does")
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

func compactCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "compact DIR",
		Short:   "Reclaim disk space",
		GroupID: groupLook,
		Long: usage.Prose(`
			Compact rewrites what is stored, of all collections, so that what was deleted or
			replaced no longer takes space. A database does that by itself, bit by bit; this
			does all of it at once.`),
		Example: usage.Example(`
			fddhdb compact wiki.db`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withDB(args[0], func(d *db.DB) error {
				before, err := d.Stats()
				if err != nil {
					return err
				}
				start := time.Now()
				bar := e.NewProgress()
				defer bar.End()
				if err := follow(bar, d, event.OpCompact,
					func() error { return d.Compact(cmd.Context()) }); err != nil {
					return err
				}
				bar.End()
				after, err := d.Stats()
				if err != nil {
					return err
				}
				// Files that wait for deletion do not count: they are deleted soon.
				was, is := before.Activity.Store.LiveBytes, after.Activity.Store.LiveBytes
				if o.json {
					return e.PrintJSON(compactJSON{was, is, time.Since(start).Seconds()})
				}
				e.Printf("%s before, %s now\n", term.Size(was), term.Size(is))
				return nil
			})
		},
	}
	o.registerJSON(cmd)
	return cmd
}

// compactJSON is the --json form of compact.
type compactJSON struct {
	BytesBefore int64   `json:"bytes_before"`
	BytesAfter  int64   `json:"bytes_after"`
	Seconds     float64 `json:"seconds"`
}
