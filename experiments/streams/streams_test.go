package streams

import (
	"bytes"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/makeset"
)

// run runs an experiment on a generated set.
func run(t *testing.T, which int, args ...string) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	err := common.Execute(t.Context(), makeset.Command(), []string{"--set", "pairs", "--items", "600",
		"--queries", "60", dir}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = common.Execute(t.Context(), Commands()[which], append(args, dir), &out, io.Discard)
	return out.String(), err
}

// mapOf returns the first mAP of the row that begins with some cells.
func mapOf(t *testing.T, table, cells string) float64 {
	t.Helper()
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(cells) + ` \|.*?([0-9.]+) \+-`)
	found := row.FindStringSubmatch(table)
	if found == nil {
		t.Fatalf("no row %q in %s", cells, table)
	}
	x, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A stream whose items have labels ends where a training on all of them does; without them it does not.
func TestOnline(t *testing.T) {
	out, err := run(t, 0, "--parts", "2", "--seeds", "1", "--bits", "32")
	if err != nil || strings.Count(out, "\n") != 2+6*2 {
		t.Fatalf("%v: %s", err, out)
	}
	labels, again := mapOf(t, out, "labels | 600"), mapOf(t, out, "again | 600")
	none := mapOf(t, out, "none | 600")
	if labels < again-.15 || labels <= none {
		t.Errorf("labels %v, again %v, none %v", labels, again, none)
	}
	for _, way := range []string{"self | 330", "by image | 330", "by text | 600"} {
		mapOf(t, out, way)
	}
}

// Labels that come later are found, and a row says what a new training finds.
func TestClasses(t *testing.T) {
	out, err := run(t, 1, "--seeds", "2", "--bits", "32")
	if err != nil {
		t.Fatal(err)
	}
	last := regexp.MustCompile(`(?m)^\| again \| (\d+) \| 600 `).FindStringSubmatch(out)
	if last == nil || !strings.Contains(out, "new training") {
		t.Fatal(out)
	}
	grown, again := mapOf(t, out, "grown | "+last[1]), mapOf(t, out, "again | "+last[1])
	if grown < again-.1 {
		t.Errorf("grown %v, again %v", grown, again)
	}
}

func TestRefused(t *testing.T) {
	for which, args := range map[int][]string{0: {"--first", "1"}, 1: {"--bits", "8"}} {
		if out, err := run(t, which, args...); err == nil {
			t.Errorf("%q is accepted: %s", args, out)
		}
	}
}
