package traintime

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// oneFlag measures in this process alone.
const oneFlag = "one"

// Command returns the experiment.
func Command() *cobra.Command {
	s := settings{config: config{Bits: 128, Anchors: 800, Queries: 1000, Noise: synth.DefaultNUSWideNoise},
		sizes: common.Ints{1000, 5000, 10_000, 50_000, 184_000}, rounds: 3}
	cmd := common.New("traintime", "Measure the time of training by the number of items, and beside numpy",
		"The data has the shape of NUS-WIDE. Each number of items is measured in a process of its own.",
		cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
			return s.measure(cmd.Context(), cmd.Flags(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		})
	f := common.FlagsOf(cmd)
	f.Items(&s.sizes)
	f.StringVar(&s.method, "method", "labels", "labels, joint or paper")
	f.Bits(&s.Bits)
	f.Count(&s.Anchors, "anchors", "anchors of a modality")
	f.Queries(&s.Queries)
	f.Seed(&s.Seed)
	f.Float64Var(&s.Noise, "noise", s.Noise, "noise of the data, 0 to 1")
	f.BoolVar(&s.Dense, "dense", false, "texts as dense vectors, where they are sparse")
	f.StringVar(&s.python, "peer", "", "compare with numpy, run by this Python; items are in memory")
	f.Rounds(&s.rounds)
	f.BoolVar(&s.one, oneFlag, false, "measure the first number of items in this process and print JSON")
	return cmd
}

// settings are the values of the flags.
type settings struct {
	config
	sizes          common.Ints
	method, python string
	rounds         int
	one            bool
}

// measure prints a table.
func (s *settings) measure(ctx context.Context, flags *pflag.FlagSet, stdout, stderr io.Writer) error {
	c := s.config
	var err error
	if c.Method, err = model.ParseMethod(s.method); err != nil {
		return err
	}
	if s.one {
		c.Items = s.sizes[0]
		r, err := run(ctx, c)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(r)
	}
	if s.python != "" {
		peerHeader(stdout)
		for _, c.Items = range s.sizes {
			r, err := compare(ctx, c, s.python, s.rounds)
			if err != nil {
				return err
			}
			r.row(stdout)
		}
		return nil
	}
	fmt.Fprintf(stdout, "%d bits, %d anchors, method %v, noise %v, %d cores\n\n", c.Bits, c.Anchors, c.Method,
		c.Noise, runtime.GOMAXPROCS(0))
	header(stdout)
	for _, n := range s.sizes {
		r, err := inProcess(ctx, flags, n, stderr)
		if err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
		r.row(stdout)
	}
	return nil
}

// inProcess measures n items in a process of its own, with the flags that are given.
func inProcess(ctx context.Context, flags *pflag.FlagSet, n int, stderr io.Writer) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	args := []string{"traintime", "--" + oneFlag}
	flags.Visit(func(f *pflag.Flag) { args = append(args, "--"+f.Name+"="+f.Value.String()) })
	cmd := exec.CommandContext(ctx, self, append(args, "--items="+strconv.Itoa(n))...)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}
