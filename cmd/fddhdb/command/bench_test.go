package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/measure"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A fakeTarget answers searches of the items of a collection by sorting them.
type fakeTarget struct {
	c       *db.Collection
	items   []fakeItem
	settled bool
	asked   map[string]int // searches by tier
	apart   map[string]int // searches by tier whose parts were measured
	spoil   func(tier string, hits []db.Hit) []db.Hit
	fail    error
}

type fakeItem struct {
	row  uint32
	key  string
	code []byte
}

func (f *fakeTarget) Settle(context.Context) error {
	f.settled = true
	return nil
}

func (f *fakeTarget) Each(ctx context.Context, visit func(row uint32, key string, code []byte) error) error {
	row := uint32(0)
	for it, err := range f.c.Items(ctx) {
		if err != nil {
			return err
		}
		row += 3 // rows need not be dense
		f.items = append(f.items, fakeItem{row, it.Key, it.Code})
		if err := visit(row, it.Key, it.Code); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeTarget) Encode(ctx context.Context, q db.Query) ([]byte, []float64, error) {
	if q.Vector == nil {
		return q.Code, nil, nil
	}
	return f.c.EncodeQuery(ctx, q)
}

func (f *fakeTarget) Projections(context.Context, func(string, []float64) error) error {
	return errors.ErrUnsupported
}

func (f *fakeTarget) Item(context.Context, string) (*db.Item, error) {
	return nil, errors.ErrUnsupported
}

func (f *fakeTarget) Tier(name string) measure.Tier { return &fakeTier{f, name} }

type fakeTier struct {
	*fakeTarget
	name string
}

func (f *fakeTier) all(q db.Query) ([]db.Hit, error) {
	if !f.settled {
		return nil, errors.New("asked before it has settled")
	}
	f.asked[f.name]++
	code, _, err := f.Encode(context.Background(), q)
	if err != nil {
		return nil, err
	}
	var hits []db.Hit
	for _, it := range f.items {
		d := 0
		for i, x := range it.code {
			d += bits.OnesCount8(x ^ code[i])
		}
		hits = append(hits, db.Hit{Key: it.key, Row: it.row, Distance: d})
	}
	slices.SortFunc(hits, func(a, b db.Hit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Row, b.Row))
	})
	if f.spoil != nil {
		hits = f.spoil(f.name, hits)
	}
	return hits, f.fail
}

func (f *fakeTier) Search(_ context.Context, q db.Query) (*db.Result, error) {
	hits, err := f.all(q)
	return &db.Result{Hits: hits[:min(q.K, len(hits))]}, err
}

// Parts returns the times of the parts of a search that spends most of its time encoding.
func (f *fakeTier) Parts(_ context.Context, q *measure.Query, op measure.Op) (measure.Parts, error) {
	f.apart[f.name]++
	p := measure.Parts{Find: time.Nanosecond}
	if q.Vector != nil {
		p.Encode = time.Hour
	}
	if op.Kind == "knn" || op.Kind == "hits" {
		p.Order, p.Keys = time.Second, time.Minute
	}
	return p, f.fail
}

func (f *fakeTier) Radius(_ context.Context, q db.Query, r int) (measure.Runs, error) {
	hits, err := f.all(q)
	n, _ := slices.BinarySearchFunc(hits, r+1, func(h db.Hit, d int) int { return h.Distance - d })
	return fakeRuns(hits[:n]), err
}

func (f *fakeTier) Count(ctx context.Context, q db.Query, r int) (int, error) {
	runs, err := f.Radius(ctx, q, r)
	return runs.Total(), err
}

type fakeRuns []db.Hit

func (r fakeRuns) Total() int   { return len(r) }
func (r fakeRuns) Close() error { return nil }

func (r fakeRuns) Hits(context.Context) iter.Seq2[db.Hit, error] {
	return func(yield func(db.Hit, error) bool) {
		for _, h := range r {
			if !yield(h, nil) {
				return
			}
		}
	}
}

// Explain and Items are of queries by vector, and the fake has codes alone.
func (f *fakeTarget) Explain(context.Context, db.Query) (*db.Explain, *db.Result, error) {
	return nil, nil, errors.ErrUnsupported
}

func (f *fakeTarget) Items(context.Context, db.Query) (int, error) { return 0, errors.ErrUnsupported }

// doBench is do for bench on the fake.
func doBench(t *testing.T, f *fakeTarget, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &env{Printer: term.NewPrinter(&out, &errs), stdin: strings.NewReader("")}
	f.asked, f.apart = map[string]int{}, map[string]int{}
	cmd := benchCommand(e, func(_ *db.DB, c *db.Collection, _ string) measure.Target {
		f.c, f.items = c, nil
		return f
	})
	cmd.SetArgs(args)
	cmd.SetFlagErrorFunc(flagError)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	if err := e.Stdout.Flush(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		return exit.Code(err), out.String(), exit.Message(err)
	}
	return 0, out.String(), errs.String()
}

// benchFixture returns a database of codes like learned ones, and queries.
func benchFixture(t *testing.T, q, n, count int) (dir, queries string) {
	t.Helper()
	f := fixture{dir: t.TempDir()}
	f.db, queries = f.path("codes.db"), f.path("queries.npy")
	items, err := synth.Codes(synth.Learned, q, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	members, _, err := synth.CodeQueries(synth.Learned, q, n, count, 1)
	if err != nil {
		t.Fatal(err)
	}
	clitest.WriteNPY(t, f.path("items.npy"), codeRows(items))
	clitest.WriteNPY(t, queries, codeRows(members))
	must(t, "import", f.db, "--init", "--codes", f.path("items.npy"))
	return f.db, queries
}

func codeRows(codes codec.Codes) [][]uint8 {
	rows := make([][]uint8, codes.Len())
	for i := range rows {
		rows[i] = codes.At(i).AppendBytes(nil, codes.Bits())
	}
	return rows
}

// Each measurement has a line with the fields of the contract. Every query is measured
// once and checked once.
func TestBench(t *testing.T) {
	clitest.OneGoroutine(t)
	dir, queries := benchFixture(t, 64, 700, 120)
	var f fakeTarget
	code, stdout, stderr := doBench(t, &f, dir, "--codes", queries, "-k", "1,10", "-k", "1000", "--radius", "0,64",
		"--tier", "auto,fullscan,memory,auto", "--queries", "110", "--check", "--json")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	var got []string
	for line := range strings.Lines(stdout) {
		var l struct {
			Op, Tier            string
			K, Radius           *int
			Queries             int
			P50                 float64 `json:"p50_us"`
			P99                 float64 `json:"p99_us"`
			Mean                float64 `json:"mean_us"`
			Encode              float64 `json:"encode_us"`
			Find                float64 `json:"find_us"`
			Order               float64 `json:"order_us"`
			Keys                float64 `json:"keys_us"`
			Hits                float64 `json:"avg_hits"`
			Checked, Mismatches *int
			Items               int
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if l.Queries != 110 || *l.Checked != 110 || *l.Mismatches != 0 || l.P50 <= 0 || l.Items != 700 || l.P99 < l.P50 || l.Mean <= 0 {
			t.Errorf("line %s", line)
		}
		hasKeys := l.Tier != measure.FullScan && (l.Op == "knn" || l.Op == "hits")
		if l.Encode != 0 || l.Find <= 0 || (l.Order > 0) != hasKeys || (l.Keys > 0) != hasKeys {
			t.Errorf("the parts of %s", line)
		}
		n := l.K
		if l.Op != "knn" {
			n = l.Radius
		}
		most := map[string]float64{"knn": float64(*n), "radius": 700, "count": 700, "hits": 100}[l.Op]
		if l.Hits > most || *n > 0 && l.Hits < min(most, 700) {
			t.Errorf("%g hits: %s", l.Hits, line)
		}
		got = append(got, fmt.Sprint(l.Op, *n, l.Tier))
	}
	var want []string
	for _, op := range []string{"knn1", "knn10", "knn1000", "radius0", "hits0", "count0", "radius64", "hits64", "count64"} {
		for _, tier := range []string{"auto", "fullscan", "memory"} {
			if tier != "fullscan" || !strings.HasPrefix(op, "hits") {
				want = append(want, op+tier)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
	// Measured and checked. The number of warm-up searches depends on their speed.
	if f.apart["auto"] != 9*110 || f.apart["memory"] != 9*110 {
		t.Errorf("the parts of %v searches", f.apart)
	}
	if n := 9 * (110 + 110); f.asked["auto"] < n || f.asked["memory"] < n || f.asked["fullscan"] != 0 {
		t.Errorf("asked %v, want at least %d each", f.asked, n)
	}
}

func TestBenchText(t *testing.T) {
	dir, queries := benchFixture(t, 16, 50, 3)
	code, stdout, stderr := doBench(t, &fakeTarget{}, dir, "--codes", queries)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || stderr != "" || len(lines) != 3 ||
		strings.Join(strings.Fields(lines[0]), " ") != "search tier queries p50 us p99 us mean us encode find order keys hits times fullscan" {
		t.Fatalf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	if f := strings.Fields(lines[2]); !strings.HasPrefix(lines[1], "knn 10  auto ") || f[2] != "fullscan" || f[3] != "3" || f[7] != "0.00" || f[9] != "0.00" || f[10] != "0.00" || f[12] != "1.00" {
		t.Error(stdout)
	}
	// Finding takes a nanosecond, whatever else its searches take.
	f := strings.Fields(lines[1])
	if times, err := strconv.ParseFloat(f[len(f)-1], 64); err != nil || times < 10 {
		t.Errorf("%v times as fast as fullscan, %v:\n%s", times, err, stdout)
	}
	_, stdout, _ = doBench(t, &fakeTarget{}, dir, "--codes", queries, "--radius", "2", "--tier", "disk", "--check")
	lines = strings.Split(strings.TrimSpace(stdout), "\n")
	if !strings.HasSuffix(lines[0], "checked  mismatches") || len(lines) != 4 {
		t.Fatal(stdout)
	}
	if f := strings.Fields(lines[1]); f[12] != "-" || f[13] != "3" || f[14] != "0" {
		t.Error(stdout)
	}
}

// Queries by vector are encoded for the yardstick and the check.
func TestBenchVectors(t *testing.T) {
	f := newFixture(t, 80, true)
	code, stdout, stderr := doBench(t, &fakeTarget{}, f.db, "--vectors", f.text, "--from", "text", "--radius", "3", "--check", "--json")
	if code != 0 || stderr != "" || strings.Count(stdout, `"queries":80,`) != 5 || strings.Count(stdout, `"checked":80,"mismatches":0`) != 5 {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
}

// With --order every search that has keys is measured in each order and in the order none, and
// second pages are, in all that have cursors. The check finds nothing wrong.
func TestBenchOrders(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector, and has no goroutines of its own")
	}
	f := newFixture(t, 80, true)
	orders := map[string][]string{}
	out := must(t, "bench", f.db, "--vectors", f.text, "--from", "text", "--to", "image", "-k", "10,100", "--radius", "16",
		"--order", "auto,features,fused,projection,asymmetric", "--queries", "20", "--check", "--json")
	for line := range strings.Lines(out) {
		var l struct {
			Op, Tier            string
			Order               string `json:"order"`
			K                   int
			Encode              float64 `json:"encode_us"`
			Hits                float64 `json:"avg_hits"`
			Checked, Mismatches int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Tier == measure.FullScan {
			if l.Order != "" || l.Op == "hits" || l.Op == "next" {
				t.Errorf("the yardstick in an order: %s", line)
			}
			continue
		}
		op := fmt.Sprint(l.Op, l.K)
		orders[op] = append(orders[op], l.Order)
		if l.Checked != 20 || l.Mismatches != 0 || l.Encode <= 0 || l.Hits <= 0 {
			t.Errorf("line %s", line)
		}
	}
	all := []string{"auto", "features", "fused", "projection", "asymmetric", "none"}
	// The first 100 of 80 items have no second page.
	want := map[string][]string{"knn10": all, "knn100": all, "hits0": all, "next10": slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "features" }), "radius0": {""}, "count0": {""}}
	if diff := gocmp.Diff(want, orders); diff != "" {
		t.Error(diff)
	}
	out = must(t, "bench", f.db, "--vectors", f.text, "--from", "text", "--order", "projection", "--queries", "5")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if !strings.HasPrefix(lines[0], "search   tier      ranked by ") || !strings.HasSuffix(lines[0], "times fullscan  times none") || len(lines) != 6 ||
		!strings.HasPrefix(lines[2], "knn 10   auto      none ") || !strings.HasSuffix(lines[2], "1.00") || !strings.HasPrefix(lines[4], "next 10  auto      projection ") {
		t.Error(out)
	}
	for _, c := range []struct{ args, want string }{
		{"--order best", `--order: there is no order "best": there are auto, projection, none, asymmetric, features and fused`},
		{"--order ,", "--order names no order"},
		{"--order projection --plot a.svg", "leave out --order"},
	} {
		args := append([]string{"bench", f.db, "--vectors", f.text, "--from", "text"}, strings.Fields(c.args)...)
		if code, _, stderr := do(t, args...); code != exit.Usage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, %s", c.args, code, stderr)
		}
	}
	if code, _, stderr := do(t, "bench", f.db, "--codes", f.text, "--order", "none"); code != exit.Usage || !strings.Contains(stderr, "give --vectors FILE with --from NAME") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// For a learned collection the time of the model is separate from the time of finding
// the codes, the only part of the yardstick.
func TestBenchParts(t *testing.T) {
	f := newFixture(t, 80, true)
	lines := 0
	for line := range strings.Lines(must(t, "bench", f.db, "--vectors", f.text, "--from", "text", "-k", "10", "--radius", "64", "--json")) {
		lines++
		var l struct {
			Op, Tier string
			Encode   float64 `json:"encode_us"`
			Find     float64 `json:"find_us"`
			Order    float64 `json:"order_us"`
			Keys     float64 `json:"keys_us"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		ours := l.Tier == "auto"
		hasKeys := ours && (l.Op == "knn" || l.Op == "hits")
		if (l.Encode > 0) != ours || l.Find <= 0 || (l.Order > 0) != hasKeys || (l.Keys > 0) != hasKeys {
			t.Errorf("the parts of %s", line)
		}
	}
	if lines != 7 {
		t.Errorf("%d lines", lines)
	}
}

// Answers by vectors are measured by each recall and by all of it, where nothing is trained and an
// index leaves vectors out.
func TestBenchByVectors(t *testing.T) {
	clitest.OneGoroutine(t)
	f := fixture{dir: t.TempDir()}
	f.db = f.path("a.db")
	const items, dims = 8600, 128 // so many numbers that not all are compared
	clitest.WriteNPY(t, f.path("x.npy"), synth.Embeddings(0, items, dims, 1))
	clitest.WriteNPY(t, f.path("q.npy"), synth.Embeddings(items, 100, dims, 1))
	must(t, "import", f.db, "--init", "--vectors", "e="+f.path("x.npy"))
	must(t, "index", f.db, "--cells", "60")
	args := []string{"bench", f.db, "--from", "e", "--to", "e", "--vectors", f.path("q.npy"), "-k", "10", "--recall", ".8"}
	type measured struct {
		Op, Tier          string
		K, Queries, Items int
		Recall            float64
		P50               float64 `json:"p50_us"`
		P99               float64 `json:"p99_us"`
		Mean              float64 `json:"mean_us"`
		Hits              float64 `json:"avg_hits"`
		Found             float64 `json:"recall_found"`
		Approximate       int
		Cells             float64 `json:"avg_cells"`
		Candidates        float64 `json:"avg_candidates"`
		Compared          float64 `json:"avg_compared"`
	}
	var lines []measured
	d := json.NewDecoder(strings.NewReader(must(t, append(args, "--json")...)))
	d.DisallowUnknownFields()
	for d.More() {
		var l measured
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.Op != "knn" || l.Tier != "auto" || l.K != 10 || l.Queries != 100 || l.Items != items || l.Hits != 10 || l.P50 <= 0 || l.P99 < l.P50 || l.Mean <= 0 || l.Compared < 10 {
			t.Errorf("%+v", l)
		}
		lines = append(lines, l)
	}
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	if l := lines[0]; l.Recall != .8 || l.Approximate != 100 || l.Found < .6 || l.Found >= 1 || l.Cells < 1 || l.Cells > 60 || l.Candidates > items/2 {
		t.Errorf("by the index: %+v", l)
	}
	if l := lines[1]; l.Recall != 1 || l.Approximate != 0 || l.Found != 1 || l.Cells != 0 || l.Candidates != items {
		t.Errorf("exactly: %+v", l)
	}
}

// A wrong answer is counted on its line and fails the run.
func TestBenchMismatch(t *testing.T) {
	dir, queries := benchFixture(t, 64, 300, 4)
	f := &fakeTarget{spoil: func(tier string, hits []db.Hit) []db.Hit {
		if tier == "disk" {
			return hits[1:]
		}
		return hits
	}}
	code, stdout, stderr := doBench(t, f, dir, "--codes", queries, "-k", "5", "--tier", "memory,disk", "--check", "--json")
	if code != exit.Failed || !strings.HasPrefix(stderr, "4 of 8 answers differ from those of a linear scan, the first being knn 5 by disk, query 0: ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if strings.Count(stdout, `"checked":4,"mismatches":0`) != 1 || strings.Count(stdout, `"checked":4,"mismatches":4`) != 1 {
		t.Error(stdout)
	}
}

func TestBenchErrors(t *testing.T) {
	dir, queries := benchFixture(t, 64, 20, 4)
	empty := fixture{dir: t.TempDir()}
	empty.db = empty.path("a.db")
	must(t, "init", empty.db, "--codes", "64")
	untrained := newFixture(t, 10, false)
	clitest.WriteNPY(t, empty.path("short.npy"), [][]uint8{{1, 2}})
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{dir, "bench needs queries: ", exit.Usage},
		{"--codes q", "bench needs the folder of a database: ", exit.Usage},
		{dir + " " + empty.db + " " + dir + "/. --codes q", "bench measures " + dir + "/. once: ", exit.Usage},
		{dir + " --codes q --vectors v", "bench takes one of --vectors and --codes", exit.Usage},
		{dir + " --vectors v", "--from NAME is missing", exit.Usage},
		{dir + " --codes q --from image", "--from: a query by code", exit.Usage},
		{dir + " --codes q --queries 0", "--queries 0: ", exit.Usage},
		{dir + " --codes q --tier auto,fast", `--tier: there is no tier "fast": there are auto, fullscan, scan, memory, disk, blockscan`, exit.Usage},
		{dir + " --codes q --tier ,", "--tier names no tier", exit.Usage},
		{dir + " --codes q -k 0", `-k "0": 1 or more are possible`, exit.Usage},
		{dir + " --codes q -k ten", `-k "ten": whole numbers are expected`, exit.Usage},
		{dir + " --codes q --radius 3,-1", `--radius "3,-1": 0 or more`, exit.Usage},
		{dir + " --vectors v --from image", `--from: there is no modality "image"`, exit.Usage},
		{dir + " --codes " + empty.path("short.npy"), "", exit.Failed},
		{dir + " --codes " + empty.path("none.npy"), "", exit.Failed},
		{empty.db + " --codes " + queries, "there are no items to search", exit.Failed},
		{untrained.db + " --vectors " + untrained.text + " --from text", "collection is not trained: ", exit.Failed},
	} {
		code, stdout, stderr := doBench(t, &fakeTarget{}, strings.Fields(c.args)...)
		if code != c.code || !strings.HasPrefix(stderr, c.want) || stdout != "" {
			t.Errorf("bench %s: exit code %d, %q, %q", c.args, code, stderr, stdout)
		}
	}
	f := &fakeTarget{fail: errors.New("out of order")}
	if code, _, stderr := doBench(t, f, dir, "--codes", queries, "--tier", "scan"); code != exit.Failed ||
		stderr != "out of order: while measuring knn 10 by scan" {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
