package killtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/report"
)

// A copied database was backed up or checkpointed. It holds, of each writer, at least
// the operations that were acknowledged when the copy began, and none that began after
// the copy was acknowledged. Its spaces, loads and imports are those of some time in
// between.
type copied struct {
	*operation
	writers []history
	spaces  []spaceHistory
	imports []importHistory
}

// copies is what processes have told of copies, over all processes.
type copies struct {
	going   *copied            // the copy that is not acknowledged
	backups map[string]*copied // the backups that have to exist, by id
	folders map[string]*copied // checkpoints and restored databases of this process, by name

	backedUp, restored, checked int
}

func newCopies() copies {
	return copies{backups: map[string]*copied{}, folders: map[string]*copied{}}
}

func (c *copies) begin(op *operation, b *book) {
	c.going = &copied{operation: op, spaces: []spaceHistory{b.spaces.clone()},
		imports: []importHistory{b.imports.clone()}}
	for i, n := range b.ackedNow() {
		c.going.writers = append(c.going.writers, b.writers[i])
		c.going.writers[i].synced = n
	}
}

// meanwhile notes a change of spaces, loads or imports during a copy.
func (c *copies) meanwhile(b *book) {
	if c.going != nil {
		c.going.spaces = append(c.going.spaces, b.spaces.clone())
		c.going.imports = append(c.going.imports, b.imports.clone())
	}
}

// end notes that nothing more can come into the copy that is being made.
func (c *copies) end(b *book) {
	if c.going == nil {
		return
	}
	for i := range c.going.writers {
		c.going.writers[i].ops = slices.Clip(b.writers[i].ops)
	}
}

// done notes the acknowledgement of an operation.
func (c *copies) done(r *result, b *book) {
	c.end(b)
	op := c.going
	c.going = nil
	switch {
	case r.Refused != "":
	case op.Kind == "backup":
		c.backups[r.ID] = op
		c.backedUp++
	case op.Kind == "checkpoint":
		c.folders[op.Dir] = op
	case op.Kind == "restore":
		was := c.backups[r.ID]
		if r.ID != c.newest() { // look fails because of it
			was = nil
		}
		c.folders[op.Dir] = was
	case op.Kind == "prune":
		for _, id := range c.doomed() {
			delete(c.backups, id)
		}
	}
}

func (op *operation) part() string { return fmt.Sprint(op.Collection, op.IndexOnly) }

// newest returns the id of the backup that a restore takes: the newest of everything,
// if there is one.
func (c *copies) newest() (best string) {
	for id, m := range c.backups {
		whole := m.part() == (&operation{}).part()
		was := best != "" && c.backups[best].part() == (&operation{}).part()
		if whole && !was || whole == was && id > best {
			best = id
		}
	}
	return best
}

// doomed returns the ids of the backups that a prune deletes.
func (c *copies) doomed() (ids []string) {
	kept := map[string]int{}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(c.backups))) {
		part := c.backups[id].part()
		if kept[part]++; kept[part] > keptBackups {
			ids = append(ids, id)
		}
	}
	return ids
}

// look compares copies with what was told of them, after a process was killed. The
// acknowledged backups exist, and no others but one that was being made. None of them
// is damaged, and a restored database is what the backup had. The same holds for
// checkpoints; incomplete ones do not count.
func (c *copies) look(ctx context.Context, dir string, random *rand.Rand, restore bool) error {
	going := &operation{}
	if c.going != nil {
		going = c.going.operation
	}
	store, err := backup.Folder(repositoryOf(dir))
	if err != nil {
		return err
	}
	if err := c.lookAtBackups(ctx, store, going); err != nil {
		return err
	}
	if err := c.lookAtFolders(ctx, copiesOf(dir), going, random); err != nil {
		return err
	}
	if id := c.newest(); restore && id != "" {
		if random.IntN(2) == 0 { // any other backup
			ids := slices.Sorted(maps.Keys(c.backups))
			id = ids[random.IntN(len(ids))]
		}
		to := filepath.Join(copiesOf(dir), "again")
		if _, err := db.Restore(ctx, store, to, nil, db.RestoreOptions{ID: id}); err != nil {
			return err
		}
		c.restored++
		if err := c.backups[id].check(ctx, to, random); err != nil {
			return fmt.Errorf("backup %s (%+v): %w", id, *c.backups[id].operation, err)
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
	}
	if random.IntN(4) == 0 {
		if err := age(repositoryOf(dir)); err != nil {
			return err
		}
	}
	c.going = nil
	clear(c.folders)
	return nil
}

func (c *copies) lookAtBackups(ctx context.Context, store backup.Store, going *operation) error {
	all, err := backup.List(ctx, store)
	if errors.Is(err, backup.ErrNotRepository) && len(c.backups) == 0 {
		return nil
	} else if err != nil {
		return err
	}
	there := map[string]bool{}
	completed := going.Kind != "backup"
	for _, m := range all {
		there[m.ID] = true
		if known := c.backups[m.ID]; known != nil {
			continue
		}
		if completed || m.Collection != going.Collection || m.IndexOnly != going.IndexOnly {
			return fmt.Errorf("backup %s of %q (index-only: %v) is there, and %+v was going on", m.ID,
				m.Collection, m.IndexOnly, going)
		}
		completed, c.backups[m.ID] = true, c.going
	}
	doomed := c.doomed()
	for _, id := range slices.Sorted(maps.Keys(c.backups)) {
		if there[id] {
			continue
		}
		if going.Kind != "prune" || !slices.Contains(doomed, id) {
			return fmt.Errorf("backup %s (%+v) is lost, of %d; %+v was going on", id,
				*c.backups[id].operation, len(all), going)
		}
		delete(c.backups, id)
	}
	v, err := backup.Verify(ctx, store, backup.VerifyOptions{},
		func(f backup.Finding) error { return errors.New(f.String()) })
	if err == nil && v.Backups != len(c.backups) {
		err = fmt.Errorf("%d backups are sound of %d", v.Backups, len(c.backups))
	}
	return err
}

func (c *copies) lookAtFolders(ctx context.Context, dir string, going *operation, random *rand.Rand) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) && len(c.folders) == 0 {
		return nil
	} else if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for name := range c.folders {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s is lost, of %q", name, names)
		}
	}
	checked := false
	for _, name := range names {
		made, is := c.folders[name]
		full := filepath.Join(dir, name)
		if !is { // nobody has said so
			d, err := db.Open(full, &db.Options{MustExist: true, ReadOnly: true})
			if errors.Is(err, db.ErrNotDatabase) {
				continue // the next copy of this name clears it away
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := d.Close(); err != nil {
				return err
			}
			// A checkpoint gets its name last of all.
			if going.Dir != strings.TrimSuffix(name, ".incomplete") {
				return fmt.Errorf("%s is there, and %+v was going on", name, going)
			}
			if made = c.going; going.Kind == "restore" {
				made = c.backups[c.newest()]
			}
		}
		if made == nil {
			return fmt.Errorf("%s was restored of a backup that is not the newest", name)
		}
		if !is || !checked || random.IntN(4) == 0 {
			if err := made.check(ctx, full, random); err != nil {
				return fmt.Errorf("%s (%+v): %w", name, *made.operation, err)
			}
			c.checked++
			checked = true
		}
		if err := os.RemoveAll(full); err != nil {
			return err
		}
	}
	return nil
}

// check opens a copy in dir and compares it with what may be in it.
func (c *copied) check(ctx context.Context, dir string, random *rand.Rand) (err error) {
	d, err := db.Open(dir, &db.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := completed(ctx, d); err != nil {
		return err
	}
	var all contents
	var there map[int]bool
	names, err := d.Collections()
	switch {
	case err != nil:
	case c.Collection != "":
		if !slices.Equal(names, []string{c.Collection}) {
			return fmt.Errorf("it has the collections %q", names)
		}
		all, err = readCollection(ctx, d, c.Collection, !c.IndexOnly)
	default:
		if all, err = read(ctx, d, !c.IndexOnly); err == nil {
			there, err = loaded(ctx, d)
		}
		if err == nil {
			err = c.checkImports(ctx, d)
		}
	}
	if err != nil {
		return err
	}
	if _, err := agree(c.writers, all); err != nil {
		return err
	}
	infos, err := spacesOf(ctx, d)
	if err != nil {
		return err
	}
	alterations, err := altered(d)
	if err != nil {
		return err
	}
	var reasons error
	for _, at := range c.spaces {
		s := at.clone()
		err := s.accept(there, infos, alterations)
		if err == nil {
			reasons = nil
			break
		}
		reasons = errors.Join(reasons, err)
	}
	if reasons != nil {
		return reasons
	}
	for _, name := range names {
		coll, err := d.Collection(name)
		if err == nil {
			err = checkSearches(ctx, coll, random)
		}
		if err != nil {
			return fmt.Errorf("collection %q: %w", name, err)
		}
	}
	v, err := d.Verify(ctx, db.VerifyOptions{},
		func(f report.Finding) error { return errors.New(f.String()) })
	if err == nil && v.Items < len(all) {
		err = fmt.Errorf("%d items were verified of %d", v.Items, len(all))
	}
	return err
}

// checkImports compares imports.
func (c *copied) checkImports(ctx context.Context, d *db.DB) error {
	counts, _, err := imported(ctx, d)
	if err == nil {
		err = acceptsOneOf(c.imports, counts)
	}
	return err
}

// age makes the files of killed backups and prunes old enough to be collected. All
// unfinished ones are killed by now.
func age(repository string) error {
	then := time.Now().Add(-25 * time.Hour)
	files, err := unfinished(repository)
	for _, file := range files {
		err = errors.Join(err, os.Chtimes(filepath.Join(repository, file), then, then))
	}
	return err
}

// unfinished returns the files that backups and prunes hold in a repository while they
// run, or leave there when they are killed.
func unfinished(repository string) ([]string, error) {
	var files []string
	err := fs.WalkDir(os.DirFS(repository), ".", func(file string, e fs.DirEntry, err error) error {
		switch folder := path.Dir(file); {
		case file == "." && errors.Is(err, fs.ErrNotExist): // no backup has begun yet
		case err != nil:
			return err
		case !e.IsDir() && (folder == "running" || folder == "pruning" || path.Base(folder) == ".incoming"):
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

// leftovers prunes a repository that is no longer used. It returns the files that none
// of its backups needs.
func leftovers(ctx context.Context, repository string) ([]string, error) {
	if err := age(repository); err != nil {
		return nil, err
	}
	store, err := backup.Folder(repository)
	if err != nil {
		return nil, err
	}
	for range 2 { // the plan of a killed prune goes after the files that it names
		_, err := backup.Prune(ctx, store, backup.PruneOptions{Keep: keptBackups})
		// all backups were killed: nobody may delete what they have left
		if errors.Is(err, backup.ErrNoBackup) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	v, err := backup.Verify(ctx, store, backup.VerifyOptions{},
		func(f backup.Finding) error { return errors.New(f.String()) })
	if err != nil {
		return nil, err
	}
	var left []string
	if v.Unneeded > 0 {
		left = append(left, fmt.Sprint(v.Unneeded, " objects"))
	}
	files, err := unfinished(repository)
	return append(left, files...), err
}
