package joins

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/mih"
)

// A config says what is joined.
type config struct {
	bits, items, radius common.Ints
	check               int
}

// Command returns the experiment.
func Command() *cobra.Command {
	c := config{bits: common.Ints{64, 128, 256, 1024}, items: common.Ints{20_000, 1_000_000}, check: 100}
	cmd := common.New("joins", "Measure how long it takes to find all pairs of near codes, and check them",
		"The radius is an eighth of the bits unless --radius says another one.", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) error { return c.measure(cmd.Context(), cmd.OutOrStdout()) })
	f := common.FlagsOf(cmd)
	f.Counts(&c.bits, "bits", "lengths of codes")
	f.Items(&c.items)
	f.Var(&c.radius, "radius", "radii in bits")
	f.IntVar(&c.check, "check", c.check, "codes whose pairs are compared with a scan")
	return cmd
}

func (c *config) measure(ctx context.Context, stdout io.Writer) error {
	common.Head(stdout, 1, "set", "bits", "codes", "radius", "pairs", "seconds", "scan, predicted", "checked")
	for _, set := range []synth.CodeSet{synth.Uniform, synth.Projected} {
		for _, bits := range c.bits {
			for _, n := range c.items {
				radii := c.radius
				if len(radii) == 0 {
					radii = common.Ints{bits / 8}
				}
				for _, radius := range radii {
					if err := c.join(ctx, stdout, set, bits, n, radius); err != nil {
						return fmt.Errorf("%v, %d bits, %d codes within %d: %w", set, bits, n, radius, err)
					}
				}
			}
		}
	}
	return nil
}

// planted returns codes of a set, of which one in a hundred is near another one.
func planted(set synth.CodeSet, bits, n, radius int) (codec.Codes, error) {
	codes, err := synth.Codes(set, bits, n, 1)
	if err != nil {
		return codes, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range n / 100 {
		to := codes.At(rng.IntN(n))
		copy(to, codes.At(rng.IntN(n)))
		for range rng.IntN(radius + 1) {
			to.Flip(rng.IntN(bits))
		}
	}
	return codes, nil
}

// exhaustive is the number of codes up to which all pairs are checked.
const exhaustive = 20_000

func (c *config) join(ctx context.Context, stdout io.Writer, set synth.CodeSet, bits, n, radius int) error {
	codes, err := planted(set, bits, n, radius)
	if err != nil {
		return err
	}
	check := min(c.check, n)
	if n <= exhaustive {
		check = n
	}
	of := make([]int, n) // pairs of each code
	pairs, start := 0, time.Now()
	err = (&mih.Join{Codes: codes, Radius: radius}).Run(ctx, func(some []mih.Pair) error {
		pairs += len(some)
		for _, p := range some {
			of[p.Later]++
			of[p.Earlier]++
			d := codec.Distance(codes.At(int(p.Later)), codes.At(int(p.Earlier)))
			if d != int(p.Distance) || d > radius {
				return fmt.Errorf("codes %d and %d differ in %d bits: %v", p.Later, p.Earlier, d, p)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	// A pair is found once if each code has as many as it is near to others.
	near := make([]codec.Near, n)
	start = time.Now()
	for k := range check {
		i := k * (n / check)
		if want := codec.Within(near, codes.At(i), codes.Slice(0, n), radius, 0) - 1; of[i] != want {
			return fmt.Errorf("code %d is in %d pairs, and near %d others", i, of[i], want)
		}
	}
	scan := time.Since(start).Seconds() / float64(check) * float64(n) / 2
	common.Row(stdout, set.String(), fmt.Sprint(bits), fmt.Sprint(n), fmt.Sprint(radius), fmt.Sprint(pairs),
		fmt.Sprintf("%.2f", took.Seconds()), fmt.Sprintf("%.1f", scan), fmt.Sprint(check))
	return nil
}
