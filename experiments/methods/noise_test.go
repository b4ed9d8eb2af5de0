package methods

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// Noise changes about as many labels as asked for, leaves no item without one, and changes nothing of the
// data that it is given.
func TestNoise(t *testing.T) {
	d := pairs(800, 5, 3, 4, 3)
	labels, before := mat.Sum(d.Y), mat.DenseCopyOf(d.Y)
	for _, c := range []struct {
		noise noise
		kept  float64 // share of the labels
	}{{noise{wrong: .3}, .7}, {noise{missing: .4}, .6}, {noise{}, 1}} {
		got, err := c.noise.of(d, 3)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := c.noise.of(d, 3)
		n, _ := got.Y.Dims()
		shared := 0.
		if n == 800 { // else rows are others
			shared = dot(got.Y, d.Y) / labels
		} else {
			shared = mat.Sum(got.Y) / labels
		}
		if shared < c.kept-.06 || shared > c.kept+.06 || c.noise.missing == 0 && n != 800 {
			t.Errorf("%v: %d items, %.3f of the labels", c.noise, n, shared)
		}
		for i := range n {
			if mat.Sum(got.Y.RowView(i)) == 0 {
				t.Fatalf("%v: item %d has no label", c.noise, i)
			}
		}
		if got.X[0].RawMatrix().Rows != n || !mat.Equal(got.Y, again.Y) ||
			!mat.Equal(d.Y, before) {
			t.Errorf("%v: other items, other labels for the same seed, or changed data", c.noise)
		}
	}
}

func TestNoiseOfAll(t *testing.T) {
	if _, err := (noise{missing: .9999}).of(pairs(20, 3, 1, 4, 3), 1); err == nil {
		t.Error("no item has a label, and that is no error")
	}
}

func TestNoiseCommand(t *testing.T) {
	dir, figure := newSet(t), filepath.Join(t.TempDir(), "noise.svg")
	var out bytes.Buffer
	args := []string{dir, "--methods", "BATCH,ITQ,DCH", "--bits", "16", "--seeds", "1", "--wrong", ".4",
		"--missing", ".5", "--plot", figure}
	if err := common.Execute(t.Context(), NoiseCommand(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := "| method | all right | 40 % wrong | 50 % missing |\n"
	if !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "\n") != 4 ||
		!strings.Contains(out.String(), "\n| BATCH | ") {
		t.Error(out.String())
	}
	if b, err := os.ReadFile(figure); err != nil || !bytes.Contains(b, []byte("missing labels")) {
		t.Errorf("figure: %d bytes, %v", len(b), err)
	}
	for _, bad := range [][]string{{"--wrong", "1"}, {"--missing", "x"}, {"--bits", "12"},
		{"--methods", "X"}, {"--methods", "ITQ"}} {
		if err := common.Execute(t.Context(), NoiseCommand(), append(bad, dir), io.Discard,
			io.Discard); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
