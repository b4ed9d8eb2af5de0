package command

import (
	"fmt"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// printEmbedding prints the result of label embedding, or that it was not needed.
func (e *env) printEmbedding(t *db.Training) {
	m := t.Embedding
	if m == nil {
		return
	}
	of := ""
	if m.Judged < t.Labels {
		of = fmt.Sprintf(", measured of %s", term.Plural(m.Judged, "label", "labels"))
	}
	e.Printf("%s embedded in %s%s\n\n", term.Plural(t.Labels, "label", "labels"), term.Plural(m.Dims, "dimension", "dimensions"), of)
	e.PrintPairs([]term.Pair{
		term.NewPair("label mAP", fmt.Sprintf("%.4f, least %.4f; 1 if nothing were lost", m.MAP, m.MAPLeast)),
		term.NewPair("least distance", fmt.Sprintf("%d bits between the codes of two labels", m.LeastDistance)),
		term.NewPair("coherence", fmt.Sprintf("%.3f", m.Coherence)),
	})
	e.Printf("\n")
}

// constantBits returns the number of constant bits in words, and whether it was
// expected.
func constantBits(t *db.Training) string {
	n := t.ConstantBits
	if n == 0 || n > t.LikelyConstantBits() { // then there is a warning
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d, as likely with %s: fewer bits would do", n, term.Plural(t.LabelSets, "set of labels", "sets of labels"))
}
