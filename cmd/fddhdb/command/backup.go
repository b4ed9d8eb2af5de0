package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/s3"
	"github.com/fddhdb/fddhdb/internal/inside"
)

func backupCommand(e *env) *cobra.Command {
	var o common
	var opt db.BackupOptions
	cmd := &cobra.Command{
		Use:     "backup DIR URL",
		Short:   "Back a database up",
		GroupID: groupBackup,
		Long: usage.Prose(`
			Backup copies a database to where backups are kept. It does not copy what earlier
			backups have stored: a backup every night takes about as much space as the new data.
			Yet each backup is whole by itself.

			If a backup is interrupted, it is none: the others stay as they are, and the next
			one uses what has been copied.

			With --collection only that collection is backed up, and with --index-only only
			what answers queries: models, codes, keys, labels, fields and payloads, without the
			vectors of the items. Such a backup can be searched when it is restored, but
			not trained on. Both are written anew and share nothing with whole backups.

			The folder of the database may be on a medium that cannot be written to, such as a
			snapshot of a file system. What --collection and --index-only write anew is then
			in the folder for temporary files for a while: TMPDIR says which one that is.

			While another process writes to the database, back it up from there: in Go, by
			DB.Backup.
` + repositoryHelp),
		Example: usage.Example(`
			fddhdb backup wiki.db /mnt/backups/wiki
			fddhdb backup wiki.db s3://my-bucket/wiki
			fddhdb backup wiki.db "s3://b/wiki?endpoint=https://minio.example:9000" --json`),
		Args: twoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, name := args[0], args[1]
			if cmd.Flags().Changed("collection") && opt.Collection == "" {
				return exit.Usagef("--collection needs the name of a collection; without it all are backed up")
			}
			start := time.Now()
			p := e.NewProgress()
			defer p.End()
			begun := false
			opt.Progress = func(stage string, done, total int64) {
				begun = true
				p.Bytes(stage, done, total)
			}
			m, err := e.backUp(cmd.Context(), dir, name, opt)
			p.End()
			switch {
			case begun && errors.Is(err, context.Canceled):
				return exit.Wrap(err, "there is no backup; the next one uses what has been copied")
			case err != nil:
				return err
			}
			seconds := time.Since(start).Seconds()
			if o.json {
				return e.PrintJSON(newBackupJSON(m, seconds))
			}
			e.printBackup(dir, m, seconds)
			return nil
		},
	}
	o.registerJSON(cmd)
	f := cmd.Flags()
	f.StringVar(&opt.Collection, "collection", "", "back up only the collection `NAME`")
	f.BoolVar(&opt.IndexOnly, "index-only", false, "leave out vectors, and what only learning needs")
	return cmd
}

// backUp opens the store first, so that a mistake in its name shows before the database
// is opened.
func (e *env) backUp(ctx context.Context, dir, name string,
	opt db.BackupOptions) (m *backup.Manifest, err error) {
	if isFile(dir) {
		return nil, exit.Usagef("not a database: %s is a file; a database is a folder", dir)
	}
	store, err := openRepository(ctx, name)
	if err != nil {
		return nil, err
	}
	// A copy of everything only reads. A part is written anew first, into the folder of the
	// database where that can be.
	d, closeDB, err := e.open(dir,
		&db.Options{MustExist: true, ReadOnly: opt.Collection == "" && !opt.IndexOnly})
	if unwritable(err) {
		d, closeDB, err = e.open(dir, &db.Options{ReadOnly: true})
	}
	if errors.Is(err, db.ErrLocked) {
		return nil, exit.Wrap(err, "end the process that has it open, or back it up from there, by DB.Backup")
	}
	if err != nil {
		return nil, openError(dir, err)
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	if opt.Collection != "" {
		if _, err := collection(d, opt.Collection); err != nil {
			return nil, err
		}
	}
	m, err = d.Backup(ctx, store, opt)
	return m, repositoryError(name, err)
}

func (e *env) printBackup(dir string, m *backup.Manifest, took float64) {
	what := dir
	if m.Collection != "" || m.IndexOnly {
		what += " (" + content(m) + ")"
	}
	e.Printf("backed up %s as %s\n", what, m.ID)
	e.Printf("%s, of which %s had to be stored, in %s\n", term.Size(m.BytesTotal), term.Size(m.BytesNew),
		term.Seconds(took))
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

func newBackupJSON(m *backup.Manifest, seconds float64) backupJSON {
	return backupJSON{m.ID, m.Time, m.Database, m.Sequence, m.Collection, m.IndexOnly, m.BytesTotal,
		m.BytesNew, seconds}
}

func backupsCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "backups URL",
		Short:   "List backups",
		GroupID: groupBackup,
		Long: usage.Prose(`
			Backups lists the backups that are kept in a place, the oldest first: when each was
			made, of which database (the beginning of its UUID), of what of it, its size, and
			how much of that no earlier backup had.

			With --json it prints an object a line.
` + repositoryHelp),
		Example: usage.Example(`
			fddhdb backups /mnt/backups/wiki
			fddhdb backups s3://my-bucket/wiki --json`),
		Args: urlArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openRepository(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			list, err := backup.List(cmd.Context(), store)
			if err != nil {
				return repositoryError(args[0], err)
			}
			if !o.json {
				e.printBackups(list)
				return nil
			}
			for _, m := range list {
				if err := e.PrintJSON(newBackupJSON(m, 0)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	o.registerJSON(cmd)
	term.PrintsObjects(cmd)
	return cmd
}

func (e *env) printBackups(list []*backup.Manifest) {
	if len(list) == 0 {
		e.Printf("there are no backups\n")
		return
	}
	var rows [][]any
	for _, m := range list {
		rows = append(rows, []any{m.ID, term.TimeCell(m.Time), shortUUID(m), content(m),
			term.BytesCell(m.BytesTotal), term.BytesCell(m.BytesNew)})
	}
	e.PrintTable([]term.Column{term.Left("id"), term.Left("made"), term.Left("database"), term.Left("of"),
		term.Right("size"), term.Right("new")}, rows)
}

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
	f.StringVar(&opt.ID, "id", "",
		"the backup with this `ID`, or the only one whose id begins so (default: the newest)")
	f.Var((*timeValue)(&opt.Before), "before",
		"the newest backup made by this `TIME`: 2026-03-01, \"2026-03-01 12:00\" (both local), or with a zone 2026-03-01T12:00:00Z")
	f.StringVar(&opt.Database, "database", "",
		"a backup of the database with this `UUID`, or the only one whose UUID begins so")
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
	return "", exit.Usagef("--database %s: several databases begin so, %s and %s among them", begin, uuids[0],
		uuids[1])
}

// timeValue is a flag with a time, by default in the time zone of this machine.
type timeValue time.Time

func (t *timeValue) String() string { return "" }
func (t *timeValue) Type() string   { return "TIME" }

// Set implements pflag.Value.
func (t *timeValue) Set(s string) error {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04",
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			*t = timeValue(at)
			return nil
		}
	}
	return errors.New(`not a time: 2026-03-01, "2026-03-01 12:00" and 2026-03-01T12:00:00Z are possible`)
}

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
				e.Warnf("backup %s lacks something, fddhdb verify says what; it stays, and does not count",
					id)
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
		term.Plural(p.Objects, "object", "objects"), term.Size(p.Bytes),
		term.Plural(len(p.Kept), "backup", "backups"))
	if p.Running > 0 {
		e.Printf("%s being made: what is new for them stays too\n",
			term.Plural(p.Running, "backup is", "backups are"))
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
	return pruneJSON{ids(p.Deleted), ids(p.Kept), append([]string{}, p.Damaged...), p.Objects, p.Bytes,
		dryRun, seconds}
}

// verifyRepository verifies backups if name is a repository: any URL, or a folder that
// holds backups and no database. done is false otherwise.
func (e *env) verifyRepository(ctx context.Context, name string, deep, json bool) (done bool, err error) {
	isURL := scheme.MatchString(name)
	if _, err := os.Stat(filepath.Join(name, db.MarkerName)); !isURL &&
		(err == nil || errors.Is(err, fs.ErrPermission)) {
		return false, nil // what cannot be looked into is no database that opens, which says so
	}
	store, err := openRepository(ctx, name)
	if err != nil {
		return isURL, err
	}
	if deep {
		if _, err := backup.List(ctx, store); !isURL && holdsNone(err) {
			return false, nil
		}
		return true, exit.Usagef("--deep is for databases: restore makes one of a backup and verifies it")
	}
	p := e.NewProgress()
	defer p.End()
	list := findingList{env: e, json: json, damage: backup.ErrDamaged}
	opt := backup.VerifyOptions{Progress: p.Report}
	v, err := backup.Verify(ctx, store, opt, func(f backup.Finding) error { return list.add(f.String(), f) })
	p.End()
	switch {
	case !isURL && holdsNone(err):
		return false, nil // it may not be a database either
	case err != nil:
		list.abort()
		return true, repositoryError(name, err)
	}
	text := fmt.Sprintf("%s, %s, %s", term.Plural(v.Backups, "backup", "backups"),
		term.Plural(v.Objects, "object", "objects"), term.Size(v.Bytes))
	if v.Unneeded > 0 {
		text += fmt.Sprintf("; %s of %s that no backup needs, of interrupted ones most likely: prune deletes them",
			term.Plural(v.Unneeded, "object", "objects"), term.Size(v.UnneededBytes))
	}
	return true, list.end(v.Findings, repositoryJSON{OK: v.Findings == 0, Verification: v}, text)
}

// holdsNone reports whether an error says that there are no backups, not even damaged ones.
func holdsNone(err error) bool {
	return errors.Is(err, backup.ErrNotRepository) && !errors.Is(err, backup.ErrDamaged)
}

// repositoryJSON is the --json form of a verification of backups, without the findings.
type repositoryJSON struct {
	OK bool `json:"ok"`
	*backup.Verification
}

// A repository of backups is named by file:///PATH, a path, or s3://BUCKET/PREFIX.

// repositoryHelp explains the URL in the help of verbs that take one.
const repositoryHelp = `
			URL is where backups are kept: a folder, as file:///PATH or just as its path, or
			a bucket of S3 or of a store like it,
			  s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION
			of which the endpoint is needed for stores that are not Amazon's. Quote it: shells
			have other plans with ? and &. Credentials come from AWS_ACCESS_KEY_ID and
			AWS_SECRET_ACCESS_KEY, from ~/.aws, or from the role of the machine.`

// openRepository opens the store of a URL or path.
func openRepository(ctx context.Context, name string) (backup.Store, error) {
	if isS3(name) {
		o, err := s3.ParseURL(name)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		s, err := s3.Open(ctx, o)
		if err != nil { // never return a nil *s3.Store as a Store
			return nil, err
		}
		return s, nil
	}
	path, err := folderOf(name, runtime.GOOS == "windows")
	if err != nil {
		return nil, err
	}
	if isFile(path) {
		return nil, exit.Usagef("%s is a file; backups are kept in a folder", path)
	}
	// A database and a repository in one folder would disturb each other.
	switch dir := inside.Database(path); {
	case dir == "":
	case sameFile(dir, path):
		return nil, exit.Usagef("%s is a database, and not where backups are kept", path)
	default:
		return nil, exit.Usagef("%s is in the database %s: keep backups elsewhere, best on another disk",
			path, dir)
	}
	return backup.Folder(path)
}

func isS3(name string) bool { return strings.HasPrefix(strings.ToLower(name), "s3:") }

// scheme matches the beginning of a URL; a single letter is a Windows drive.
var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+):`)

// folderOf returns the path of a file URL or path.
func folderOf(name string, windows bool) (string, error) {
	found := scheme.FindStringSubmatch(name)
	if found == nil {
		return name, nil
	}
	switch strings.ToLower(found[1]) {
	case "file":
	case "http", "https":
		return "", exit.Usagef("%s: backups are kept in a folder, file:///PATH, or in a bucket, s3://BUCKET/PREFIX?endpoint=%s://HOST:PORT", term.Plain(name), found[1])
	default:
		return "", exit.Usagef("%s: backups are kept in a folder, file:///PATH, or in a bucket, s3://BUCKET/PREFIX; a path with a colon begins with ./", term.Plain(name))
	}
	u, err := url.Parse(name)
	if err != nil {
		return "", exit.Usagef("%s: file:///PATH is expected, with %%25 for a %%", term.Plain(name))
	}
	switch path := u.Path; {
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", exit.Usagef("%s: file:///PATH is expected, with %%3F for a ? and %%23 for a #",
			term.Plain(name))
	case path == "" || strings.ContainsRune(path, 0):
		return "", exit.Usagef("%s: file:///PATH is expected", term.Plain(name))
	case u.Host != "" && u.Host != "localhost":
		if windows {
			return filepath.FromSlash("//" + u.Host + path), nil
		}
		return "", exit.Usagef("%s: %s would be another machine: file:///PATH is expected, with three slashes, or just a path", term.Plain(name), u.Host)
	case windows && len(path) > 2 && path[2] == ':':
		return filepath.FromSlash(path[1:]), nil
	default:
		return filepath.FromSlash(path), nil
	}
}

// repositoryError adds advice to an error of package backup.
func repositoryError(name string, err error) error {
	switch {
	case errors.Is(err, backup.ErrNotRepository) && !holdsNone(err):
		return err // the marker is damaged, and the error says what to do
	case errors.Is(err, backup.ErrNotRepository) && !mayBegin(name):
		return exit.Usagef("%w: %s: give a folder with backups, or for a first one an empty folder", err,
			term.Plain(name))
	case errors.Is(err, backup.ErrNotRepository):
		return exit.Usagef("%w: %s: fddhdb backup DIR %s makes the first backup there", err, term.Plain(name),
			term.Plain(name))
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

// mayBegin reports whether a first backup may go to a URL or path: no folder with something else.
func mayBegin(name string) bool {
	path, err := folderOf(name, runtime.GOOS == "windows")
	return isS3(name) || err == nil && isEmpty(path)
}

// urlArg accepts the URL of a repository as the only argument.
func urlArg(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return exit.Usagef("%s needs the URL of the backups: fddhdb %s", cmd.Name(), cmd.Use)
	case len(args) > 1:
		return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[1], cmd.Use)
	}
	return nil
}

// twoArgs accepts a folder and a URL, in either order.
func twoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) < 2 || args[0] == "" || args[1] == "":
		return exit.Usagef("%s needs both the folder of a database and the URL of the backups: fddhdb %s",
			cmd.Name(), cmd.Use)
	case len(args) > 2:
		return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[2], cmd.Use)
	}
	return nil
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

// shortUUID returns enough of a UUID to tell databases apart.
func shortUUID(m *backup.Manifest) string {
	if m.Database == "" {
		return "-"
	}
	return fmt.Sprintf("%.8s", m.Database)
}

// followEvery is the interval in which follow reads the progress.
const followEvery = 200 * time.Millisecond

// follow runs f, and meanwhile shows the progress that the database reports for op, in
// bytes.
func follow(p *term.Progress, d *db.DB, op event.Op, f func() error) error {
	if p == nil {
		return f()
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			if stats, err := d.Stats(); err == nil {
				showRunning(p, op, stats.Activity.Running)
			}
		}
	}
}

// showRunning shows the progress of an operation.
func showRunning(p *term.Progress, op event.Op, all []event.RunningOperation) {
	for _, o := range all {
		if o.Op == op {
			p.Bytes(o.Stage, o.Done, o.Total)
		}
	}
}
