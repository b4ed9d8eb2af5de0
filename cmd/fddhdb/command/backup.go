package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/s3"
)

func backupCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupBackup, "backup DIR URL", "Back a database up", `
		Backup copies a database to where backups are kept. It does not copy what earlier
		backups have stored: a backup every night takes about as much space as the new data.
		Yet each backup is whole by itself.

		If a backup is interrupted, it is none: the others stay as they are, and the next
		one uses what has been copied.

		With --collection only that collection is backed up, and with --index-only only
		what answers queries: models, codes, keys, labels, fields and payloads, without the
		vectors of the items. Such a backup can be searched when it is restored, but
		not trained on. Both are written whole and share nothing with other backups.

		The folder of the database may be on a medium that cannot be written to, such as a
		snapshot of a file system. What --collection and --index-only write is then
		in the folder for temporary files for a while: TMPDIR says which one that is.

		If another process owns the folder, that process makes the backup: as its user, and
		with its credentials for a bucket.`, `
		fddhdb backup wiki.db /mnt/backups/wiki
		fddhdb backup wiki.db s3://my-bucket/wiki
		fddhdb backup wiki.db "s3://b/wiki?endpoint=https://minio.example:9000" --json`)
	var opt db.BackupOptions
	v.Flags.StringVar(&opt.Collection, "collection", "", "back up only the collection `NAME`")
	v.Flags.BoolVar(&opt.IndexOnly, "index-only", false, "leave out vectors, and what only learning needs")
	return v.Does(func() error {
		if v.Given("collection") && opt.Collection == "" {
			return exit.Usagef("--collection needs the name of a collection; without it all are backed up")
		}
		start, begun := time.Now(), false
		opt.Progress = func(stage string, done, total int64) {
			begun = true
			v.Progress().Bytes(stage, done, total)
		}
		m, err := backUp(v, v.Args[1], opt)
		switch {
		case begun && errors.Is(err, context.Canceled):
			return exit.Wrap(err, "there is no backup; the next one uses what has been copied")
		case err != nil:
			return err
		}
		what, took := v.Dir, time.Since(start)
		if m.Collection != "" || m.IndexOnly {
			what += " (" + content(m) + ")"
		}
		return v.Tell(backupForm(m, took), "backed up %s as %s\n%s, of which %s had to be stored, in %s", what, m.ID,
			term.Size(m.BytesTotal), term.Size(m.BytesNew), term.Seconds(took.Seconds()))
	})
}

// backUp checks the name of the place first, so that a mistake in it shows before the database is opened.
func backUp(v *run.Verb, name string, opt db.BackupOptions) (m *backup.Manifest, err error) {
	if err := run.NoFile(v.Dir); err != nil {
		return nil, err
	}
	to, err := repositoryURL(name)
	if err != nil {
		return nil, err
	}
	// As share does: others work through this process meanwhile.
	wait := v.Wait
	v.Wait = run.Briefly
	p, err := v.Open(v.Ctx, v.Dir,
		&db.Options{MustExist: true, ReadOnly: v.Session.Has(v.Dir)})
	v.Wait = wait
	if run.Unwritable(err) || errors.Is(err, db.ErrLocked) {
		p, err = v.Open(v.Ctx, v.Dir, &db.Options{ReadOnly: true})
	}
	if errors.Is(err, db.ErrLocked) {
		return nil, exit.Wrap(err, "back it up from that process, by DB.Backup, or let it serve others, by attach.Serve")
	}
	if err != nil {
		return nil, run.OpenError(v.Dir, err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if opt.Collection != "" {
		if _, err := run.FindCollection(v.Ctx, p.DB, opt.Collection); err != nil {
			return nil, err
		}
	}
	m, err = p.DB.Backup(v.Ctx, to, opt)
	return m, repositoryError(name, err)
}

// backupJSON is the --json form of a backup.
type backupJSON struct {
	ID         string    `json:"id"`
	Time       time.Time `json:"time"`
	Database   string    `json:"database"`
	Sequence   uint64    `json:"sequence"`
	Collection string    `json:"collection,omitempty"`
	IndexOnly  bool      `json:"index_only,omitempty"`
	BytesTotal int64     `json:"bytes_total"`
	BytesNew   int64     `json:"bytes_new"`
	Seconds    float64   `json:"seconds,omitempty"` // duration of the verb
}

func backupForm(m *backup.Manifest, took time.Duration) backupJSON {
	return backupJSON{m.ID, m.Time, m.Database, m.Sequence, m.Collection, m.IndexOnly, m.BytesTotal,
		m.BytesNew, took.Seconds()}
}

func backupsCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupBackup, "backups URL", "List backups", `
		Backups lists the backups that are kept in a place, the oldest first: when each was
		made, of which database (the beginning of its UUID), of what of it, its size, and
		how much of that no earlier backup had.

		With --json it prints an object a line.`, `
		fddhdb backups /mnt/backups/wiki
		fddhdb backups s3://my-bucket/wiki --json`).PrintsLines()
	return v.Does(func() error {
		store, err := run.OpenRepository(v.Ctx, v.Dir)
		if err != nil {
			return err
		}
		all, err := backup.List(v.Ctx, store)
		if err != nil {
			return repositoryError(v.Dir, err)
		}
		var forms []backupJSON
		var rows [][]any
		for _, m := range all {
			forms = append(forms, backupForm(m, 0))
			rows = append(rows, []any{m.ID, term.TimeCell(m.Time), term.OrDash(fmt.Sprintf("%.8s",
				m.Database)),
				content(m), term.BytesCell(m.BytesTotal), term.BytesCell(m.BytesNew)})
		}
		return run.List(v, forms, func() {
			if len(all) == 0 {
				v.Printf("there are no backups\n")
				return
			}
			v.PrintTable([]term.Column{term.Left("id"), term.Left("made"), term.Left("database"),
				term.Left("of"), term.Right("size"), term.Right("new")}, rows)
		})
	})
}

func restoreCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupBackup, "restore URL DIR", "Make a database from a backup", `
		Restore makes a database in the new folder DIR from a backup: the newest of the
		whole database. --before takes the newest made by that time, --id the one with that
		id, of which the beginning is enough. A time without a zone is that of this machine,
		while ids begin with the time in UTC. Where backups of several databases are kept
		together, --database says which, by the beginning of its UUID.

		Restore compares all that it reads with its checksums, and verifies the database as
		fddhdb verify does, before it puts it in DIR. If that fails or is interrupted, DIR
		is as it was before.

		A database that exists is never overwritten: restore beside it, look at it, and
		then rename the folders.`, `
		fddhdb restore /mnt/backups/wiki wiki.db
		fddhdb restore s3://my-bucket/wiki wiki.db --before "2026-03-01 12:00"
		fddhdb restore s3://my-bucket/wiki old.db --id 20260301t1`)
	var opt db.RestoreOptions
	v.Flags.StringVar(&opt.ID, "id", "",
		"the backup with this `ID`, or the only one whose id begins so (default: the newest)")
	v.Flags.Func("before",
		"the newest backup made by this `TIME`: 2026-03-01, \"2026-03-01 12:00\" (both local), or with a zone 2026-03-01T12:00:00Z",
		func(s string) (err error) { opt.Before, err = parseTime(s); return err })
	v.Flags.StringVar(&opt.Database, "database", "",
		"a backup of the database with this `UUID`, or the only one whose UUID begins so")
	return v.Does(func() error {
		dir := v.Args[1]
		if opt.ID != "" && (v.Given("before") || v.Given("database")) {
			return exit.Usagef("--id names a backup: --before and --database have no part in it")
		}
		if run.IsFile(dir) {
			return exit.Usagef("%s is a file; a database is a folder: restore to a new one", dir)
		}
		start := time.Now()
		opt.Progress = func(stage string, done, total int64) {
			if stage == db.StageVerify {
				v.Progress().Report(stage, done, total)
			} else {
				v.Progress().Bytes(stage, done, total)
			}
		}
		m, err := restore(v.Ctx, v.Dir, dir, opt)
		if err != nil {
			return err
		}
		took := time.Since(start)
		return v.Tell(backupForm(m, took), "restored %s to %s: %s as it was at %s\n%s, verified, in %s", m.ID, dir,
			content(m), term.When(m.Time), term.Size(m.BytesTotal), term.Seconds(took.Seconds()))
	})
}

func restore(ctx context.Context, name, dir string, opt db.RestoreOptions) (*backup.Manifest, error) {
	store, err := run.OpenRepository(ctx, name)
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
		return nil, exit.Usagef("no backup was made by %s: fddhdb backups %s lists what there is",
			term.When(opt.Before), term.Plain(name))
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
	all, err := backup.List(ctx, store)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	for _, m := range all {
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
	return "", exit.Usagef("--database %s: several databases begin so, %s and %s among them", begin, uuids[0],
		uuids[1])
}

// parseTime parses a time, by default in the time zone of this machine.
func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04",
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New(`not a time: 2026-03-01, "2026-03-01 12:00" and 2026-03-01T12:00:00Z are possible`)
}

func pruneCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupBackup, "prune URL --keep N", "Delete old backups", `
		Prune deletes all backups but the newest N, and then all that the rest does not
		need, leftovers of interrupted backups too. Where backups of several databases are
		kept together, N of each stay; the same holds for backups of single collections and
		for index-only ones.

		Backups may go on meanwhile, on other machines too. --dry-run deletes nothing and
		says what would be deleted.`, `
		fddhdb prune /mnt/backups/wiki --keep 30
		fddhdb prune s3://my-bucket/wiki --keep 7 --dry-run`)
	var opt backup.PruneOptions
	v.Count(&opt.Keep, "keep", 0, 1, "how many backups stay, the newest `N` of each database")
	v.Flags.BoolVar(&opt.DryRun, "dry-run", false, "delete nothing, say what would be deleted")
	return v.Does(func() error {
		if opt.Keep == 0 {
			return exit.Usagef("prune needs to know how many backups stay: fddhdb prune URL --keep N")
		}
		start := time.Now()
		store, err := run.OpenRepository(v.Ctx, v.Dir)
		if err != nil {
			return err
		}
		opt.Progress = v.Progress().Report
		p, err := backup.Prune(v.Ctx, store, opt)
		if err != nil {
			return repositoryError(v.Dir, err)
		}
		for _, id := range p.Damaged {
			v.Warnf("backup %s lacks something, fddhdb verify says what; it stays, and does not count", id)
		}
		ids := func(all []*backup.Manifest) []string {
			s := []string{}
			for _, m := range all {
				s = append(s, m.ID)
			}
			return s
		}
		did := map[bool]string{false: "deleted", true: "would delete"}[opt.DryRun]
		for _, m := range p.Deleted {
			if !v.JSON {
				v.Printf("%s %s of %s: %s\n", did, m.ID, term.When(m.Time), content(m))
			}
		}
		return v.Tell(map[string]any{"deleted": ids(p.Deleted), "kept": ids(p.Kept),
			"damaged": append([]string{}, p.Damaged...), "objects": p.Objects, "bytes": p.Bytes,
			"dry_run": opt.DryRun, "seconds": time.Since(start).Seconds()}, "%s %s and %s, %s; %s kept", did,
			term.Plural(len(p.Deleted), "backup", "backups"), term.Plural(p.Objects, "object", "objects"),
			term.Size(p.Bytes), term.Plural(len(p.Kept), "backup", "backups"))
	})
}

// A repository of backups is named by file:///PATH, a path, or s3://BUCKET/PREFIX.

// repositoryURL returns the URL of a place that the user has named, which does not depend on the folder that
// this process runs in: another process may make the backup.
func repositoryURL(name string) (string, error) {
	if run.IsS3(name) {
		if _, err := s3.ParseURL(name); err != nil {
			return "", exit.Usagef("%w", err)
		}
		return name, nil
	}
	path, err := run.FolderOf(name, runtime.GOOS == "windows")
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", err
	}
	path = "/" + strings.TrimPrefix(filepath.ToSlash(path), "/") // of Windows it begins with a drive
	return (&url.URL{Scheme: "file", Path: path}).String(), nil
}

// repositoryError adds advice to an error of package backup.
func repositoryError(name string, err error) error {
	switch path, pathErr := run.FolderOf(name, runtime.GOOS == "windows"); {
	case errors.Is(err, backup.ErrNotRepository) && !holdsNone(err):
		return err // the marker is damaged, and the error says what to do
	case errors.Is(err, backup.ErrNotRepository) && !run.IsS3(name) && (pathErr != nil || !run.IsEmpty(path)):
		return exit.Usagef("%w: %s: give a folder with backups, or for a first one an empty folder", err,
			term.Plain(name))
	case errors.Is(err, backup.ErrNotRepository):
		return exit.Usagef("%w: %s: fddhdb backup DIR %[2]s makes the first backup there", err, term.Plain(name))
	case errors.Is(err, backup.ErrNotFound):
		return exit.Usagef("%w: fddhdb backups %s lists what there is", err, term.Plain(name))
	case errors.Is(err, backup.ErrInvalid):
		return exit.Usagef("%w", err)
	case errors.Is(err, backup.ErrVersion):
		return exit.Wrap(err, "use a newer fddhdb")
	case errors.Is(err, backup.ErrDamaged):
		return exit.Wrap(err, "fddhdb verify %s says what is wrong with the backups", term.Plain(name))
	}
	return err
}

// holdsNone reports whether an error says that there are no backups, not even damaged ones.
func holdsNone(err error) bool {
	return errors.Is(err, backup.ErrNotRepository) && !errors.Is(err, backup.ErrDamaged)
}

// content describes the content of a backup in words.
func content(m *backup.Manifest) string {
	what := "everything"
	if m.Collection != "" {
		what = "collection " + term.Plain(m.Collection)
	}
	if m.IndexOnly {
		what += ", index only"
	}
	return what
}
