package command

import (
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

func TestCount(t *testing.T) {
	f := newFixture(t, 10, false)
	if got := must(t, "count", f.db); got != "10\n" {
		t.Errorf("%q", got)
	}
	if got := must(t, "count", f.db, "--json"); got != "{\"count\":10}\n" {
		t.Errorf("%q", got)
	}
	if got := must(t, "count", f.db, "--where", "has(image)"); got != "10\n" {
		t.Errorf("%q", got)
	}
	if code, _, stderr := do(t, "count", f.db, "--collection", "nosuch"); code != exit.Usage ||
		stderr != "fddhdb: there is no collection \"nosuch\": there is main\n" {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
