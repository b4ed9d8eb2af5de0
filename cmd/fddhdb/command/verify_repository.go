package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
)

// verifyRepository verifies backups if name is a repository: any URL, or a folder that
// holds backups and no database. done is false otherwise.
func (e *env) verifyRepository(ctx context.Context, name string, deep, json bool) (done bool, err error) {
	isURL := scheme.MatchString(name)
	if _, err := os.Stat(filepath.Join(name, db.MarkerName)); !isURL && (err == nil || errors.Is(err, fs.ErrPermission)) {
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
	text := fmt.Sprintf("%s, %s, %s", term.Plural(v.Backups, "backup", "backups"), term.Plural(v.Objects, "object", "objects"), term.Size(v.Bytes))
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
