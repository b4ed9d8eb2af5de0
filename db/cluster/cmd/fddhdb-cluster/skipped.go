package main

import (
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// warnSkipped prints the reasons for skipped rows.
func (e *env) warnSkipped(s *source.SkippedRows) {
	for _, g := range s.Groups {
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
