package db_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/backup/storetest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

func mustFolder(t testing.TB) backup.Store {
	t.Helper()
	return need(backup.Folder(filepath.Join(t.TempDir(), "backups")))(t)
}

// restored restores a backup and opens the database, to be closed at the end of the test.
func restored(t testing.TB, repo backup.Store, opt db.RestoreOptions) *db.DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	need(db.Restore(ctx, repo, dir, nil, opt))(t)
	for _, left := range []string{store.RestoringName, store.MarkerName + ".tmp"} {
		_, err := os.Stat(filepath.Join(dir, left))
		failIf(t, !errors.Is(err, os.ErrNotExist), "the restored folder has %s: %v", left, err)
	}
	d := dbkit.MustOpen(t, dir, &db.Options{MustExist: true})
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// soundRepository checks that nothing is missing or damaged.
func soundRepository(t testing.TB, repo backup.Store) *backup.Verification {
	t.Helper()
	v, err := backup.Verify(ctx, repo, backup.VerifyOptions{},
		func(f backup.Finding) error { t.Error(f); return nil })
	fine(t, err)
	return v
}

// A restored database lives on, and backs up to the same repository as the one that it
// was made of. Their tables have the same numbers, and other contents.
func TestRestoredDatabaseHasBackupsOfItsOwn(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	repo := mustFolder(t)
	d, c, items := openPairs(t, 100, 300, synth.Config{})
	need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	r := restored(t, repo, db.RestoreOptions{})
	for i := range 4 {
		at := 100 + 50*i
		putAll(t, c, items[at:at+25])
		putAll(t, dbkit.MustCollection(t, r, "main"), items[at+25:at+50])
		for _, of := range []*db.DB{d, r} {
			m := need(of.Backup(ctx, repo, db.BackupOptions{}))(t)
			again := restored(t, repo, db.RestoreOptions{ID: m.ID})
			sameContents(t, of, again)
			dbkit.MustClose(t, again)
		}
	}
	soundRepository(t, repo)
}

// A backup of a database that is written to, trained and reindexed meanwhile is a state
// that it was in: all writes before the backup, and of those during it the first ones.
func TestBackupsWhileTheDatabaseIsInUse(t *testing.T) {
	t.Parallel()
	repo := newMemStore()
	d, c, items := openPairs(t, 300, 4000, synth.Config{})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 5}})
	var written atomic.Int64
	written.Store(300)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for i := 300; i < len(items); i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := c.Put(ctx, items[i]); err != nil {
				t.Error(err)
				return
			}
			written.Store(int64(i + 1))
		}
	})
	busy.Go(func() {
		for round := 0; ; round++ {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			if round%2 == 0 {
				_, err = c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 5},
					Activate: true})
			} else {
				_, err = c.Reindex(ctx, db.ReindexOptions{})
			}
			if err != nil && !errors.Is(err, db.ErrBusy) {
				t.Error(err)
				return
			}
		}
	})
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		before := int(written.Load())
		m := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
		after := int(written.Load())
		r := restored(t, repo, db.RestoreOptions{ID: m.ID})
		there := map[string]bool{}
		for _, it := range dbkit.AllItems(t, dbkit.MustCollection(t, r, "main")) {
			there[it.Key] = true
		}
		n := len(there)
		failIf(t, n < before || n > after+1, "%d items, written were %d before and %d after", n, before,
			after)
		for _, it := range items[:n] {
			failIf(t, !there[it.Key], "%s of the first %d is missing", it.Key, n)
		}
		dbkit.MustClose(t, r)
	}
	close(stop)
	busy.Wait()
	soundRepository(t, repo)
	dbkit.MustClose(t, d)
	got := listing(t, db.State(d).Engine.Dir)
	failIf(t, fmt.Sprint(got) != fmt.Sprintf("[%s %s %s %s %s]", store.CommitsName, store.MarkerName,
		store.LockName, store.CheckpointsName, store.StoreName), "the folder holds %v", got)
}

// What a backup that was killed has left in the folder is removed by opening.
func TestLeftoversOfBackupsGo(t *testing.T) {
	t.Parallel()
	d, _ := dbkit.OpenPairs(t)
	dbkit.MustClose(t, d)
	left := filepath.Join(db.State(d).Engine.Dir, store.CheckpointsName, "0123", store.StoreName)
	must(t, os.MkdirAll(left, 0o755))
	dbkit.MustClose(t, dbkit.MustOpen(t, db.State(d).Engine.Dir, nil))
	got := listing(t, db.State(d).Engine.Dir)
	failIf(t, fmt.Sprint(got) != fmt.Sprintf("[%s %s %s %s]", store.CommitsName, store.MarkerName,
		store.LockName, store.StoreName), "the folder holds %v", got)
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	repo := mustFolder(t)
	errorIs(t, errOf(db.Restore(ctx, repo, filepath.Join(t.TempDir(), "x"), nil, db.RestoreOptions{})),
		backup.ErrNotRepository)
	d, _, _ := openPairs(t, -1, 10, synth.Config{})
	first := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	second := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	full := folderIn(t, map[string]string{"notes.txt": "x"})
	dir := filepath.Join(t.TempDir(), "x")
	for what, c := range map[string]struct {
		dir  string
		opt  db.RestoreOptions
		want error
	}{
		"a folder of something else": {full, db.RestoreOptions{}, db.ErrExists},
		"the database itself":        {db.State(d).Engine.Dir, db.RestoreOptions{}, db.ErrExists},
		"an unknown id":              {dir, db.RestoreOptions{ID: "1999"}, backup.ErrNotFound},
		"an ambiguous id":            {dir, db.RestoreOptions{ID: "2"}, backup.ErrInvalid},
		"an early time": {dir, db.RestoreOptions{Before: first.Time.Add(-time.Second)},
			backup.ErrNotFound},
		"another database": {dir, db.RestoreOptions{Database: "ffff"}, backup.ErrNotFound},
	} {
		_, err := db.Restore(ctx, repo, c.dir, nil, c.opt)
		failIf(t, !errors.Is(err, c.want) || strings.Count(err.Error(), "fddhdb: ") != 1, "%s: %v", what, err)
	}
	errorIs(t, errOf(os.Stat(dir)), os.ErrNotExist)
	m, err := db.Restore(ctx, repo, dir, nil, db.RestoreOptions{Before: first.Time})
	failIf(t, err != nil || m.ID != first.ID, "by time: %v, %v", m, err)
	m, err = db.Restore(ctx, repo, t.TempDir(), nil, db.RestoreOptions{ID: second.ID[:len(second.ID)-2]})
	failIf(t, err != nil || m.ID != second.ID, "by the beginning of an id, to an empty folder: %v, %v", m,
		err)
}

// A damaged object, and one that is missing, are found by verify and by restore, which
// leaves nothing in place. Where its size tells that it is damaged, the next backup stores it again.
func TestDamagedBackups(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	d, _, _ := openPairs(t, -1, 50, synth.Config{})
	for what, harm := range map[string]func(path string) error{
		"missing":  os.Remove,
		"emptied":  func(path string) error { return os.Truncate(path, 0) },
		"longer":   func(path string) error { return appendTo(path, "x") },
		"replaced": func(path string) error { return os.WriteFile(path, []byte("something else"), 0o644) },
	} {
		root := t.TempDir()
		repo := need(backup.Folder(root))(t)
		m := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
		largest := slices.MaxFunc(m.Files, func(a, b backup.File) int { return cmp.Compare(a.Size, b.Size) })
		piece := largest.Pieces[0]
		path := filepath.Join(root, "objects", string(piece[:2]), string(piece))
		must(t, harm(path))
		dir := filepath.Join(t.TempDir(), "restored")
		if _, err := db.Restore(ctx, repo, dir, nil, db.RestoreOptions{}); !errors.Is(err,
			backup.ErrDamaged) {
			t.Errorf("%s: restore: %v", what, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder is there: %v", what, err)
		}
		found := 0
		v, err := backup.Verify(ctx, repo, backup.VerifyOptions{}, func(f backup.Finding) error {
			found++
			failIf(t, f.Backup != m.ID || !strings.Contains(f.Object, string(piece)), "%s: %+v", what, f)
			return nil
		})
		failIf(t, err != nil || found != 1 || v.Findings != 1, "%s: verify: %+v, %v", what, v, err)
		next := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
		_, err = db.Restore(ctx, repo, dir, nil, db.RestoreOptions{ID: next.ID})
		failIf(t, err != nil, "%s: restore of the next backup: %v", what, err)
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// A backup into a folder leaves the reserve of the file system that the folder is on. One into
// another store does not ask how full the disk of the database is.
func TestBackupKeepsTheReserve(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	d, _ := openNew(t, dir, nil, dbkit.PairsSchema, dbkit.Pairs(20, synth.Config{})...)
	d, _ = reopen(t, d, dir, &db.Options{ReserveBytes: 1 << 60})
	defer d.Close()
	path := filepath.Join(t.TempDir(), "backups")
	repo := need(backup.Folder(path))(t)
	var full *db.DiskFullError
	_, err := d.Backup(ctx, repo, db.BackupOptions{})
	failIf(t, !errors.Is(err, db.ErrDiskFull) || !errors.As(err, &full) || full.Dir != filepath.Dir(path),
		"into a folder: %v", err)
	errorIs(t, errOf(os.Stat(path)), os.ErrNotExist)
	need(d.Backup(ctx, elsewhere{mustFolder(t)}, db.BackupOptions{}))(t)
}

// elsewhere is a store that does not say where it is.
type elsewhere struct{ backup.Store }

var backupItems = flag.Int("backup.items", 0,
	"how many items TestBytesOfTheNextBackup makes; a million for the figures of docs/DURABILITY.md")

// A backup after a hundredth of the items was appended stores at most a twentieth of
// the bytes, though nothing was compacted by hand. Backups find the store at rest, as those
// of a night do: what compactions of the writes before have still to rewrite, a later one stores.
func TestBytesOfTheNextBackup(t *testing.T) {
	n := *backupItems
	if n == 0 {
		t.Skip("takes minutes: -backup.items 1000000")
	}
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}}}))(t)
	r := rand.New(rand.NewPCG(1, 1))
	centres := make([][]float32, 40)
	for i := range centres {
		centres[i] = make([]float32, 256)
		for j := range centres[i] {
			centres[i][j] = float32(r.NormFloat64())
		}
	}
	next := 0
	put := func(n, size int, key func() int) {
		for done := 0; done < n; done += size {
			b := d.NewBatch()
			for range size {
				class := r.IntN(len(centres))
				x := make([]float32, 256)
				for j := range x {
					x[j] = centres[class][j] + float32(r.NormFloat64())
				}
				must(t, b.Put(c, &db.Item{
					Key: fmt.Sprint(key()), Labels: []string{fmt.Sprint("class", class)},
					Vectors: map[string][]float32{"image": x[:128], "text": x[128:]},
				}))
			}
			must(t, b.Commit(ctx))
		}
	}
	appended := func() int { next++; return next - 1 }
	written := func() int { return r.IntN(next) }
	repo := mustFolder(t)
	back := func(what string) float64 {
		atRest(d)
		start := time.Now()
		m := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
		share := float64(m.BytesNew) / float64(m.BytesTotal)
		t.Logf("%s: %.1f s, %d of %d bytes are new: %.2f %%", what, time.Since(start).Seconds(), m.BytesNew,
			m.BytesTotal, 100*share)
		return share
	}
	after := func(size int, key func() int, what string) float64 {
		put(n/100, size, key)
		return back(what)
	}
	first := min(n, 20_000)
	put(first, first, appended)
	dbkit.MustTrain(t, c, db.TrainOptions{})
	put(n-first, min(n-first, 98_000), appended)
	back("first")
	back("again, without a change")
	share := after(n/100, appended, "a hundredth appended at once")
	failIf(t, share > .05, "%.1f %% are new", 100*share)
	share = after(100, appended, "a hundredth appended in batches of 100")
	failIf(t, share > .05, "%.1f %% are new", 100*share)
	for i := range 6 {
		after(100, appended, fmt.Sprintf("the same, %d more", i+1))
	}
	for range 3 {
		after(100, written, "a hundredth written over, scattered, in batches of 100")
	}
	dir := t.TempDir()
	start := time.Now()
	need(db.Restore(ctx, repo, dir, nil, db.RestoreOptions{}))(t)
	t.Logf("restored and verified: %.1f s", time.Since(start).Seconds())
	other := dbkit.MustOpen(t, dir, &db.Options{MustExist: true})
	defer dbkit.MustClose(t, other)
	for range 100 {
		q := db.Query{From: "image", To: "text", Key: fmt.Sprint(written()), K: 50}
		want := need(c.Search(ctx, q))(t)
		got, err := dbkit.MustCollection(t, other, "main").Search(ctx, q)
		failIf(t, err != nil || !slices.Equal(got.Hits, want.Hits), "%s: %v, or other hits", q.Key, err)
	}
}

// atRest waits until the store has nothing to compact any more.
func atRest(d *db.DB) {
	for quiet := 0; quiet < 20; quiet++ {
		if m := db.State(d).Engine.DB.Metrics(); m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0 {
			quiet = 0
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// memStore is a store of backups in memory, of which a state can be kept.
type memStore struct{ storetest.Memory }

func newMemStore() *memStore { return &memStore{} }

// clone returns what is in the store; put puts it back.
func (s *memStore) clone() map[string][]byte {
	all := map[string][]byte{}
	err := s.List(ctx, "", func(o backup.Object) error {
		r, err := s.Get(ctx, o.Name)
		if err != nil {
			return err
		}
		all[o.Name], err = io.ReadAll(r)
		return errors.Join(err, r.Close())
	})
	if err != nil {
		panic(err) // memory does not fail
	}
	return all
}

func (s *memStore) put(objects map[string][]byte) {
	for name := range s.clone() {
		if objects[name] == nil {
			_ = s.Delete(ctx, name)
		}
	}
	for name, b := range objects {
		if err := s.Put(ctx, name, bytes.NewReader(b), int64(len(b))); err != nil {
			panic(err)
		}
	}
}

// failingStore lets the k-th call fail, or end a context instead.
type failingStore struct {
	backup.Store
	k      atomic.Int64
	cancel context.CancelFunc // nil: fail
}

func (s *failingStore) call(ctx context.Context) error {
	if s.k.Add(-1) != -1 {
		return ctx.Err()
	}
	if s.cancel != nil {
		s.cancel()
		return ctx.Err()
	}
	return dbkit.ErrInjected
}

func (s *failingStore) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	if err := s.call(ctx); err != nil {
		return err
	}
	return s.Store.Put(ctx, name, r, size)
}

func (s *failingStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, name)
}

func (s *failingStore) List(ctx context.Context, prefix string, f func(backup.Object) error) error {
	if err := s.call(ctx); err != nil {
		return err
	}
	return s.Store.List(ctx, prefix, f)
}

func (s *failingStore) Delete(ctx context.Context, name string) error {
	if err := s.call(ctx); err != nil {
		return err
	}
	return s.Store.Delete(ctx, name)
}

// vfsStore is a store of backups in a folder of a file system that a test has its hands on.
type vfsStore struct {
	fs  vfs.FS
	dir string
}

func (s vfsStore) path(name string) string {
	return s.fs.PathJoin(s.dir, s.fs.PathJoin(strings.Split(name, "/")...))
}

func (s vfsStore) Put(_ context.Context, name string, r io.ReadSeeker, size int64) error {
	path := s.path(name)
	if err := store.MakeDir(s.fs, s.fs.PathDir(path)); err != nil {
		return err
	}
	temp := path + ".tmp"
	f, err := s.fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, r)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes of %d", n, size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.fs.Rename(temp, path); err != nil {
		return err
	}
	return store.SyncDir(s.fs, s.fs.PathDir(path))
}

func (s vfsStore) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return s.fs.Open(s.path(name))
}

func (s vfsStore) List(_ context.Context, prefix string, f func(backup.Object) error) error {
	var walk func(name string) error
	walk = func(name string) error {
		info, err := s.fs.Stat(s.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !info.IsDir():
			if !strings.HasPrefix(name, prefix) || strings.HasSuffix(name, ".tmp") {
				return nil
			}
			return f(backup.Object{Name: name, Size: info.Size(), Modified: info.ModTime()})
		}
		names, err := s.fs.List(s.path(name))
		for _, n := range names {
			if err == nil {
				err = walk(strings.TrimPrefix(name+"/"+n, "/"))
			}
		}
		return err
	}
	return walk("")
}

func (s vfsStore) Delete(_ context.Context, name string) error {
	if err := s.fs.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

var backupKills = flag.Int("backup.kills", 0, "how many processes to kill while they back up and prune")

const keptAfterKills = 2

// A process that backs up and prunes is killed again and again: every backup that it has reported is there,
// or two newer ones are; what is there is sound, and the newest has everything that was written before it.
func TestKilledBackupsAndPrunes(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	kills := 5
	if testing.Short() {
		kills = 2
	}
	if *backupKills > 0 {
		kills = *backupKills
	}
	root := t.TempDir()
	repository := filepath.Join(root, "backups")
	repo := need(backup.Folder(repository))(t)
	r := seed.Rand(t, uint64(kills), 1)
	items := map[string]int{} // by id, of the backups that were reported
	var newest string
	for range kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcessThatIsKilled$", "-test.v")
		cmd.Env = append(os.Environ(), "FDDHDB_TEST_KILL="+root)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		var said bytes.Buffer
		after := r.IntN(4) // backups; then at some moment of the next ones
		timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(&said, lines.Text())
			rest, ok := strings.CutPrefix(lines.Text(), "backup ")
			if !ok {
				continue
			}
			id, n, _ := strings.Cut(rest, " ")
			if items[id], err = strconv.Atoi(n); err != nil {
				t.Fatalf("it said %q", lines.Text())
			}
			newest = max(newest, id)
			if after--; after < 0 {
				timer.Reset(time.Duration(r.IntN(60)) * time.Millisecond)
			}
		}
		timer.Stop()
		if err := cmd.Wait(); err == nil || strings.Contains(said.String(), "FAIL") {
			t.Fatalf("the process has ended: %v\n%s", err, said.String())
		}
		soundRepository(t, repo)
		all := need(backup.List(ctx, repo))(t)
		for id := range items {
			there, newer := false, 0
			for _, m := range all {
				there = there || m.ID == id
				if m.ID > id {
					newer++
				}
			}
			stopIf(t, !there && newer < keptAfterKills, "backup %s is lost, of %d", id, len(items))
		}
	}
	stopIf(t, newest == "", "no backup was completed")
	d := restored(t, repo, db.RestoreOptions{})
	if n, err := dbkit.MustCollection(t, d, "main").Count(t.Context(), ""); err != nil || n < items[newest] {
		t.Errorf("%d items in the newest backup, %d were written before one: %v", n, items[newest], err)
	}
	t.Logf("%d backups reported by %d processes that were killed", len(items), kills)
}

// TestProcessThatIsKilled writes, backs up and prunes until it is killed.
func TestProcessThatIsKilled(t *testing.T) {
	root := os.Getenv("FDDHDB_TEST_KILL")
	if root == "" {
		t.Skip("part of TestKilledBackupsAndPrunes")
	}
	repo := need(backup.Folder(filepath.Join(root, "backups")))(t)
	d := dbkit.MustOpen(t, filepath.Join(root, "db"), nil)
	c, err := d.Collection("main")
	if err != nil {
		c = need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	}
	need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	go func() {
		for {
			fine(t, errOf(backup.Prune(ctx, repo, backup.PruneOptions{Keep: keptAfterKills})))
		}
	}()
	items := dbkit.Pairs(50, synth.Config{})
	for {
		n := need(c.Count(t.Context(), ""))(t)
		for i, it := range items {
			it.Key = fmt.Sprint(n + i)
		}
		putAll(t, c, items)
		m := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
		fmt.Printf("backup %s %d\n", m.ID, n+len(items))
	}
}

// Whichever call of a store fails, or is the last one before the context ends: backup,
// restore and prune say so, nothing half-done is left, and what was there stays.
func TestEveryFailedCallOfAStore(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		repo, mem := newMemStore(), vfs.NewMem()
		d, c := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema)
		items := dbkit.Pairs(100, synth.Config{})
		putAll(t, c, items[:10])
		first := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
		want := context.Canceled
		if !cancelled {
			want = dbkit.ErrInjected
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
					must(t, err, what, "without a failure")
					return
				}
				stopIf(t, err != nil && (!errors.Is(err, want) ||
					!strings.HasPrefix(err.Error(), "fddhdb: ")), "%s, call %d: %v", what, k, err)
			}
		}
		n := 10
		try("backup", func() {
			if n < len(items) {
				putAll(t, c, items[n:n+1])
				n++
			}
		}, func(ctx context.Context, s backup.Store) error {
			_, err := d.Backup(ctx, s, db.BackupOptions{})
			return err
		})
		soundRepository(t, repo)
		try("restore", func() {
			must(t, mem.RemoveAll("r"))
		}, func(ctx context.Context, s backup.Store) error {
			_, err := db.Restore(ctx, s, "r", &db.Options{FS: mem}, db.RestoreOptions{ID: first.ID})
			_, serr := mem.Stat("r")
			failIf(t, err != nil && !errors.Is(serr, fs.ErrNotExist), "after %v the folder is there", err)
			return err
		})
		all := repo.clone()
		try("prune", func() { repo.put(all) }, func(ctx context.Context, s backup.Store) error {
			_, err := backup.Prune(ctx, s, backup.PruneOptions{Keep: 1})
			soundRepository(t, repo)
			return err
		})
		v := soundRepository(t, repo)
		failIf(t, v.Backups == 0, "no backup is left")
		r := restored(t, repo, db.RestoreOptions{})
		sameContents(t, d, r)
		dbkit.MustClose(t, r)
		dbkit.MustClose(t, d)
	}
}

// failAt fails the k-th operation on files, once it is armed.
type failAt struct {
	dbkit.FailOnce
	armed bool
	path  string // of what has failed
}

func (f *failAt) MaybeError(op errorfs.Op) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Fired || !f.armed {
		return nil
	}
	if f.K--; f.K < 0 {
		f.Fired, f.path = true, op.Path
		return dbkit.ErrInjected
	}
	return nil
}

// Whichever operation on the files of a restore fails: there is no database, or, if the
// restore says so, the whole; and another restore puts it there.
func TestEveryFailedOperationOfARestore(t *testing.T) {
	dbkit.LongTest(t)
	_, repo := memWorld(t)
	for k := range sampled(3) {
		mem := vfs.NewMem()
		fail := &failAt{FailOnce: dbkit.FailOnce{K: k}, armed: true}
		_, err := db.Restore(ctx, repo, "r", &db.Options{FS: errorfs.Wrap(mem, fail)}, db.RestoreOptions{})
		opts := &db.Options{FS: mem, MustExist: true}
		if err != nil {
			stopIf(t, !fail.Fired || !strings.HasPrefix(err.Error(), "fddhdb: "), "operation %d, %s: %v", k,
				fail.path, err)
			if d, err := db.Open("r", opts); !errors.Is(err, db.ErrNotDatabase) {
				if err == nil {
					d.Close()
				}
				t.Fatalf("operation %d, %s: after a restore that failed: %v", k, fail.path, err)
			}
			if _, err := db.Restore(ctx, repo, "r", &db.Options{FS: mem}, db.RestoreOptions{}); err != nil {
				t.Fatalf("operation %d, %s: again: %v", k, fail.path, err)
			}
		}
		d := dbkit.MustOpen(t, "r", opts)
		gives(t, 20, k)(dbkit.MustCollection(t, d, "main").Count(t.Context(), ""))
		dbkit.MustClose(t, d)
		if !fail.Fired {
			t.Logf("%d operations failed in turn", k)
			return
		}
	}
}

// Whichever operation on files fails during a backup: the backup fails or is whole, and
// unless it was one on the store itself, the database goes on.
func TestEveryFailedOperationOfABackup(t *testing.T) {
	dbkit.LongTest(t)
	items := dbkit.Pairs(10_000, synth.Config{})
	mem, repo := memWorld(t)
	for k := range sampled(3) {
		fail := &failAt{FailOnce: dbkit.FailOnce{K: k}}
		d := dbkit.MustOpen(t, "db", &db.Options{FS: errorfs.Wrap(mem, fail)})
		c := dbkit.MustCollection(t, d, "main")
		need(c.Put(ctx, items[k]))(t)
		fail.Mu.Lock()
		fail.armed = true
		fail.Mu.Unlock()
		m, err := d.Backup(ctx, repo, db.BackupOptions{})
		fail.Mu.Lock()
		fired, path := fail.Fired, fail.path
		fail.armed = false
		fail.Mu.Unlock()
		if err == nil && k%5 == 0 {
			r := restored(t, repo, db.RestoreOptions{ID: m.ID})
			sameContents(t, d, r)
			dbkit.MustClose(t, r)
		}
		stopIf(t, err != nil && (!fired || !strings.HasPrefix(err.Error(), "fddhdb: ")),
			"operation %d, %s: %v", k, path, err)
		_, err = c.Put(ctx, &db.Item{Key: "after"})
		if err != nil && strings.HasSuffix(path, ".sst") && !strings.Contains(path, store.CheckpointsName) &&
			!errors.Is(err, db.ErrFailed) {
			// it waited for the same reading of a table, which can be read again
			_, err = c.Put(ctx, &db.Item{Key: "after"})
		}
		stopIf(t, err != nil && (strings.Contains(path, store.CheckpointsName) ||
			!errors.Is(err, db.ErrFailed)), "operation %d, %s: a write: %v", k, path, err)
		cerr := d.Close()
		stopIf(t, cerr != nil && err == nil, "operation %d, %s: %v", k, path, cerr)
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
	d, _ := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema, dbkit.Pairs(20, synth.Config{})...)
	need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	dbkit.MustClose(t, d)
	return mem, repo
}

// A database that Restore has made survives a machine that stops then.
func TestRestoredDatabaseSurvivesACrash(t *testing.T) {
	t.Parallel()
	d := verified(t, &db.Options{FS: vfs.NewMem()})
	repo := newMemStore()
	need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	mem := vfs.NewCrashableMem()
	need(db.Restore(ctx, repo, "r", &db.Options{FS: mem}, db.RestoreOptions{}))(t)
	left := mem.CrashClone(vfs.CrashCloneCfg{}) // nothing is left of what is not synced
	restored := dbkit.MustOpen(t, "r", &db.Options{FS: left, MustExist: true})
	defer dbkit.MustClose(t, restored)
	dbkit.CheckSound(t, restored, "after the crash")
	sameContents(t, d, restored)
}

// faultyRepository is where the backups are, beside the database.
const faultyRepository = "backups"

func (l *spacesLife) backups() backup.Store { return vfsStore{l.fs, faultyRepository} }

// copyingCases are of what makes a database of another, and of what makes a damaged one
// sound and an old one new.
func copyingCases(t *testing.T, closed *vfs.MemFS) []faultyCase {
	backedUp := closed.CrashClone(vfs.CrashCloneCfg{})
	l := &spacesLife{fs: backedUp}
	must(t, l.open())
	state := need(stateOf(l.d))(t)
	var made []string
	for _, opt := range []db.BackupOptions{{Collection: "main"}, {}, {}} {
		made = append(made, need(l.d.Backup(ctx, l.backups(), opt))(t).ID)
	}
	must(t, l.close())
	indexOnly := lifeState{items: state.items, active: state.active, revisions: state.revisions}
	backsUp := func(opt db.BackupOptions) func(l *spacesLife) error {
		return func(l *spacesLife) error {
			if _, err := l.c.Put(ctx, &db.Item{Key: "k1"}); err != nil { // which was there
				return err
			}
			_, err := l.d.Backup(ctx, l.backups(), opt)
			return err
		}
	}
	checkpoints := func(opt db.CheckpointOptions) func(l *spacesLife) error {
		return func(l *spacesLife) error { return l.d.Checkpoint(ctx, "copy", opt) }
	}
	p := smallPatient(t)
	damaged := p.fs.(*vfs.MemFS)
	return []faultyCase{
		{name: "back up", base: backedUp, arm: true, do: backsUp(db.BackupOptions{}),
			left: backupsLeft(made, "", state)},
		{name: "back up the index", base: backedUp, arm: true, do: backsUp(db.BackupOptions{IndexOnly: true}),
			left: backupsLeft(made, "", indexOnly)},
		{name: "prune", base: backedUp, do: func(l *spacesLife) error {
			_, err := backup.Prune(ctx, l.backups(), backup.PruneOptions{Keep: 1})
			return err
		}, left: backupsLeft(made, made[1], state)},
		{name: "restore", base: backedUp, do: func(l *spacesLife) error {
			_, err := db.Restore(ctx, l.backups(), "copy", &db.Options{FS: l.fs, CacheBytes: 1},
				db.RestoreOptions{ID: made[2]})
			return err
		}, left: copyLeft(state, func(fsys vfs.FS) error {
			_, err := db.Restore(ctx, vfsStore{fsys, faultyRepository}, "copy", &db.Options{FS: fsys},
				db.RestoreOptions{ID: made[2]})
			return err
		})},
		{name: "checkpoint", base: closed, arm: true, do: checkpoints(db.CheckpointOptions{}),
			left: copyLeft(state, func(fsys vfs.FS) error {
				return checkpointOf(fsys, db.CheckpointOptions{})
			})},
		{name: "checkpoint of the index", base: closed, arm: true,
			do: checkpoints(db.CheckpointOptions{IndexOnly: true}),
			left: copyLeft(indexOnly, func(fsys vfs.FS) error {
				return checkpointOf(fsys, db.CheckpointOptions{IndexOnly: true})
			})},
		{name: "repair", base: damaged, do: func(l *spacesLife) error { return repairLosingNothing(l.fs) },
			left: func(t *testing.T, label string, fsys vfs.FS, _ error) {
				must(t, repairLosingNothing(fsys), label, "and again")
				q := *p
				q.t, q.fs = t, fsys
				q.sameStored(label, q.sound(label, nil))
			}},
	}
}

func checkpointOf(fsys vfs.FS, opt db.CheckpointOptions) error {
	d, err := db.Open("db", &db.Options{FS: fsys, MustExist: true})
	if err != nil {
		return err
	}
	return errors.Join(d.Checkpoint(ctx, "copy", opt), d.Close())
}

func repairLosingNothing(fsys vfs.FS) error {
	_, err := db.Repair(ctx, "db", &db.Options{FS: fsys, CacheBytes: 1}, db.RepairOptions{},
		func(f report.Finding) error { return errors.New(f.String()) })
	return err
}

// copyLeft returns a function that checks that a folder "copy" is the whole or none, and
// that making it again gives it.
func copyLeft(want lifeState, again func(vfs.FS) error) func(*testing.T, string, vfs.FS, error) {
	return func(t *testing.T, label string, fsys vfs.FS, err error) {
		t.Helper()
		opts := &db.Options{FS: fsys, MustExist: true}
		d, oerr := db.Open("copy", opts)
		if errors.Is(oerr, db.ErrNotDatabase) && err != nil {
			must(t, again(fsys), label, "and again")
			d, oerr = db.Open("copy", opts)
		}
		stopIf(t, oerr != nil, "%s: %v; and the copy: %v", label, err, oerr)
		checkWhole(t, label, d, want)
	}
}

// checkWhole checks a copy, and closes it.
func checkWhole(t *testing.T, label string, d *db.DB, want lifeState) {
	t.Helper()
	defer dbkit.MustClose(t, d)
	s, err := stateOf(d)
	if err == nil && !s.between(want, want) {
		err = fmt.Errorf("%+v, and it is to be %+v", s, want)
	}
	if err == nil {
		_, err = d.Verify(ctx, db.VerifyOptions{},
			func(f report.Finding) error { return errors.New(f.String()) })
	}
	must(t, err, label, "the copy")
}

// backupsLeft returns a function that checks that those that were completed are there, but
// for one that may have been deleted, or has to be if nothing has failed; that none of them
// is damaged; and that the newest, which may have come, is whole.
func backupsLeft(made []string, deleted string, want lifeState) func(*testing.T, string, vfs.FS, error) {
	return func(t *testing.T, label string, fsys vfs.FS, err error) {
		t.Helper()
		repo := vfsStore{fsys, faultyRepository}
		all, lerr := backup.List(ctx, repo)
		stopIf(t, lerr != nil, "%v: %v", label, lerr)
		var ids []string
		for _, m := range all {
			ids = append(ids, m.ID)
		}
		for _, id := range made {
			if is := slices.Contains(ids, id); !is && id != deleted || is && id == deleted && err == nil {
				t.Fatalf("%s: %v; there are %q, and were %q", label, err, ids, made)
			}
		}
		newest := ids[len(ids)-1]
		come := !slices.Contains(made, newest)
		stopIf(t, come && deleted != "" || !come && deleted == "" && err == nil || len(ids) > len(made)+1,
			"%s: %v; there are %q, and were %q", label, err, ids, made)
		must(t, errOf(backup.Verify(ctx, repo, backup.VerifyOptions{},
			func(f backup.Finding) error { return errors.New(f.String()) })), label)
		must(t, errOf(db.Restore(ctx, repo, "copy", &db.Options{FS: fsys},
			db.RestoreOptions{ID: newest, SkipVerify: true})), label)
		d, oerr := db.Open("copy", &db.Options{FS: fsys, MustExist: true})
		stopIf(t, oerr != nil, "%v: %v", label, oerr)
		checkWhole(t, label, d, want)
	}
}
