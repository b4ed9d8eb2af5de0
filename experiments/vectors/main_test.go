package vectors

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"

	"github.com/fddhdb/fddhdb/experiments/common"
)

var source = flag.String("usearch", "", "folder with the source of USearch, for TestUSearch")

// TestMain is main if a side has started the test binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "vectors" {
		os.Exit(common.Main(Command()))
	}
	m.Run()
}

// rows returns the cells of the rows of the tables that begin with a program, or with
// what was asked for.
func rows(t *testing.T, out, first string) (all [][]string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "| "+first+" |") {
			all = append(all, strings.Split(strings.Trim(line, "| \n"), " | "))
		}
	}
	if len(all) == 0 {
		t.Fatalf("no row of %s:\n%s", first, out)
	}
	return all
}

// All sides find items, exact ones all of them, and each point has a row.
func TestCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	dir := filepath.Join(t.TempDir(), "databases")
	args := []string{"--items", "300,400", "--dims", "24", "--queries", "12", "--rounds", "2", "--recalls",
		".9,.99", "--most", "300", "--dir", dir}
	var out strings.Builder
	if err := common.Execute(t.Context(), Command(), args, &out, &out); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	ours := rows(t, out.String(), "fddhdb")
	if len(ours) != 6 || ours[0][1] != "asked 0.9" || ours[2][1] != "asked 1" || ours[2][2] != "1.0000" ||
		ours[5][2] != "1.0000" || ours[0][5] == "-" || ours[0][9] == "-" {
		t.Errorf("%q", ours)
	}
	if scans := rows(t, out.String(), "chromem-go"); len(scans) != 1 || scans[0][2] != "1.0000" {
		t.Errorf("%q", scans)
	}
	if graphs := rows(t, out.String(), "coder/hnsw"); len(graphs) != 12 || graphs[0][2] == "0.0000" {
		t.Errorf("%q", graphs)
	}
	exact := rows(t, out.String(), "1")
	if len(exact) != 2 || len(exact[0]) != 5 || exact[0][4] == "-" || len(exact[1]) != 3 {
		t.Errorf("%q", exact)
	}
	if !strings.Contains(out.String(), "\nNot with so many items (--most): hnsw, chromem\n") {
		t.Error(out.String())
	}
	for _, name := range []string{"topics-300", "topics-400"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	out.Reset()
	if err := common.Execute(t.Context(), Command(), args, &out, &out); err == nil ||
		!strings.Contains(out.String(), "exists") {
		t.Errorf("the second time in the same folder: %v: %s", err, out.String())
	}
}

func TestArguments(t *testing.T) {
	for _, bad := range [][]string{
		{"--items", "0"}, {"--items", ""}, {"--queries", "0"}, {"--k", "0"}, {"--rounds", "0"},
		{"--dims", "0"}, {"--set", "none"},
		{"--recalls", "1"}, {"--recalls", ".9,x"}, {"--peers", "magic"},
		{"--usearch", t.TempDir(), "--items", "10"},
		{serveVerb}, {serveVerb, "magic", t.TempDir(), "8", "10", ""},
		{serveVerb, ourName, t.TempDir(), "8", "10", ""},
	} {
		var out strings.Builder
		if err := common.Execute(t.Context(), Command(), bad, &out, &out); err == nil {
			t.Errorf("%v passes: %s", bad, out.String())
		}
	}
}

// The nearest items are those of a full sort, and each counts once.
func TestRecall(t *testing.T) {
	e, err := synth.NewEmbeddingSource(synth.Mixture, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := generate(t.Context(), e, 200, 20, 8, 10)
	for q := range 20 {
		order := make([]int, 200)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			if cosine(s.query(q), s.item(a)) > cosine(s.query(q), s.item(b)) {
				return -1
			}
			return 1
		})
		for _, c := range []struct {
			answer []int
			want   float64
		}{{order[:10], 1}, {order[5:15], .5}, {order[100:110], 0}, {nil, 0}, {order, 1}} {
			if got, err := s.recall(q, c.answer); err != nil || math.Abs(got-c.want) > 1e-12 {
				t.Errorf("query %d: %v, %v; want %v", q, got, err, c.want)
			}
		}
	}
	for _, bad := range [][]int{{3, 3}, {-1}, {200}} {
		if _, err := s.recall(0, bad); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
	if few := generate(t.Context(), e, 3, 1, 8, 10); few.k != 3 {
		t.Errorf("k = %d of 3 items", few.k)
	}
}

func TestMicrosAt(t *testing.T) {
	at := func(found, micros float64) *point { return &point{found: found, micros: []float64{micros}} }
	points := []*point{at(.95, 200), at(.5, 100), at(.7, 300), at(.99, 600), at(.99, 500)}
	for _, c := range []struct {
		found, want float64
		ok          bool
	}{{.3, 100, true}, {.5, 100, true}, {.725, 150, true}, {.95, 200, true}, {.97, 350, true},
		{.99, 500, true}, {.995, 0, false}} {
		if got, ok := microsAt(points, c.found); ok != c.ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, %v; want %v, %v", c.found, got, ok, c.want, c.ok)
		}
	}
}

// A process that fails, or says something else, is an error that names the program.
func TestSideFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	for script, want := range map[string]string{
		"exit 3":                        "exit status 3",
		"echo nonsense":                 "invalid character",
		"echo '{}'; exit 4":             "peer: ",
		"echo '{}'; read line; echo []": "cannot unmarshal",
		`echo '{}'; read line; echo '{"nanos":[1],"found":[[0]]}'; read line`: "1 answers and 1 times to 2 queries",
	} {
		s := newSide("peer", "ef", []float64{8}, "/bin/sh", "-c", script)
		err := s.start(t.Context())
		if err == nil {
			err = s.round(&set{dims: 1, k: 1, items: []float32{1}, queries: []float32{1, 1},
				nearest: []float64{1, 1}}, true)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "peer: ") {
			t.Errorf("%s: %v", script, err)
		}
		s.stop()
	}
}
