package main

import (
	"strings"
	"unicode"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// skippedRows are the rows that were left out, grouped by reason, as fddhdb import groups them: reasons that
// differ only in numbers and quoted text are one.
type skippedRows struct {
	n      int
	groups []*skippedReason // in order of first appearance
	byKind map[string]*skippedReason
}

// A skippedReason is a reason for which rows were left out.
type skippedReason struct {
	Reason string `json:"reason"` // of the first row
	Count  int    `json:"count"`
	Rows   []int  `json:"rows"` // the first few; of an item that a shard has refused none
}

const (
	shownReasons = 20 // largest number of reasons; the rest counts as one
	shownRows    = 5  // of each reason
)

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
		g = &skippedReason{Reason: why, Rows: []int{}}
		s.byKind[kind] = g
		s.groups = append(s.groups, g)
	}
	if g.Count++; row >= 0 && len(g.Rows) < shownRows {
		g.Rows = append(g.Rows, row)
	}
}

// reasonKind returns a reason without the parts that differ between rows.
func reasonKind(why string) string {
	var b strings.Builder
	quoted := false
	for _, r := range why {
		switch {
		case r == '"':
			quoted = !quoted
		case !quoted && !unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// warn prints why rows were skipped.
func (s *skippedRows) warn(e *env) {
	for _, g := range s.groups {
		more := ""
		if g.Count > 1 {
			more = "; and " + term.Thousands(g.Count-1) + " like it"
		}
		if len(g.Rows) > 1 {
			more += ": rows " + numbers(g.Rows[1:])
			if g.Count > len(g.Rows) {
				more += ", ..."
			}
		}
		e.warnf("skipped: %s%s", g.Reason, more)
	}
}
