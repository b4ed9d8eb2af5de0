package writes

import (
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// Both sides write, by each number of goroutines, and leave nothing behind.
func TestCommand(t *testing.T) {
	var out strings.Builder
	args := []string{"--goroutines", "1,3", "--for", "20ms", "--rounds", "1", "--dir", t.TempDir()}
	if err := common.Execute(t.Context(), Command(), args, &out, &out); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[2], "| 1 | ") || !strings.HasPrefix(lines[3], "| 3 | ") ||
		strings.Contains(out.String(), "| 0 |") {
		t.Errorf("%s", out.String())
	}
	for _, bad := range [][]string{{"--goroutines", "0"}, {"--rounds", "0"}, {"--for", "0s"},
		{"--bits", "7"}} {
		if err := common.Execute(t.Context(), Command(), bad, &out, &out); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}
