package beam

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/s3"
)

// store opens a repository of backups: a folder, or s3://BUCKET/PREFIX. A repository has nested folders,
// which the globs of Beam's other file systems do not reach.
func store(ctx context.Context, path string) (backup.Store, error) {
	switch {
	case strings.HasPrefix(path, "s3://"):
		o, err := s3.ParseURL(path)
		if err != nil {
			return nil, fault.Invalid("%w", err)
		}
		s, err := s3.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		return s, nil
	case remote(path):
		return nil, fault.Invalid(
			"%s: repositories of backups are folders, which all workers have, or s3://BUCKET/PREFIX", path)
	}
	return backup.Folder(path)
}

// newestBackup returns the id of the newest backup of a repository.
func newestBackup(ctx context.Context, path string) (string, error) {
	s, err := store(ctx, path)
	if err != nil {
		return "", err
	}
	m, err := backup.Find(ctx, s, backup.Choice{})
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return m.ID, nil
}

// restored are the backups that this process has restored, by repository and id.
var restored struct {
	sync.Mutex
	of map[string]*restoredBackup
}

type restoredBackup struct {
	once sync.Once
	dir  string
	d    *db.DB
	err  error
}

// withBackup calls f with a collection of a backup. A process restores each backup once, and keeps it until
// it ends.
func withBackup(ctx context.Context, path, id, collection string, f func(*db.Collection) error) error {
	restored.Lock()
	if restored.of == nil {
		restored.of = map[string]*restoredBackup{}
	}
	r := restored.of[path+" "+id]
	if r == nil {
		r = &restoredBackup{}
		restored.of[path+" "+id] = r
	}
	restored.Unlock()
	r.once.Do(func() { r.err = r.restore(ctx, path, id) })
	if r.err != nil {
		restored.Lock()
		if restored.of[path+" "+id] == r {
			delete(restored.of, path+" "+id) // the next one tries again
		}
		restored.Unlock()
		return errors.Join(fmt.Errorf("%s: %w", path, r.err), os.RemoveAll(r.dir))
	}
	c, err := r.d.Collection(collection)
	if err != nil {
		return err
	}
	return f(c)
}

func (r *restoredBackup) restore(ctx context.Context, path, id string) error {
	s, err := store(ctx, path)
	if err != nil {
		return err
	}
	if r.dir, err = newLocalDir("backup-*"); err != nil {
		return err
	}
	dir := filepath.Join(r.dir, "db")
	// All files are compared with their SHA-256; the backup itself has been verified otherwise.
	if _, err := db.Restore(ctx, s, dir, nil, db.RestoreOptions{ID: id, SkipVerify: true}); err != nil {
		return err
	}
	r.d, err = db.Open(dir, &db.Options{ReadOnly: true})
	return err
}

// Cleanup removes the copies and restored backups of this process. Call it when no pipeline is running.
func Cleanup() error {
	var errs []error
	restored.Lock()
	for _, r := range restored.of {
		if r.d != nil {
			errs = append(errs, r.d.Close())
		}
		if r.dir != "" {
			errs = append(errs, os.RemoveAll(r.dir))
		}
	}
	restored.of = nil
	restored.Unlock()
	workers.Lock()
	for _, w := range workers.of {
		errs = append(errs, w.close())
	}
	workers.of = nil
	workers.Unlock()
	copies.Lock()
	copies.files = nil
	copies.Unlock()
	return errors.Join(append(errs, removeLocal())...)
}

func (w *worker) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db == nil {
		return nil
	}
	d := w.db
	w.db, w.c = nil, nil
	return d.Close()
}
