package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// benchFixture returns a database of codes like learned ones, and queries.
func benchFixture(t *testing.T, q, n, count int) (dir, queries string) {
	t.Helper()
	f := fixture{dir: t.TempDir()}
	f.db, queries = f.path("codes.db"), f.path("queries.npy")
	items := clitest.Must(synth.Codes(synth.Learned, q, n, 1))(t)
	members, _, err := synth.CodeQueries(synth.Learned, q, n, count, 1)
	clitest.Check(t, err)
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

// benched runs bench and returns its lines, which have no other fields than these.
func benched(t *testing.T, args ...string) (lines []benchLine) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(must(t, append(append([]string{"bench"}, args...), "--json")...)))
	d.DisallowUnknownFields()
	for d.More() {
		var l benchLine
		clitest.Check(t, d.Decode(&l))
		if l.P50 <= 0 || l.P99 < l.P50 || l.Mean <= 0 || l.Plan == "" || (l.K == nil) == (l.Radius == nil) {
			t.Errorf("line %+v", l)
		}
		lines = append(lines, l)
	}
	return lines
}

// Each search has a line as it is and a line by a scan, which find as much.
func TestBench(t *testing.T) {
	clitest.OneGoroutine(t)
	dir, queries := benchFixture(t, 64, 700, 120)
	var got []string
	lines := benched(t, dir, "--codes", queries, "-k", "1,10", "-k", "1000", "--radius", "0,64", "--queries",
		"110")
	for i, l := range lines {
		n, most := l.Radius, 700.
		if l.K != nil {
			n, most = l.K, min(700, float64(*l.K))
		}
		if l.Queries != 110 || l.AvgHits > most || *n > 0 && l.AvgHits != most ||
			l.AvgHits != lines[i/2*2].AvgHits || l.Found != nil {
			t.Errorf("%+v", l)
		}
		if l.Tier == "scan" && l.Plan != "scan" {
			t.Errorf("%+v", l)
		}
		got = append(got, fmt.Sprint(l.Op, *n, l.Tier))
	}
	var want []string
	for _, search := range []string{"knn1", "knn10", "knn1000", "radius0", "radius64"} {
		want = append(want, search+"auto", search+"scan")
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
}

func TestBenchText(t *testing.T) {
	dir, queries := benchFixture(t, 16, 50, 3)
	lines := strings.Split(strings.TrimSpace(must(t, "bench", dir, "--codes", queries)), "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[0]),
		" ") != "search tier plan queries p50 us p99 us mean us hits found times scan" {
		t.Fatalf("%q", lines)
	}
	if f := strings.Fields(lines[2]); !strings.HasPrefix(lines[1], "knn 10  auto ") || f[2] != "scan" ||
		f[4] != "3" || f[8] != "10.0" || f[9] != "-" || f[10] != "1.00" {
		t.Errorf("%q", lines)
	}
}

// In a learned collection codes answer, and with --recall vectors do. --where and --to keep to what matches.
func TestBenchOfLearned(t *testing.T) {
	f := newFixture(t, 80, true)
	args := []string{f.db, "--vectors", f.text, "--from", "text"}
	for _, l := range benched(t, append(args, "--radius", "16", "-k", "100", "--to", "image")...) {
		if l.AvgHits != 80 || l.Found != nil {
			t.Errorf("%+v", l)
		}
	}
	matching := 0
	if _, err := fmt.Sscan(must(t, "count", f.db, "--where", "label = 'label0'"), &matching); err != nil {
		t.Fatal(err)
	}
	for _, l := range benched(t, append(args, "-k", "100", "--where", "label = 'label0'")...) {
		if l.AvgHits != float64(matching) {
			t.Errorf("%+v, %d match", l, matching)
		}
	}
	for i, l := range benched(t, append(args, "--recall", ".9", "-k", "5")...) {
		if l.AvgHits != 5 || l.Plan != "vectors" || i == 0 && (l.Found == nil || *l.Found != 1) {
			t.Errorf("%+v", l)
		}
	}
}

// Where an index of vectors answers, the line says what share of the exact answer it has found.
func TestBenchByVectors(t *testing.T) {
	effort.Slow(t)
	clitest.OneGoroutine(t)
	was := cells.ExactCost
	cells.ExactCost = 0 // so that not all are compared
	defer func() { cells.ExactCost = was }()
	f := empty(t)
	const items, dims = 2000, 32
	clitest.WriteNPY(t, f.path("x.npy"), synth.Embeddings(0, items, dims, 1))
	clitest.WriteNPY(t, f.path("q.npy"), synth.Embeddings(items, 100, dims, 1))
	must(t, "import", f.db, "--init", "--vectors", "e="+f.path("x.npy"))
	must(t, "index", f.db)
	lines := benched(t, f.db, "--from", "e", "--vectors", f.path("q.npy"), "--recall", ".8")
	if len(lines) != 2 {
		t.Fatalf("%+v", lines)
	}
	if l := lines[0]; l.Op != "knn" || *l.K != 10 || l.Queries != 100 || l.AvgHits != 10 ||
		l.Plan != "cells" || *l.Found < .6 || *l.Found >= 1 {
		t.Errorf("by the index: %+v", l)
	}
	if l := lines[1]; l.AvgHits != 10 || l.Plan != "vectors" || l.Found != nil {
		t.Errorf("exactly: %+v", l)
	}
}

func TestBenchErrors(t *testing.T) {
	dir, queries := benchFixture(t, 64, 20, 4)
	empty := empty(t)
	must(t, "init", empty.db, "--codes", "64")
	untrained := newFixture(t, 10, false)
	clitest.WriteNPY(t, empty.path("short.npy"), [][]uint8{{1, 2}})
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{dir, "bench needs queries: ", exit.Usage},
		{"--codes q", "bench needs the folder of a database: ", exit.Usage},
		{dir + " --codes q --vectors v", "bench needs queries: ", exit.Usage},
		{dir + " --vectors v", "--from NAME is the modality of --vectors", exit.Usage},
		{dir + " --codes q --from image", "--from NAME is the modality of --vectors", exit.Usage},
		{dir + " --codes q --queries 0", `--queries "0": a whole number of 1 or more`, exit.Usage},
		{dir + " --codes q -k 0", "-k 0: 1 or more", exit.Usage},
		{dir + " --codes q -k ten", `-k "ten"`, exit.Usage},
		{dir + " --codes q --radius 3,-1", "--radius -1: 0 or more", exit.Usage},
		{dir + " --codes q --recall .9 --radius 3", "--recall is of the nearest items", exit.Usage},
		{dir + " --vectors v --from e --recall 2", `--recall "2": above 0, up to 1`, exit.Usage},
		{dir + " --vectors v --from image", `--from: there is no modality "image"`, exit.Usage},
		{dir + " --codes " + empty.path("short.npy"), "", exit.Failed},
		{dir + " --codes " + empty.path("none.npy"), "", exit.Failed},
		{empty.db + " --codes " + queries, "there are no items to search", exit.Failed},
		{untrained.db + " --codes " + queries, "collection is not trained: ", exit.Failed},
		{untrained.db + " --vectors " + untrained.text + " --from text --radius 3",
			"collection is not trained: ", exit.Failed},
	} {
		code, stdout, stderr := do(t, append([]string{"bench"}, strings.Fields(c.args)...)...)
		if diff := gocmp.Diff([]any{c.code, ""}, []any{code, stdout}); diff != "" ||
			!strings.HasPrefix(stderr, "fddhdb: "+c.want) {
			t.Errorf("bench %s: %s, %q", c.args, diff, stderr)
		}
	}
}
