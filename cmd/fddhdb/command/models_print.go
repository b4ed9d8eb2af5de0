package command

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// printSpaces shows the spaces of a collection of so many items, and under each its
// revisions.
func (e *env) printSpaces(collection string, spaces []db.SpaceInfo, items int) {
	if len(spaces) == 0 {
		e.printf("collection %s has no model yet: run fddhdb train\n", collection)
		return
	}
	var rows [][]any
	for i := range spaces {
		s := &spaces[i]
		rows = append(rows, []any{
			s.Space, spaceState(s, items), s.Revision, orNoCell(s.Parent), timeCell(s.Created), s.Bits,
			countCell(s.Items), countCell(s.Codes), countCell(s.Taught), countCell(s.Pending), bytesCell(s.ModelBytes),
		})
	}
	e.printTable([]column{right("space"), left("state"), right("revision"), right("parent"), left("created"), right("bits"),
		right("items"), right("codes"), right("taught"), right("pending"), right("model")}, rows)
	for i := range spaces {
		s := &spaces[i]
		if len(s.Revisions) == 0 {
			continue // the items bring their codes
		}
		e.printf("\nspace %d", s.Space)
		if len(s.Views) > 0 {
			e.printf(", codes for each target")
		}
		if s.Checksum != "" {
			e.printf(", checksum %s", s.Checksum)
		}
		if s.Recode > 0 {
			e.printf(", %s still to get the code of new labels: fddhdb update", plural(s.Recode, "item", "items"))
		}
		e.printf("\n")
		e.printRevisions(s)
		if e.chartsShown() {
			e.chartDrift(s)
		}
	}
}

// spaceState says what a space is there for.
func spaceState(s *db.SpaceInfo, items int) string {
	switch {
	case s.State == db.SpaceBuilding:
		return fmt.Sprintf("building, %d%%", 100*min(s.Built, items)/max(items, 1))
	case s.Previous:
		return string(s.State) + ", was active"
	}
	return string(s.State)
}

// printRevisions shows the revisions of a space, a line for each and modality.
func (e *env) printRevisions(s *db.SpaceInfo) {
	var rows [][]any
	for i := range s.Revisions {
		r := &s.Revisions[i]
		of := []any{r.Revision, orNoCell(r.Parent), timeCell(r.Created), revisionTeacher(s, r),
			countCell(r.Items), countCell(r.Unlabelled), countCell(r.Forgotten)}
		note := ""
		if r.Pinned {
			note = "pinned"
		}
		if r.Revision == s.Revision {
			note = joined("in use", note)
		}
		for _, name := range revisionModalities(r) {
			rows = append(rows, slices.Concat(of, driftCells(r, name), []any{note}))
			if note = ""; !e.flat() {
				of = []any{"", "", "", "", "", "", ""}
			}
		}
	}
	e.printTable([]column{right("revision"), right("parent"), left("created"), left("teacher"),
		right("taught"), right("unlabelled"), right("forgotten"),
		left("modality"), right("nearest p50"), right("p90"), right("residual"), right("overall"), right("balance"), left("")}, rows)
}

// revisionModalities returns the modalities that anything is known of, "" for none.
func revisionModalities(r *db.RevisionInfo) []string {
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

// driftCells are the figures of one modality of a revision.
func driftCells(r *db.RevisionInfo, modality string) []any {
	cells := []any{textCell(modality), noCell, noCell, noCell, noCell, noCell}
	if x, has := r.Residual[modality]; has {
		cells[4] = numberCell(x, 3)
	}
	if r.Drift != nil {
		d := r.Drift.Modalities[modality]
		if d.Nearest != nil {
			cells[1], cells[2] = d.Nearest.P50, d.Nearest.P90
		}
		if d.Residual != nil {
			cells[3] = numberCell(*d.Residual, 3)
		}
		if d.Balance != nil {
			cells[5] = numberCell(d.Balance.BitBalance, 3)
		}
	}
	return cells
}

// revisionTeacher says who taught items without labels.
func revisionTeacher(s *db.SpaceInfo, r *db.RevisionInfo) string {
	switch {
	case r.Parent == 0 && s.Parent != 0:
		return "reindex"
	case r.Parent == 0:
		return "training"
	case r.Teacher == "":
		return orDash(r.Reason) // nobody: it is not from items
	case r.Unlabelled > 0 && r.Lead != "":
		return r.Teacher + ", " + r.Lead
	}
	return r.Teacher
}

// orNone spells the number of a parent.
func orNone(n uint32) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// joined puts what is not empty in a row.
func joined(a, b string) string {
	if b == "" {
		return a
	}
	return a + ", " + b
}
