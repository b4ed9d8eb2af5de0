package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
)

// Beside the database there are a repository for its backups, and a folder for
// checkpoints and restored databases.
func repositoryOf(dir string) string { return filepath.Join(filepath.Dir(dir), "backups") }
func copiesOf(dir string) string     { return filepath.Join(filepath.Dir(dir), "copies") }

const keptBackups = 2 // of each kind

// makeCopies backs up, prunes, restores and makes checkpoints. Each process uses the
// same names of folders, so that it writes over what the last one has left.
func (w *worker) makeCopies(ctx context.Context) error {
	r := rand.New(rand.NewPCG(w.Seed, 1<<33))
	store, err := backup.Folder(repositoryOf(w.Dir))
	if err != nil {
		return err
	}
	made := map[string]int{}
	for n := 1; ; n++ {
		op := &operation{N: n, Kind: []string{"backup", "backup", "backup", "backup", "prune", "prune",
			"checkpoint", "checkpoint", "restore"}[r.IntN(9)]}
		if op.Kind == "backup" || op.Kind == "checkpoint" {
			switch r.IntN(6) {
			case 0:
				op.Collection = features
			case 1:
				op.IndexOnly = true
			}
		}
		if op.Kind == "checkpoint" || op.Kind == "restore" {
			made[op.Kind]++
			op.Dir = fmt.Sprintf("%s %d", op.Kind, made[op.Kind])
		}
		to := filepath.Join(copiesOf(w.Dir), op.Dir)
		err := w.do(archivist, op, func() (res result, err error) {
			var m *backup.Manifest
			switch op.Kind {
			case "backup":
				m, err = w.d.Backup(ctx, store, db.BackupOptions{Collection: op.Collection,
					IndexOnly: op.IndexOnly})
			case "prune":
				_, err = backup.Prune(ctx, store, backup.PruneOptions{Keep: keptBackups})
			case "checkpoint":
				err = w.d.Checkpoint(ctx, to, db.CheckpointOptions{Collection: op.Collection,
					IndexOnly: op.IndexOnly})
			case "restore":
				m, err = db.Restore(ctx, store, to, nil, db.RestoreOptions{Database: w.d.UUID()})
			}
			if m != nil {
				res.ID = m.ID
			}
			if op.Kind != "backup" && (errors.Is(err, backup.ErrNotFound) ||
				errors.Is(err, backup.ErrNoBackup) || errors.Is(err, backup.ErrNotRepository)) {
				return result{Refused: err.Error()}, nil // there is no backup yet
			}
			return res, err
		})
		if err != nil {
			return err
		}
	}
}
