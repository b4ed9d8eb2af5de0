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
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// A soakSample is what a process holds at some time.
type soakSample struct {
	at         time.Duration
	heap       uint64 // bytes in use after a garbage collection
	goroutines int
	files      int // open, where that can be told
	disk       int64
	repository int64
	operations int64
}

// Writers, searches, trainings, updates, reindexings, loads, imports, alterations, snapshots,
// compactions, backups, prunes, restores and checkpoints go on all at once, for as long as it
// is told to: nothing fails; memory, goroutines, open files, the folder and the repository do
// not grow; what is restored is what was there; and in the end everything is in order.
func TestSoak(t *testing.T) {
	if *dbkit.Soak == 0 {
		t.Skip("give it -soak TIME")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "db")
	d := dbkit.MustOpen(t, dir, &db.Options{UpdateItems: 300, CacheBytes: 16 << 20})
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	must(t, err)
	items := dbkit.ViewItems(2000, 21)
	for i, it := range items {
		it.Fields = map[string]any{"year": i % 50}
	}
	train(t, c, items, dbkit.TinyTraining(1))
	stopping, stop := context.WithTimeout(ctx, *dbkit.Soak)
	defer stop()
	var operations atomic.Int64
	var all sync.WaitGroup
	first := seed.From(t, 3)
	// each does f again and again, which may be refused with these errors.
	each := func(name string, pause time.Duration, f func(r *rand.Rand) error, allowed ...error) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(first, uint64(len(name))))
			for stopping.Err() == nil && !t.Failed() {
				err := f(r)
				if err != nil && !slices.ContainsFunc(allowed,
					func(a error) bool { return errors.Is(err, a) }) && stopping.Err() == nil {
					t.Errorf("%s: %v", name, err)
				}
				operations.Add(1)
				select {
				case <-time.After(pause):
				case <-stopping.Done():
				}
			}
		})
	}
	for w := range 2 {
		each(fmt.Sprint("writer", w), 0, func(r *rand.Rand) error {
			b := d.NewBatch()
			for range 1 + r.IntN(8) {
				it := *items[r.IntN(len(items))]
				switch r.IntN(8) {
				case 0:
					b.Delete(c, it.Key)
				case 1, 2:
					b.Merge(c, &db.Item{Key: it.Key, Payload: make([]byte, r.IntN(300))})
				default:
					it.Vectors = items[r.IntN(len(items))].Vectors
					b.Put(c, &it)
				}
			}
			return b.Commit(stopping)
		})
		each(fmt.Sprint("search", w, w), 0, func(r *rand.Rand) error {
			q := db.Query{
				Key: items[r.IntN(len(items))].Key, To: []string{"image", "text"}[r.IntN(2)],
				K:     1 + r.IntN(50),
				Where: []string{"", "year < 20", "label = 'class1'"}[r.IntN(3)],
				Plan:  []db.Plan{db.PlanAuto, db.PlanScan, db.PlanDisk, db.PlanBlockScan}[r.IntN(4)],
			}
			if r.IntN(3) > 0 {
				_, err := c.Search(stopping, q)
				return err
			}
			_, err := dbkit.FirstWithin(c, q, r.IntN(5))
			return err
		}, db.ErrNotFound, db.ErrInvalid)
	}
	each("spaces", 50*time.Millisecond, func(r *rand.Rand) error {
		infos, err := c.Spaces(stopping)
		if err != nil {
			return err
		}
		some := infos[r.IntN(len(infos))].Space
		switch k := r.IntN(8); {
		case len(infos) > 3 || k == 0:
			return c.DropSpace(stopping, some)
		case k == 1:
			opt := dbkit.TinyTraining(r.Uint64())
			opt.Activate, opt.Rows = r.IntN(2) == 0, 300
			_, err = c.Train(stopping, opt)
		case k < 4:
			_, err = c.Reindex(stopping, db.ReindexOptions{Activate: r.IntN(2) == 0})
		case k < 6:
			_, err = c.Update(stopping, db.UpdateOptions{Space: some, Teacher: db.TeacherLabels})
		case k == 6:
			err = c.Activate(stopping, some)
		default:
			_, err = c.Rollback(stopping)
		}
		return err
	}, db.ErrInvalid, db.ErrNotFound, db.ErrBusy)
	each("loads", 5*time.Second, func(r *rand.Rand) error {
		other, err := d.CreateCollection(stopping, "other", db.Schema{Bits: 64})
		if err != nil {
			return err
		}
		b := d.NewBatch()
		for i := range 8 * bulkItems {
			if err := b.Put(other, &db.Item{Key: fmt.Sprint(i),
				Code: []byte{byte(i), byte(i >> 8), byte(r.IntN(256)), 0, 0, 0, 0, 0}}); err != nil {
				return err
			}
		}
		err = b.Commit(stopping)
		return errors.Join(err, d.DropCollection(ctx, "other"))
	})
	each("snapshots", 100*time.Millisecond, func(r *rand.Rand) error {
		snap, err := d.Snapshot()
		if err != nil {
			return err
		}
		defer snap.Close()
		then, err := snap.Collection("main")
		if err != nil {
			return err
		}
		n := 0
		for _, err := range then.Items(stopping, "") {
			if err != nil {
				return err
			}
			n++
		}
		if count, err := then.Count(t.Context(), ""); err != nil || count != n {
			return fmt.Errorf("%d items of %d in a snapshot: %v", n, count, err)
		}
		return nil
	})
	into, err := d.CreateCollection(ctx, "imports", db.Schema{Bits: 16})
	must(t, err)
	each("imports", 200*time.Millisecond,
		func(r *rand.Rand) error { return importAgain(stopping, d, into, r) })
	alterations := int64(0)
	each("alterations", *dbkit.Soak/40, func(*rand.Rand) error {
		alterations++
		return c.Alter(stopping, steadyAlteration(alterations))
	})
	each("compactions", 10*time.Second, func(*rand.Rand) error { return d.Compact(stopping) })
	a := newSoakedArchive(t, d, root)
	each("transfers", 0, func(r *rand.Rand) error { return a.transfer(stopping, r) })
	each("backups", 300*time.Millisecond, func(r *rand.Rand) error { return a.backUp(stopping, r) })
	each("prunes", time.Second, func(*rand.Rand) error {
		a.going.RLock()
		defer a.going.RUnlock()
		_, err := backup.Prune(stopping, a.store, backup.PruneOptions{Keep: 2})
		return err
	})
	each("restores", 3*time.Second, func(r *rand.Rand) error { return a.restore(stopping, r) })
	each("checkpoints", 4*time.Second, func(r *rand.Rand) error { return a.checkpoint(stopping, r) })

	start := time.Now()
	var samples []soakSample
	for ticker := time.NewTicker(*dbkit.Soak / 30); stopping.Err() == nil; {
		select {
		case <-ticker.C:
		case <-stopping.Done():
			ticker.Stop()
			continue
		}
		var m runtime.MemStats
		a.atRest(&m)
		s, err := d.Stats()
		if err != nil {
			t.Error(err)
			break
		}
		now := soakSample{time.Since(start).Round(time.Second), m.HeapAlloc, runtime.NumGoroutine(),
			filesOpen(), s.DiskBytes, a.size(), operations.Load()}
		samples = append(samples, now)
		t.Logf(
			"%8s  heap %4d MiB  goroutines %3d  files %3d  folder %4d MiB  repository %4d MiB  operations %d",
			now.at, now.heap>>20, now.goroutines, now.files, now.disk>>20, now.repository>>20, now.operations)
	}
	all.Wait()
	if n := len(samples); n >= 10 { // compared with what was when everything had been there once
		early, late := samples[n/5:n/2], samples[n-n/4:]
		largest := func(of []soakSample, f func(soakSample) int64) (most int64) {
			for _, s := range of {
				most = max(most, f(s))
			}
			return most
		}
		for what, c := range map[string]struct {
			f     func(soakSample) int64
			slack int64
		}{
			"bytes of heap":       {func(s soakSample) int64 { return int64(s.heap) }, 64 << 20},
			"goroutines":          {func(s soakSample) int64 { return int64(s.goroutines) }, 20},
			"open files":          {func(s soakSample) int64 { return int64(s.files) }, 40},
			"bytes of the folder": {func(s soakSample) int64 { return s.disk }, 64 << 20},
			"bytes of backups":    {func(s soakSample) int64 { return s.repository }, 64 << 20},
		} {
			if was, is := largest(early, c.f), largest(late, c.f); is > was+was/4+c.slack {
				t.Errorf("%s have grown from %d to %d", what, was, is)
			}
		}
	}
	dbkit.CheckSound(t, d, "in the end")
	a.close()
	d, _ = reopen(t, d, dir, nil)
	dbkit.CheckSound(t, d, "opened again")
	dbkit.MustClose(t, d)
}

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
	need(d.Backup(ctx, a.store, db.BackupOptions{}))(t) // so that there is one for whoever comes first
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
