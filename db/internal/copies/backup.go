package copies

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// Backup stores the database in a repository, and returns the manifest of the backup. It
// makes a checkpoint or an extract in a folder of its own, below checkpoints/ of the
// database, stores its files and removes it, also after an error. Several may run at once.
//
// A database that is open for reading only is on a medium that may refuse every write, and
// its lock keeps writers out. So its files are stored from where they are, and an extract
// goes to the folder of the operating system for temporary files.
//
// The UUID of their database tells backups apart. A backup of a part keeps the UUID, unlike an extract of
// Checkpoint; the manifest names the part. The caller adds the subject to errors.
func (c *Copier) Backup(ctx context.Context, to backup.Store,
	opt CheckpointOptions) (m *backup.Manifest, err error) {
	about := backup.Manifest{
		Database: c.identity.Text(), Format: record.Format, Collection: opt.Collection,
		IndexOnly: opt.IndexOnly,
	}
	// An extract is of this view. A copy of everything is of the commit that checkpointStore finds,
	// which is no earlier.
	v := c.db.Latest()
	defer v.Release()
	about.Sequence = v.Sequence
	whole := opt.Collection == "" && !opt.IndexOnly
	var files []backup.Source
	if whole && c.readOnly {
		files, err = backupSources(c.cfg.FS, c.db.Engine.Dir)
	} else {
		fsys, above := c.cfg.FS, c.cfg.FS.PathJoin(c.db.Engine.Dir, store.CheckpointsName)
		if c.readOnly {
			above = os.TempDir()
		}
		dir := fsys.PathJoin(above, fmt.Sprintf("fddhdb-backup-%016x", rand.Uint64()))
		defer func() {
			// If the folder cannot be removed now, Open removes it: it clears checkpoints/.
			_ = fsys.RemoveAll(dir)
		}()
		if err := fsys.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if whole {
			about.Sequence, err = c.copyWhole(ctx, dir)
		} else {
			err = c.copyPart(ctx, v, dir, opt)
		}
		if err == nil {
			files, err = backupSources(fsys, dir)
		}
	}
	if err != nil {
		return nil, err
	}
	if whole {
		c.tables.know(files)
	}
	m, err = backup.Create(ctx, c.keepingRoom(to), about, files, backup.CreateOptions{Progress: opt.Progress})
	// Only a complete backup is remembered: an object of a failed one may be missing.
	if err == nil && whole {
		c.tables.remember(m)
	}
	if err == nil {
		c.last.Store(&report.LastBackup{ID: m.ID, Time: m.Time, Sequence: m.Sequence,
			BytesTotal: m.BytesTotal, BytesNew: m.BytesNew})
	}
	return m, err
}

// copyWhole makes a copy of everything in the folder dir, and returns the sequence of the copy.
func (c *Copier) copyWhole(ctx context.Context, dir string) (uint64, error) {
	fsys := c.cfg.FS
	i, err := c.checkpointStore(ctx, fsys.PathJoin(dir, store.StoreName))
	if err == nil {
		err = vfs.Copy(fsys, fsys.PathJoin(c.db.Engine.Dir, store.MarkerName),
			fsys.PathJoin(dir, store.MarkerName))
	}
	return i.Sequence, err
}

// copyPart makes an extract of a view in the folder dir.
func (c *Copier) copyPart(ctx context.Context, v *state.View, dir string, opt CheckpointOptions) error {
	x, err := c.newExtract(v, opt)
	if err != nil {
		return err
	}
	// Panics of the goroutines that write tables come here, and must not end the process.
	return work.Safely(func() error { return x.writeFolder(ctx, dir) })
}

// keepingRoom returns the store. If it is a folder, it refuses each Put that would leave less
// free space than the reserve. Objects of a failed backup stay, for the next one. If they filled
// the disk to the last byte, a database on that disk could not be opened any more, not even to
// delete something.
func (c *Copier) keepingRoom(to backup.Store) backup.Store {
	path := backup.FolderPath(to)
	if path == "" {
		return to
	}
	for { // the first Put makes the folder
		if _, err := vfs.Default.Stat(path); err == nil || vfs.Default.PathDir(path) == path {
			break
		}
		path = vfs.Default.PathDir(path)
	}
	return &roomyStore{to, &store.Reserve{FS: vfs.Default, Dir: path, Path: path, Want: c.cfg.ReserveBytes}}
}

// A roomyStore is a store that leaves a reserve.
type roomyStore struct {
	backup.Store
	room *store.Reserve
}

func (s *roomyStore) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	if err := s.room.Admit(size, false); err != nil {
		return err
	}
	return s.Store.Put(ctx, name, r, size)
}

// backupSources returns the marker of the database in a folder and the files of its store, in
// a fixed order and under the names that they have in a backup. It leaves out locks, the spare file, and all
// else that is beside the store: a restore makes a new side file.
func backupSources(fsys vfs.FS, dir string) ([]backup.Source, error) {
	path := store.Path(fsys, dir) // where an interrupted repair has left it
	names, err := fsys.List(path)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []backup.Source
	add := func(name, full string) error {
		info, err := fsys.Stat(full)
		if err == nil && info.Mode().IsRegular() {
			all = append(all, backup.Source{Path: name, Size: info.Size(),
				Open: func() (backup.SourceFile, error) {
					return fsys.Open(full)
				}})
		}
		return err
	}
	if err := add(store.MarkerName, fsys.PathJoin(dir, store.MarkerName)); err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == store.LockName || name == store.SpareName {
			continue
		}
		if err := add(store.StoreName+"/"+name, fsys.PathJoin(path, name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// backedUp remembers the pieces in which a backup stored the tables of the database, so that the next one
// need not read these tables. A table never changes, and while a database is open, no two tables get the same
// number. After it is opened again that is not certain, because the folder may have been replaced. So this is
// in memory only, and extracts, whose tables have numbers of their own, are no part of it.
//
// The repository of the next backup may lack these pieces: backup.Create looks for each piece, and reads the
// table if it is missing.
type backedUp struct {
	mu sync.Mutex // guards files; held alone
	// tables of the last complete backup of the whole database, by path in the backup
	files map[string]backup.File
}

// know fills in the pieces of files that the last backup has stored.
func (b *backedUp) know(files []backup.Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range files {
		if f, ok := b.files[files[i].Path]; ok && f.Size == files[i].Size {
			files[i].Pieces = f.Pieces
		}
	}
}

// remember keeps the pieces of the tables of a backup, and forgets the pieces of the one before.
func (b *backedUp) remember(m *backup.Manifest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files = map[string]backup.File{}
	for _, f := range m.Files {
		if strings.HasSuffix(f.Path, ".sst") || strings.HasSuffix(f.Path, ".blob") {
			b.files[f.Path] = f
		}
	}
}
