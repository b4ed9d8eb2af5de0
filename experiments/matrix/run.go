package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A matrix says what run measures.
type matrix struct {
	sets      setList
	bits, n   common.Ints
	kinds     kindList
	k, radius common.Ints
	tiers     []string
	queries   int
	seed      uint64
	compact   bool
	dir, out  string
	stderr    io.Writer
}

func runCommand() *cobra.Command {
	m := &matrix{
		sets: synth.CodeSets(), bits: common.Ints{64, 128}, n: common.Ints{10_000, 100_000, 1_000_000},
		kinds: kindList{members, fresh, both}, queries: 1000, seed: 1,
		k: common.Ints{1, 10, 100, 1000}, radius: common.Ints{0, 2, 4, 8, 16, 24},
	}
	cmd := common.New("run", "Measure what the file of results does not have yet", "", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) error {
			m.stderr = cmd.ErrOrStderr()
			return m.run(cmd.Context())
		})
	f := common.FlagsOf(cmd)
	f.Var(&m.sets, "sets", "sets to measure")
	f.Counts(&m.bits, "bits", "lengths of codes")
	f.Items(&m.n)
	f.Var(&m.kinds, "kinds", "kinds of queries")
	f.VarP(&m.k, "k", "k", "numbers of nearest items")
	f.Var(&m.radius, "radius", "radii")
	f.StringSliceVar(&m.tiers, "tiers", tierNames, "ways to search")
	f.Queries(&m.queries)
	f.Seed(&m.seed)
	f.BoolVar(&m.compact, "compact", true, "compact each database before it is measured")
	f.Dir(&m.dir)
	f.StringVar(&m.out, "out", "results.jsonl", "file of results to add to")
	return cmd
}

// run measures what the results do not have yet.
func (m *matrix) run(ctx context.Context) error {
	for _, name := range m.tiers {
		if !slices.Contains(tierNames, name) {
			return fmt.Errorf("--tiers: there is no tier %q: there are %s", name,
				strings.Join(tierNames, ", "))
		}
	}
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
	dir, err := os.MkdirTemp(m.dir, "matrix-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := c.write(dir); err != nil {
		return err
	}
	db := filepath.Join(dir, "db")
	stored, err := m.store(c, dir, db)
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
		list, err := m.search(ctx, c, queryFile(dir, kind), db)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		for _, r := range list {
			r.Set, r.Bits, r.N, r.Kind = c.set.String(), c.bits, c.n, kind
		}
		if err := appendResults(m.out, list); err != nil {
			return err
		}
		fmt.Fprintf(m.stderr, "%s: %s measured in %.0f s\n", c, kind, time.Since(start).Seconds())
	}
	return nil
}

// store imports the items into a new database.
func (m *matrix) store(c *cell, dir, db string) (*result, error) {
	if _, err := call("init", db, "--codes", fmt.Sprint(c.bits)); err != nil {
		return nil, err
	}
	r := &result{Set: c.set.String(), Bits: c.bits, N: c.n, Op: store}
	out, err := call("import", db, "--codes", itemsFile(dir), "--json")
	if err == nil {
		err = json.Unmarshal(out, r)
	}
	if err == nil && m.compact {
		_, err = call("compact", db)
	}
	if err == nil {
		out, err = call("stats", db, "--json")
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

// call runs a verb of fddhdb and returns its output.
func call(args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	if command.Main(args, strings.NewReader(""), &stdout, &stderr) != 0 {
		return nil, fmt.Errorf("fddhdb %s: %s", args[0], strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
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
