package dbkit

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"iter"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

var ctx = context.Background()

// MustOpen opens a database, which the test closes.
func MustOpen(t testing.TB, dir string, opts *db.Options) *db.DB {
	t.Helper()
	d, err := db.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Open opens a database in memory for the time of a test, which fails if it is not sound in the end.
func Open(t testing.TB) *db.DB {
	t.Helper()
	d := MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	t.Cleanup(func() {
		CheckSound(t, d, "at the end of the test")
		MustClose(t, d)
	})
	return d
}

// MustClose closes a database.
func MustClose(t testing.TB, d *db.DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// MustCollection returns a collection that is there.
func MustCollection(t testing.TB, d *db.DB, name string) *db.Collection {
	t.Helper()
	c, err := d.Collection(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// OpenPairs opens a database with a learned collection "main" of two
// modalities, to be closed at the end of the test.
func OpenPairs(t testing.TB) (*db.DB, *db.Collection) {
	t.Helper()
	d := MustOpen(t, t.TempDir(), nil)
	t.Cleanup(func() { _ = d.Close() }) // the test may have closed it
	c, err := d.CreateCollection(ctx, "main", PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// OpenCodes opens a database with a codes-only collection "codes", in a folder of its own.
func OpenCodes(t testing.TB) (*db.DB, *db.Collection) {
	t.Helper()
	d, _ := OpenPairs(t)
	c, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// OpenCoded opens a database in memory with a codes-only collection "main".
func OpenCoded(t testing.TB, bits int) (*db.DB, *db.Collection) {
	t.Helper()
	d := MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	t.Cleanup(func() { _ = d.Close() })
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: bits})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// MustSchema returns the schema of a collection.
func MustSchema(t testing.TB, c *db.Collection) db.Schema {
	t.Helper()
	s, err := c.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// MustStats returns the figures of a database.
func MustStats(t testing.TB, d *db.DB) *db.Stats {
	t.Helper()
	s, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// MustTrain trains, and makes the new space the active one.
func MustTrain(t testing.TB, c *db.Collection, opt db.TrainOptions) *report.Training {
	t.Helper()
	opt.Activate = true
	tr, err := c.Train(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// MustUpdate lets a space learn from what has come since.
func MustUpdate(t testing.TB, c *db.Collection, opt db.UpdateOptions) *report.Update {
	t.Helper()
	u, err := c.Update(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TinyTraining is one whose space is small: what follows from it is checked often.
func TinyTraining(seed uint64) db.TrainOptions {
	return db.TrainOptions{Options: fit.Options{
		Bits: 16, Anchors: 6, Seed: seed, Fusion: fit.Fusion{Rule: fit.FusionSum},
		Map: map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF}, Sweeps: 1,
	}}
}

// Findings verifies a database.
func Findings(t testing.TB, d *db.DB, opt db.VerifyOptions) ([]report.Finding, *report.Verification) {
	t.Helper()
	var all []report.Finding
	v, err := d.Verify(ctx, opt, func(f report.Finding) error {
		all = append(all, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if v.Findings != len(all) {
		t.Errorf("%d findings were reported, %d counted", len(all), v.Findings)
	}
	return all, v
}

// CheckSound fails where verification finds anything, by either way.
func CheckSound(t testing.TB, d *db.DB, when string) *report.Verification {
	t.Helper()
	all, _ := Findings(t, d, db.VerifyOptions{})
	deep, v := Findings(t, d, db.VerifyOptions{Deep: true})
	for i, f := range append(all, deep...) {
		if i > 10 {
			break
		}
		t.Errorf("%s: %v (%s)", when, f, f.Key)
	}
	return v
}

// AllPlans are the plans of a search; all have the same answer.
var AllPlans = []db.Plan{db.PlanAuto, db.PlanMemory, db.PlanScan, db.PlanFilter, db.PlanDisk,
	db.PlanBlockScan}

// FirstWithin returns the first q.K items within a radius.
func FirstWithin(c *db.Collection, q db.Query, radius int) (*db.Result, error) {
	runs, err := c.SearchRadius(ctx, q, radius)
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	return runs.First(ctx, q.K)
}

// CountWithin returns how many items are within radius bits of a query.
func CountWithin(c *db.Collection, q db.Query, radius int) (int, error) {
	runs, err := c.SearchRadius(context.Background(), q, radius)
	if err != nil {
		return 0, err
	}
	return runs.Total(), runs.Close()
}

// Collect returns what a sequence yields before its error.
func Collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for x, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, x)
	}
	return all, nil
}

// LongTest is a test that takes long (effort.Slow), and runs beside others: so it changes nothing that they
// share.
func LongTest(t *testing.T) {
	t.Helper()
	effort.Slow(t)
	t.Parallel()
}

// Soak is the flag -soak.
var Soak = flag.Duration("soak", 0, "for how long to go on with what else is short, or left out")

// Has reports whether a collection has an item.
func Has(ctx context.Context, c *db.Collection, key string) (bool, error) {
	_, err := c.Get(ctx, key)
	if errors.Is(err, db.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// VectorIndexes returns the indexes of vectors of a collection.
func VectorIndexes(c *db.Collection) ([]report.VectorIndex, error) {
	s, err := c.Stats(context.Background())
	if err != nil {
		return nil, err
	}
	return s.VectorIndexes, nil
}

// Drift returns the drift of a collection, measured if it has to be.
func Drift(ctx context.Context, c *db.Collection) (report.Drift, error) {
	s, err := c.Stats(ctx, db.MeasuredDrift)
	if err != nil {
		return nil, err
	}
	return s.Drift, nil
}

// Explain answers a query by Search, or with a radius that is not negative by SearchRadius, and says how.
func Explain(ctx context.Context, c *db.Collection, q db.Query, radius int) (*report.Explain, *db.Result,
	error) {
	q.Include |= db.IncludeExplain
	var res *db.Result
	var err error
	if radius < 0 {
		res, err = c.Search(ctx, q)
	} else {
		q.K = cmp.Or(q.K, 10)
		res, err = FirstWithin(c, q, radius)
	}
	if err != nil {
		return nil, nil, err
	}
	return res.Explain, res, nil
}
