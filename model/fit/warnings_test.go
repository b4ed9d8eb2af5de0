package fit

import (
	"strings"
	"testing"
)

// A warning is something to act on. Constant bits cost nothing if there are few label
// sets, as in most default trainings. A code with few other bits does.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		report Report
		want   string // "" for no warning
	}{
		{"a default training of 48 label sets", Report{Bits: 64, LabelSets: 48, ConstantBits: 6}, ""},
		{"half of the bits", Report{Bits: 64, LabelSets: 48, ConstantBits: 32}, ""},
		{"more than half", Report{Bits: 64, LabelSets: 48, ConstantBits: 40},
			"40 of 64 bits are the same in all training items, so that only 24 tell items apart: use "},
		{"two classes agree in half of the bits", Report{Bits: 64, LabelSets: 2, ConstantBits: 36}, ""},
		{"labels on every item", Report{Bits: 64, LabelSets: 9, Everywhere: 1}, "leave such labels out"},
		{"labels of one code", Report{Bits: 8, LabelSets: 9, Labels: 8, SharedLabels: 2}, "use more bits"},
		{"equal vectors", Report{Chosen: map[string]Chosen{"image": {Constant: true}}},
			"import the right ones"},
		{"rounding", Report{Chosen: map[string]Chosen{"image": {Condition: 2 * ConditionLimit}}},
			"a larger gamma"},
	} {
		got := c.report.Warnings()
		failIf(t, c.want == "" && got != nil || c.want != "" &&
			(len(got) != 1 || !strings.Contains(got[0], c.want)), "%s: %q", c.name, got)
	}
}
