package matrix

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// fddhdb can read the files, and package synth makes the same codes and queries.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--write", "--sets", "S", "--bits", "72", "--items", "50", "--queries", "6",
		"--seed", "3", "--dir", dir}
	if err := common.Execute(t.Context(), Command(), args, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
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

// small are the arguments of a small run in a folder.
func small(dir string, more ...string) []string {
	return append([]string{"--dir", dir, "--bits", "64", "--items", "100,200", "--queries", "4", "-k", "1,10",
		"--radius", "0,8"}, more...)
}

// A run has a row for each set and search. All tiers find as much, and nothing is left behind.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	args := small(dir, "--sets", "U,L", "--kind", "members", "--tiers", strings.Join(tierNames, ","))
	if err := common.Execute(t.Context(), Command(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(rows) != 2+2*2*6 || !strings.HasPrefix(rows[0], "| set | search | bits | items | hits | auto |") {
		t.Errorf("%d rows: %s", len(rows), out.String())
	}
	for set, search := range map[string]string{"U": "knn 10 | 64 | 200 | 10.0", "L": "hits 8 | 64 | 100"} {
		row := regexp.MustCompile(`(?m)^\| ` + set + ` \| ` + regexp.QuoteMeta(search) + `.* [0-9.e+]+ \|$`)
		if !row.MatchString(out.String()) {
			t.Errorf("no row %s %s in %s", set, search, out.String())
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

// An interrupt ends a run, and removes its files.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := common.Execute(ctx, Command(), small(dir, "--sets", "C"), io.Discard, io.Discard)
	if entries, _ := os.ReadDir(dir); !errors.Is(err, context.Canceled) || len(entries) > 0 {
		t.Errorf("%v, left: %v", err, entries)
	}
}

func TestRefused(t *testing.T) {
	for _, args := range []string{
		"extra", "--sets X", "--items ten", "--items -5", "--kind all", "--tiers auto,fast", "--bits 12",
		"--write", "--write --dir " + t.TempDir(),
	} {
		if err := common.Execute(t.Context(), Command(), strings.Fields(args), io.Discard,
			io.Discard); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
}
