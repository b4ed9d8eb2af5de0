package db

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Whichever call of a store fails, or is the last one before the context ends: backup,
// restore and prune say so, nothing half-done is left, and what was there stays.
func TestEveryFailedCallOfAStore(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		repo, mem := newMemStore(), vfs.NewMem()
		d := mustOpen(t, "db", &Options{FS: mem})
		c, err := d.CreateCollection(ctx, "main", pairsSchema)
		if err != nil {
			t.Fatal(err)
		}
		items := pairs(100, synth.Config{})
		putAll(t, c, items[:10])
		first := mustBackup(t, d, repo, BackupOptions{})
		want := context.Canceled
		if !cancelled {
			want = errInjected
		}
		// try does something with a store of which call k fails, for all k.
		try := func(what string, prepare func(), do func(ctx context.Context, s backup.Store) error) {
			for k := int64(0); ; k++ {
				if testing.Short() && k%3 != 0 {
					continue
				}
				prepare()
				ctx, cancel := context.WithCancel(ctx)
				s := &failingStore{Store: repo}
				s.k.Store(k)
				if cancelled {
					s.cancel = cancel
				}
				err := do(ctx, s)
				cancel()
				if s.k.Load() >= 0 {
					if err != nil {
						t.Fatalf("%s without a failure: %v", what, err)
					}
					return
				}
				if err != nil && (!errors.Is(err, want) || !strings.HasPrefix(err.Error(), "fddhdb: ")) {
					t.Fatalf("%s, call %d: %v", what, k, err)
				}
			}
		}
		n := 10
		try("backup", func() {
			if n < len(items) {
				putAll(t, c, items[n:n+1])
				n++
			}
		}, func(ctx context.Context, s backup.Store) error {
			_, err := d.Backup(ctx, s, BackupOptions{})
			return err
		})
		soundRepository(t, repo)
		try("restore", func() {
			if err := mem.RemoveAll("r"); err != nil {
				t.Fatal(err)
			}
		}, func(ctx context.Context, s backup.Store) error {
			_, err := Restore(ctx, s, "r", &Options{FS: mem}, RestoreOptions{ID: first.ID})
			if _, serr := mem.Stat("r"); err != nil && !errors.Is(serr, fs.ErrNotExist) {
				t.Errorf("after %v the folder is there", err)
			}
			return err
		})
		all := repo.clone()
		try("prune", func() { repo.put(all) }, func(ctx context.Context, s backup.Store) error {
			_, err := backup.Prune(ctx, s, backup.PruneOptions{Keep: 1})
			soundRepository(t, repo)
			return err
		})
		if v := soundRepository(t, repo); v.Backups == 0 {
			t.Error("no backup is left")
		}
		r := restored(t, repo, RestoreOptions{})
		sameContents(t, d, r)
		mustClose(t, r)
		mustClose(t, d)
	}
}

// failAt fails the k-th operation on files, once it is armed.
type failAt struct {
	failOnce
	armed bool
	path  string // of what has failed
}

func (f *failAt) MaybeError(op errorfs.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fired || !f.armed {
		return nil
	}
	if f.k--; f.k < 0 {
		f.fired, f.path = true, op.Path
		return errInjected
	}
	return nil
}

// Whichever operation on the files of a restore fails: there is no database, or, if the
// restore says so, the whole; and another restore puts it there.
func TestEveryFailedOperationOfARestore(t *testing.T) {
	longTest(t)
	_, repo := memWorld(t)
	for k := 0; ; k++ {
		if !sampled(k, 3) {
			continue
		}
		mem := vfs.NewMem()
		fail := &failAt{failOnce: failOnce{k: k}, armed: true}
		_, err := Restore(ctx, repo, "r", &Options{FS: errorfs.Wrap(mem, fail)}, RestoreOptions{})
		opts := &Options{FS: mem, MustExist: true}
		if err != nil {
			if !fail.fired || !strings.HasPrefix(err.Error(), "fddhdb: ") {
				t.Fatalf("operation %d, %s: %v", k, fail.path, err)
			}
			if d, err := Open("r", opts); !errors.Is(err, ErrNotDatabase) {
				if err == nil {
					d.Close()
				}
				t.Fatalf("operation %d, %s: after a restore that failed: %v", k, fail.path, err)
			}
			if _, err := Restore(ctx, repo, "r", &Options{FS: mem}, RestoreOptions{}); err != nil {
				t.Fatalf("operation %d, %s: again: %v", k, fail.path, err)
			}
		}
		d := mustOpen(t, "r", opts)
		if n, err := mustCollection(t, d, "main").Count(); n != 20 || err != nil {
			t.Fatalf("operation %d: %d items, %v", k, n, err)
		}
		mustClose(t, d)
		if !fail.fired {
			t.Logf("%d operations failed in turn", k)
			return
		}
	}
}

// Whichever operation on files fails during a backup: the backup fails or is whole, and
// unless it was one on the store itself, the database goes on.
func TestEveryFailedOperationOfABackup(t *testing.T) {
	longTest(t)
	items := pairs(10_000, synth.Config{})
	mem, repo := memWorld(t)
	for k := 0; ; k++ {
		if !sampled(k, 3) {
			continue
		}
		fail := &failAt{failOnce: failOnce{k: k}}
		d := mustOpen(t, "db", &Options{FS: errorfs.Wrap(mem, fail)})
		c := mustCollection(t, d, "main")
		if _, err := c.Put(ctx, items[k]); err != nil {
			t.Fatal(err)
		}
		fail.mu.Lock()
		fail.armed = true
		fail.mu.Unlock()
		m, err := d.Backup(ctx, repo, BackupOptions{})
		fail.mu.Lock()
		fired, path := fail.fired, fail.path
		fail.armed = false
		fail.mu.Unlock()
		if err == nil && k%5 == 0 {
			r := restored(t, repo, RestoreOptions{ID: m.ID})
			sameContents(t, d, r)
			mustClose(t, r)
		}
		if err != nil && (!fired || !strings.HasPrefix(err.Error(), "fddhdb: ")) {
			t.Fatalf("operation %d, %s: %v", k, path, err)
		}
		_, err = c.Put(ctx, &Item{Key: "after"})
		if err != nil && strings.HasSuffix(path, ".sst") && !strings.Contains(path, store.CheckpointsName) && !errors.Is(err, ErrFailed) {
			_, err = c.Put(ctx, &Item{Key: "after"}) // it waited for the same reading of a table, which can be read again
		}
		if err != nil && (strings.Contains(path, store.CheckpointsName) || !errors.Is(err, ErrFailed)) {
			t.Fatalf("operation %d, %s: a write: %v", k, path, err)
		}
		if cerr := d.Close(); cerr != nil && err == nil {
			t.Fatalf("operation %d, %s: %v", k, path, cerr)
		}
		if !fired {
			t.Logf("%d operations failed in turn", k)
			soundRepository(t, repo)
			return
		}
	}
}

// memWorld makes a small database in memory, and a backup of it.
func memWorld(t *testing.T) (vfs.FS, *memStore) {
	t.Helper()
	repo, mem := newMemStore(), vfs.NewMem()
	d := mustOpen(t, "db", &Options{FS: mem})
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, c, pairs(20, synth.Config{}))
	mustBackup(t, d, repo, BackupOptions{})
	mustClose(t, d)
	return mem, repo
}
