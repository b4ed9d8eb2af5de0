package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/fddhdb/fddhdb/db"
)

var durations = regexp.MustCompile(`[\d.]+ (µs|ms|s)\b`)

// run runs the program on a small set, and returns its output and its figure.
func run(t *testing.T, flags ...string) (printed string, figure []byte) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "figure.svg")
	var b strings.Builder
	args := append([]string{"-set", "pairs", "-items", "400", "-queries", "60", "-chunk", "60", "-out", out},
		flags...)
	if err := command(t.Context(), args, &b, io.Discard); err != nil {
		t.Fatal(err)
	}
	figure, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	printed = strings.ReplaceAll(b.String(), out, "FIGURE")
	return durations.ReplaceAllString(printed, "DURATION"), figure
}

// rows returns the last figure of each row of the tables: the mean of the two
// directions. Its keys are like "with labels: updated".
func rows(printed string) map[string]string {
	last, group := map[string]string{}, ""
	for line := range strings.Lines(printed) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		values := strings.Fields(strings.Split(rest, "±")[0])
		switch {
		case strings.HasPrefix(line, "with"):
			group = name
		case strings.HasPrefix(line, "  ") && len(values) > 0:
			last[group+": "+name] += values[len(values)-1] + " "
		}
	}
	return last
}

// Both tables and the figure have all ways. Learning from labels is worth it, the
// figures are the same each time, and nothing is left behind.
func TestStream(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	printed, figure := run(t, "-seeds", "2")
	t.Log(printed)
	last := rows(printed)
	for _, w := range ways {
		name := heading(&curve{way: w}) + ": " + w.name
		if n := len(strings.Fields(last[name])); n != len(directions) {
			t.Errorf("%s is in %d tables", name, n)
		}
		if !bytes.Contains(figure, []byte(w.name)) {
			t.Errorf("%s is not in the figure", name)
		}
	}
	updated, never := strings.Fields(last["with labels: updated"]),
		strings.Fields(last["with labels: never updated"])
	for i, direction := range directions {
		if !(updated[i] > never[i]) { // figures such as .123 compare as texts
			t.Errorf("%s: mAP %s with updates, %s without", direction, updated[i], never[i])
		}
		if !bytes.Contains(figure, []byte(direction)) {
			t.Errorf("%s is not in the figure", direction)
		}
	}
	checkConclusion(t, printed, last)
	if err := xml.Unmarshal(figure, new(struct{})); err != nil {
		t.Errorf("the figure: %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if effort.Long() {
		again, figureAgain := run(t, "-seeds", "2")
		if again != printed || !bytes.Equal(figureAgain, figure) {
			t.Errorf("the second time:\n%s", again)
		}
	}
}

// checkConclusion computes the figures of the conclusion again from those of the tables.
func checkConclusion(t *testing.T, printed string, last map[string]string) {
	t.Helper()
	both := func(row string) float64 {
		sum := 0.0
		for _, text := range strings.Fields(last[row]) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += x / float64(len(directions))
		}
		return sum
	}
	updated, trained, never := both("with labels: updated"), both("with labels: trained on all"),
		both("with labels: never updated")
	best := max(both("without labels: stronger modality, guarded"), both("without labels: stronger modality"),
		both("without labels: self"), both("without labels: never updated"))
	for _, figure := range []struct {
		says       string
		want, near float64
	}{
		{`keep (\d+) % of what a training on all 400 items reaches`, 100 * updated / trained, .7},
		{`reaches \((\.\d+) of`, updated, .0015},
		{`of (\.\d+)\)\.`, trained, .0015},
		{`A model of the first 40 that is left alone keeps (\d+) %`, 100 * never / trained, .7},
		{`gains (\.\d+) more\.`, trained - updated, .0015},
		{`Labels for them gain (\.\d+)`, updated - best, .0015},
	} {
		found := regexp.MustCompile(figure.says).FindStringSubmatch(printed)
		if found == nil {
			t.Errorf("the conclusion has no %q", figure.says)
		} else if x, err := strconv.ParseFloat(found[1], 64); err != nil ||
			math.Abs(x-figure.want) > figure.near {
			t.Errorf("%q: %s, where the tables have %.3f", figure.says, found[1], figure.want)
		}
	}
	if !strings.Contains(printed, "Updating took DURATION an item, training on all items DURATION.") {
		t.Error("the conclusion does not say how long it took")
	}
}

// The curve decides when to train again.
func TestWhenToTrain(t *testing.T) {
	of := func(maps ...float64) *curve {
		c := &curve{}
		for i, m := range maps {
			c.points = append(c.points, point{100 * (i + 1), [2][]float64{{m - .1}, {m + .1}}})
		}
		return c
	}
	for says, c := range map[string]struct {
		updated *curve
		gain    float64
	}{
		"no need to train again":                           {of(.5, .6, .7), .005},
		"Updates still gain. Training again":               {of(.5, .6, .7), .05},
		"From 200 items on":                                {of(.5, .6, .605, .603), .05},
		"Train again then; on all 400 items that gains .0": {of(.6, .6, .605, .603), .05},
	} {
		if got := whenToTrain(c.updated, c.gain); !strings.Contains(got, says) {
			t.Errorf("%q, not %q", got, says)
		}
	}
}

// With -dir the database stays for a look at it, and a second run does not overwrite
// it.
func TestKept(t *testing.T) {
	effort.Slow(t)
	dir := filepath.Join(t.TempDir(), "kept")
	run(t, "-items", "300", "-seeds", "1", "-dir", dir)
	err := command(t.Context(), []string{"-dir", dir, "-items", "300"}, io.Discard, io.Discard)
	if !errors.Is(err, db.ErrExists) {
		t.Errorf("a second time into the same folder: %v", err)
	}
	d, err := db.Open(dir, &db.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if names, err := d.Collections(); err != nil || len(names) != len(ways) ||
		!slices.Contains(names, "with-labels-updated-seed-0") {
		t.Errorf("collections %v, %v", names, err)
	}
}

func TestErrors(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a.svg")
	for says, args := range map[string][]string{
		"-set other":  {"-set", "other"},
		"-items 299":  {"-items", "299"},
		"-chunk":      {"-chunk", "0"},
		"-seeds":      {"-seeds", "-1"},
		"-out a.gif":  {"-out", "a.gif"},
		"flags only":  {"more"},
		"noise -1":    {"-set", "pairs", "-noise", "-1"},
		"from 0 to 1": {"-noise", "2"},
	} {
		err := command(t.Context(), append([]string{"-out", out}, args...), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, r := range [][2]float64{{0, 1}, {.41, .82}, {.88, .99}, {.97, 1.01}} {
		ticks := shareTicks(r[0], r[1])
		if len(ticks) < 3 || len(ticks) > 9 {
			t.Errorf("from %g to %g: %v", r[0], r[1], ticks)
		}
		for _, tick := range ticks {
			if tick.At < r[0] || tick.At > r[1] {
				t.Errorf("from %g to %g: a tick at %g", r[0], r[1], tick.At)
			}
		}
	}
}
