package chart

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// DecadeAxis finishes an axis of decimal logarithms. It makes the axis at least a
// decade long, with ticks at 1, 2 and 5 or at powers of ten, as there is room. (With
// plot.LogScale a long label would narrow the curves.)
func DecadeAxis(a *plot.Axis) {
	middle := (a.Min + a.Max) / 2
	a.Min, a.Max = min(a.Min-.1, middle-.5), max(a.Max+.1, middle+.5)
	a.Tick.Marker = decadeTicks(a.Min, a.Max)
}

// decadeTicks returns the ticks between two logarithms.
func decadeTicks(low, high float64) plot.ConstantTicks {
	const most = 9
	between := func(every int, steps ...string) (ticks plot.ConstantTicks) {
		for decade := int(math.Floor(low)); decade <= int(high); decade++ {
			for _, s := range steps {
				x, _ := strconv.ParseFloat(s+"e"+strconv.Itoa(decade), 64)
				if at := math.Log10(x); at >= low && at <= high && decade%every == 0 {
					ticks = append(ticks, plot.Tick{Value: at, Label: briefly(x)})
				}
			}
		}
		return ticks
	}
	for _, steps := range [][]string{{"1", "2", "5"}, {"1", "3"}} {
		if ticks := between(1, steps...); len(ticks) <= most {
			return ticks
		}
	}
	return between(1+int(high-low)/most, "1")
}

// briefly returns a number for an axis: 20k, 3M.
func briefly(x float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if x < 1000 {
			break
		}
		x, unit = x/1000, u
	}
	return strconv.FormatFloat(x, 'g', 4, 64) + unit
}

// CountTicks returns a few ticks at whole numbers.
func CountTicks(low, high int) plot.ConstantTicks {
	step := 1
	for decade := 1; (high-low)/step > 8; decade *= 10 {
		for _, m := range []int{2, 5, 10} {
			if (high-low)/step > 8 {
				step = m * decade
			}
		}
	}
	var ticks []float64
	for x := (low + step - 1) / step * step; x <= high; x += step {
		ticks = append(ticks, float64(x))
	}
	return TicksAt(ticks)
}

// TicksAt returns a tick at each value.
func TicksAt(values []float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
	}
	return ticks
}

// SweepTicks returns ticks at the first sweep and at a few more.
func SweepTicks(last int) plot.ConstantTicks {
	step := 1
	for decade := 1; last/step > 5; decade *= 10 {
		for _, m := range []int{2, 5, 10} {
			if last/step > 5 {
				step = m * decade
			}
		}
	}
	ticks := []float64{1}
	for x := step; x <= last; x += step {
		if x > 1 {
			ticks = append(ticks, float64(x))
		}
	}
	return TicksAt(ticks)
}

// LeastSpan is the least difference in mAP that an axis, or the colours of a heat map,
// span: noise must not look like structure.
const LeastSpan = .03

// Widen makes an axis span at least least, and leaves room at its ends.
func Widen(a *plot.Axis, least float64) {
	span := a.Max - a.Min
	room := max(span*.06, (least-span)/2)
	a.Min, a.Max = a.Min-room, a.Max+room
}
