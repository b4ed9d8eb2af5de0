package db_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/report"
)

// A soakedArchive makes copies of a database that is written to. What a copy has to hold is told by a
// collection of accounts, between which one goroutine makes transfers: their sum never changes, and how many
// there have been stands in the last two that were changed.
type soakedArchive struct {
	t     *testing.T
	d     *db.DB
	c     *db.Collection
	root  string
	store backup.Store

	going        sync.RWMutex             // read-locked while a copy is made or read
	begun, acked atomic.Int64             // transfers
	bounds       map[string][2]int64      // of backups, by id: the least and most transfers in them
	mu           sync.Mutex               // of bounds
	made         map[string]*atomic.Int64 // how often each has been done
}

const (
	soakedAccounts = 50
	soakedBalance  = 1000
)

func newSoakedArchive(t *testing.T, d *db.DB, root string) *soakedArchive {
	t.Helper()
	a := &soakedArchive{t: t, d: d, root: root, bounds: map[string][2]int64{},
		made: map[string]*atomic.Int64{}}
	for _, what := range []string{"backups", "restores", "checkpoints"} {
		a.made[what] = new(atomic.Int64)
	}
	a.store = need(backup.Folder(filepath.Join(root, "backups")))(t)
	a.c = need(d.CreateCollection(ctx, "accounts", db.Schema{Bits: 16, Fields: []db.Field{{Name: "balance",
		Type: db.Int}, {Name: "at", Type: db.Int, Indexed: true}}}))(t)
	for i := range soakedAccounts {
		need(a.c.Put(ctx, account(i, soakedBalance, 0)))(t)
	}
	mustBackup(t, d, a.store, db.BackupOptions{}) // so that there is one for whoever comes first
	return a
}

func account(i int, balance, at int64) *db.Item {
	return &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(balance), byte(i)},
		Fields: map[string]any{"balance": balance, "at": at}}
}

// transfer moves something from one account to another.
func (a *soakedArchive) transfer(ctx context.Context, r *rand.Rand) error {
	from, to := r.IntN(soakedAccounts), r.IntN(soakedAccounts-1)
	if to >= from {
		to++
	}
	var balances [2]int64
	for j, i := range []int{from, to} {
		it, err := a.c.Get(ctx, fmt.Sprint(i))
		if err != nil {
			return err
		}
		balances[j], _ = it.Fields["balance"].(int64)
	}
	amount, n := r.Int64N(10), a.begun.Add(1)
	b := a.d.NewBatch()
	if err := errors.Join(b.Put(a.c, account(from, balances[0]-amount, n)),
		b.Put(a.c, account(to, balances[1]+amount, n))); err != nil {
		return err
	}
	if err := b.Commit(ctx); err != nil {
		return err
	}
	a.acked.Store(n)
	return nil
}

// backUp makes a backup, of everything or of a part.
func (a *soakedArchive) backUp(ctx context.Context, r *rand.Rand) error {
	a.going.RLock()
	defer a.going.RUnlock()
	var opt db.BackupOptions
	switch r.IntN(6) {
	case 0:
		opt.Collection = "accounts"
	case 1:
		opt.IndexOnly = true
	}
	least := a.acked.Load()
	m, err := a.d.Backup(ctx, a.store, opt)
	if err != nil {
		return err
	}
	a.made["backups"].Add(1)
	a.mu.Lock()
	a.bounds[m.ID] = [2]int64{least, a.begun.Load()}
	a.mu.Unlock()
	return nil
}

// restore restores the newest backup, or the newest part, and checks it. It may be pruned meanwhile.
func (a *soakedArchive) restore(ctx context.Context, r *rand.Rand) error {
	a.going.RLock()
	defer a.going.RUnlock()
	all, err := backup.List(ctx, a.store)
	if err != nil {
		return err
	}
	dir := filepath.Join(a.root, "restored")
	defer os.RemoveAll(dir)
	id := "" // the newest one
	if r.IntN(2) == 0 {
		id = all[len(all)-1].ID
	}
	m, err := db.Restore(ctx, a.store, dir, nil, db.RestoreOptions{ID: id})
	if errors.Is(err, backup.ErrNotFound) || errors.Is(err, backup.ErrDamaged) {
		if _, ferr := backup.Find(ctx, a.store, backup.Choice{ID: id}); id != "" &&
			errors.Is(ferr, backup.ErrNotFound) {
			return nil // pruned meanwhile
		}
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	bounds, known := a.bounds[m.ID]
	a.mu.Unlock()
	if !known { // it has not been said yet what must be in it
		bounds = [2]int64{0, a.begun.Load()}
	}
	a.made["restores"].Add(1)
	return fault.Annotate(a.check(dir, bounds), "backup %s", m.ID)
}

// checkpoint makes a checkpoint and checks it.
func (a *soakedArchive) checkpoint(ctx context.Context, r *rand.Rand) error {
	a.going.RLock()
	defer a.going.RUnlock()
	dir := filepath.Join(a.root, "checkpoint")
	defer os.RemoveAll(dir)
	least := a.acked.Load()
	if err := a.d.Checkpoint(ctx, dir, db.CheckpointOptions{IndexOnly: r.IntN(3) == 0}); err != nil {
		return err
	}
	a.made["checkpoints"].Add(1)
	return fault.Annotate(a.check(dir, [2]int64{least, a.begun.Load()}), "checkpoint")
}

// check opens a copy, verifies it, and compares its accounts with how many transfers it may have seen.
func (a *soakedArchive) check(dir string, bounds [2]int64) (err error) {
	d, err := db.Open(dir, &db.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := d.Collection("accounts")
	if err != nil {
		return err
	}
	var sum, last int64
	changed := 0
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			return err
		}
		balance, _ := it.Fields["balance"].(int64)
		at, _ := it.Fields["at"].(int64)
		if sum += balance; at > last {
			last, changed = at, 0
		}
		if at == last {
			changed++
		}
	}
	if sum != soakedAccounts*soakedBalance || last > 0 && changed != 2 || last < bounds[0] ||
		last > bounds[1] {
		return fmt.Errorf(
			"fddhdb: the accounts have %d, after %d transfers, the last of which has changed %d; between %d and %d had been made", sum, last, changed, bounds[0], bounds[1])
	}
	_, err = d.Verify(ctx, db.VerifyOptions{}, func(f report.Finding) error { return errors.New(f.String()) })
	return err
}

// close checks what is there in the end, and says what was made.
func (a *soakedArchive) close() {
	a.t.Helper()
	fine(a.t, errOf(backup.Prune(ctx, a.store, backup.PruneOptions{Keep: 2})))
	v := soundRepository(a.t, a.store)
	for what, n := range a.made {
		failIf(a.t, n.Load() == 0, "there were no %s", what)
	}
	a.t.Logf(
		"%d transfers, %d backups, %d restored, %d checkpoints; %d backups are left, %d MiB, and %d objects that none needs", a.acked.Load(), a.made["backups"].Load(), a.made["restores"].Load(), a.made["checkpoints"].Load(), v.Backups, v.Bytes>>20, v.Unneeded)
}

// atRest collects garbage while no copy is made or read, whose buffers are many times what
// is here, and reads what memory is left.
func (a *soakedArchive) atRest(m *runtime.MemStats) {
	a.going.Lock()
	defer a.going.Unlock()
	runtime.GC() // which pools survive once
	runtime.GC()
	runtime.ReadMemStats(m)
}

// size returns the bytes of the repository.
func (a *soakedArchive) size() (bytes int64) {
	_ = filepath.WalkDir(filepath.Join(a.root, "backups"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // it has gone meanwhile
		}
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// filesOpen returns how many files this process has open, 0 where that cannot be told.
func filesOpen() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
