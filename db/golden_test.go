package db_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/effort"
)

var updateListing = flag.Bool("update-listing", false, "write down what is in the golden databases")

// A golden is the archive of a golden database.
type golden struct {
	format  int
	archive string
}

// goldens returns the golden databases: one for each format, in order, and after it those
// with records that it has got later.
func goldens(t *testing.T) (all []golden) {
	t.Helper()
	for format := db.MinFormat; format <= db.NewestFormat; format++ {
		name := filepath.Join("testdata", "golden", fmt.Sprintf("format%d", format))
		if _, err := os.Stat(name + ".tar.gz"); err != nil {
			t.Fatalf("every format has a golden database, made by the version that brought it: %v", err)
		}
		later, err := filepath.Glob(name + "-*.tar.gz")
		if err != nil {
			t.Fatal(err)
		}
		for _, archive := range append([]string{name + ".tar.gz"}, later...) {
			all = append(all, golden{format, archive})
		}
	}
	return all
}

// oldestGolden returns the archive of the oldest format, newestGolden the last one.
func oldestGolden(t *testing.T) string { return goldens(t)[0].archive }

func newestGolden(t *testing.T) string {
	all := goldens(t)
	return all[len(all)-1].archive
}

// goldenListing says what is in a database: everything that users can see and that is
// stored, but for spaces that are being built.
func goldenListing(t testing.TB, d *db.DB) string {
	t.Helper()
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for m, err := range d.Marks(ctx, "") {
		check(err)
		say("mark %s: %q", m.Name, m.Value)
	}
	names, err := d.Collections()
	check(err)
	for _, name := range names {
		c := dbkit.MustCollection(t, d, name)
		indexes, err := c.VectorIndexes()
		check(err)
		for _, x := range indexes {
			type point struct { // as it was first listed
				K                            int
				Reach, Recall, Error, Probes float64
			}
			var points []point
			for _, p := range x.Measured {
				points = append(points, point{p.K, p.Reach, p.Recall, p.Error, p.Probes})
			}
			say("index %d of %s: complete %v, %d cells, recall %v, measured %v", x.Index, x.Modality, x.Complete, x.Cells, x.Recall, points)
		}
		encoders, err := c.Encoders()
		check(err)
		for _, e := range encoders {
			say("encoder of %s: of %s, %q", e.Modality, e.Input, e.Command)
		}
		schema, err := c.Schema()
		check(err)
		labels, err := c.Labels()
		check(err)
		say("collection %s: %d bits, modalities %v, fields %v, labels %q", name, schema.Bits, goldenModalities(schema), schema.Fields, labels)
		spaces, err := c.Spaces(ctx)
		check(err)
		for _, s := range spaces {
			if s.State == db.SpaceBuilding {
				continue
			}
			say("space %d: %s, previous %v, parent %d, %d bits, views %q, %d items, %d codes, %d have taught, %d pending, model %s",
				s.Space, s.State, s.Previous, s.Parent, s.Bits, s.Views, s.Items, s.Codes, s.Taught, s.Pending, s.Checksum)
			for _, r := range s.Revisions {
				say("revision %d: of %d, pinned %v, teacher %q, %d items", r.Revision, r.Parent, r.Pinned, r.Teacher, r.Items)
			}
			in, err := c.InSpace(s.Space)
			check(err)
			for it, err := range in.Items(ctx) {
				check(err)
				say("%s: code %x %s%s", it.Key, it.Code, it.CodeFrom, goldenCodes(it))
			}
		}
		for it, err := range c.Items(ctx) {
			check(err)
			fields := slices.Sorted(maps.Keys(it.Fields))
			for i, name := range fields {
				fields[i] = fmt.Sprintf("%s=%v", name, it.Fields[name])
			}
			say("%s: labels %q, fields %q, data %x", it.Key, it.Labels, fields, goldenSum(it))
		}
		for _, where := range []string{"label = 'class1'", "year > 1800", "price < 5 AND new = TRUE", "title IN ('title 2', 'title 3')", "n >= 350", "at < '1970'", "seen >= '1700'"} {
			n, err := c.CountWhere(ctx, where)
			if _, unknown := errors.AsType[*db.WhereError](err); !unknown {
				check(err)
				say("%s: %d", where, n)
			}
		}
		for _, m := range schema.Modalities { // answers by vectors
			if m.Metric == "" && m.SpaceOf == "" {
				continue
			}
			for _, key := range []string{"k5", "k20"} {
				r, err := c.Search(ctx, db.Query{Key: key, From: m.Name, K: 6})
				if errors.Is(err, db.ErrInvalid) { // the item lacks the vector
					continue
				}
				check(err)
				say("search from %s of %q:%s", m.Name, key, goldenHits(r))
			}
		}
		for _, key := range []string{"k5", "k20", "c0010"} {
			for _, m := range append([]db.Modality{{}}, schema.Modalities...) {
				for _, rerank := range []db.Rerank{db.RerankNone, db.RerankProjection} {
					r, err := c.Search(ctx, db.Query{Key: key, From: m.Name, To: m.Name, K: 6, Rerank: rerank})
					if errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrNoModel) || errors.Is(err, db.ErrInvalid) {
						continue
					}
					check(err)
					say("search from %s of %q, %v: %v", m.Name, key, rerank, goldenHits(r))
				}
			}
		}
	}
	return b.String()
}

// goldenModalities lists modalities as listings of before metrics have them, and what a modality has
// of these.
func goldenModalities(s db.Schema) (all []string) {
	for _, m := range s.Modalities {
		text := fmt.Sprint(m.Name, " ", m.Dim, " ", m.Sparse)
		if m.Metric != "" || m.SpaceOf != "" {
			text += fmt.Sprintf(" metric %q, space of %q", m.Metric, m.SpaceOf)
		}
		all = append(all, "{"+text+"}")
	}
	return all
}

func goldenHits(r *db.Result) string {
	var b strings.Builder
	for _, h := range r.Hits {
		fmt.Fprintf(&b, " %s:%d", h.Key, max(h.Distance, 0)) // of answers by vectors the stored answers say 0
	}
	return b.String()
}

func goldenCodes(it *db.Item) string {
	var b strings.Builder
	for _, target := range slices.Sorted(maps.Keys(it.Codes)) {
		fmt.Fprintf(&b, " %s %x %s", target, it.Codes[target].Code, it.Codes[target].From)
	}
	return b.String()
}

// goldenSum is a checksum of the vectors and the payload of an item.
func goldenSum(it *db.Item) []byte {
	h := fnv.New64a()
	number := func(x uint32) { h.Write(binary.LittleEndian.AppendUint32(nil, x)) }
	for _, name := range slices.Sorted(maps.Keys(it.Vectors)) {
		h.Write([]byte(name))
		for _, x := range it.Vectors[name] {
			number(math.Float32bits(x))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(it.Sparse)) {
		h.Write([]byte(name))
		for i, x := range it.Sparse[name].Index {
			number(x)
			number(math.Float32bits(it.Sparse[name].Value[i]))
		}
	}
	h.Write(it.Payload)
	return h.Sum(nil)
}

// checkGolden opens a database for reading and compares what is in it with the listing.
func checkGolden(t testing.TB, what string, fsys vfs.FS, want string) *db.DB {
	t.Helper()
	d, err := db.Open("golden", &db.Options{FS: fsys, ReadOnly: true})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := gocmp.Diff(strings.Split(want, "\n"), strings.Split(goldenListing(t, d), "\n")); diff != "" {
		t.Errorf("%s: %.2000s", what, diff)
	}
	dbkit.MustClose(t, d)
	return d
}

func verifyGolden(t testing.TB, what string, fsys vfs.FS) {
	t.Helper()
	if testing.Short() && what != "written to after the upgrade" {
		return
	}
	v, err := db.VerifyFolder(ctx, "golden", &db.Options{FS: fsys}, db.VerifyOptions{Deep: true}, func(f db.Finding) error {
		t.Errorf("%s: %s", what, f)
		return nil
	})
	if err != nil || v.CodesChecked == 0 {
		t.Errorf("%s: %+v, %v", what, v, err)
	}
}

// A database that a released version wrote and did not close is read, written and upgraded
// by this one.
func TestGolden(t *testing.T) {
	dbkit.LongTest(t)
	for _, g := range goldens(t) {
		t.Run(strings.TrimSuffix(filepath.Base(g.archive), ".tar.gz"), func(t *testing.T) {
			format, archive := g.format, g.archive
			mem := vfs.NewMem()
			unpackFolder(t, mem, "golden", archive)
			listing := strings.TrimSuffix(archive, ".tar.gz") + ".txt"
			if *updateListing {
				d := dbkit.MustOpen(t, "golden", &db.Options{FS: mem, ReadOnly: true})
				if err := os.WriteFile(listing, []byte(goldenListing(t, d)), 0o666); err != nil {
					t.Fatal(err)
				}
				dbkit.MustClose(t, d)
			}
			text, err := os.ReadFile(listing)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(string(text), "\r\n", "\n")
			verifyGolden(t, "as it is", mem)
			d := checkGolden(t, "as it is", mem, want)
			if d.Format() != format || (d.UUID() == "") != (format < db.FormatIdentity) {
				t.Errorf("format %d, UUID %q", d.Format(), d.UUID())
			}
			uuid := d.UUID()

			// Written to, it stays of its format.
			d = dbkit.MustOpen(t, "golden", &db.Options{FS: mem})
			goldenWrites(t, d)
			after := goldenListing(t, d)
			dbkit.MustClose(t, d)
			if d.Format() != format || d.UUID() != uuid {
				t.Errorf("after writing format %d, UUID %q", d.Format(), d.UUID())
			}
			if _, err := mem.Stat("golden/" + store.CommitsName); (err != nil) != (format < db.FormatIdentity) {
				t.Errorf("after writing the side file: %v", err)
			}
			verifyGolden(t, "after writing", mem)
			checkGolden(t, "after writing", mem, after)

			_, pending, err := db.PendingMigrations(ctx, "golden", &db.Options{FS: mem})
			if err != nil {
				t.Fatal(err)
			}
			var steps []int
			from, to, err := db.Upgrade(ctx, "golden", &db.Options{FS: mem}, db.UpgradeOptions{Progress: func(stage string, done, total int64) {
				if m := pending[done]; stage != m.What || int(total) != db.NewestFormat-format {
					t.Errorf("step %d of %d: %s", done, total, stage)
				}
				steps = append(steps, format+int(done)+1)
			}})
			if err != nil || from != format || to != db.NewestFormat || len(steps) != db.NewestFormat-format {
				t.Fatalf("upgrade from %d to %d by %v: %v", from, to, steps, err)
			}
			verifyGolden(t, "after the upgrade", mem)
			d = checkGolden(t, "after the upgrade", mem, after)
			if d.Format() != db.NewestFormat || len(d.UUID()) != 32 || (uuid != "" && d.UUID() != uuid) {
				t.Errorf("after the upgrade format %d, UUID %q", d.Format(), d.UUID())
			}
			if marker, err := store.ReadMarker(mem, "golden"); err != nil || marker != db.NewestFormat {
				t.Errorf("the marker says %d, %v", marker, err)
			}
			d = dbkit.MustOpen(t, "golden", &db.Options{FS: mem})
			goldenWrites(t, d)
			if r := d.Recovery(); r.Problem != "" || len(r.Losses) > 0 {
				t.Errorf("recovery: %+v", r)
			}
			dbkit.MustClose(t, d)
			verifyGolden(t, "written to after the upgrade", mem)
		})
	}
}

// goldenWrites changes something in every collection, and waits until the space is complete
// that was being built.
func goldenWrites(t *testing.T, d *db.DB) {
	t.Helper()
	shared := dbkit.MustCollection(t, d, "shared")
	if _, err := shared.Reindex(ctx, db.ReindexOptions{}); err != nil {
		t.Fatal(err)
	}
	goldenPut(t, shared, goldenItems(100)[20:24])
	if _, err := shared.Merge(ctx, &db.Item{Key: "k30", Labels: []string{"new label"}, Fields: map[string]any{"year": 7}}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels}); err != nil {
		t.Fatal(err)
	}
	if d.Format() >= db.FormatMarks {
		putMarks(t, d, "position", "21", "log/1", "", "log/2", "two")
	}
	codes := dbkit.MustCollection(t, d, "codes")
	goldenPut(t, codes, []*db.Item{{Key: "c0003", Code: []byte{200, 200}}, {Code: []byte{0, 0}}})
	if _, err := dbkit.MustCollection(t, d, "views").Delete(ctx, "k10"); err != nil {
		t.Fatal(err)
	}
}

// oldest returns the golden database of the oldest format, and the listing of what is in it.
func oldest(t *testing.T, mem *vfs.MemFS) (want string) {
	t.Helper()
	unpackFolder(t, mem, "golden", oldestGolden(t))
	d := dbkit.MustOpen(t, "golden", &db.Options{FS: mem, ReadOnly: true})
	defer d.Close()
	return goldenListing(t, d)
}

// Whichever change to the file system fails during an upgrade, the database is of the one
// format or of the other, with all that was in it, and the next upgrade goes on.
func TestEveryFailedChangeOfAnUpgrade(t *testing.T) {
	dbkit.LongTest(t)
	want := oldest(t, vfs.NewMem())
	for k := 0; ; k++ {
		if !effort.Sampled(k, 7) && k < 80 {
			continue
		}
		mem := vfs.NewMem()
		unpackFolder(t, mem, "golden", oldestGolden(t))
		fail := &dbkit.FailOnce{K: k}
		_, to, err := db.Upgrade(ctx, "golden", &db.Options{FS: errorfs.Wrap(mem, fail)}, db.UpgradeOptions{})
		if !fail.Fired {
			if err != nil || to != db.NewestFormat || k < 20 {
				t.Fatalf("without a failure, after %d changes: format %d, %v", k, to, err)
			}
			t.Logf("%d changes failed in turn", k)
			return
		}
		checkHalfUpgraded(t, fmt.Sprintf("change %d failed (%v)", k, err), mem, want, k%8 == 4)
	}
}

// The same where the machine stops before any change.
func TestCrashesOfAnUpgrade(t *testing.T) {
	dbkit.LongTest(t)
	mem := dbkit.NewCrashFS()
	want := oldest(t, mem.MemFS)
	var mu sync.Mutex
	var crashes []*vfs.MemFS
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{}))
		}
		return nil
	}))
	if _, _, err := db.Upgrade(ctx, "golden", &db.Options{FS: fsys}, db.UpgradeOptions{}); err != nil {
		t.Fatal(err)
	}
	crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{}))
	formats := map[int]int{}
	for i, crash := range crashes {
		if !effort.Sampled(i, 7) && i < len(crashes)-2 {
			continue
		}
		formats[checkHalfUpgraded(t, fmt.Sprint("crash ", i), crash, want, i%8 == 4)]++
	}
	if formats[db.MinFormat] == 0 || formats[db.NewestFormat] == 0 {
		t.Errorf("formats after crashes: %v", formats)
	}
	t.Logf("formats after %d crashes: %v", len(crashes), formats)
}

// checkHalfUpgraded checks a database whose upgrade was interrupted, and returns its format.
func checkHalfUpgraded(t *testing.T, what string, mem *vfs.MemFS, want string, all bool) int {
	t.Helper()
	if _, err := mem.Stat("golden"); err != nil {
		t.Fatal(err)
	}
	format, pending, err := db.PendingMigrations(context.Background(), "golden", &db.Options{FS: mem})
	if err != nil || len(pending) != db.NewestFormat-format {
		t.Fatalf("%s: format %d, %v, %v", what, format, pending, err)
	}
	if all {
		checkGolden(t, what, mem, want)
	}
	if _, to, err := db.Upgrade(context.Background(), "golden", &db.Options{FS: mem}, db.UpgradeOptions{}); err != nil || to != db.NewestFormat {
		t.Fatalf("%s, and again: format %d, %v", what, to, err)
	}
	if all {
		verifyGolden(t, what+", and again", mem)
	}
	d := dbkit.MustOpen(t, "golden", &db.Options{FS: mem, ReadOnly: true})
	if r := d.Recovery(); r.Problem != "" || len(r.Losses) > 0 || cmp.Compare(r.Found, r.Promised) != 0 {
		t.Errorf("%s, and again: %+v", what, r)
	}
	dbkit.MustClose(t, d)
	return format
}
