package chart

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
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
func Precision(points []model.TopPoint) string {
	var values []float64
	for _, p := range points {
		values = append(values, p.Precision)
	}
	return blockLine(values, 0, 1)
}

// Drift draws residual, nearest distances and mAP of the new items of each revision of
// a space, if there are several revisions: a line a modality.
func Drift(s *db.SpaceInfo) (lines []string) {
	for _, name := range driftNames(s) {
		var residuals, nearest, precision []float64
		for i := range s.Revisions {
			d := s.Revisions[i].Drift
			if d == nil || d.Trained {
				continue
			}
			of := d.Modalities[name]
			if of.Residual != nil {
				residuals = append(residuals, *of.Residual)
			}
			if of.Nearest != nil {
				nearest = append(nearest, float64(of.Nearest.P50))
			}
			if of.MAP != nil {
				precision = append(precision, *of.MAP)
			}
		}
		var parts []string
		for _, c := range []struct {
			name   string
			values []float64
			digits int
		}{{"residual", residuals, 3}, {"nearest p50", nearest, 0}, {"mAP", precision, 3}} {
			if n := len(c.values); n > 1 {
				top := slices.Max(c.values)
				parts = append(parts, fmt.Sprintf("%s %s %.*f to %.*f", c.name, blockLine(c.values, 0, top), c.digits, c.values[0], c.digits, c.values[n-1]))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, shortName(name)+" that came: "+strings.Join(parts, ", "))
		}
	}
	return lines
}

// RevisionModalities returns the modalities for which a revision has figures, "" if
// there are none.
func RevisionModalities(r *db.RevisionInfo) []string {
	known := map[string]bool{}
	for name := range r.Residual {
		known[name] = true
	}
	if r.Drift != nil {
		for name := range r.Drift.Modalities {
			known[name] = true
		}
	}
	if len(known) == 0 {
		return []string{""}
	}
	return slices.Sorted(maps.Keys(known))
}

// driftNames returns the modalities with something to draw.
func driftNames(s *db.SpaceInfo) []string {
	known := map[string]bool{}
	for i := range s.Revisions {
		for _, name := range RevisionModalities(&s.Revisions[i]) {
			known[name] = name != ""
		}
	}
	maps.DeleteFunc(known, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(known))
}
