package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// TestMain lets the test binary stand in for fddhdb.
func TestMain(m *testing.M) {
	if log := os.Getenv("MATRIX_FAKE_LOG"); log != "" {
		if err := fake(log, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "fddhdb:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fake notes its arguments in the file log and answers like fddhdb.
func fake(log string, args []string) error {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	fmt.Fprintln(f, strings.Join(args, " "))
	if err := f.Close(); err != nil {
		return err
	}
	value := func(flag string) string { return args[slices.Index(args, flag)+1] }
	switch args[0] {
	case "init":
		if err := os.Mkdir(args[1], 0o777); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(args[1], "data"), make([]byte, 3200), 0o666)
	case "import":
		codes, err := vecfile.ReadCodes(value("--codes"))
		if err != nil {
			return err
		}
		fmt.Printf("{\"items\":%d,\"skipped\":0,\"seconds\":0.5,\"items_per_second\":%d}\n", codes.Len(), 2*codes.Len())
	case "stats":
		fmt.Println(`{"memory_bytes":9,"collections":[{"memory_bytes":6000,"distinct_codes":90}]}`)
	case "bench":
		if _, err := vecfile.ReadCodes(value("--codes")); err != nil {
			return err
		}
		if os.Getenv("MATRIX_FAKE_FAIL") != "" {
			return fmt.Errorf("out of order")
		}
		for _, s := range [][2]string{{"k", "knn"}, {"radius", "radius"}, {"radius", "hits"}, {"radius", "count"}} {
			for _, n := range strings.Split(value(map[string]string{"k": "-k", "radius": "--radius"}[s[0]]), ",") {
				x, err := strconv.Atoi(n)
				if err != nil {
					return err
				}
				for i, tier := range strings.Split(value("--tier"), ",") {
					if s[1] == "hits" && tier == fullscan {
						continue
					}
					fmt.Printf("{\"op\":%q,%q:%d,\"tier\":%q,\"queries\":4,\"p50_us\":%d,\"p99_us\":20,\"mean_us\":3,\"avg_hits\":2}\n",
						s[1], s[0], x, tier, 1+i*(1+x))
				}
			}
		}
	}
	return nil
}

// do runs a command line. It has to succeed.
func do(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	var out bytes.Buffer
	if err := command(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

// matrixArgs returns the arguments of a small run that calls the fake.
func matrixArgs(t *testing.T, dir string, more ...string) []string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MATRIX_FAKE_LOG", filepath.Join(dir, "log"))
	return append([]string{"run", "-fddhdb", program, "-out", filepath.Join(dir, "results.jsonl"), "-tmp", dir,
		"-bits", "64", "-n", "100,200", "-queries", "4", "-k", "1,10", "-radius", "0,8"}, more...)
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// The files have the format that fddhdb reads, and the queries are those of package
// synth.
func TestCodes(t *testing.T) {
	dir := t.TempDir()
	do(t, "codes", "-set", "S", "-bits", "72", "-n", "50", "-queries", "6", "-seed", "3", "-dir", dir)
	items, err := synth.Codes(synth.Projected, 72, 50, 3)
	if err != nil {
		t.Fatal(err)
	}
	m, f, err := synth.CodeQueries(synth.Projected, 72, 50, 6, 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]uint64{
		"items.npy": items.Slice(0, 50), "members.npy": m.Slice(0, 6), "fresh.npy": f.Slice(0, 6),
		"both.npy": slices.Concat(m.At(0), f.At(1), m.At(2), f.At(3), m.At(4), f.At(5)),
	} {
		got, err := vecfile.ReadCodes(filepath.Join(dir, name))
		if err != nil || got.Bits() != 72 || !slices.Equal(got.Slice(0, got.Len()), want) {
			t.Errorf("%s: %d codes of %d bits, %v", name, got.Len(), got.Bits(), err)
		}
	}
}

// A run measures every set with every kind of queries once and removes its folders. A
// second run measures what is missing.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	args := matrixArgs(t, dir, "-sets", "U,S", "-check")
	do(t, append(args, "-kinds", "members")...)
	calls := lines(t, filepath.Join(dir, "log"))
	var verbs []string
	for _, c := range calls {
		verb, rest, _ := strings.Cut(c, " ")
		verbs = append(verbs, verb)
		if verb == "bench" && (!strings.HasSuffix(rest, "members.npy --tier auto,fullscan,scan,memory,disk,blockscan --queries 4 --json -k 1,10 --radius 0,8 --check")) {
			t.Error(c)
		}
	}
	if want := slices.Repeat([]string{"init", "import", "compact", "stats", "bench"}, 4); !slices.Equal(verbs, want) {
		t.Errorf("calls %v", calls)
	}
	list, err := readResults(filepath.Join(dir, "results.jsonl"))
	// Six tiers of eight searches, two without the yardstick, and a line of storage.
	if err != nil || len(list) != 4*(8*6-2+1) {
		t.Fatalf("%d results, %v", len(list), err)
	}
	r := list.find(place{"S", 64, 200}, members, "radius", 8, "memory")
	if r == nil || r.P50 != 28 || r.P99 != 20 || r.Mean != 3 || r.AvgHits != 2 || r.Queries != 4 || *r.Radius != 8 || r.K != nil {
		t.Errorf("%+v", r)
	}
	s := list[0]
	if s.Op != store || s.N != 100 || s.Seconds != .5 || s.ItemsPerSecond != 200 || s.DiskBytes != 3200 || s.MemoryBytes != 6000 || s.DistinctCodes != 90 {
		t.Errorf("%+v", s)
	}

	do(t, append(args, "-kinds", "members,both", "-compact=false")...)
	if calls := lines(t, filepath.Join(dir, "log"))[len(calls):]; len(calls) != 4*4 {
		t.Errorf("calls %v", calls)
	}
	list, err = readResults(filepath.Join(dir, "results.jsonl"))
	if err != nil || len(list) != 4*(2*(8*6-2)+1) {
		t.Errorf("%d results, %v", len(list), err)
	}
	do(t, append(args, "-kinds", "members,both")...)
	if got := len(lines(t, filepath.Join(dir, "log"))); got != len(calls)+4*4 {
		t.Errorf("%d calls", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

// A failed measurement reports the words of fddhdb, and is not among the results.
func TestRunFails(t *testing.T) {
	dir := t.TempDir()
	args := matrixArgs(t, dir, "-sets", "C")
	t.Setenv("MATRIX_FAKE_FAIL", "1")
	err := command(t.Context(), args, io.Discard, io.Discard)
	if err == nil || err.Error() != "clustered, 64 bits, 100 items: members: fddhdb bench: exit status 1: fddhdb: out of order" {
		t.Errorf("%v", err)
	}
	if got := lines(t, filepath.Join(dir, "results.jsonl")); len(got) != 1 || !strings.Contains(got[0], store) {
		t.Errorf("results %v", got)
	}
}

func TestTables(t *testing.T) {
	dir := t.TempDir()
	do(t, matrixArgs(t, dir)...)
	out := do(t, "tables", "-in", filepath.Join(dir, "results.jsonl"), "-kinds", "fresh,both", "-limit", "0.9")
	for _, want := range []string{
		"### 200 items of 64 bits, fresh queries\n",
		"\n| set | search | r = 0 | r = 8 |\n| --- | --- | ---: | ---: |\n| U | radius | 1.0 (2.0x) | 1.0 (10x) |\n",
		"\n| S | hits | 1.0 (2.0x) | 1.0 (10x) |\n",
		"\n| set | search | k = 1 | k = 10 |\n| --- | --- | ---: | ---: |\n| U | knn | 1.0 (3.0x) | 1.0 (12x) |\n",
		"Of 192 searches, auto takes at most 1.05 times as long as the best plan in 192, at most 1.15 times in 192; the worst takes 0.33 times.",
		"\n| U | both | 64 | 200 | 0 | never | never | 1 | never | never |\n",
		"\n| L | 64 | 100 | 90 | 0.5 | 200 | 0.0 | 4.0 | 0.0 | 67 |\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(out, "members\n") {
		t.Error("a kind that was not asked for is there")
	}
	if t.Failed() {
		t.Log(out)
	}
}

// The table lists the searches in which auto loses time, worst first.
func TestPlanTable(t *testing.T) {
	at := func(op string, tier string, r int, us float64) *result {
		return &result{Set: "U", Bits: 64, N: 1000, Kind: both, Op: op, Tier: tier, Radius: &r, P50: us}
	}
	var b strings.Builder
	results{
		at("radius", auto, 0, 10), at("radius", "memory", 0, 10), at("radius", "scan", 0, 50),
		at("radius", auto, 8, 12), at("radius", "memory", 8, 10), at("radius", "scan", 8, 50),
		at("count", auto, 8, 30), at("count", "memory", 8, 40), at("count", "scan", 8, 20), at("count", fullscan, 8, 1),
		at("hits", auto, 8, 1),
	}.planTable(&b, 1.05)
	want := "Of 3 searches, auto takes at most 1.05 times as long as the best plan in 1, at most 1.15 times in 1; the worst takes 1.50 times.\n\n" +
		"| set | queries | search | bits | items | auto | best | best plan | ratio |\n" +
		"| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n" +
		"| U | both | count 8 | 64 | 1,000 | 30 | 20 | scan | 1.50 |\n" +
		"| U | both | radius 8 | 64 | 1,000 | 12 | 10 | memory | 1.20 |\n"
	if got := b.String(); !strings.Contains(got, want) {
		t.Error(got)
	}
}

// Every figure is an SVG that names its axes and its lines.
func TestPlots(t *testing.T) {
	dir := t.TempDir()
	do(t, matrixArgs(t, dir, "-sets", "U,L", "-kinds", "both,fresh")...)
	figs := filepath.Join(dir, "figs")
	out := do(t, "plots", "-in", filepath.Join(dir, "results.jsonl"), "-dir", figs, "-kinds", "both,fresh")
	var names []string
	for _, path := range strings.Fields(out) {
		name := filepath.Base(path)
		names = append(names, name)
		want := []string{"median, µs", auto, fullscan, "memory", "disk", "scan", "blockscan"}
		if strings.HasPrefix(name, "n-") {
			want = []string{"median, µs", "items", "uniform", "learned", fullscan}
		}
		text := svgText(t, path)
		for _, w := range want {
			if !slices.Contains(text, w) {
				t.Errorf("%s: %q is not among %q", name, w, text)
			}
		}
	}
	var want []string
	for _, kind := range []string{"", "-fresh"} {
		for _, n := range []string{"100", "200"} {
			for _, set := range []string{"U", "L"} {
				want = append(want, "radius-"+set+"-64-"+n+kind+".svg", "knn-"+set+"-64-"+n+kind+".svg")
			}
		}
		want = append(want, "n-radius8-64"+kind+".svg", "n-knn10-64"+kind+".svg")
	}
	if !slices.Equal(names, want) {
		t.Errorf("figures %v, want %v", names, want)
	}
	if out := do(t, "plots", "-in", filepath.Join(dir, "results.jsonl"), "-dir", figs, "-format", "png"); strings.Count(out, ".png\n") != 10 {
		t.Error(out)
	}
}

// svgText returns the texts in a figure.
func svgText(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text []string
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if err == io.EOF {
			return text
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if chars, ok := token.(xml.CharData); ok {
			text = append(text, strings.TrimSpace(string(chars)))
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{
		"", "measure", "run extra", "run -sets X", "run -n ten", "run -n -5", "run -kinds all", "codes -bits 12",
		"tables -in " + filepath.Join(dir, "none"), "plots -format jpg",
	} {
		if err := command(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	bad := filepath.Join(dir, "bad.jsonl")
	if err := os.WriteFile(bad, []byte("{\"n\":1}\n{\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := command(t.Context(), []string{"tables", "-in", bad}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

func TestDecades(t *testing.T) {
	for _, c := range []struct {
		ys          []float64
		least, most float64
		labels      string
	}{
		{[]float64{3, 700}, 1, 1000, "1 10 100 1,000"},
		{[]float64{.3, 2}, .1, 10, "0.1 1 10"},
		{[]float64{10}, 10, 100, "10 100"},
	} {
		least, most := decades(c.ys)
		var labels []string
		for _, tick := range decadeTicks(least, most) {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if least != c.least || most != c.most || strings.Join(labels, " ") != c.labels {
			t.Errorf("%v: %g to %g, %v", c.ys, least, most, labels)
		}
	}
}
