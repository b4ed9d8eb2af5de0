package traintime

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// The data is neither trivial nor hopeless, and noise makes it harder.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	var last *result
	for _, noise := range []float64{.3, synth.DefaultNUSWideNoise, 1} {
		r, err := run(t.Context(), config{Items: 1500, Bits: 32, Anchors: 150, Queries: 100, Seed: 1,
			Noise: noise, Method: model.MethodLabels})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("noise %v: %+v", noise, r)
		if r.Seconds["total"] <= 0 || r.Making <= 0 || r.PeakMiB < 1 {
			t.Errorf("%+v", r)
		}
		if last != nil && (r.ImageText >= last.ImageText || r.TextImage >= last.TextImage) {
			t.Errorf("noise %v: %+v, with less %+v", noise, r, last)
		}
		switch noise {
		case synth.DefaultNUSWideNoise:
			if min(r.ImageText, r.TextImage) < r.Chance+.1 || max(r.ImageText, r.TextImage) > .9 {
				t.Errorf("noise %v: %+v", noise, r)
			}
		case 1:
			// Items with many labels, or with frequent ones, come first, so that mAP
			// exceeds the chance a little.
			if max(r.ImageText, r.TextImage) > r.Chance+.2 {
				t.Errorf("noise %v: %+v", noise, r)
			}
		}
		last = r
	}
}

// TestMain is main if command has started the test binary.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "--"+oneFlag) {
		os.Exit(common.Main(Command()))
	}
	m.Run()
}

func TestCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	var out strings.Builder
	if err := common.Execute(t.Context(), Command(), []string{"--items", "300,400", "--bits", "16",
		"--anchors", "50", "--queries", "20"}, &out, &out); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[4], "| 300 | 0.") ||
		!strings.HasPrefix(lines[5], "| 400 | 0.") || strings.Count(lines[5], "|") != strings.Count(lines[3],
		"|") {
		t.Errorf("%s", out.String())
	}
	for _, bad := range [][]string{{"--items", "x"}, {"--items", "10,,20"}, {"--method", "magic"},
		{"--one", "--noise", "2"}} {
		if err := common.Execute(t.Context(), Command(), bad, &out, &out); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}
