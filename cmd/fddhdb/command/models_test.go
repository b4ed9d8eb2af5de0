package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/db/report"
)

// printed returns what f prints.
func printed(f func(e *run.Env)) string {
	var out bytes.Buffer
	e := newTestEnv()
	e.Stdout.Reset(&out)
	f(e)
	e.Stdout.Flush()
	return out.String()
}

// someSpaces returns two spaces, the first with revisions and their drift.
func someSpaces() []report.SpaceInfo {
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 9, minute, 0, 0, time.Local) }
	return []report.SpaceInfo{
		{
			Space: 1, State: report.SpaceActive, Created: at(0), Bits: 64, Revision: 3,
			Items: 2173, Codes: 10,
			Taught: 2173, Pending: 12,
			ModelBytes: 1_300_000, Checksum: "0a1b2c3d", Recode: 4,
			Revisions: []report.RevisionInfo{
				{Revision: 1, Created: at(0), Items: 1900, Labelled: 1900},
				{Revision: 2, Parent: 1, Created: at(5), Teacher: "auto", Lead: "text", Items: 173,
					Labelled: 100, Unlabelled: 73, Forgotten: 2,
					Drift: report.Drift{"image": .04, "text": .01}},
				{Revision: 3, Parent: 2, Created: at(9), Reason: "labels have grown", Items: 100,
					Labelled: 100, Drift: report.Drift{"image": .31}},
			},
		},
		{Space: 2, State: report.SpaceStandby, Previous: true, Created: at(1), Bits: 32, Revision: 1,
			Items: 2173,
			Codes: 20, ModelBytes: 1200},
		{Space: 4, State: report.SpaceBuilding, Parent: 1, Created: at(10), Bits: 64, Revision: 1, Items: 500,
			Built: 1050, Codes: 9},
	}
}

func TestPrintSpaces(t *testing.T) {
	got := printed(func(e *run.Env) { printSpaces(e, "main", someSpaces(), 2200) })
	want := `space  state                revision  parent  created           bits  items  codes  taught  pending    model
    1  active                      3       -  2026-03-01 09:00    64  2,173     10   2,173       12   1.3 MB
    2  standby, was active         1       -  2026-03-01 09:01    32  2,173     20       0        0   1.2 kB
    4  building, 47%               1       1  2026-03-01 09:10    64    500      9       0        0  0 bytes

space 1, 4 items still to get the code of new labels: fddhdb update
revision  parent  created           teacher            taught  drift
       1       -  2026-03-01 09:00  training            1,900      -
       2       1  2026-03-01 09:05  auto, text            173  0.040
       3       2  2026-03-01 09:09  labels have grown     100  0.310  in use, train again
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, want := printed(func(e *run.Env) { printSpaces(e, "main", nil, 0) }),
		"collection main has no model yet: run fddhdb train\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPrintUpdate(t *testing.T) {
	for _, c := range []struct {
		update report.Update
		want   string
	}{
		{report.Update{Space: 1, Revision: 3}, `
space 1 of collection main stays at revision 3
there is nothing new to learn from
`},
		{report.Update{Space: 1, Revision: 4, Items: 1, Labelled: 1, Revised: true, Forgotten: 1, Seconds: .0123}, `
space 1 of collection main is at revision 4 now, in 0.0123 s
1 labelled item has taught its labels
1 item that had taught is taken out again: stored again since, or deleted
`},
		{report.Update{Space: 2, Revision: 4, Items: 1300, Labelled: 300, Unlabelled: 1000, Revised: true, Lead: "text", Reason: "it is better", Seconds: 1}, `
space 2 of collection main is at revision 4 now, in 1 s
300 labelled items have taught their labels
1,000 items without a known label have taught
why: it is better
`},
		{report.Update{Space: 1, Revision: 3, Skipped: 41, Refused: 40, Lead: "text", Reason: "it is worse"}, `
space 1 of collection main stays at revision 3
40 items without a known label are refused, and stay pending
1 item has taught nothing
why: it is worse
`},
		{report.Update{Space: 1, Revision: 4, Items: 5, Unlabelled: 5, Revised: true, Grown: []string{"a"}, Recoded: 7, NoDirection: []string{"b", "c\n"}, Seconds: 2}, `
space 1 of collection main is at revision 4 now, in 2 s
5 items without a known label have taught
1 label has a direction now: a
7 items have another code now
2 labels find no direction left: train again, with more bits if there are more labels than bits
`},
	} {
		got := printed(func(e *run.Env) { printUpdate(e, "main", &c.update) })
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), got); diff != "" {
			t.Errorf("%+v: %s", c.update, diff)
		}
	}
}

func TestManyLabelNames(t *testing.T) {
	var names []string
	for i := range 23 {
		names = append(names, string(rune('a'+i)))
	}
	if got, want := labelNames(names),
		"a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t and 3 others"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
