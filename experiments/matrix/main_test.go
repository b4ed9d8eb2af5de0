package matrix

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// do runs a command line. It has to succeed.
func do(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	var out bytes.Buffer
	if err := common.Execute(t.Context(), Command(), args, &out, io.Discard); err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

// matrixArgs returns the arguments of a small run.
func matrixArgs(dir string, more ...string) []string {
	return append([]string{"run", "--out", filepath.Join(dir, "results.jsonl"), "--dir", dir,
		"--bits", "64", "--items", "100,200", "--queries", "4", "-k", "1,10", "--radius", "0,8"}, more...)
}

// measured writes results of 100 and 200 items of sets in which a tier takes the longer the further behind it
// stands.
func measured(t *testing.T, dir string, sets []synth.CodeSet, kinds ...string) {
	t.Helper()
	var list results
	for _, n := range []int{100, 200} {
		for _, set := range sets {
			list = append(list, &result{Set: set.String(), Bits: 64, N: n, Op: store, Seconds: .5,
				ItemsPerSecond: 200, DiskBytes: 3200, MemoryBytes: 6000, DistinctCodes: 90})
			for _, kind := range kinds {
				for _, op := range []string{"knn", "radius", "hits"} {
					for _, x := range map[bool][]int{true: {1, 10}, false: {0, 8}}[op == "knn"] {
						for i, name := range tierNames {
							if op == "hits" && name == fullscan {
								continue
							}
							r := &result{Set: set.String(), Bits: 64, N: n, Kind: kind, Op: op, Tier: name,
								Queries: 4, P50: float64(1 + i*(1+x))}
							if op == "knn" {
								r.K = &x
							} else {
								r.Radius = &x
							}
							list = append(list, r)
						}
					}
				}
			}
		}
	}
	if err := appendResults(filepath.Join(dir, "results.jsonl"), list); err != nil {
		t.Fatal(err)
	}
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
	do(t, "codes", "--sets", "S", "--bits", "72", "--items", "50", "--queries", "6", "--seed", "3", "--dir",
		dir)
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
		got, err := npy.ReadCodes(filepath.Join(dir, name))
		if err != nil || got.Bits() != 72 || !slices.Equal(got.Slice(0, got.Len()), want) {
			t.Errorf("%s: %d codes of %d bits, %v", name, got.Len(), got.Bits(), err)
		}
	}
}

// A run measures every set with every kind of queries once and removes its folders. A
// second run measures what is missing. All tiers find as much.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "results.jsonl")
	args := matrixArgs(dir, "--sets", "U,S")
	do(t, append(args, "--kinds", "members")...)
	list, err := readResults(file)
	// Six tiers of six searches, two without the yardstick, and a line of storage.
	if err != nil || len(list) != 4*(6*6-2+1) {
		t.Fatalf("%d results, %v", len(list), err)
	}
	for _, r := range list {
		if r.Op == store {
			if r.Seconds <= 0 || r.ItemsPerSecond <= 0 || r.DiskBytes < 1 || r.MemoryBytes < 1 ||
				r.DistinctCodes < 1 || r.DistinctCodes > r.N {
				t.Errorf("%+v", r)
			}
			continue
		}
		all := list.find(r.place(), r.Kind, r.Op, r.param(), auto)
		if r.P50 <= 0 || r.P99 < r.P50 || r.Mean <= 0 || r.Queries != 4 || r.AvgHits != all.AvgHits ||
			r.Op == "knn" && (r.AvgHits != float64(r.param()) || r.Find <= 0) {
			t.Errorf("%+v", r)
		}
	}
	do(t, append(args, "--kinds", "members,both", "--compact=false")...)
	for range 2 { // the second time there is nothing to do
		list, err = readResults(file)
		if err != nil || len(list) != 4*(2*(6*6-2)+1) {
			t.Errorf("%d results, %v", len(list), err)
		}
		do(t, append(args, "--kinds", "members,both")...)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

// A measurement that is interrupted is not among the results.
func TestRunFails(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := common.Execute(ctx, Command(), matrixArgs(dir, "--sets", "C"), io.Discard,
		io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if got := lines(t, filepath.Join(dir, "results.jsonl")); len(got) != 1 ||
		!strings.Contains(got[0], store) {
		t.Errorf("results %v", got)
	}
}

func TestTables(t *testing.T) {
	dir := t.TempDir()
	measured(t, dir, synth.CodeSets(), members, fresh, both)
	out := do(t, "tables", "--in", filepath.Join(dir, "results.jsonl"), "--kinds", "fresh,both", "--limit",
		"0.9")
	for _, want := range []string{
		"### 200 items of 64 bits, fresh queries\n",
		"\n| set | search | r = 0 | r = 8 |\n| --- | --- | ---: | ---: |\n| U | radius | 1.0 (2.0x) | 1.0 (10x) |\n",
		"\n| S | hits | 1.0 (2.0x) | 1.0 (10x) |\n",
		"\n| set | search | k = 1 | k = 10 |\n| --- | --- | ---: | ---: |\n| U | knn | 1.0 (3.0x) | 1.0 (12x) |\n",
		"Of 144 searches, auto takes at most 1.05 times as long as the best plan in 144, at most 1.15 times in 144; the worst takes 0.33 times.",
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
		at("radius", auto, 4, 30), at("radius", "memory", 4, 40), at("radius", "scan", 4, 20),
		at("radius", fullscan, 4, 1),
		at("hits", auto, 8, 1),
	}.planTable(&b, 1.05)
	want := "Of 3 searches, auto takes at most 1.05 times as long as the best plan in 1, at most 1.15 times in 1; the worst takes 1.50 times.\n\n" +
		"| set | queries | search | bits | items | auto | best | best plan | ratio |\n" +
		"| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n" +
		"| U | both | radius 4 | 64 | 1,000 | 30 | 20 | scan | 1.50 |\n" +
		"| U | both | radius 8 | 64 | 1,000 | 12 | 10 | memory | 1.20 |\n"
	if got := b.String(); !strings.Contains(got, want) {
		t.Error(got)
	}
}

// Every figure is an SVG that names its axes and its lines.
func TestPlots(t *testing.T) {
	dir := t.TempDir()
	measured(t, dir, []synth.CodeSet{synth.Uniform, synth.Learned}, both, fresh)
	figs := filepath.Join(dir, "figs")
	out := do(t, "plots", "--in", filepath.Join(dir, "results.jsonl"), "--dir", figs, "--kinds", "both,fresh")
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
		"measure", "run extra", "run --sets X", "run --items ten", "run --items -5", "run --kinds all",
		"run --tiers auto,fast", "codes --bits 12",
		"tables --in " + filepath.Join(dir, "none"), "plots --format jpg",
	} {
		if err := common.Execute(t.Context(), Command(), strings.Fields(args), io.Discard,
			io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	bad := filepath.Join(dir, "bad.jsonl")
	if err := os.WriteFile(bad, []byte("{\"n\":1}\n{\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := common.Execute(t.Context(), Command(), []string{"tables", "--in", bad}, io.Discard,
		io.Discard); err == nil || !strings.Contains(err.Error(), "line 2") {
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
