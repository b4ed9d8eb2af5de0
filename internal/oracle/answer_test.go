package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// Every deviation from the right answer is found.
func TestWrongAnswersAreNoticed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, exact := range []bool{true, false} {
		a := &oracle.Answer{Exact: exact}
		if !exact {
			a.Projection = []float64{.5, -.25, 1, 2, -1, .125, 3, -4}
		}
		var hits []db.Hit
		for i := range 12 {
			code := string([]byte{byte(i / 3)})
			h := oracle.Candidate{Key: fmt.Sprint("k", i), Row: uint32(i), Code: code, Distance: i / 6,
				Score: oracle.Score(a.Projection, code)}
			a.Candidates = append(a.Candidates, h)
		}
		a.Sort()
		for _, h := range a.Candidates {
			hits = append(hits, db.Hit{Key: h.Key, Row: h.Row, Distance: h.Distance, Score: h.Score})
		}
		for k := 1; k <= 13; k++ {
			if err := a.Check(hits[:min(k, 12)], k, -1, db.RerankNone); err != nil {
				t.Fatalf("exact %v, k = %d: %v", exact, k, err)
			}
		}
		for range 200 {
			i, j := r.IntN(12), r.IntN(12)
			wrong := slices.Clone(hits)
			if wrong[i], wrong[j] = wrong[j], wrong[i]; i != j &&
				a.Check(wrong, 12, -1, db.RerankNone) == nil {
				t.Errorf("exact %v: hits %d and %d change places, and nobody notices", exact, i, j)
			}
			if i > 0 && a.Check(append(slices.Clone(hits[:i-1]), hits[i:]...)[:i], i, -1,
				db.RerankNone) == nil {
				t.Errorf("exact %v: hit %d of %d is left out, and nobody notices", exact, i-1, i)
			}
		}
	}
}
