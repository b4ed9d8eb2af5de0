package command

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
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
func (e *env) backUp(ctx context.Context, dir, name string, opt db.BackupOptions) (m *backup.Manifest, err error) {
	if isFile(dir) {
		return nil, exit.Usagef("not a database: %s is a file; a database is a folder", dir)
	}
	store, err := openRepository(ctx, name)
	if err != nil {
		return nil, err
	}
	// A copy of everything only reads. A part is written anew first, into the folder of the
	// database where that can be.
	d, closeDB, err := e.open(dir, &db.Options{MustExist: true, ReadOnly: opt.Collection == "" && !opt.IndexOnly})
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
	e.Printf("%s, of which %s had to be stored, in %s\n", term.Size(m.BytesTotal), term.Size(m.BytesNew), term.Seconds(took))
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
	return backupJSON{m.ID, m.Time, m.Database, m.Sequence, m.Collection, m.IndexOnly, m.BytesTotal, m.BytesNew, seconds}
}
