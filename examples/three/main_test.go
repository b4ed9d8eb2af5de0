package main

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each kind finds what belongs to it in each other kind, and words find the picture
// without words.
func TestThree(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	out := printed(t)
	for asked, thing := range map[string]string{
		`"waves on the beach" +sounds`:    "sea",
		"the sound of a guitar +pictures": "guitar",
		"a picture of a dog +texts":       "dog",
	} {
		if !regexp.MustCompile("(?m)^" + asked + ": " +
			strings.Repeat(thing+` \d+(, |$)`, 3)).MatchString(out) {
			t.Errorf("%s does not find three times %s", asked, thing)
		}
	}

	// The table has a figure for each pair of kinds. All are far above chance.
	columns := strings.Fields(regexp.MustCompile("(?m)^ +pictures.*$").FindString(out))
	rows := regexp.MustCompile(`(?m)^a (picture|text|sound) finds (.*)$`).FindAllStringSubmatch(out, -1)
	if len(columns) != 3 || len(rows) != 3 {
		t.Fatalf("the table has columns %q and rows %q", columns, rows)
	}
	chance := number(t, out, `by chance it would be ([\d.]+)`)
	if chance != 2 { // a fifth of the items shows each of five things
		t.Errorf("by chance %v of ten are right", chance)
	}
	for _, row := range rows {
		cells := strings.Fields(row[2])
		for i, column := range columns {
			if column == row[1]+"s" {
				if cells[i] != "-" {
					t.Errorf("%s finds %s: %s", row[1], column, cells[i])
				}
			} else if right, err := strconv.ParseFloat(cells[i], 64); err != nil || right < 3*chance ||
				right > 10 {
				t.Errorf("%s finds %s: %s of ten are right", row[1], column, cells[i])
			}
		}
	}
	if before := number(t, out, `(\d+) of the 400 other`); before > 100 {
		t.Errorf("%v other pictures come before the new one", before)
	}
}

// printed returns what main prints.
func printed(t *testing.T) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = stdout
	w.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", out)
	return string(out)
}

func number(t *testing.T, out, pattern string) float64 {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("there is no %q", pattern)
	}
	x, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
