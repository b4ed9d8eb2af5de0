package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

func TestDrawn(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "stamps.db")
	out := printed(t, drawn(t), folder, "a red rose", "ένα ψάρι")
	above(t, out, 2.5)
	for asked, group := range map[string]string{"a red rose": "flowers", "ένα ψάρι": "fish"} {
		if !regexp.MustCompile(strconv.Quote(asked) + ` finds pictures: "` + group + "/").MatchString(out) {
			t.Errorf("%s does not find %s first", asked, group)
		}
	}

	// The database is kept with the pictures. A picture that answers has neither names nor labels.
	d, err := db.Open(folder, &db.Options{MustExist: true, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Search(t.Context(), db.Query{From: english, To: picture, Where: unlabelled,
		Sparse:  stamp{names: map[string]string{english: "a fish"}}.query(english, picture).Sparse,
		Include: db.IncludePayload | db.IncludeLabels | db.IncludeFields | db.IncludeVectors})
	if err != nil {
		t.Fatal(err)
	}
	for _, hit := range found.Hits {
		it := hit.Item
		if !bytes.HasPrefix(it.Payload, []byte("\x89PNG")) || it.Labels != nil ||
			len(it.Fields)+len(it.Sparse) > 0 {
			t.Errorf("%s has labels %q, fields %v and a payload of %d bytes", hit.Key, it.Labels, it.Fields,
				len(it.Payload))
		}
	}
	if err := run(t.Context(), drawn(t), folder, nil, &bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "give -db a new folder") {
		t.Errorf("a folder that exists: %v", err)
	}
}

func TestTuxPaint(t *testing.T) {
	if _, err := os.Stat(packaged); err != nil {
		t.Skip("there is no tuxpaint-stamps-default here")
	}
	stamps, err := readStamps(packaged)
	if err != nil {
		t.Fatal(err)
	}
	above(t, printed(t, stamps, ""), 2.5)
}

// A folder of stamps is read with its names and groups. Files that are no stamps are left out.
func TestReadStamps(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) {
		t.Helper()
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	picture := drawn(t)[0].png
	for i := range 6 {
		for _, folder := range []string{"animals/birds", "symbols/alphabets", "food/cakes/cartoon"} {
			name := folder + "/s" + strconv.Itoa(i)
			write(name+".png", picture)
			write(name+".txt", []byte("A crow.\nde.utf8=Eine Krähe.\nel.utf8=Ένα κοράκι.\n"))
		}
	}
	write("animals/bear.png", picture) // its group has one stamp
	write("animals/bear.txt", []byte("A bear.\n"))
	write("animals/birds/nameless.png", picture)
	stamps, err := readStamps(dir)
	if n := sizes(stamps); err != nil || len(n) != 2 || n["animals/birds"] != 6 || n["food/cakes"] != 6 {
		t.Fatalf("%v: %v", n, err)
	}
	for _, s := range stamps {
		if s.names[english] != "A crow." || s.names[greek] != "Ένα κοράκι." {
			t.Errorf("%s has the names %q", s.key, s.names)
		}
	}

	write("animals/birds/s1.png", []byte("no picture"))
	if _, err := readStamps(dir); err == nil || !strings.Contains(err.Error(), "s1.png") {
		t.Errorf("a damaged picture: %v", err)
	}
	if _, err := readStamps(t.TempDir()); err == nil || !strings.Contains(err.Error(), "-stamps") {
		t.Errorf("an empty folder: %v", err)
	}
}

// A random order of 4 answers, 2 of them right, has by hand the average precision of the mean over 6 orders.
func TestChance(t *testing.T) {
	e := example{group: map[string]string{"a (picture)": "x", "b (picture)": "x", "c (picture)": "y",
		"d (picture)": "y", "d (greek)": "y"}}
	want := (1 + (1+2./3)/2 + (1+2./4)/2 + (1./2+2./3)/2 + (1./2+2./4)/2 + (1./3+2./4)/2) / 6
	if got := e.chance([][]string{{"x"}, {"y"}}); got < want-1e-9 || got > want+1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}

func printed(t *testing.T, stamps []stamp, folder string, words ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(context.Background(), stamps, folder, words, &out); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", &out)
	return out.String()
}

// above wants each figure of the table to be so many times the chance beside it.
func above(t *testing.T, out string, times float64) {
	t.Helper()
	table := regexp.MustCompile(`(?m)^(\w+) finds +([-.\d]+) +([-.\d]+) +([-.\d]+) +([.\d]+)$`)
	rows := table.FindAllStringSubmatch(out, -1)
	if len(rows) != len(modalities) {
		t.Fatalf("%d rows of figures", len(rows))
	}
	for i, row := range rows {
		chance := number(t, row[5])
		for j, to := range modalities {
			if (i == j) != (row[2+j] == "-") {
				t.Errorf("%s finds %s: %s", row[1], to, row[2+j])
			} else if i != j && number(t, row[2+j]) < times*chance {
				t.Errorf("%s finds %s: %s, by chance %v", row[1], to, row[2+j], chance)
			}
		}
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func drawn(t *testing.T) []stamp {
	t.Helper()
	stamps, err := drawStamps()
	if err != nil {
		t.Fatal(err)
	}
	return stamps
}
