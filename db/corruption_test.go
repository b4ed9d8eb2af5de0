package db_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

var sweepBytes = flag.Int("sweep", 0, "damage every n-th byte of every file of a database; 0: a few")

// portrait tells everything that a database answers: items with their codes, searches
// with every plan, filters, labels, spaces and their models.
func portrait(d *db.DB) (string, error) {
	var b strings.Builder
	names, err := d.Collections()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		c, err := d.Collection(name)
		if err != nil {
			return "", err
		}
		var keys []string
		for it, err := range c.Items(ctx, "") {
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "%s %v\n", name, *it)
			keys = append(keys, it.Key)
		}
		labels, err := c.Labels()
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&b, labels)
		infos, err := c.Spaces(ctx)
		if err != nil {
			return "", err
		}
		for _, s := range infos {
			fmt.Fprintf(&b, "%d %v %d %s %d %d %d %d\n", s.Space, s.State, s.Revision, s.Checksum, s.Items,
				s.Codes, s.Taught, s.Pending)
			for _, r := range s.Revisions {
				fmt.Fprintln(&b, r.Revision, r.Checksum)
			}
		}
		for i := 0; i < len(keys); i += 7 {
			for _, plan := range []db.Plan{db.PlanAuto, db.PlanScan, db.PlanDisk, db.PlanBlockScan} {
				r, err := c.Search(ctx, db.Query{Key: keys[i], K: 6, Plan: plan})
				if errors.Is(err, db.ErrNoModel) || errors.Is(err, db.ErrInvalid) {
					continue // it has no code
				}
				if err != nil {
					return "", err
				}
				fmt.Fprintln(&b, keys[i], plan, r.Total, r.Hits)
			}
		}
		for _, where := range []string{"label = 'class0'", "year > 2", "title = 'x' AND NOT has(text)"} {
			n, err := c.Count(ctx, where)
			if errors.Is(err, db.ErrInvalid) {
				continue // there are no such fields
			}
			if err != nil {
				return "", err
			}
			fmt.Fprintln(&b, where, n)
		}
	}
	return b.String(), nil
}

// filesIn returns the files of a database by path, without folders.
func filesIn(t testing.TB, fsys vfs.FS, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names := need(fsys.List(dir))(t)
	for _, name := range names {
		file := fsys.PathJoin(dir, name)
		info := need(fsys.Stat(file))(t)
		if info.IsDir() {
			maps.Copy(files, filesIn(t, fsys, file))
			continue
		}
		f := need(fsys.Open(file))(t)
		b, err := io.ReadAll(f)
		must(t, errors.Join(err, f.Close()))
		files[file] = b
	}
	return files
}

// folderFrom makes a file system with these files.
func folderFrom(t testing.TB, files map[string][]byte) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	for name, b := range files {
		must(t, mem.MkdirAll(mem.PathDir(name), 0o755))
		writeFile(t, mem, name, b)
	}
	return mem
}

// sortOf returns the sort of a file, by which damage is counted.
func sortOf(name string) string {
	base := path.Base(name)
	if ext := path.Ext(base); ext == ".log" || ext == ".sst" || ext == ".blob" {
		return ext
	}
	if parts := strings.Split(base, "."); parts[0] == "marker" {
		return parts[0] + "." + parts[1]
	}
	sort, _, _ := strings.Cut(base, "-")
	return sort
}

// What comes of damage.
const (
	refused  = "not opened"       // Open says so
	found    = "found by verify"  // and reading may go wrong
	onRead   = "found by reading" // and not by verify
	harmless = "harmless"         // everything is as before
	wrong    = "WRONG"            // something else is answered, and nobody says so
)

// outcome says what comes of a folder, which is a portrait if nothing is wrong with it.
func outcome(t testing.TB, files map[string][]byte, want string) (what string, err error) {
	opts := func() *db.Options {
		return &db.Options{FS: folderFrom(t, files), MustExist: true, CacheBytes: 1 << 20}
	}
	findings := 0
	var first string
	_, verr := db.VerifyFolder(ctx, "db", opts(), db.VerifyOptions{}, func(f report.Finding) error {
		if findings++; findings == 1 {
			first = f.String()
		}
		return nil
	})
	d, err := db.Open("db", opts())
	if err != nil {
		if verr == nil && findings == 0 {
			return wrong, fmt.Errorf("verify finds nothing, and it does not open: %w", err)
		}
		return refused, err
	}
	defer d.Close()
	got, err := portrait(d)
	switch {
	case verr != nil:
		return found, verr
	case findings > 0:
		return found, errors.New(first)
	case err != nil:
		return onRead, err
	case got != want:
		return wrong, fmt.Errorf("the portrait has %d bytes, not %d", len(got), len(want))
	}
	return harmless, nil
}

// Every byte of every file of a database that was closed, changed in several ways; every
// file cut and made longer, deleted, replaced by another one, and by what it was before:
// it is found when the database is opened, verified or read, or everything is as it was.
func TestDamageToEveryByte(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewMem()
	d := smallOfAllKinds(t, mem)
	dbkit.MustClose(t, d)
	older := filesIn(t, mem, "db")
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	putAll(t, dbkit.MustCollection(t, d, "main"), dbkit.ViewItems(40, 5)[30:])
	dbkit.MustClose(t, d)
	files := filesIn(t, mem, "db")
	d = dbkit.MustOpen(t, "db", &db.Options{FS: folderFrom(t, files)})
	want := need(portrait(d))(t)
	dbkit.MustClose(t, d)
	what, err := outcome(t, files, want)
	stopIf(t, what != harmless, "nothing is damaged: %s, %v", what, err)

	counts := map[string]map[string]int{}
	try := func(name, how string, change func(files map[string][]byte)) {
		damaged := maps.Clone(files)
		change(damaged)
		label := fmt.Sprintf("%s: %s", name, how)
		var what string
		var err error
		before := allocated()
		watched(label, func() { what, err = outcome(t, damaged, want) })
		n := allocated() - before
		failIf(t, n > 512<<20, "%s: %d MiB allocated", label, n>>20)
		sort := sortOf(name)
		if counts[sort] == nil {
			counts[sort] = map[string]int{}
		}
		counts[sort][what]++
		failIf(t, what == wrong, "%s: %s: %v", label, what, err)
		for _, own := range []error{db.ErrCorrupt, db.ErrFormat, db.ErrNotDatabase} {
			if errors.Is(err, own) {
				return
			}
		}
		failIf(t, what == refused, "%s: %v says nothing of damage", label, err)
	}
	random := seed.Rand(t, 1, 2)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		set := func(b []byte) func(map[string][]byte) {
			return func(files map[string][]byte) { files[name] = b }
		}
		try(name, "deleted", func(files map[string][]byte) { delete(files, name) })
		try(name, "longer", set(append(bytes.Clone(b), "garbage"...)))
		if *sweepBytes > 0 {
			try(name, "longer by zeros", set(append(bytes.Clone(b), make([]byte, 300)...)))
		}
		if old, was := older[name]; was && !bytes.Equal(old, b) {
			try(name, "as it was", set(old))
		}
		for other, with := range files {
			if other != name && sortOf(other) == sortOf(name) {
				try(name, "with "+other+" in its place", set(with))
				break
			}
		}
		if len(b) == 0 {
			continue
		}
		step := max(1, *sweepBytes)
		if *sweepBytes == 0 {
			step = max(1, len(b)/2)
		}
		for at := random.IntN(step); at < len(b); at += step {
			for i, change := range []func(byte) byte{
				func(x byte) byte { return x ^ 1<<random.IntN(8) }, func(byte) byte { return 0 },
				func(byte) byte { return 0xff },
			} {
				if *sweepBytes == 0 && (at/step)%3 != i || change(b[at]) == b[at] {
					continue
				}
				damaged := bytes.Clone(b)
				damaged[at] = change(b[at])
				try(name, fmt.Sprintf("byte %d of %d is %02x, not %02x", at, len(b), damaged[at], b[at]),
					set(damaged))
			}
			if *sweepBytes > 0 || (at/step)%3 == 0 {
				try(name, fmt.Sprintf("cut to %d of %d bytes", at, len(b)), set(b[:at]))
			}
		}
	}
	for _, sort := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %v", sort, counts[sort])
	}
}

// What is left of a database that was not closed, and damaged then, is what one of its commits has left, or
// it is found: damage at the end of a log looks like what a crash leaves.
func TestDamageToAKilledDatabase(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewCrashableMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	var cs []*db.Collection
	states := map[string]int{} // how many commits lead to a portrait
	note := func(n int) {
		p := need(portrait(d))(t)
		states[p] = n
	}
	for i, name := range []string{"one", "two"} {
		c := need(d.CreateCollection(ctx, name, db.Schema{Bits: 16}))(t)
		cs = append(cs, c)
		note(i - 1)
	}
	const commits = 30
	for n := range commits {
		b := d.NewBatch()
		for i, c := range cs {
			b.Put(c, &db.Item{Key: fmt.Sprint(n % 7), Code: []byte{byte(n), byte(i)},
				Payload: bytes.Repeat([]byte{byte(n)}, 150*n)})
			b.Delete(c, fmt.Sprint((n+3)%7))
		}
		must(t, b.Commit(ctx))
		note(n + 1)
	}
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	dbkit.MustClose(t, d)
	files := filesIn(t, left, "db")
	counts := map[string]int{}
	lost := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		tries := 2
		if strings.HasSuffix(name, ".log") {
			tries = 16
		}
		if *sweepBytes > 0 {
			tries = len(b) / *sweepBytes
		}
		for i := range min(tries, len(b)) {
			at := i * len(b) / tries
			damaged := maps.Clone(files)
			if i%4 == 3 {
				damaged[name] = b[:at]
			} else {
				damaged[name] = bytes.Clone(b)
				damaged[name][at] ^= 1 << (i % 8)
			}
			label := fmt.Sprintf("%s, %d bytes, at %d", name, len(b), at)
			var what string
			watched(label, func() { what = survivors(t, label, damaged, states, commits, &lost) })
			counts[what]++
		}
	}
	t.Logf("%v; at most %d of %d commits were lost", counts, lost, commits)
}

// survivors says what comes of a folder that holds some of the commits.
func survivors(t *testing.T, label string, files map[string][]byte, states map[string]int, commits int,
	lost *int) string {
	d, err := db.Open("db", &db.Options{FS: folderFrom(t, files), MustExist: true, CacheBytes: 1 << 20})
	if err != nil {
		failIf(t, !errors.Is(err, db.ErrCorrupt) && !errors.Is(err, db.ErrNotDatabase) &&
			!errors.Is(err, db.ErrFormat), "%s: %v says nothing of damage", label, err)
		return refused
	}
	defer dbkit.MustClose(t, d)
	findings := 0
	_, err = d.Verify(ctx, db.VerifyOptions{}, func(report.Finding) error { findings++; return nil })
	fine(t, err, label)
	got, err := portrait(d)
	n, known := states[got]
	switch {
	case findings > 0:
		return found
	case err != nil:
		return onRead
	case !known && len(got) > 0:
		t.Errorf("%s: what is left is no state that there was: %d bytes", label, len(got))
		return wrong
	}
	*lost = max(*lost, commits-n)
	return fmt.Sprintf("all but the last %d", commits-n)
}

// Damage in the codes of a space that stands by concerns it alone: the database opens, the others are
// searched, and writes go on when it has been dropped. What loading it has found is not searched past.
func TestDamagedSpaceCanBeDropped(t *testing.T) {
	dbkit.LongTest(t)
	dir := t.TempDir()
	d, c := openNew(t, dir, nil, dbkit.PairsSchema)
	other := need(d.CreateCollection(ctx, "other", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(60, synth.Config{})
	train(t, c, items, db.TrainOptions{})
	dbkit.MustTrain(t, c, db.TrainOptions{})
	want := need(c.Search(ctx, db.Query{Key: "k7"}))(t)
	for key := range storeKeys(t, d) {
		if kind := key[0]; kind == codec.KindCodes && key[8] == 1 { // of the first space
			must(t, db.State(d).Engine.DB.Delete(key, nil))
		}
	}
	dbkit.MustClose(t, d)

	d = dbkit.MustOpen(t, dir, nil)
	defer d.Close()
	c, other = dbkit.MustCollection(t, d, "main"), dbkit.MustCollection(t, d, db.Inside(other).Name)
	got, err := c.Search(ctx, db.Query{Key: "k7"})
	failIf(t, err != nil || len(got.Hits) != len(want.Hits) || got.Hits[3].Key != want.Hits[3].Key,
		"in the space that is whole: %+v, %v", got, err)
	errorsAre(t, db.ErrCorrupt, map[string]error{
		"search":   errOf(need(c.InSpace(1, 0))(t).Search(ctx, db.Query{Key: "k7"})),
		"put":      errOf(c.Put(ctx, items[0])),
		"activate": c.Activate(ctx, 1),
		"train":    errOf(c.Train(ctx, db.TrainOptions{})),
	})
	fine(t, errOf(other.Put(ctx, items[0])))
	must(t, c.DropSpace(ctx, 1))
	fine(t, errOf(c.Put(ctx, items[0])))
	dbkit.MustTrain(t, c, db.TrainOptions{})
	checkSpaces(t, d)
}

// A flipped bit in a large value is found at once by whatever reads it: Pebble would look
// for the bit, for hours in a block of this size.
func TestFlippedBitInLargeBlock(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	d, c := openNew(t, dir, nil, dbkit.PairsSchema)
	for i, key := range []string{"whole", "damaged"} {
		need(c.Put(ctx, &db.Item{Key: key, Payload: testfs.Noise(1<<20+i*8<<20, uint64(i))}))(t)
	}
	dbkit.MustClose(t, d)
	tables, err := filepath.Glob(filepath.Join(dir, store.StoreName, "*.sst"))
	stopIf(t, err != nil || len(tables) == 0, "%v, %v", tables, err)
	for _, name := range tables {
		b := need(os.ReadFile(name))(t)
		if len(b) > 8<<20 {
			b[len(b)-4<<20] ^= 16
		}
		must(t, os.WriteFile(name, b, 0o666))
	}
	findings := 0
	_, err = db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{Deep: true}, func(f report.Finding) error {
		failIf(t, !strings.Contains(f.Problem, "checksum") || strings.Contains(f.Problem, "carrier"), "%+v",
			f)
		findings++
		return nil
	})
	failIf(t, err != nil || findings == 0, "%d findings, %v", findings, err)
	d = dbkit.MustOpen(t, dir, nil)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	it, err := c.Get(ctx, "whole")
	failIf(t, err != nil || len(it.Payload) != 1<<20, "%v", err)
	_, err = c.Get(ctx, "damaged")
	failIf(t, !errors.Is(err, db.ErrCorrupt) || !strings.Contains(err.Error(), ".sst: block of ") ||
		strings.Contains(err.Error(), "carrier"), "get: %v", err)
	errorIs(t, d.Compact(ctx), db.ErrCorrupt)
}
