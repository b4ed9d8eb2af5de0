package bounds

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/makeset"
	"github.com/fddhdb/fddhdb/experiments/sets"
)

// set makes a set with several labels an item.
func set(t *testing.T, items string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	if err := common.Execute(t.Context(), makeset.Command(), []string{"--set", "multilabel", "--items", items,
		"--queries", "10", dir}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Both bounds hold, codes are at the distance of their labels on average, and the tables and the figure are
// there.
func TestBounds(t *testing.T) {
	dir := set(t, "400")
	svg := filepath.Join(t.TempDir(), "bounds.svg")
	var out bytes.Buffer
	if err := common.Execute(t.Context(), Command(), []string{dir, "--bits", "32,64", "--pairs", "20000",
		"--changes", "1", "--plot", svg}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| bits | rounding e |", "| 64 | 0 |", "| image | 200 | 12 |",
		"| text | 200 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, out.String())
		}
	}
	if b, err := os.ReadFile(svg); err != nil || !bytes.Contains(b, []byte("shared labels")) {
		t.Errorf("figure: %d bytes, %v", len(b), err)
	}

	s, err := sets.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	items := s.Examples(&s.Items)
	c := &config{bits: common.Ints{64}, pairs: 20000, changes: 2, seed: 3}
	r, err := c.train(t.Context(), s, items, 64)
	if err != nil {
		t.Fatal(err)
	}
	d := c.distances(r.Model, items)
	if d.used <= 0 || d.used > 1 || math.Abs(mean(d.errors)) > 2 || len(d.shared) < 3 {
		t.Errorf("of the bound: %v; mean error %v; up to %d shared labels", d.used, mean(d.errors),
			len(d.shared)-1)
	}
	for n := 1; n < len(d.shared); n++ {
		if len(d.shared[n]) > 100 && mean(d.shared[n]) >= mean(d.shared[n-1]) {
			t.Errorf("%d labels shared: %v bits, %d: %v", n, mean(d.shared[n]), n-1, mean(d.shared[n-1]))
		}
	}
	steps, err := c.stream(t.Context(), s, items)
	if err != nil || len(steps) < 4 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for _, x := range steps {
		if x.change <= 0 || x.change > x.bound {
			t.Errorf("%+v", x)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, args := range [][]string{{}, {t.TempDir()}, {set(t, "10")}, {t.TempDir(), "--plot", "x.png"}} {
		if err := common.Execute(t.Context(), Command(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
