package command

import (
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// Several databases are measured in one run, and the output names each.
func TestBenchOfSeveralDatabases(t *testing.T) {
	a, queries := benchFixture(t, 16, 50, 3)
	b, _ := benchFixture(t, 16, 400, 3)
	figure := t.TempDir() + "/a.svg"
	args := []string{a, b, "--codes", queries, "--tier", "auto", "--queries", "2", "--plot", figure}
	code, stdout, stderr := doBench(t, &fakeTarget{}, append(args, "--json")...)
	if code != 0 || stderr != "" || strings.Count(stdout, "\n") != 2 ||
		!strings.Contains(stdout, `"items":50,"database":"`+a) || !strings.Contains(stdout, `"items":400,"database":"`+b) {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
	svg, err := os.ReadFile(figure)
	if err != nil {
		t.Fatal(err)
	}
	if list, _, _ := clitest.Texts(t, svg); !strings.Contains(strings.Join(list, "\n"), "the 10 nearest") {
		t.Errorf("%q", list)
	}
	if _, stdout, _ = doBench(t, &fakeTarget{}, args...); !strings.HasPrefix(stdout, "database ") || strings.Count(stdout, "\n") != 3 {
		t.Error(stdout)
	}
	// Measurements from before a failure are printed, and the error names the database.
	args[1] = t.TempDir()
	code, stdout, stderr = doBench(t, &fakeTarget{}, append(args, "--json")...)
	if code != exit.Usage || strings.Count(stdout, "\n") != 1 || !strings.Contains(stderr, "while measuring "+args[1]) {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
}
