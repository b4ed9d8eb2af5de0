package db_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
	"github.com/fddhdb/fddhdb/model/fit"
)

var numbersSchema = db.Schema{Bits: 16}

// numbered makes item i; commit i+2 puts it, as the first makes the collection.
func numbered(i int) *db.Item {
	return &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), byte(i >> 8)}}
}

// killed returns what a killed process leaves that has put n items, of which the side file
// knows those before known, and whose log has not been flushed.
func killed(t testing.TB, n, known int, opts db.Options) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	opts.FS = mem
	d := dbkit.MustOpen(t, "db", &opts)
	db.Keeper(d).Mu.Lock() // so that it keeps nothing by itself, however long this takes
	c := need(d.CreateCollection(ctx, "main", numbersSchema))(t)
	for i := range n {
		need(c.Put(ctx, numbered(i)))(t)
		if i+1 == known {
			db.Keeper(d).Mu.Unlock()
			db.Keeper(d).Keep()
			db.Keeper(d).Mu.Lock()
		}
	}
	left := vfs.NewMem()
	copyFolder(t, mem, left, "db")
	db.Keeper(d).Mu.Unlock()
	dbkit.MustClose(t, d)
	return left
}

// copyFolder copies a folder, so that the copy can be damaged.
func copyFolder(t testing.TB, from, to vfs.FS, dir string) {
	t.Helper()
	must(t, to.MkdirAll(dir, 0o755))
	names := need(from.List(dir))(t)
	for _, name := range names {
		name = from.PathJoin(dir, name)
		if info, err := from.Stat(name); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			copyFolder(t, from, to, name)
			continue
		}
		testfs.WriteFile(t, to, name, testfs.ReadFile(t, from, name))
	}
}

// liveLog returns the name and the content of the log that has something in it.
func liveLog(t testing.TB, fsys vfs.FS) (name string, b []byte) {
	t.Helper()
	names := need(fsys.List("db/store"))(t)
	slices.Sort(names)
	for _, n := range names {
		if strings.HasSuffix(n, ".log") {
			name = "db/store/" + n
		}
	}
	return name, testfs.ReadFile(t, fsys, name)
}

// commitsFound returns the commits that are there, which must be the first so many.
func commitsFound(t testing.TB, d *db.DB) uint64 {
	t.Helper()
	c, err := d.Collection("main")
	if errors.Is(err, db.ErrNotFound) {
		return 0
	} else if err != nil {
		t.Fatal(err)
	}
	items := dbkit.AllItems(t, c)
	for i, it := range items {
		if want := numbered(i); it.Key != want.Key || !bytes.Equal(it.Code, want.Code) {
			t.Fatalf("item %d is %q, %x", i, it.Key, it.Code)
		}
	}
	return uint64(len(items)) + 1
}

// Whatever byte of the log of a killed database is damaged, what comes up is the first so many commits, or
// nothing does; and what is missing of those that the side file knew of is reported with its number, by Open,
// by verify, and by every later Open until somebody acknowledges it.
func TestDamagedLogIsReported(t *testing.T) {
	dbkit.LongTest(t)
	const n, known = 12, 8
	left := killed(t, n, known, db.Options{})
	log, whole := liveLog(t, left)
	end := len(bytes.TrimRight(whole, "\x00"))
	lost := map[uint64]int{}
	step := effort.Of(1, 11)
	damage := func(what string, b []byte) {
		mem := vfs.NewMem()
		copyFolder(t, left, mem, "db")
		testfs.WriteFile(t, mem, log, b)
		d, err := db.Open("db", &db.Options{FS: mem, ReadOnly: true})
		if errors.Is(err, db.ErrCorrupt) {
			lost[1<<32]++
			return
		} else if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		found := commitsFound(t, d)
		r := d.Recovery()
		missing := max(found, known+1) - found
		stopIf(t, r.Found != found || r.Promised != known+1 || r.Missing() != missing ||
			(missing > 0) != (len(r.Losses) == 1), "%s: %d commits, recovery %+v", what, found, r)
		if lost[missing]++; lost[missing] > 1 {
			dbkit.MustClose(t, d)
			return
		}
		dbkit.MustClose(t, d)
		checkLoss(t, what, mem, found, missing)
	}
	for at := 0; at < end; at += step {
		b := bytes.Clone(whole)
		b[at] ^= 0x5a
		damage(fmt.Sprint("byte ", at), b)
	}
	for at := 0; at < end; at += 7 * step {
		damage(fmt.Sprint("cut at ", at), whole[:at])
	}
	t.Logf("of %d bytes: runs by commits missing of %d: %v", end, known+1, lost)
	failIf(t, len(lost) < 5, "losses: %v", lost)
}

// checkLoss checks how a loss is told of.
func checkLoss(t *testing.T, what string, mem *vfs.MemFS, found, missing uint64) {
	t.Helper()
	told := func(d *db.DB) bool {
		t.Helper()
		l := d.Recovery().Losses
		if missing == 0 {
			return len(l) == 0
		}
		return len(l) == 1 && l[0].First == found+1 && l[0].Last == found+missing &&
			l[0].Commits() == missing && time.Since(l[0].Found) < time.Hour
	}
	findings := func(want int) {
		t.Helper()
		var all []report.Finding
		if _, err := db.VerifyFolder(ctx, "db", &db.Options{FS: mem}, db.VerifyOptions{},
			func(f report.Finding) error {
				all = append(all, f)
				return nil
			}); err != nil || len(all) != want ||
			(want > 0 && !strings.Contains(all[0].String(), fmt.Sprint(found+1))) {
			t.Errorf("%s: verify finds %v, %v", what, all, err)
		}
	}
	count := 0
	if missing > 0 {
		count = 1
	}
	findings(count)
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	if !told(d) {
		t.Errorf("%s: recovery %+v", what, d.Recovery())
	}
	if missing > 0 {
		f, _ := findingsOf(t, d)
		failIf(t, len(f) != 1, "%s: verify while it is open finds %v", what, f)
	}
	if c, err := d.Collection("main"); err == nil {
		for i := range 20 {
			need(c.Put(ctx, &db.Item{Key: fmt.Sprint("later ", i), Code: []byte{1, 2}}))(t)
		}
	}
	dbkit.MustClose(t, d)
	findings(count)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	failIf(t, !told(d) || d.Recovery().Missing() != 0, "%s, and later: %+v", what, d.Recovery())
	gone, err := d.AcknowledgeLosses(ctx)
	failIf(t, err != nil || len(gone) != count, "%s: acknowledged %v, %v", what, gone, err)
	dbkit.MustClose(t, d)
	findings(0)
}

func findingsOf(t testing.TB, d *db.DB) (all []report.Finding, err error) {
	t.Helper()
	_, err = d.Verify(ctx, db.VerifyOptions{}, func(f report.Finding) error {
		all = append(all, f)
		return nil
	})
	return all, err
}

// The side file has all that is durable, and no more. Under NoSync a write is durable when a
// bulk load or Close has flushed it; a crash before that loses nothing that was promised.
func TestSideFileIsNotAheadOfWhatIsDurable(t *testing.T) {
	t.Parallel()
	for _, noSync := range []bool{false, true} {
		mem := vfs.NewCrashableMem()
		d, c := openNew(t, "db", &db.Options{FS: mem, NoSync: noSync}, numbersSchema)
		check := func(durable, want uint64) {
			t.Helper()
			db.Keeper(d).Keep()
			crash := mem.CrashClone(vfs.CrashCloneCfg{})
			side, err := store.ReadCommits(crash, "db")
			failIf(t, err != nil || side.Sequence != durable,
				"NoSync %v: after commit %d the side file has %d, %v", noSync, want, side.Sequence, err)
			again := dbkit.MustOpen(t, "db", &db.Options{FS: crash})
			if r := again.Recovery(); r.Missing() > 0 || r.Problem != "" || r.Found < side.Sequence {
				t.Errorf("NoSync %v: %+v", noSync, r)
			}
			dbkit.MustClose(t, again)
		}
		for i := range 10 {
			need(c.Put(ctx, numbered(i)))(t)
			if want := uint64(i + 2); noSync {
				check(1, want)
			} else {
				check(want, want)
			}
		}
		// Tables are durable at once, and so is all that was written before them.
		dbkit.PutAll(t, d, c, dbkit.CodeItems(bulkItems, numbersSchema.Bits, 1, prefixed("load")))
		check(12, 12)
		need(c.Put(ctx, numbered(10)))(t)
		dbkit.MustClose(t, d)
		side, err := store.ReadCommits(mem.CrashClone(vfs.CrashCloneCfg{}), "db")
		failIf(t, err != nil || side.Sequence != 13, "NoSync %v: after Close %d, %v", noSync, side.Sequence,
			err)
	}
}

// A side file that is missing, damaged, or of another database is made again, with a word.
func TestSideFileIsMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, mem *vfs.MemFS)
		says string
	}{
		"missing": {func(t *testing.T, mem *vfs.MemFS) { must(t, mem.Remove("db/COMMITS")) }, "missing"},
		"empty": {func(t *testing.T, mem *vfs.MemFS) { testfs.WriteFile(t, mem, "db/COMMITS", nil) },
			"shorter"},
		"garbage": {func(t *testing.T, mem *vfs.MemFS) {
			testfs.WriteFile(t, mem, "db/COMMITS", bytes.Repeat([]byte("x"), 9000))
		}, "not a slot"},
		"of another database": {func(t *testing.T, mem *vfs.MemFS) {
			other := killed(t, 1, 1, db.Options{})
			testfs.WriteFile(t, mem, "db/COMMITS", testfs.ReadFile(t, other, "db/COMMITS"))
		}, "another database"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := killed(t, 3, 3, db.Options{})
			c.harm(t, mem)
			before := testfs.ReadFileOr(mem, "db/COMMITS")
			d := dbkit.MustOpen(t, "db", &db.Options{FS: mem, ReadOnly: true})
			r := d.Recovery()
			failIf(t, !strings.Contains(r.Problem, c.says) || len(r.Losses) > 0, "read only: %+v", r)
			if f, err := findingsOf(t, d); err != nil || len(f) != 1 ||
				!strings.Contains(f[0].Problem, c.says) {
				t.Errorf("findings: %v, %v", f, err)
			}
			dbkit.MustClose(t, d)
			failIf(t, !bytes.Equal(before, testfs.ReadFileOr(mem, "db/COMMITS")), "reading has changed it")
			d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
			r = d.Recovery()
			failIf(t, !strings.Contains(r.Problem, c.says) || len(r.Losses) > 0, "%+v", r)
			f, err := findingsOf(t, d)
			failIf(t, err != nil || len(f) > 0, "findings: %v, %v", f, err)
			d, _ = reopen(t, d, "db", &db.Options{FS: mem})
			r = d.Recovery()
			failIf(t, r.Problem != "" || r.Promised != 4, "and then: %+v", r)
			dbkit.MustClose(t, d)
		})
	}
}

// An older copy of the store in the place of the present one is found out.
func TestOlderStoreIsFoundOut(t *testing.T) {
	mem := killed(t, 5, 5, db.Options{})
	newer := vfs.NewMem()
	copyFolder(t, mem, newer, "db")
	d := dbkit.MustOpen(t, "db", &db.Options{FS: newer})
	goldenPut(t, dbkit.MustCollection(t, d, "main"), []*db.Item{numbered(5), numbered(6)})
	dbkit.MustClose(t, d)
	testfs.WriteFile(t, mem, "db/COMMITS", testfs.ReadFile(t, newer, "db/COMMITS"))
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer d.Close()
	r := d.Recovery()
	failIf(t, r.Missing() != 2 || len(r.Losses) != 1 || r.Losses[0].First != 7 || r.Losses[0].Last != 8,
		"%+v", r)
}

// A disk that refuses the side file is no reason to refuse anything else.
func TestSideFileThatCannotBeWritten(t *testing.T) {
	mem := vfs.NewMem()
	broken := false
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken && strings.Contains(op.Path, store.CommitsName) &&
			op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return dbkit.ErrInjected
		}
		return nil
	}))
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	goldenCollection(t, d, "main", numbersSchema)
	dbkit.MustClose(t, d)
	broken = true
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	goldenPut(t, dbkit.MustCollection(t, d, "main"), []*db.Item{numbered(0)})
	dbkit.MustClose(t, d)
	broken = false
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	r := d.Recovery()
	failIf(t, r.Problem != "" || r.Found != 2 || r.Promised != 1, "%+v", r)
	dbkit.MustClose(t, d)
}

// An entry is an operation of a log: a change, on condition of what is stored if it is conditional.
type entry struct {
	collection  string
	kind        string // put, merge, delete or labels
	item        *db.Item
	conditional bool
	old         *db.Item // of a conditional one
}

// add adds the operation to a batch.
func (o *entry) add(b *db.Batch, c *db.Collection) {
	if o.conditional {
		b.Expect(c, o.item.Key, o.old)
	}
	switch o.kind {
	case "put":
		b.Put(c, o.item)
	case "merge":
		b.Merge(c, o.item)
	case "delete":
		b.Delete(c, o.item.Key)
	case "labels":
		b.RegisterLabels(c, o.item.Labels)
	}
}

// makeLog makes a log of operations for two collections, of which one brings codes. Keys, codes and
// labels come again, and so do codes that nothing has any more.
func makeLog(r *rand.Rand, n int) (log []*entry) {
	pool := dbkit.Pairs(400, synth.Config{Seed: r.Uint64(), Missing: .2, Classes: 9})
	last := map[string]*db.Item{}
	for len(log) < n {
		o := &entry{collection: "main", kind: "put", item: pool[r.IntN(len(pool))]}
		it := *o.item
		o.item = &it
		if r.IntN(6) == 0 {
			it.Labels = []string{fmt.Sprint("late", r.IntN(40))}
		}
		it.Key = fmt.Sprint("k", r.IntN(300))
		if r.IntN(3) > 0 {
			o.collection = "codes"
			it.Vectors, it.Code = nil, []byte{byte(r.IntN(9)), byte(r.IntN(3))}
			if r.IntN(3) == 0 { // one that goes with its item, and may come again
				it.Code[0] = byte(100 + r.IntN(100))
			}
		}
		if r.IntN(500) == 0 { // many new ones in a row, and some without a key of their own
			o.collection = "codes"
			for i := range 900 + r.IntN(2*bulkItems) {
				key := fmt.Sprint("n", len(log), "-", i)
				if r.IntN(5) == 0 {
					key = ""
				}
				log = append(log, &entry{collection: "codes", kind: "put",
					item: &db.Item{Key: key, Code: []byte{byte(r.IntN(50)), byte(i % 11)}}})
			}
			continue
		}
		at := o.collection + "/" + it.Key
		switch k := r.IntN(12); {
		case k < 2:
			o.kind = "delete"
		case k < 4:
			o.kind, it.Vectors, it.Fields = "merge", nil, map[string]any{"year": r.IntN(9)}
			if o.collection == "codes" && last[at] == nil {
				o.kind = "delete" // one that is not there needs a code
			}
		case k < 5:
			o.kind = "labels"
		case k < 7:
			o.conditional = true
			if r.IntN(3) > 0 {
				o.old = last[at]
			}
		}
		switch o.kind {
		case "put":
			last[at] = &it // if it is not refused
		case "delete", "merge":
			last[at] = nil
		}
		log = append(log, o)
	}
	return log
}

// replay applies a log from the operation that the mark says on, in batches of the sizes that next gives. A
// condition is decided where it stands in the log: the operation begins a batch, and if it is refused only
// the mark goes on.
func replay(t *testing.T, d *db.DB, log []*entry, next func() int) (refused []int) {
	t.Helper()
	collections := map[string]*db.Collection{}
	for _, name := range []string{"main", "codes"} {
		collections[name] = dbkit.MustCollection(t, d, name)
	}
	for at := 0; at < len(log); {
		b, from, n := d.NewBatch(), at, next()
		for at < len(log) && at-from < n && (at == from || !log[at].conditional) {
			log[at].add(b, collections[log[at].collection])
			if at++; log[from].conditional {
				break
			}
		}
		b.Mark("position", fmt.Append(nil, at))
		err := b.Commit(ctx)
		if log[from].conditional && errors.Is(err, db.ErrConflict) {
			refused = append(refused, from)
			putMarks(t, d, "position", fmt.Sprint(at))
			err = nil
		}
		must(t, err, "operations", from, "to", at)
	}
	return refused
}

// told is everything that an export of a database and its answers tell, in order.
func told(t *testing.T, d *db.DB) []byte {
	t.Helper()
	var b bytes.Buffer
	put := json.NewEncoder(&b).Encode
	for _, name := range []string{"main", "codes"} {
		c := dbkit.MustCollection(t, d, name)
		labels, err := c.Labels()
		if err == nil {
			err = put(labels)
		}
		for it, ierr := range c.Items(ctx, "") {
			if err = errors.Join(err, ierr); err != nil {
				break
			}
			err = put(it)
		}
		for coded, cerr := range c.Codes(ctx, "") {
			if err = errors.Join(err, cerr); err != nil {
				break
			}
			err = put(coded) // with its row
		}
		must(t, err)
		bytes := 2
		if name == "main" {
			bytes = 4
		}
		for _, code := range [][]byte{make([]byte, bytes), append(make([]byte, bytes-1), 1)} {
			// items of one distance by the age of their codes
			r, err := c.Search(ctx, db.Query{Code: code, K: 10_000})
			if err == nil {
				err = put(r)
			}
			must(t, err)
		}
	}
	return b.Bytes()
}

// What a log leaves follows from the sequence of its operations alone, however they are batched: rows,
// ids of labels, codes, and the order of answers.
func TestReplayByAnyBatching(t *testing.T) {
	dbkit.LongTest(t)
	r := seed.Rand(t, 1, 2)
	log := makeLog(r, 3000)
	base := t.TempDir() + "/base"
	d := dbkit.MustOpen(t, base, nil)
	schema := dbkit.PairsSchema
	c, err := d.CreateCollection(ctx, "main", schema)
	if err == nil {
		_, err = d.CreateCollection(ctx, "codes", db.Schema{Bits: 16, Fields: schema.Fields})
	}
	must(t, err)
	dbkit.PutAll(t, d, c, dbkit.Pairs(120, synth.Config{Seed: 3}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20, Seed: 1}})
	dbkit.MustClose(t, d)

	var want []byte
	var refusedOnes []int
	for round := range effort.Of(100, 5) {
		mem := vfs.NewMem()
		need(vfs.Clone(vfs.Default, mem, base, "db"))(t)
		d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
		next := func() int { return 1 }
		if round > 0 {
			most := 1 + r.IntN(1<<r.IntN(13))
			next = func() int { return 1 + r.IntN(most) }
		}
		refused := replay(t, d, log, next)
		got := told(t, d)
		if round == 0 {
			want, refusedOnes = got, refused
			failIf(t, len(refused) < 20, "%d conditions were refused", len(refused))
		}
		failIf(t, fmt.Sprint(refused) != fmt.Sprint(refusedOnes),
			"batching %d: refused are %v, one by one %v", round, refused, refusedOnes)
		if !bytes.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Fatalf("batching %d: %d bytes, and one by one %d; from byte %d on they differ:\n%.300s\n%.300s",
				round, len(got), len(want), i, got[max(0, i-100):], want[max(0, i-100):])
		}
		wantMarks(t, fmt.Sprint("batching ", round), d, map[string]string{"position": fmt.Sprint(len(log))})
		if round%25 == 4 {
			dbkit.CheckSound(t, d, "replayed")
		}
		dbkit.MustClose(t, d)
	}
}
