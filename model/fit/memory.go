package fit

import (
	"cmp"
	"fmt"

	"github.com/fddhdb/fddhdb/internal/freemem"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/wire"
	"github.com/fddhdb/fddhdb/model/sum"
)

// A MemoryError is a training that needs more memory than there is. It is returned
// before any features are computed.
type MemoryError struct {
	Needed, Available int64 // bytes; Needed is an estimate

	// Modality needs most memory, with a map of kind Map that has so many Features.
	// Choosing says that comparing maps on a sample takes most, and this is the largest
	// of these maps.
	Modality string
	Map      model.MapKind
	Features int
	Choosing bool

	// Sampling says that the training learns without labels, and a sample of the items takes most.
	// The three fields above have no meaning then.
	Sampling bool
}

func (e *MemoryError) Error() string {
	if e.Sampling {
		return fmt.Sprintf("about %s of memory are needed, and %s are available: a sample of the items takes most of it: use a machine with more memory",
			byteSize(e.Needed), byteSize(e.Available))
	}
	why, advice := "summing their products", "use fewer anchors"
	switch {
	case e.Choosing:
		why, advice = "choosing among maps like it", "give map, gamma and fusion, so that less is chosen"
	case e.Map == model.MapLinear:
		advice = "use the rbf map for it"
	case e.Map == model.MapRBFLinear:
		advice = "use the rbf map for it, or fewer anchors"
	}
	return fmt.Sprintf("about %s of memory are needed, and %s are available: the %v map of modality %q has %d features, and %s takes most of it: %s, or a machine with more memory",
		byteSize(e.Needed), byteSize(e.Available), e.Map, e.Modality, e.Features, why, advice)
}

// byteSize words a number of bytes for an error.
func byteSize(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// square returns the bytes of a k x k matrix of float64.
func square(k int) int64 { return 8 * int64(k) * int64(k) }

// checkMemory refuses a training that needs more memory than there is, and returns what it needs. items are
// the items with each modality. Before the scan they are 0 and there are no label sets, so only memory that
// does not depend on them counts.
func (tr *trainer) checkMemory(items []int, sets *labelSets) (int64, error) {
	limit := tr.opt.MemoryBytes
	e := tr.estimate(items, sets)
	if limit < 0 {
		return e.Needed, nil
	}
	if limit == 0 && e.Needed > alwaysThere {
		available, known := freemem.Available()
		if !known {
			return e.Needed, nil
		}
		limit = max(available, 1)
	}
	if limit > 0 && e.Needed > limit {
		e.Available = limit
		return 0, &e
	}
	return e.Needed, nil
}

// alwaysThere is the memory that a training may take without a check of the machine.
const alwaysThere = 64 << 20

// Memory in matrices of k x k float64, for estimate. These are measured peaks of
// processes, which include garbage that is not collected yet; the algorithms keep less.
const (
	// Of the statistics of all modalities: A twice, as the heap doubles before it is
	// collected, and half of A in bytes, to be stored.
	statisticsSquares = 2.5
	solveSquares      = 2 // of the largest map: a copy of A, which is factored, also twice
	// of the map that is tried: A, its factor, its inverse and that packed, and garbage
	choiceSquares = 5
	// of the map that is tried, sample x k float32: features, packed, times the inverse, and garbage
	choicePhis   = 10
	vectorCopies = 2  // of sampled vectors and of anchors: before and after features are applied
	columnBytes  = 64 // of moments and maps, for each dimension
)

// heldColumns returns the largest number of columns that a basis can have. Before the scan
// the number of labels is unknown, but there are hardly more than bits.
func (tr *trainer) heldColumns(sets *labelSets) int {
	switch {
	case sets == nil:
		return min(tr.opt.Bits, mostTargets)
	case tr.aim(sets) == model.AimLabels:
		return len(sets.labels)
	case len(sets.sets) > mostTargets:
		return max(tr.opt.Bits, mostTargets)
	}
	return len(sets.sets)
}

// estimate estimates the memory that the training needs; see checkMemory. It leaves Available at 0.
func (tr *trainer) estimate(items []int, sets *labelSets) (e MemoryError) {
	var statistics, largest, kept, trial, basis, rest float64
	var choice MemoryError // the same for maps that are compared
	for t, m := range tr.reader.Modalities {
		n := items[t]
		open := tr.from.open != nil && tr.from.open[t].kind
		kinds := []model.MapKind{tr.opt.Map[m.Name]}
		if open {
			kinds = []model.MapKind{model.MapRBF, model.MapLinear, model.MapRBFLinear}
		}
		anchors := min(cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(n)), n) // makeMaps refuses more anchors
		k, tried := 0, 0
		kind, triedKind := kinds[0], kinds[0]
		for _, candidate := range kinds {
			if candidate.Size(choiceAnchors, m.Dim) <= choiceFeatures {
				if tr.undecided(t) || tr.measures() {
					size := candidate.Size(min(n, anchors, choiceItems), m.Dim)
					if size > refineFeatures {
						size = candidate.Size(min(refineAnchors, anchors), m.Dim)
					}
					if size > tried {
						tried, triedKind = size, candidate
					}
				}
			} else if open && candidate != model.MapRBF {
				continue // it is not tried
			}
			// checkFeatures refuses more features
			if size := candidate.Size(anchors, m.Dim); size > k && size <= wire.MaxFeatures {
				k, kind = size, candidate
			}
		}
		sampled := float64(min(n, choiceItems, max(minChoiceItems, choiceNumbers/m.Dim)))
		if m.Sparse {
			sampled = 0 // the lengths of vectors are unknown; choiceNumbers bounds them
		}
		statistics += float64(square(k))
		rest += float64(sum.Levels(n)) * float64(square(k)) // sums of the tree besides the leaf
		if sets != nil && tr.aim(sets) == model.AimLabels { // sums by label
			c := float64(len(sets.labels))
			rest += float64(1+sum.Levels(n)) * 8 * c * (c + float64(k))
		}
		if float64(square(k)) > largest {
			largest = float64(square(k))
			e.Modality, e.Map, e.Features = m.Name, kind, k
		}
		if tried > 0 {
			// Modalities are tried one after the other.
			phi := 4 * float64(min(n, choiceItems)) * float64(tried)
			if bytes := choiceSquares*float64(square(tried)) + choicePhis*phi; bytes > trial {
				trial = bytes
				choice = MemoryError{Modality: m.Name, Map: triedKind, Features: tried, Choosing: true}
			}
			columns := float64(tr.heldColumns(sets))
			kept += 8 * float64(min(n, choiceItems)) * columns // held-out projections
			if room := 16 * columns * float64(min(n, choiceItems)+tried); room > basis {
				basis = room // while two settings are compared, and the right sides of one
			}
		}
		rest += vectorCopies*4*sampled*float64(m.Dim) + columnBytes*float64(m.Dim) +
			4*sum.BlockItems*float64(k) + 16*float64(tr.opt.Bits)*float64(k)
		if !m.Sparse {
			rest += vectorCopies*4*float64(anchors)*float64(m.Dim) + 2*4*sum.BlockItems*float64(m.Dim)
		}
	}
	if tr.opt.Method != model.MethodLabels && sets != nil {
		rest += 8 * float64(sets.items) * float64(len(sets.labels)) // Y
	}
	most := statisticsSquares*statistics + solveSquares*largest
	if trial+basis+kept > most {
		most, e = trial+basis+kept, choice
	}
	e.Needed = int64(most + rest)
	return e
}
