package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// run runs the program on a small set, and returns its output and its figure.
func run(t *testing.T, ending string, flags ...string) (printed string, figure []byte) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "figure"+ending)
	var b strings.Builder
	args := append([]string{"-set", "pairs", "-items", "400", "-queries", "60", "-chunk", "60", "-out", out}, flags...)
	if err := command(t.Context(), args, &b, io.Discard); err != nil {
		t.Fatal(err)
	}
	figure, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), out, "FIGURE"), figure
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
	printed, figure := run(t, ".svg", "-seeds", "2")
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
	updated, never := strings.Fields(last["with labels: updated"]), strings.Fields(last["with labels: never updated"])
	for i, direction := range directions {
		if !(updated[i] > never[i]) { // figures such as .123 compare as texts
			t.Errorf("%s: mAP %s with updates, %s without", direction, updated[i], never[i])
		}
		if !bytes.Contains(figure, []byte(direction)) {
			t.Errorf("%s is not in the figure", direction)
		}
	}
	if err := xml.Unmarshal(figure, new(struct{})); err != nil {
		t.Errorf("the figure: %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	again, figureAgain := run(t, ".svg", "-seeds", "2")
	if again != printed || !bytes.Equal(figureAgain, figure) {
		t.Errorf("the second time:\n%s", again)
	}
}

// With -dir the database stays for a look at it, and a second run does not overwrite
// it.
func TestKept(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	dir := filepath.Join(t.TempDir(), "kept")
	_, figure := run(t, ".png", "-items", "300", "-seeds", "1", "-dir", dir)
	if _, err := png.Decode(bytes.NewReader(figure)); err != nil {
		t.Errorf("the figure: %v", err)
	}
	err := command(t.Context(), []string{"-dir", dir, "-items", "300"}, io.Discard, io.Discard)
	if !errors.Is(err, db.ErrExists) {
		t.Errorf("a second time into the same folder: %v", err)
	}
	d, err := db.Open(dir, &db.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if names, err := d.Collections(); err != nil || len(names) != len(ways) || !slices.Contains(names, "with-labels-updated-seed-0") {
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
			if tick.Value < r[0] || tick.Value > r[1] {
				t.Errorf("from %g to %g: a tick at %g", r[0], r[1], tick.Value)
			}
		}
	}
}
