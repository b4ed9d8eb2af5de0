package command

import (
	"context"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// The verbs that have --where agree on what matches.
func TestWhereVerbs(t *testing.T) {
	f := newFixture(t, 60, true)
	const where = "label = 'label1' OR label = 'label2'"
	var counted, exported, deleted struct{ Count, Items, Deleted int }
	mustJSON(t, &counted, "count", f.db, "--where", where)
	mustJSON(t, &exported, "export", f.db, "--keys", f.path("ids.txt"), "--where", where)
	var found struct{ Total int }
	mustJSON(t, &found, "search", f.db, "--key", "0", "--radius", "16", "--where", where)
	mustJSON(t, &deleted, "delete", f.db, "--where", where)
	if n := counted.Count; n == 0 || n == 60 || exported.Items != n || found.Total != n ||
		deleted.Deleted != n {
		t.Errorf("%d counted, %d exported, %d found, %d deleted", n, exported.Items, found.Total,
			deleted.Deleted)
	}
	if out := must(t, "scan", f.db, "--json"); out == "" || strings.Contains(out, `"label1"`) ||
		strings.Contains(out, `"label2"`) {
		t.Errorf("left: %s", out)
	}
}

func TestWhereFlag(t *testing.T) {
	v := newTestEnv().NewVerb("", "verb DIR", "", "", "").Filtered()
	if err := v.Cmd.ParseFlags([]string{"--where", " "}); err == nil || v.Filter.Given() {
		t.Errorf("a blank expression: %v", err)
	}
	if err := v.Cmd.ParseFlags([]string{"--where", "a = 1"}); err != nil || v.Filter.Expr != "a = 1" {
		t.Errorf("%q: %v", v.Filter.Expr, err)
	}
	err := v.Worded(&db.WhereError{Column: 3, Reason: "is wrong"})
	if exit.Code(err) != exit.Usage || err.Error() != "--where: column 3: is wrong" {
		t.Errorf("%v", err)
	}
	if err := v.Worded(context.Canceled); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
