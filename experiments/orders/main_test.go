package orders

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// folder writes a generated set, with n queries of its own, or none if n is 0.
func folder(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a set")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	data := synth.Pairs(synth.Config{Items: 240 + n, Classes: 6, LabelsPerItem: 2, Noise: 1, Seed: 1})
	parts := map[string]*synth.Data{"train": data.Slice(0, 240)}
	if n > 0 {
		parts["query"] = data.Slice(240, 240+n)
	}
	for of, part := range parts {
		for m, name := range []string{"image", "text"} {
			if err := npy.WriteAll(filepath.Join(dir, of+"_"+name+".npy"), part.Vectors[m]); err != nil {
				t.Fatal(err)
			}
		}
		labels := make([][]uint8, part.Items())
		for i, set := range part.Labels {
			labels[i] = make([]uint8, 6)
			for _, l := range set {
				labels[i][l] = 1
			}
		}
		if err := npy.WriteAll(filepath.Join(dir, of+"_labels.npy"), labels); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestJudge(t *testing.T) {
	relevant := make([]bool, 100)
	for _, i := range []int{0, 3, 9, 10, 49, 50} {
		relevant[i] = true
	}
	ap, p10, p50 := judge(relevant)
	if want := (1 + 2./4 + 3./10 + 4./11 + 5./50 + 6./51) / 6; math.Abs(ap-want) > 1e-12 ||
		math.Abs(p10-.3) > 1e-12 || math.Abs(p50-.1) > 1e-12 {
		t.Errorf("%v (want %v), %v, %v", ap, want, p10, p50)
	}
	if ap, _, _ := judge(make([]bool, 5)); ap != 0 {
		t.Errorf("%v", ap)
	}
}

func TestEvaluate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	s, err := sets.Read(folder(t, 50))
	if err != nil {
		t.Fatal(err)
	}
	for of, searched := range map[string]int{labelled: 240, unlabelled: 120, mixed: 240} {
		pairs, err := evaluate(t.Context(), s, of, 1, 32, 40)
		if err != nil {
			t.Fatal(err)
		}
		if len(pairs) != 2 || pairs[0].from != "image" || pairs[0].to != "text" {
			t.Fatalf("%+v", pairs)
		}
		for _, p := range pairs {
			if p.searched != searched || p.codes < 6 {
				t.Errorf("%s: %+v", of, p)
			}
			for order, f := range p.by {
				if f.p10 < .4 || f.p10 > 1 || f.micros <= 0 || f.ap < .4 || f.ap > 1 {
					t.Errorf("%s, %s, %v: %+v", of, p.from, order, f)
				}
			}
		}
		if of != mixed {
			continue
		}
		again, err := evaluate(t.Context(), s, of, 1, 32, 40)
		if err != nil || again[1].by[db.RerankAsymmetric].ap != pairs[1].by[db.RerankAsymmetric].ap {
			t.Errorf("%s: the same seed gives %+v, %v", of, again, err)
		}
	}
}

func TestCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	var out strings.Builder
	if err := common.Execute(t.Context(), Command(), []string{"--seeds", "1", "--queries", "20", "--bits",
		"8", folder(t, 0)}, &out, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 8 || !strings.HasPrefix(lines[2], "| a set | labelled | 200, ") ||
		!strings.HasPrefix(lines[5], "| a set | unlabelled | 100, ") {
		t.Errorf("%s", out.String())
	}
	for _, l := range lines {
		if strings.Count(l, "|") != strings.Count(lines[0], "|") {
			t.Errorf("%s", l)
		}
	}
	for _, bad := range [][]string{{}, {t.TempDir()}, {"--seeds", "0", "x"}} {
		if err := common.Execute(t.Context(), Command(), bad, &out, &out); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}
