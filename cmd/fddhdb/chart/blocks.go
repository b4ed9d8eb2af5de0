package chart

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/model/eval"

	"github.com/fddhdb/fddhdb/db"
)

// blockLine draws values as a line of blocks: the lowest for low and less, the highest
// for high and more.
func blockLine(values []float64, low, high float64) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		share := 0.0
		if high > low {
			share = (v - low) / (high - low)
		}
		b.WriteRune(blocks[int(math.Round(min(max(share, 0), 1)*float64(len(blocks)-1)))])
	}
	return b.String()
}

// Precision draws the precision of the first K, from 0 to 1.
func Precision(points []eval.TopPoint) string {
	var values []float64
	for _, p := range points {
		values = append(values, p.Precision)
	}
	return blockLine(values, 0, 1)
}

// Drift draws the drift of the items that came with each revision of a space, if there are several: a line
// a modality.
func Drift(s *db.SpaceInfo) (lines []string) {
	values := map[string][]float64{}
	for _, r := range s.Revisions {
		for name, x := range r.Drift {
			values[name] = append(values[name], x)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if of := values[name]; len(of) > 1 {
			lines = append(lines, fmt.Sprintf("drift of %s: %s %.3f to %.3f", shortName(name),
				blockLine(of, 0, max(slices.Max(of), db.DriftLimit)), of[0], of[len(of)-1]))
		}
	}
	return lines
}
