package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A matrix says what run measures.
type matrix struct {
	sets      setList
	bits, n   common.Ints
	kinds     kindList
	k, radius common.Ints
	tiers     string
	queries   int
	seed      uint64
	check     bool
	compact   bool
	fddhdb    string
	tmp, out  string
	stderr    io.Writer
}

func runCommand(ctx context.Context, args []string, _, stderr io.Writer) error {
	m := &matrix{
		sets: synth.CodeSets(), bits: common.Ints{64, 128}, n: common.Ints{10_000, 100_000, 1_000_000},
		kinds: kindList{members, fresh, both},
		k:     common.Ints{1, 10, 100, 1000}, radius: common.Ints{0, 2, 4, 8, 16, 24},
		stderr: stderr,
	}
	f := common.NewFlags("run", stderr)
	f.Var(&m.sets, "sets", "sets to measure")
	f.Var(&m.bits, "bits", "lengths of codes")
	f.Var(&m.n, "n", "numbers of items")
	f.Var(&m.kinds, "kinds", "kinds of queries")
	f.Var(&m.k, "k", "numbers of nearest items")
	f.Var(&m.radius, "radius", "radii")
	f.StringVar(&m.tiers, "tiers", "auto,fullscan,scan,memory,disk,blockscan", "ways to search")
	f.IntVar(&m.queries, "queries", 1000, "number of queries of each kind")
	f.Uint64Var(&m.seed, "seed", 1, "seed of all that is random")
	f.BoolVar(&m.check, "check", false, "compare every answer with a linear scan")
	f.BoolVar(&m.compact, "compact", true, "compact each database before it is measured")
	f.StringVar(&m.fddhdb, "fddhdb", "fddhdb", "the program to measure")
	f.StringVar(&m.tmp, "tmp", "", "folder for databases (default: that of the system)")
	f.StringVar(&m.out, "out", "results.jsonl", "file of results to add to")
	if err := parse(f, args); err != nil {
		return err
	}
	return m.run(ctx)
}

// run measures what the results do not have yet.
func (m *matrix) run(ctx context.Context) error {
	done, err := readResults(m.out)
	if err != nil {
		return err
	}
	for _, n := range m.n {
		for _, bits := range m.bits {
			for _, set := range m.sets {
				var missing []string
				for _, kind := range m.kinds {
					if !done.has(place{set.String(), bits, n}, kind) {
						missing = append(missing, kind)
					}
				}
				if len(missing) == 0 {
					continue
				}
				c := &cell{set, bits, n, m.queries, m.seed}
				if err := m.measure(ctx, c, missing, done); err != nil {
					return fmt.Errorf("%s: %w", c, err)
				}
			}
		}
	}
	return nil
}

// measure stores a set and runs the searches with the given kinds of queries.
func (m *matrix) measure(ctx context.Context, c *cell, kinds []string, done results) (err error) {
	dir, err := os.MkdirTemp(m.tmp, "matrix-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := c.write(dir); err != nil {
		return err
	}
	db := filepath.Join(dir, "db")
	stored, err := m.store(ctx, c, dir, db)
	if err != nil {
		return err
	}
	fmt.Fprintf(m.stderr, "%s: stored in %.1f s\n", c, stored.Seconds)
	if !done.has(stored.place(), "") {
		if err := appendResults(m.out, results{stored}); err != nil {
			return err
		}
	}
	for _, kind := range kinds {
		start := time.Now()
		list, err := m.bench(ctx, c, kind, dir, db)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if err := appendResults(m.out, list); err != nil {
			return err
		}
		fmt.Fprintf(m.stderr, "%s: %s measured in %.0f s\n", c, kind, time.Since(start).Seconds())
	}
	return nil
}

// store imports the items into a new database.
func (m *matrix) store(ctx context.Context, c *cell, dir, db string) (*result, error) {
	if _, err := m.call(ctx, "init", db, "--codes", fmt.Sprint(c.bits)); err != nil {
		return nil, err
	}
	r := &result{Set: c.set.String(), Bits: c.bits, N: c.n, Op: store}
	out, err := m.call(ctx, "import", db, "--codes", itemsFile(dir), "--json")
	if err == nil {
		err = json.Unmarshal(out, r)
	}
	if err == nil && m.compact {
		_, err = m.call(ctx, "compact", db)
	}
	if err == nil {
		out, err = m.call(ctx, "stats", db, "--json")
	}
	if err != nil {
		return nil, err
	}
	var stats struct {
		Collections []struct {
			MemoryBytes   int64 `json:"memory_bytes"`
			DistinctCodes int   `json:"distinct_codes"`
		}
	}
	if err := json.Unmarshal(out, &stats); err != nil {
		return nil, err
	}
	for _, c := range stats.Collections {
		r.MemoryBytes += c.MemoryBytes
		r.DistinctCodes += c.DistinctCodes
	}
	r.DiskBytes, err = folderBytes(db)
	return r, err
}

// bench measures the searches with one kind of queries.
func (m *matrix) bench(ctx context.Context, c *cell, kind, dir, db string) (results, error) {
	args := []string{"bench", db, "--codes", queryFile(dir, kind), "--tier", m.tiers, "--queries", fmt.Sprint(m.queries), "--json"}
	if len(m.k) > 0 {
		args = append(args, "-k", m.k.String())
	}
	if len(m.radius) > 0 {
		args = append(args, "--radius", m.radius.String())
	}
	if m.check {
		args = append(args, "--check")
	}
	out, err := m.call(ctx, args...)
	if err != nil {
		return nil, err
	}
	var list results
	for scanner := bufio.NewScanner(bytes.NewReader(out)); scanner.Scan(); {
		r := &result{Set: c.set.String(), Bits: c.bits, N: c.n, Kind: kind}
		if err := json.Unmarshal(scanner.Bytes(), r); err != nil {
			return nil, fmt.Errorf("%s in %q", err, scanner.Text())
		}
		list = append(list, r)
	}
	return list, nil
}

// call runs a verb of fddhdb and returns its output.
func (m *matrix) call(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, m.fddhdb, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // on an interrupt, fddhdb leaves the database whole
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("fddhdb %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// folderBytes returns the total bytes of the files in a folder.
func folderBytes(dir string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
