package command

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

// printSpaces prints the spaces of a collection of so many items, each followed by its
// revisions.
func (e *env) printSpaces(collection string, spaces []db.SpaceInfo, items int) {
	if len(spaces) == 0 {
		e.Printf("collection %s has no model yet: run fddhdb train\n", collection)
		return
	}
	var rows [][]any
	for i := range spaces {
		s := &spaces[i]
		rows = append(rows, []any{
			s.Space, spaceState(s, items), s.Revision, term.OrNoCell(s.Parent), term.TimeCell(s.Created), s.Bits,
			term.CountCell(s.Items), term.CountCell(s.Codes), term.CountCell(s.Taught), term.CountCell(s.Pending), term.BytesCell(s.ModelBytes),
		})
	}
	e.PrintTable([]term.Column{term.Right("space"), term.Left("state"), term.Right("revision"), term.Right("parent"), term.Left("created"), term.Right("bits"),
		term.Right("items"), term.Right("codes"), term.Right("taught"), term.Right("pending"), term.Right("model")}, rows)
	for i := range spaces {
		s := &spaces[i]
		if len(s.Revisions) == 0 {
			continue // the items bring their codes
		}
		e.Printf("\nspace %d", s.Space)
		if s.Training != nil && s.Training.Method.LabelFree() {
			e.Printf(", without labels, method %v", s.Training.Method)
		}
		if s.Aim != "" {
			e.Printf(", aim %s", aimText(s.Aim, s.Prior))
		}
		if s.Checksum != "" {
			e.Printf(", checksum %s", s.Checksum)
		}
		if s.Recode > 0 {
			e.Printf(", %s still to get the code of new labels: fddhdb update", term.Plural(s.Recode, "item", "items"))
		}
		e.Printf("\n")
		e.printRevisions(s)
		if e.ChartsShown() {
			for _, line := range chart.Drift(s) {
				e.Printf("%s\n", line)
			}
		}
	}
}

// spaceState returns the purpose of a space in words.
func spaceState(s *db.SpaceInfo, items int) string {
	switch {
	case s.State == db.SpaceBuilding:
		return fmt.Sprintf("building, %d%%", 100*min(s.Built, items)/max(items, 1))
	case s.Previous:
		return string(s.State) + ", was active"
	}
	return string(s.State)
}

// printRevisions prints the revisions of a space, a line for each revision and
// modality.
func (e *env) printRevisions(s *db.SpaceInfo) {
	var rows [][]any
	for i := range s.Revisions {
		r := &s.Revisions[i]
		of := []any{r.Revision, term.OrNoCell(r.Parent), term.TimeCell(r.Created), revisionTeacher(s, r),
			term.CountCell(r.Items), term.CountCell(r.Unlabelled), term.CountCell(r.Forgotten)}
		note := ""
		if r.Pinned {
			note = "pinned"
		}
		if r.Revision == s.Revision {
			note = joined("in use", note)
		}
		names := slices.Sorted(maps.Keys(r.Drift))
		if len(names) == 0 {
			rows = append(rows, slices.Concat(of, []any{term.TextCell(""), term.NoCell, note}))
		}
		for _, name := range names {
			x := r.Drift[name]
			if (db.Drift{name: x}).TrainAgain() {
				note = joined("train again", note)
			}
			rows = append(rows, slices.Concat(of, []any{term.TextCell(name), term.NumberCell(x, 3), note}))
			if note = ""; !e.Flat() {
				of = []any{"", "", "", "", "", "", ""}
			}
		}
	}
	e.PrintTable([]term.Column{term.Right("revision"), term.Right("parent"), term.Left("created"), term.Left("teacher"),
		term.Right("taught"), term.Right("unlabelled"), term.Right("forgotten"),
		term.Left("modality"), term.Right("drift"), term.Left("")}, rows)
}

// revisionTeacher returns the teacher of items without labels.
func revisionTeacher(s *db.SpaceInfo, r *report.RevisionInfo) string {
	switch {
	case r.Parent == 0 && s.Parent != 0:
		return "reindex"
	case r.Parent == 0:
		return "training"
	case r.Teacher == "":
		return term.OrDash(r.Reason) // the revision is not from items
	case r.Unlabelled > 0 && r.Lead != "":
		return r.Teacher + ", " + r.Lead
	}
	return r.Teacher
}

// orNone returns the number of a parent as text.
func orNone(n db.Space) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// joined joins two texts, without empty ones.
func joined(a, b string) string {
	if b == "" {
		return a
	}
	return a + ", " + b
}
