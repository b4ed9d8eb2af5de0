package model

import (
	"cmp"
	"fmt"

	"github.com/fddhdb/fddhdb/internal/freemem"
)

// A MemoryError is a training that needs more memory than there is. It is found out before
// any features are computed.
type MemoryError struct {
	Needed, Available int64 // bytes; what is needed is an estimate

	// Modality is the one that needs most, with a map of this kind, which has so many
	// features. Choosing says that what takes most is to compare maps, of which it is the
	// largest, on a sample.
	Modality string
	Map      MapKind
	Features int
	Choosing bool
}

func (e *MemoryError) Error() string {
	why, advice := "summing their products", "use fewer anchors"
	switch {
	case e.Choosing:
		why, advice = "choosing among maps like it", "give map, gamma and fusion, so that less is chosen"
	case e.Map == MapLinear:
		advice = "use the rbf map for it"
	case e.Map == MapRBFLinear:
		advice = "use the rbf map for it, or fewer anchors"
	}
	return fmt.Sprintf("about %s of memory are needed, and %s are available: the %v map of modality %q has %d features, and %s takes most of it: %s, or a machine with more memory",
		byteSize(e.Needed), byteSize(e.Available), e.Map, e.Modality, e.Features, why, advice)
}

func byteSize(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// square returns the bytes of a matrix of k x k.
func square(k int) int64 { return 8 * int64(k) * int64(k) }

// checkMemory refuses a training that needs more memory than there is. Before the scan, when
// the numbers of items are not known, only what does not depend on them counts.
func (tr *trainer) checkMemory() error {
	limit := tr.opt.MemoryBytes
	if limit < 0 {
		return nil
	}
	e := tr.estimate(workerCount())
	if limit == 0 && e.Needed > alwaysThere {
		available, known := freemem.Available()
		if !known {
			return nil
		}
		limit = max(available, 1)
	}
	if limit > 0 && e.Needed > limit {
		e.Available = limit
		return &e
	}
	return nil
}

// alwaysThere is what a training may take without anybody asking what there is.
const alwaysThere = 64 << 20

// What estimate counts in matrices of k x k numbers of 8 bytes. They are peaks of what a
// process has been seen to hold, garbage that is not collected yet included, and not of what
// the algorithms keep.
const (
	// Of the statistics of all modalities: A twice, as the heap doubles before it is collected,
	// and half of it in bytes, to be stored.
	statisticsSquares = 2.5
	solveSquares      = 2  // of the largest map: a copy of A, which is factored, likewise
	choiceSquares     = 8  // of the map that is tried: those of the folds and of all
	workerSquares     = 2  // of the same, a goroutine: a copy of A that is factored
	refinedSquares    = 3  // that stay of a modality until the fusion is chosen
	vectorCopies      = 2  // of sampled vectors and of anchors: as they are, and as features
	columnBytes       = 64 // of moments and maps, a dimension
)

// estimate says how much memory the training needs on so many goroutines, about. It leaves
// Available to others.
func (tr *trainer) estimate(workers int) (e MemoryError) {
	var statistics, largest, kept, trial, rest float64
	var choice MemoryError // likewise, of what is compared
	for t, m := range tr.reader.modalities {
		n := 0
		if t < len(tr.moments) {
			n = tr.moments[t].n // 0 before the scan
		}
		open := tr.from.open != nil && tr.from.open[t].kind
		kinds := []MapKind{tr.opt.Map[m.Name]}
		if open {
			kinds = []MapKind{MapRBF, MapLinear, MapRBFLinear}
		}
		anchors := min(cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(n)), n) // makeMaps refuses more
		k, tried := 0, 0
		kind, triedKind := kinds[0], kinds[0]
		for _, candidate := range kinds {
			if candidate.size(choiceAnchors, m.Dim) <= choiceFeatures {
				if tr.undecided(t) || tr.measures() {
					if size := candidate.size(min(refineAnchors, anchors), m.Dim); size > tried {
						tried, triedKind = size, candidate
					}
				}
			} else if open && candidate != MapRBF {
				continue // it is not tried
			}
			if size := candidate.size(anchors, m.Dim); size > k && size <= maxFeatures { // checkFeatures refuses more
				k, kind = size, candidate
			}
		}
		sampled := float64(min(n, choiceItems, max(minChoiceItems, choiceNumbers/m.Dim)))
		if m.Sparse {
			sampled = 0 // what it holds is not known; choiceNumbers bounds it
		}
		statistics += float64(square(k))
		if float64(square(k)) > largest {
			largest = float64(square(k))
			e.Modality, e.Map, e.Features = m.Name, kind, k
		}
		if tried > 0 {
			// One modality is tried after the other.
			phi := 4 * float64(min(n, choiceItems)) * float64(tried)
			factored := float64(min(workers, choiceFolds*choiceFolds))
			if bytes := (choiceSquares+workerSquares*factored-refinedSquares)*float64(square(tried)) + vectorCopies*phi; bytes > trial {
				trial = bytes
				choice = MemoryError{Modality: m.Name, Map: triedKind, Features: tried, Choosing: true}
			}
			kept += refinedSquares*float64(square(tried)) + phi
		}
		rest += vectorCopies*4*sampled*float64(m.Dim) + columnBytes*float64(m.Dim) + 4*blockItems*float64(k) + 16*float64(tr.opt.Bits)*float64(k)
		if !m.Sparse {
			rest += vectorCopies*4*float64(anchors)*float64(m.Dim) + 2*4*blockItems*float64(m.Dim)
		}
	}
	if tr.opt.Method != MethodLabels && tr.sets != nil {
		rest += 8 * float64(len(tr.sets.of)) * float64(len(tr.sets.labels)) // Y
	}
	most := statisticsSquares*statistics + solveSquares*largest
	if trial+kept > most {
		most, e = trial+kept, choice
	}
	e.Needed = int64(most + rest)
	return e
}
