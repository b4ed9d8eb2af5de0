package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Warnings returns what to mend before relying on the model, and how, a sentence each;
// nil if there is nothing. Statistics that call for no action are only in the report.
func (r *Report) Warnings() (warnings []string) {
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	if r.Everywhere > 0 {
		warn("%s on every training item, so that by labels everything is relevant to everything: leave such labels out",
			count(r.Everywhere, "label is", "labels are"))
	}
	// A few constant bits cost nothing but their place: retrieval is the same without
	// them.
	if n := r.ConstantBits; r.Method.LabelFree() {
		if n > r.Bits/2 {
			warn("%d of %d bits are the same in all sampled items, so that only %d tell items apart: use fewer bits", n, r.Bits, r.Bits-n)
		}
	} else if n > max(r.Bits/2, r.LikelyConstantBits()) {
		warn("%d of %d bits are the same in all training items, so that only %d tell items apart: use fewer sweeps, another seed, or fewer bits", n, r.Bits, r.Bits-n)
	}
	if n := r.SharedLabels; n > 0 {
		warn("%d of %d labels have the code of another label too, so that searches do not tell them apart: use more bits, or another seed", n, r.Labels)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Chosen)) {
		ch := r.Chosen[name]
		if ch.Constant {
			warn("all vectors of modality %q are equal, so it teaches nothing: import the right ones and train again, or do without it", name)
		}
		if ch.Condition > ConditionLimit {
			remedy := "a larger gamma"
			if ch.FeatureMap == FeaturesRaw || ch.FeatureMap == FeaturesHellinger {
				remedy += ", or the features zscore,"
			}
			warn("the projection of modality %q is solved from an ill-conditioned matrix (%.1g, gamma %.3g), and rounding shows in it: %s would help", name, ch.Condition, ch.Gamma, remedy)
		}
	}
	return warnings
}

// LikelyConstantBits returns the number of constant bits that is no surprise. With S
// label sets a random bit is the same in all of them with probability 2^(1-S); the
// codes of two classes agree in half of their bits, as C'C = I makes them. The number
// is three standard deviations above the expectation.
func (r *Report) LikelyConstantBits() int {
	p := math.Ldexp(1, 1-min(r.LabelSets, 64))
	q := float64(r.Bits)
	return int(q*p + 3*math.Sqrt(q*p*(1-p)))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
