// Traintime measures training against the number of items, on data of the shape of
// NUS-WIDE that package synth makes:
//
//	cd internal/measure
//	go run ./traintime
//	go run ./traintime -n 1000,184000 -method joint -anchors 400
//	go run ./traintime -n 184000 -dense -peer python3
//
// Each number of items has a process of its own, so that its peak of memory is that
// of nothing else. Items are made as training reads them, once a pass, by the
// goroutine that reads: that time is part of the total and stands beside it. The
// columns of mAP are those of -queries items that follow the training items, against
// the label codes of all of these; chance is the mean share of relevant items. With
// -peer, training is compared with the same arithmetic written with numpy (peer.py).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "traintime:", err)
		os.Exit(1)
	}
}

// command runs a command line without the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("traintime", flag.ContinueOnError)
	f.SetOutput(stderr)
	sizes := f.String("n", "1000,5000,10000,50000,184000", "numbers of items")
	method := f.String("method", "labels", "labels, joint or paper")
	var c config
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
	if *python != "" {
		fmt.Fprintln(stdout, "| items | seconds | scan | statistics | numpy | moments | kernel | gram | solve | ratio |")
		fmt.Fprintln(stdout, "|---|---|---|---|---|---|---|---|---|---|")
	} else if !*one {
		fmt.Fprintf(stdout, "%d bits, %d anchors, method %v, noise %v, %d cores\n\n", c.Bits, c.Anchors, c.Method, c.Noise, runtime.GOMAXPROCS(0))
		fmt.Fprintln(stdout, "| items | seconds | scan | sweeps | statistics | solve | making items | peak, MiB | mAP image to text | text to image | chance |")
		fmt.Fprintln(stdout, "|---|---|---|---|---|---|---|---|---|---|---|")
	}
	for _, s := range strings.Split(*sizes, ",") {
		if c.Items, err = strconv.Atoi(s); err != nil || c.Items < 1 {
			return fmt.Errorf("-n %q: numbers of items with commas between them are expected", *sizes)
		}
		if *python != "" {
			r, err := compare(ctx, c, *python, *rounds)
			if err != nil {
				return err
			}
			r.row(stdout)
			continue
		}
		if *one {
			r, err := measure(ctx, c)
			if err != nil {
				return err
			}
			return json.NewEncoder(stdout).Encode(r)
		}
		r, err := inProcess(ctx, args, s, stderr)
		if err != nil {
			return fmt.Errorf("%s items: %w", s, err)
		}
		r.row(stdout)
	}
	return nil
}

// inProcess measures one number of items in a process of its own.
func inProcess(ctx context.Context, args []string, n string, stderr io.Writer) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, self, append(args[:len(args):len(args)], "-n", n, "-one")...)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}
