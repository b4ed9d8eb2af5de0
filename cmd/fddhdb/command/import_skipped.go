package command

import (
	"strings"
	"unicode"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// skippedRows are the rows that were left out, grouped by reason. Reasons that differ
// only in numbers and quoted text are one.
type skippedRows struct {
	n      int
	groups []*skippedReason          // in order of first appearance
	byKind map[string]*skippedReason // by reasonKind
}

// A skippedReason is a reason for which rows were left out.
type skippedReason struct {
	Reason string `json:"reason"` // of the first row
	Count  int    `json:"count"`
	Rows   []int  `json:"rows"` // the first few rows
}

const (
	shownReasons = 20 // largest number of reasons; the rest counts as one
	shownRows    = 5  // of each reason
)

// add adds a row.
func (s *skippedRows) add(row int, why string) {
	s.n++
	kind := reasonKind(why)
	g := s.byKind[kind]
	if g == nil && len(s.groups) >= shownReasons {
		kind, why = "", "other reasons"
		g = s.byKind[kind]
	}
	if g == nil {
		if s.byKind == nil {
			s.byKind = map[string]*skippedReason{}
		}
		g = &skippedReason{Reason: why}
		s.byKind[kind] = g
		s.groups = append(s.groups, g)
	}
	if g.Count++; len(g.Rows) < shownRows {
		g.Rows = append(g.Rows, row)
	}
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

// warn prints why rows were skipped.
func (s *skippedRows) warn(e *env) {
	for _, g := range s.groups {
		more := g.Count - 1
		if more == 0 {
			e.Warnf("skipped: %s", g.Reason)
			continue
		}
		rows := make([]string, 0, shownRows)
		for _, row := range g.Rows[1:] {
			rows = append(rows, term.Thousands(row))
		}
		if more > len(rows) {
			rows = append(rows, "...")
		}
		e.Warnf("skipped: %s; and %s like it: row %s", g.Reason, term.Thousands(more), strings.Join(rows, ", "))
	}
}
