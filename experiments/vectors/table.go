package vectors

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// printSides writes a row for each point of each side.
func printSides(w io.Writer, sides []*side) {
	common.Head(w, 2, "program", "setting", "found", "median, us", "p99, us", "import, s", "build, s", "threads", "memory, MB", "disk, MB")
	for _, s := range sides {
		name := s.program
		if s.built.Version != "" {
			name += ", " + s.built.Version
		}
		for i, p := range s.points {
			cells := []string{name, s.setting + " " + strconv.FormatFloat(p.value, 'g', -1, 64), fmt.Sprintf("%.4f", p.found),
				digits(p.median()), digits(p.micros[len(p.micros)*99/100]), "", "", "", "", ""}
			if i == 0 { // what is the same for all points
				b := s.built
				cells = append(cells[:5], known(b.Import), known(b.Build), strconv.Itoa(b.Threads), known(float64(b.Memory)/1e6), known(float64(b.Disk)/1e6))
			}
			common.Row(w, cells...)
		}
	}
}

// printRatios writes the time of the first side as a part of that of the others, at equal
// recall.
func printRatios(w io.Writer, sides []*side) {
	var peers []string
	head, points := []string{"asked", "found", "fddhdb, us"}, map[string][]*point{}
	for _, s := range sides[1:] {
		if points[s.program] == nil {
			peers, head = append(peers, s.program), append(head, "of "+s.program)
		}
		points[s.program] = append(points[s.program], s.points...)
	}
	common.Head(w, 0, head...)
	for _, p := range sides[0].points {
		cells := []string{strconv.FormatFloat(p.value, 'g', -1, 64), fmt.Sprintf("%.4f", p.found), digits(p.median())}
		for _, peer := range peers {
			cell := "-"
			if theirs, ok := microsAt(points[peer], p.found); ok {
				cell = ratio(p.median() / theirs)
			}
			cells = append(cells, cell)
		}
		common.Row(w, cells...)
	}
}

// microsAt returns how long the one that has these points takes to find so much: on the
// straight line between two neighbours among the points that no other point beats in
// both. It is false where no point finds so much.
func microsAt(points []*point, found float64) (float64, bool) {
	points = slices.SortedFunc(slices.Values(points), func(a, b *point) int { return cmp.Compare(a.median(), b.median()) })
	var last *point
	for _, p := range points {
		if last != nil && p.found <= last.found {
			continue
		}
		if p.found >= found {
			if last == nil { // even its fastest point finds more
				return p.median(), true
			}
			part := (found - last.found) / (p.found - last.found)
			return last.median() + part*(p.median()-last.median()), true
		}
		last = p
	}
	return 0, false
}

// known formats a number that is 0 where a side has none.
func known(x float64) string {
	if x == 0 {
		return "-"
	}
	return digits(x)
}

// ratio formats a number with two places, and a small one with more.
func ratio(x float64) string {
	if x < .1 {
		return strconv.FormatFloat(x, 'f', 4, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// digits formats a number with about three digits.
func digits(x float64) string {
	switch {
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}
