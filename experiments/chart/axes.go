package chart

import (
	"strconv"

	"gonum.org/v1/plot"
)

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
