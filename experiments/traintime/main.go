package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

func main() { common.Main("traintime", command) }

// command runs a command line. args does not have the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	sizes := common.Ints{1000, 5000, 10_000, 50_000, 184_000}
	var c config
	f := common.NewFlags("traintime", stderr)
	f.Var(&sizes, "n", "numbers of items")
	method := f.String("method", "labels", "labels, joint or paper")
	f.IntVar(&c.Bits, "bits", 128, "length of the codes")
	f.IntVar(&c.Anchors, "anchors", 800, "anchors of a modality")
	f.IntVar(&c.Queries, "queries", 1000, "items to measure retrieval with")
	f.Uint64Var(&c.Seed, "seed", 0, "seed of the data and the training")
	f.Float64Var(&c.Noise, "noise", synth.DefaultNUSWideNoise, "noise of the data, 0 to 1")
	f.BoolVar(&c.Dense, "dense", false, "texts as dense vectors, where they are sparse")
	python := f.String("peer", "", "compare with numpy, run by this Python; items are in memory")
	rounds := f.Int("rounds", 3, "with -peer: runs of each side in turns, of which medians are printed")
	one := f.Bool("one", false, "measure in this process and print JSON; -n is one number")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	if c.Method, err = model.ParseMethod(*method); err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds %d: 1 or more are possible", *rounds)
	}
	if len(sizes) == 0 || slices.Min(sizes) < 1 {
		return fmt.Errorf("-n %q: numbers of items from 1 with commas between them are expected", &sizes)
	}
	if *one {
		c.Items = sizes[0]
		r, err := run(ctx, c)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(r)
	}
	if *python != "" {
		peerHeader(stdout)
		for _, c.Items = range sizes {
			r, err := compare(ctx, c, *python, *rounds)
			if err != nil {
				return err
			}
			r.row(stdout)
		}
		return nil
	}
	fmt.Fprintf(stdout, "%d bits, %d anchors, method %v, noise %v, %d cores\n\n", c.Bits, c.Anchors, c.Method, c.Noise, runtime.GOMAXPROCS(0))
	header(stdout)
	for _, n := range sizes {
		r, err := inProcess(ctx, args, n, stderr)
		if err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
		r.row(stdout)
	}
	return nil
}

// inProcess measures n items in a process of its own.
func inProcess(ctx context.Context, args []string, n int, stderr io.Writer) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, self, append(args[:len(args):len(args)], "-n", strconv.Itoa(n), "-one")...)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}
