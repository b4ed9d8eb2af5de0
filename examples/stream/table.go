package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// printTables prints mAP of every curve, in a table for each direction.
func printTables(w io.Writer, curves []*curve, seeds int) error {
	out := bufio.NewWriter(w) // keeps the first error
	for direction, title := range directions {
		fmt.Fprintf(out, "\nmAP, %s, by items seen", title)
		if seeds > 1 {
			fmt.Fprintf(out, "; means of %d seeds, standard deviation of the last", seeds)
		}
		fmt.Fprintln(out)
		for i, c := range curves {
			if i == 0 || c.labelled != curves[i-1].labelled {
				fmt.Fprintf(out, "%-*s", nameWidth, heading(c))
				for _, p := range curves[0].points {
					fmt.Fprintf(out, "%6d", p.items)
				}
				fmt.Fprintln(out)
			}
			// A curve with the last point alone has it in the last column.
			fmt.Fprintf(out, "  %-*s%*s", nameWidth-2, c.name, 6*(len(curves[0].points)-len(c.points)), "")
			for _, p := range c.points {
				fmt.Fprintf(out, "%6s", share(mean(p.maps[direction])))
			}
			if seeds > 1 {
				fmt.Fprintf(out, "  ± %s", share(deviation(c.points[len(c.points)-1].maps[direction])))
			}
			fmt.Fprintln(out)
		}
	}
	for _, c := range curves {
		if c.updated && c.teacher == db.TeacherAuto {
			fmt.Fprintf(out, "\nThe guard adopted %d of %d updates.\n", c.adopted, c.updates)
		}
	}
	return out.Flush()
}

const nameWidth = 30

// heading returns what the curves from this one on have in common.
func heading(c *curve) string {
	if c.labelled {
		return "with labels"
	}
	return "without labels"
}

// share formats a number from 0 to 1 without its 0.
func share(x float64) string { return strings.TrimPrefix(fmt.Sprintf("%.3f", x), "0") }

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// deviation returns the standard deviation of the sample.
func deviation(xs []float64) float64 {
	m, sum := mean(xs), 0.0
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(xs)-1))
}
