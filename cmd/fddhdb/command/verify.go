package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/report"
)

func verifyCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "verify DIR|URL", "Look for damage", `
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
		Restore checks whether the contents of a backup are sound.`, `
		fddhdb verify wiki.db
		fddhdb verify wiki.db --deep --json
		fddhdb verify s3://my-bucket/wiki`)
	var deep, acknowledge bool
	v.Flags.BoolVar(&acknowledge, "acknowledge", false,
		"stop telling of the commits that are missing, after this time")
	v.Flags.BoolVar(&deep, "deep", false, "make codes, projections and statistics again, and compare")
	return v.Does(func() error {
		if err := run.NoFile(v.Dir); err != nil {
			return err
		}
		if done, err := verifyRepository(v, deep); done {
			return err
		}
		list := findings{Verb: v}
		r, err := verifyDatabase(v, db.VerifyOptions{Deep: deep, Progress: v.Progress().Report},
			func(f report.Finding) error { return list.add(f.String(), f) })
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s, %s", term.Plural(r.Items, "item", "items"), term.Plural(r.Records, "record",
			"records"))
		if deep {
			text += fmt.Sprintf("; the codes of %s made again, %s could not be", term.Plural(r.CodesChecked, "item", "items"),
				term.Thousands(r.CodesUnchecked))
		}
		err = list.end(r.Findings, r, text, db.ErrCorrupt)
		if acknowledge && (err == nil || errors.Is(err, db.ErrCorrupt)) {
			opt := &db.Options{MustExist: true}
			err = errors.Join(err, v.OpenAnd(v.Ctx, v.Dir, opt, func(p run.Place) error {
				d, err := p.Owner("verify --acknowledge")
				if err == nil {
					_, err = d.AcknowledgeLosses(v.Ctx)
				}
				return err
			}))
		}
		return err
	})
}

// verifyDatabase verifies the database, even if it is too damaged to be opened.
func verifyDatabase(v *run.Verb, opt db.VerifyOptions, found func(report.Finding) error) (
	r *report.Verification, err error) {
	if !v.Session.Has(v.Dir) && !run.IsURL(v.Dir) {
		r, err = db.VerifyFolder(v.Ctx, v.Dir, nil, opt, found)
		if !errors.Is(err, db.ErrLocked) {
			return r, run.OpenError(v.Dir, err)
		}
	}
	err = v.OpenAnd(v.Ctx, v.Dir, &db.Options{ReadOnly: true}, func(p run.Place) (err error) {
		r, err = p.DB.Verify(v.Ctx, opt, found)
		return err
	})
	return r, err
}

// findings prints findings for people as they come, and keeps them for JSON.
type findings struct {
	*run.Verb
	all []any
}

func (l *findings) add(text string, f any) error {
	if l.JSON {
		l.all = append(l.all, f)
	} else {
		l.Printf("%s\n", term.Plain(text))
	}
	return nil
}

// end prints the figures, and returns the error if there are findings.
func (l *findings) end(n int, figures any, text string, damage error) error {
	if err := l.print(n, figures, n == 0, "OK: "+text); err != nil || n == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", damage, term.Plural(n, "finding", "findings"))
}

// print prints JSON of the findings and the figures, or a sentence if there is something to say.
func (l *findings) print(n int, figures any, say bool, sentence string) error {
	if !l.JSON {
		if say {
			l.Printf("%s\n", sentence)
		}
		return nil
	}
	head, err := term.JSON(map[string]any{"findings": append([]any{}, l.all...), "ok": n == 0})
	if err != nil {
		return err
	}
	tail, err := term.JSON(figures)
	if err != nil {
		return err
	}
	return l.PrintJSON(json.RawMessage(string(head[:len(head)-1]) + "," + string(tail[1:])))
}

// verifyRepository verifies backups if the argument is where they are kept: any URL, or a folder that
// holds backups and no database. done is false otherwise.
func verifyRepository(v *run.Verb, deep bool) (done bool, err error) {
	if run.IsURL(v.Dir) {
		return false, nil
	}
	isURL := run.Scheme.MatchString(v.Dir)
	if _, err := os.Stat(filepath.Join(v.Dir, db.MarkerName)); !isURL &&
		(err == nil || errors.Is(err, fs.ErrPermission)) {
		return false, nil // what cannot be looked into is no database that opens, which says so
	}
	store, err := run.OpenRepository(v.Ctx, v.Dir)
	if err != nil {
		return isURL, err
	}
	if _, err := backup.List(v.Ctx, store); !isURL && holdsNone(err) {
		return false, nil // it may not be a database either
	}
	if deep {
		return true, exit.Usagef("--deep is for databases: restore makes one of a backup and verifies it")
	}
	list := findings{Verb: v}
	r, err := backup.Verify(v.Ctx, store, backup.VerifyOptions{Progress: v.Progress().Report},
		func(f backup.Finding) error { return list.add(f.String(), f) })
	if err != nil {
		return true, repositoryError(v.Dir, err)
	}
	text := fmt.Sprintf("%s, %s, %s", term.Plural(r.Backups, "backup", "backups"),
		term.Plural(r.Objects, "object", "objects"), term.Size(r.Bytes))
	if r.Unneeded > 0 {
		text += fmt.Sprintf("; %s of %s that no backup needs, of interrupted ones most likely: prune deletes them",
			term.Plural(r.Unneeded, "object", "objects"), term.Size(r.UnneededBytes))
	}
	return true, list.end(r.Findings, r, text, backup.ErrDamaged)
}

func repairCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "repair DIR", "Mend a damaged database", `
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
		what would be lost.`, `
		fddhdb repair wiki.db --dry-run
		fddhdb repair wiki.db`)
	var deep, dryRun bool
	v.Flags.BoolVar(&deep, "deep", true, "look for damage as verify --deep does; --deep=false: as verify does")
	v.Flags.BoolVar(&dryRun, "dry-run", false, "say what would be lost, and change nothing")
	return v.Does(func() error {
		if err := run.NoFile(v.Dir); err != nil {
			return err
		}
		list := findings{Verb: v}
		var r *report.Repairing
		err := v.WhileClosed(v.Ctx, v.Dir, "repair", func() (err error) {
			r, err = db.Repair(v.Ctx, v.Dir, nil,
				db.RepairOptions{Shallow: !deep, DryRun: dryRun, Progress: v.Progress().Report},
				func(f report.Finding) error { return list.add(f.String(), f) })
			return err
		})
		if err != nil {
			return run.OpenError(v.Dir, err)
		}
		done := "repaired: " + term.Plural(r.Items, "item", "items")
		switch {
		case !r.Damaged:
			done = "OK: nothing to repair, " + term.Plural(r.Items, "item", "items")
		case dryRun:
			done = "it can be repaired, with " + term.Plural(r.Items, "item", "items") + "; nothing has been changed"
		case r.DamagedDir != "":
			done += fmt.Sprintf("; the damaged store is now %s: delete it when you do not need it any more",
				filepath.Join(v.Dir, r.DamagedDir))
		}
		if err := list.print(r.Findings, r, true, done); err != nil || r.Findings == 0 {
			return err
		}
		return &notSavedError{r.Findings}
	})
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

func compactCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "compact DIR", "Reclaim disk space", `
		Compact rewrites what is stored, of all collections, so that what was deleted or
		replaced no longer takes space. A database does that by itself, bit by bit; this
		does all of it at once.`, `
		fddhdb compact wiki.db`)
	return v.Changes(func() error {
		live := func() int64 { // files that wait for deletion do not count: they are deleted soon
			s, err := v.DB.Stats(v.Ctx)
			if err != nil {
				return 0
			}
			return s.Activity.Store.LiveBytes
		}
		was, start := live(), time.Now()
		v.Progress().Report("compacting", 0, 0)
		if err := v.DB.Compact(v.Ctx); err != nil {
			return err
		}
		is := live()
		return v.Tell(map[string]any{"bytes_before": was, "bytes_after": is,
			"seconds": time.Since(start).Seconds()},
			"%s before, %s now", term.Size(was), term.Size(is))
	})
}
