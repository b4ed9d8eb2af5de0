package source

import (
	"strings"
	"unicode"
)

// SkippedRows are the rows that were left out, grouped by reason. Reasons that differ only in numbers and
// quoted text are one.
type SkippedRows struct {
	N      int
	Groups []*SkippedReason          // in order of first appearance
	byKind map[string]*SkippedReason // by reasonKind
}

// A SkippedReason is a reason for which rows were left out.
type SkippedReason struct {
	Reason string `json:"reason"` // of the first row
	Count  int    `json:"count"`
	Rows   []int  `json:"rows"` // the first few rows
}

const (
	shownReasons = 20 // largest number of reasons; the rest counts as one
	shownRows    = 5  // of each reason
)

// Add adds a row. A negative one has no number: it counts alone.
func (s *SkippedRows) Add(row int, why string) {
	s.N++
	kind := reasonKind(why)
	g := s.byKind[kind]
	if g == nil && len(s.Groups) >= shownReasons {
		kind, why = "", "other reasons"
		g = s.byKind[kind]
	}
	if g == nil {
		if s.byKind == nil {
			s.byKind = map[string]*SkippedReason{}
		}
		g = &SkippedReason{Reason: why, Rows: []int{}}
		s.byKind[kind] = g
		s.Groups = append(s.Groups, g)
	}
	if g.Count++; row >= 0 && len(g.Rows) < shownRows {
		g.Rows = append(g.Rows, row)
	}
}

// GoOn begins with the groups that an earlier SkippedRows had.
func (s *SkippedRows) GoOn(groups []*SkippedReason) {
	s.byKind = map[string]*SkippedReason{}
	for i, g := range groups {
		kind := reasonKind(g.Reason)
		if i >= shownReasons {
			kind = "" // other reasons
		}
		s.N += g.Count
		s.byKind[kind] = g
	}
	s.Groups = groups
}

// reasonKind returns a reason without the parts that differ between rows.
func reasonKind(why string) string {
	var b strings.Builder
	quoted, digit := false, false
	for _, r := range why {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
			continue
		case unicode.IsDigit(r):
			if !digit {
				b.WriteByte('0')
			}
			digit = true
			continue
		}
		digit = false
		b.WriteRune(r)
	}
	return b.String()
}
