package command

import (
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// warnSkipped prints why rows were skipped.
func (e *env) warnSkipped(s *source.SkippedRows) {
	for _, g := range s.Groups {
		more := g.Count - 1
		if more == 0 {
			e.Warnf("skipped: %s", g.Reason)
			continue
		}
		var rows []string
		for _, row := range g.Rows[1:] {
			rows = append(rows, term.Thousands(row))
		}
		if more > len(rows) {
			rows = append(rows, "...")
		}
		e.Warnf("skipped: %s; and %s like it: row %s", g.Reason, term.Thousands(more), strings.Join(rows, ", "))
	}
}
