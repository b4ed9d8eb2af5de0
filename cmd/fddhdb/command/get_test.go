package command

import (
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

func TestGet(t *testing.T) {
	f := newFixture(t, 20, true)
	out := must(t, "get", f.db, "3", "1", "3", "--json")
	var keys []string
	for line := range strings.Lines(out) {
		key, _, _ := strings.Cut(strings.TrimPrefix(line, `{"key":"`), `"`)
		keys = append(keys, key)
	}
	if got := strings.Join(keys, " "); got != "3 1 3" {
		t.Errorf("keys %s, want those asked for in their order", got)
	}
	code, stdout, stderr := do(t, "get", f.db, "nosuch", "3")
	if code != exit.Failed || !strings.HasPrefix(stdout, "3\n") || stderr != "fddhdb: not found in collection \"main\": nosuch\n" {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}
