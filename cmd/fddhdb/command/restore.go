package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
)

func restoreCommand(e *env) *cobra.Command {
	var o common
	var opt db.RestoreOptions
	cmd := &cobra.Command{
		Use:     "restore URL DIR",
		Short:   "Make a database from a backup",
		GroupID: groupBackup,
		Long: usage.Prose(`
			Restore makes a database in the new folder DIR from a backup: the newest of the
			whole database. --before takes the newest made by that time, --id the one with that
			id, of which the beginning is enough. A time without a zone is that of this machine,
			while ids begin with the time in UTC. Where backups of several databases are kept
			together, --database says which, by the beginning of its UUID.

			Restore compares all that it reads with its checksums, and verifies the database as
			fddhdb verify does, before it puts it in DIR. If that fails or is interrupted, DIR
			is as it was before.

			A database that exists is never overwritten: restore beside it, look at it, and
			then rename the folders.
` + repositoryHelp),
		Example: usage.Example(`
			fddhdb restore /mnt/backups/wiki wiki.db
			fddhdb restore s3://my-bucket/wiki wiki.db --before "2026-03-01 12:00"
			fddhdb restore s3://my-bucket/wiki old.db --id 20260301t1`),
		Args: twoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, dir := args[0], args[1]
			flags := cmd.Flags()
			if opt.ID != "" && (flags.Changed("before") || flags.Changed("database")) {
				return exit.Usagef("--id names a backup: --before and --database have no part in it")
			}
			if isFile(dir) {
				return exit.Usagef("%s is a file; a database is a folder: restore to a new one", dir)
			}
			start := time.Now()
			p := e.NewProgress()
			defer p.End()
			opt.Progress = func(stage string, done, total int64) {
				if stage == db.StageVerify {
					p.Report(stage, done, total)
				} else {
					p.Bytes(stage, done, total)
				}
			}
			m, err := restore(cmd.Context(), name, dir, opt)
			p.End()
			if err != nil {
				return err
			}
			took := time.Since(start).Seconds()
			if o.json {
				return e.PrintJSON(newBackupJSON(m, took))
			}
			e.Printf("restored %s to %s: %s as it was at %s\n", m.ID, dir, content(m), term.When(m.Time))
			e.Printf("%s, verified, in %s\n", term.Size(m.BytesTotal), term.Seconds(took))
			return nil
		},
	}
	o.registerJSON(cmd)
	f := cmd.Flags()
	f.StringVar(&opt.ID, "id", "", "the backup with this `ID`, or the only one whose id begins so (default: the newest)")
	f.Var((*timeValue)(&opt.Before), "before", "the newest backup made by this `TIME`: 2026-03-01, \"2026-03-01 12:00\" (both local), or with a zone 2026-03-01T12:00:00Z")
	f.StringVar(&opt.Database, "database", "", "a backup of the database with this `UUID`, or the only one whose UUID begins so")
	return cmd
}

func restore(ctx context.Context, name, dir string, opt db.RestoreOptions) (*backup.Manifest, error) {
	store, err := openRepository(ctx, name)
	if err != nil {
		return nil, err
	}
	if opt.Database != "" {
		if opt.Database, err = wholeUUID(ctx, store, opt.Database); err != nil {
			return nil, repositoryError(name, err)
		}
	}
	m, err := db.Restore(ctx, store, dir, nil, opt)
	switch {
	case errors.Is(err, backup.ErrNotFound) && opt.ID == "" && !opt.Before.IsZero():
		return nil, exit.Usagef("no backup was made by %s: fddhdb backups %s lists what there is", term.When(opt.Before), term.Plain(name))
	case errors.Is(err, backup.ErrInvalid) && opt.ID == "" && opt.Database == "":
		return nil, exit.Usagef("%w: with --database, or by --id", err)
	case errors.Is(err, db.ErrCorrupt):
		// The backup is damaged, and not a folder with a copy.
		err = fmt.Errorf("%w: %s", backup.ErrDamaged, exit.Reason(err.Error()))
	}
	if errors.Is(err, backup.ErrDamaged) && !errors.Is(err, backup.ErrNotRepository) {
		return nil, exit.Wrap(err, "restore another one: fddhdb backups %s lists them", term.Plain(name))
	}
	return m, repositoryError(name, err)
}

// wholeUUID completes the beginning of the UUID of a database.
func wholeUUID(ctx context.Context, store backup.Store, begin string) (string, error) {
	list, err := backup.List(ctx, store)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	for _, m := range list {
		if strings.HasPrefix(m.Database, begin) {
			found[m.Database] = true
		}
	}
	uuids := slices.Sorted(maps.Keys(found))
	switch len(uuids) {
	case 0:
		return "", fmt.Errorf("%w: none is of a database %s", backup.ErrNotFound, begin)
	case 1:
		return uuids[0], nil
	}
	return "", exit.Usagef("--database %s: several databases begin so, %s and %s among them", begin, uuids[0], uuids[1])
}

// timeValue is a flag with a time, by default in the time zone of this machine.
type timeValue time.Time

func (t *timeValue) String() string { return "" }
func (t *timeValue) Type() string   { return "TIME" }

// Set implements pflag.Value.
func (t *timeValue) Set(s string) error {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			*t = timeValue(at)
			return nil
		}
	}
	return errors.New(`not a time: 2026-03-01, "2026-03-01 12:00" and 2026-03-01T12:00:00Z are possible`)
}
